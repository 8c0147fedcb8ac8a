//! The binary: how it starts, tells where it is, and stops.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Worker {
    /// The worker, and the address that it prints.
    fn start(arguments: &[&str]) -> (Self, std::net::SocketAddr) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vgi-worker"));
        let mut child =
            Self(command.args(["serve", "--port", "0"]).args(arguments).stdout(Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on http://").unwrap().parse().unwrap();
        (child, address)
    }

    fn ends_within(&mut self, limit: Duration) -> Option<std::process::ExitStatus> {
        let begun = Instant::now();
        while begun.elapsed() < limit {
            if let Some(status) = self.0.try_wait().unwrap() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }
}

fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn it_tells_its_port_and_stops_when_told() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["TERM", "INT"] {
        let port_file = folder.path().join("port");
        let (mut worker, address) = Worker::start(&["--port-file", port_file.to_str().unwrap()]);
        assert_eq!(std::fs::read_to_string(&port_file).unwrap(), address.port().to_string());
        assert_eq!(support::http(address, "GET", "/health", &[], b"").status, 200);
        signal(worker.0.id(), name);
        assert!(worker.ends_within(Duration::from_secs(5)).unwrap().success());
    }
}

#[test]
fn it_ends_with_the_process_that_it_watches() {
    let mut watched = Command::new("sleep").arg("60").spawn().unwrap();
    let (mut worker, _) = Worker::start(&["--parent-pid", &watched.id().to_string()]);
    assert!(worker.ends_within(Duration::from_millis(800)).is_none());
    watched.kill().unwrap();
    // not waited for: the process is gone though its entry is not
    assert!(worker.ends_within(Duration::from_secs(5)).unwrap().success());
    watched.wait().unwrap();
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let (_worker, address) = Worker::start(&[]);
    let second = Command::new(env!("CARGO_BIN_EXE_vgi-worker"))
        .args(["serve", "--port", &address.port().to_string()])
        .output()
        .unwrap();
    assert!(!second.status.success());
    assert!(String::from_utf8_lossy(&second.stderr).contains("in use"), "{}", String::from_utf8_lossy(&second.stderr));
}
