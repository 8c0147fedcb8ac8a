//! The binary: how it starts, tells where it is, and stops.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::cast_precision_loss, reason = "the numbers are small")]

#[path = "support/deployment.rs"]
mod deployment;
#[path = "support/proxy.rs"]
mod proxy;
mod support;
#[path = "support/worker.rs"]
mod worker;

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use support::Call;
use worker::{Worker, signal};

#[test]
fn it_tells_its_port_and_stops_when_told() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["TERM", "INT"] {
        let port_file = folder.path().join("port");
        let mut worker = Worker::start_with("memory", &["--port-file", port_file.to_str().unwrap()]);
        let address = worker.address;
        assert_eq!(std::fs::read_to_string(&port_file).unwrap(), address.port().to_string());
        assert_eq!(support::http(address, "GET", "/health", &[], b"").status, 200);
        signal(worker.child.id(), name);
        assert!(worker.ends_within(Duration::from_secs(5)).unwrap().success());
    }
}

/// What is in a folder, with its permissions.
fn entries(folder: &Path) -> Vec<(String, u32)> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().mode() & 0o777)).collect()
}

#[test]
fn without_a_storage_it_makes_one_that_goes_with_it() {
    let temporary = tempfile::tempdir().unwrap();
    for name in ["TERM", "INT"] {
        let mut worker = Worker::start_without_storage(temporary.path(), &[]);
        let made = entries(temporary.path());
        assert!(matches!(&made[..], [(name, 0o700)] if name.starts_with("vgi-worker-scratch-")), "{made:?}");
        let inside = entries(&temporary.path().join(&made[0].0));
        assert!(inside.iter().any(|(name, _)| name == "values"), "{inside:?}");
        deployment::every_function_is_right(worker.address);
        assert_eq!(worker.stat("live_executions"), 0);
        signal(worker.child.id(), name);
        assert!(worker.ends_within(Duration::from_secs(5)).unwrap().success());
        assert_eq!(entries(temporary.path()), []);
    }
}

#[test]
fn a_second_signal_leaves_no_storage_either() {
    let temporary = tempfile::tempdir().unwrap();
    let mut worker = Worker::start_without_storage(temporary.path(), &["--grace", "600"]);
    let input = deployment::rows(0, 1);
    let _left = deployment::client(worker.address).begin(&Call::new("buffer_input"), &input.schema()).unwrap();
    signal(worker.child.id(), "TERM");
    assert!(worker.ends_within(Duration::from_millis(500)).is_none());
    signal(worker.child.id(), "TERM");
    assert!(!worker.ends_within(Duration::from_secs(5)).unwrap().success());
    assert_eq!(entries(temporary.path()), []);
}

#[test]
fn what_a_killed_one_left_is_removed_by_the_next() {
    let temporary = tempfile::tempdir().unwrap();
    let living = Worker::start_without_storage(temporary.path(), &[]);
    let before = entries(temporary.path());
    let mut killed = Worker::start_without_storage(temporary.path(), &[]);
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    assert_eq!(entries(temporary.path()).len(), 2);
    let next = Worker::start_without_storage(temporary.path(), &[]);
    let after = entries(temporary.path());
    assert!(after.len() == 2 && after.contains(&before[0]), "{after:?}");
    for worker in [&living, &next] {
        assert_eq!(worker.stat("live_executions"), 0);
    }
}

#[test]
fn it_ends_with_the_process_that_it_watches() {
    let mut watched = Command::new("sleep").arg("60").spawn().unwrap();
    let mut worker = Worker::start_with("memory", &["--parent-pid", &watched.id().to_string()]);
    assert!(worker.ends_within(Duration::from_millis(800)).is_none());
    watched.kill().unwrap();
    // not waited for: the process is gone though its entry is not
    assert!(worker.ends_within(Duration::from_secs(5)).unwrap().success());
    watched.wait().unwrap();
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let worker = Worker::start("memory");
    let second = Command::new(env!("CARGO_BIN_EXE_vgi-worker"))
        .args(["serve", "--port", &worker.address.port().to_string()])
        .output()
        .unwrap();
    assert!(!second.status.success());
    assert!(String::from_utf8_lossy(&second.stderr).contains("in use"), "{}", String::from_utf8_lossy(&second.stderr));
}

#[test]
fn a_password_in_a_storage_is_not_repeated() {
    for (storage, hint) in [
        ("mysql://ann:s3same@host/state", "'mysql:' is no storage (there are: memory, sqlite:PATH"),
        ("postgres://ann:s3same@host:port/state", "no valid PostgreSQL URL"),
        ("redis://ann:s3same@127.0.0.1:1", "the storage at redis://127.0.0.1:1/0 cannot be reached: "),
        ("postgres://ann:s3same@127.0.0.1:1/state", "the storage at postgres://127.0.0.1:1/state cannot be reached: "),
    ] {
        let run = |command: &mut Command| {
            let output = command.env("VGI_WORKER_LOG", "trace").output().unwrap();
            assert!(!output.status.success());
            let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            assert!(said.contains(hint) && !said.contains("s3same") && !said.contains("ann:"), "{said}");
        };
        let program = || Command::new(env!("CARGO_BIN_EXE_vgi-worker"));
        run(program().args(["serve", "--port", "0", "--storage", storage]));
        run(program().args(["serve", "--port", "0"]).env("VGI_WORKER_STORAGE", storage));
    }
}
