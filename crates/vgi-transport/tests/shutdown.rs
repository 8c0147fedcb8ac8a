//! The network threads: two, named, gone after a shutdown, and back when they are needed again. A file of its own, since they belong to the
//! process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where something is not as it should be")]
#![allow(dead_code, reason = "the support is shared with the other tests")]

#[path = "transport/support/mod.rs"]
mod support;

use std::time::Duration;

use support::vgi::Vgi;
use support::{attached, bind, eventually, started};
use vgi_transport::{Options, shutdown};

fn network_threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let mut names: Vec<_> = tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .map(|name| name.trim().to_owned())
        .filter(|name| name.starts_with("vgi-io"))
        .collect();
    names.sort();
    names
}

#[test]
fn the_network_threads_end_with_a_shutdown_and_come_back() {
    assert!(network_threads().is_empty(), "built on first use");
    let server = Vgi::current().start();
    drop(started(&server, &Options::default()));
    // a thread names itself a moment after it was made
    eventually("two threads", || network_threads() == ["vgi-io-0", "vgi-io-1"]);
    shutdown(Duration::from_secs(5));
    // the kernel lists a thread a moment longer than it runs
    eventually("the end of the threads", || network_threads().is_empty());
    assert_eq!(server.count("table_buffering_destructor"), 1, "a shutdown waits for what runs in the background");
    bind(&attached(&server, &Options::default()).unwrap()).unwrap();
    eventually("two threads again", || network_threads().len() == 2);
    shutdown(Duration::from_secs(5));
    shutdown(Duration::from_secs(5));
}
