//! The example as a process: it says where it listens, and leaves nothing behind when it is told to stop.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn minds_sigterm(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << 14) != 0
}

#[test]
fn its_state_goes_with_it() {
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ended");
    std::fs::create_dir_all(&temporary).unwrap();
    let states = || std::fs::read_dir(&temporary).unwrap().count();
    let mut worker = Command::new(env!("CARGO_BIN_EXE_word-count"))
        .arg("0")
        .env("TMPDIR", &temporary)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(worker.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("listening on http://127.0.0.1:"), "{line}");
    assert_eq!(states(), 1);
    // it listens before it minds signals
    while !minds_sigterm(worker.id()) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let told = Command::new("kill").arg(worker.id().to_string()).status().unwrap();
    assert!(told.success() && worker.wait().unwrap().success());
    assert_eq!(states(), 0);
}
