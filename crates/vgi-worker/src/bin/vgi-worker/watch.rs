//! Other processes: whether they are there, and telling them to stop.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Tells a process to stop in its own time.
pub(crate) fn terminate(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // one that is gone has stopped
        kill_process(pid, Signal::TERM).ok();
    }
}

/// Waits until the process is gone; for ever when there is none to watch.
pub(crate) async fn gone(pid: Option<u32>) {
    let Some(pid) = pid else { return std::future::pending().await };
    while alive(pid) {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// A process that ended but was not waited for is gone too.
pub(crate) fn alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // the name before the state is in brackets and may hold anything
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    !matches!(state, Some('Z' | 'X'))
}
