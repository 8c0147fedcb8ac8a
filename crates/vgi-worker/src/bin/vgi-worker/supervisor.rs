//! Several processes that serve on one port, and the one that looks after them.
//!
//! The processes inherit one listener, as their standard input: a connection that one of them has not accepted when it dies goes to
//! another. They seal tokens with the secret that their storage holds, so nothing secret is handed to them.

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::watch::terminate;

/// The pause before a process that died is started again; it doubles while they die young.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A process that lived for this long did not die young.
const YOUTH: Duration = Duration::from_secs(10);
/// Time that a process has to end, after the time that it has to finish its executions.
const END: Duration = Duration::from_secs(5);

/// What the processes are told that this one was not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handed {
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(&'static str, String)>,
}

/// The processes.
pub(crate) struct Workers {
    stop: watch::Sender<bool>,
    keepers: JoinSet<io::Result<()>>,
}

/// What looks after one process at a time.
struct Keeper {
    listener: Arc<TcpListener>,
    handed: Handed,
    ready: mpsc::Sender<()>,
    stop: watch::Receiver<bool>,
}

impl Workers {
    /// Starts the processes and waits until all of them serve.
    pub(crate) async fn start(count: usize, listener: TcpListener, handed: Handed) -> io::Result<Self> {
        let listener = Arc::new(listener);
        let (stop, stopping) = watch::channel(false);
        let (ready, mut readied) = mpsc::channel(count);
        let mut keepers = JoinSet::new();
        for _ in 0..count {
            let keeper = Keeper {
                listener: Arc::clone(&listener),
                handed: handed.clone(),
                ready: ready.clone(),
                stop: stopping.clone(),
            };
            keepers.spawn(keeper.keep());
        }
        for _ in 0..count {
            tokio::select! {
                _ = readied.recv() => {}
                // it has said why; the others are killed when they are dropped
                Some(ended) = keepers.join_next() => return ended?.and(Err(io::Error::other("a worker process stopped"))),
            }
        }
        Ok(Self { stop, keepers })
    }

    /// Tells the processes to stop, and waits until they have. They have this long to finish their executions.
    pub(crate) async fn stop(&mut self, grace: Duration) -> io::Result<()> {
        self.stop.send_replace(true);
        let ended = async {
            let mut result = Ok(());
            while let Some(ended) = self.keepers.join_next().await {
                result = result.and(ended?);
            }
            result
        };
        let late = || io::Error::other("a worker process did not stop and was killed");
        tokio::time::timeout(grace + END, ended).await.unwrap_or_else(|_| Err(late()))
    }
}

impl Keeper {
    /// Starts a process again and again, until it is to stop. That the first one fails is an error: so would all others.
    async fn keep(mut self) -> io::Result<()> {
        let mut pause = FIRST_PAUSE;
        let mut served = false;
        loop {
            let begun = Instant::now();
            let (status, announced) = self.one().await?;
            served |= announced;
            if *self.stop.borrow() {
                return if status.success() {
                    Ok(())
                } else {
                    Err(io::Error::other(format!("a worker process ended: {status}")))
                };
            }
            if !served {
                return Err(io::Error::other(format!("a worker process could not start: {status}")));
            }
            pause = if begun.elapsed() >= YOUTH { FIRST_PAUSE } else { pause };
            tracing::warn!(%status, "a worker process ended; another one is started in {} ms", pause.as_millis());
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = self.stop.changed() => return Ok(()),
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// One process from its start to its end; also whether it served.
    async fn one(&mut self) -> io::Result<(ExitStatus, bool)> {
        let (mut child, mut lines) = spawn(&self.listener, &self.handed)?;
        // there until it was waited for
        let pid = child.id().unwrap_or_default();
        let mut serves = false;
        let mut told = *self.stop.borrow();
        if told {
            terminate(pid);
        }
        let mut open = true;
        loop {
            tokio::select! {
                status = child.wait() => return Ok((status?, serves)),
                _ = self.stop.changed(), if !told => {
                    told = true;
                    terminate(pid);
                }
                line = lines.next_line(), if open => match line {
                    Ok(Some(_)) if !serves => {
                        serves = true;
                        // only the first processes are waited for
                        self.ready.try_send(()).ok();
                    }
                    Ok(Some(line)) => {
                        writeln!(io::stdout(), "{line}").ok();
                    }
                    _ => open = false,
                },
            }
        }
    }
}

/// Starts a process with the arguments of this one.
fn spawn(listener: &TcpListener, handed: &Handed) -> io::Result<(Child, Lines<BufReader<ChildStdout>>)> {
    let own: Vec<OsString> = std::env::args_os().skip(1).collect();
    let mut child = Command::new(std::env::current_exe()?)
        .args(own)
        .args(&handed.arguments)
        .envs(handed.environment.iter().map(|(name, value)| (name, value)))
        .args(["--supervisor", &std::process::id().to_string()])
        .stdin(Stdio::from(OwnedFd::from(listener.try_clone()?)))
        .stdout(Stdio::piped())
        // a terminal's Ctrl-C is for this process, which tells the others
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let output = child.stdout.take().ok_or_else(|| io::Error::other("a worker process has no output"))?;
    Ok((child, BufReader::new(output).lines()))
}
