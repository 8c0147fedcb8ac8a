//! The worker's binary as a process of its own.
#![allow(dead_code, reason = "every test file uses its own part")]

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::support::http;

pub struct Worker {
    pub child: Child,
    pub address: SocketAddr,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

pub fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap().success());
}

impl Worker {
    /// One process on this storage, with the functions for tests.
    pub fn start(storage: &str) -> Self {
        Self::start_with(storage, &[])
    }

    pub fn start_with(storage: &str, arguments: &[&str]) -> Self {
        Self::spawn(Command::new(env!("CARGO_BIN_EXE_vgi-worker")).env("VGI_WORKER_STORAGE", storage), arguments)
    }

    /// On the storage that it has when none is named, with this folder for temporary files.
    pub fn start_without_storage(temporary: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vgi-worker"));
        Self::spawn(command.env_remove("VGI_WORKER_STORAGE").env("TMPDIR", temporary), arguments)
    }

    fn spawn(command: &mut Command, arguments: &[&str]) -> Self {
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--test-functions"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on http://").unwrap().parse().unwrap();
        Self { child, address }
    }

    pub fn stat(&self, name: &str) -> u64 {
        let stats = http(self.address, "GET", "/stats", &[], b"").body;
        let stats: serde_json::Value = serde_json::from_slice(&stats).unwrap();
        stats[name].as_u64().unwrap()
    }

    /// Resident kilobytes.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// The processes that this one started.
    pub fn children(&self) -> Vec<u32> {
        let pid = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        children.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }

    pub fn ends_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        let begun = Instant::now();
        while begun.elapsed() < limit {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }
}
