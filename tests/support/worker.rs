//! Starts the project's own worker for a test, and ends it.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Far more than a start takes; it is reached only when something is broken.
const START_LIMIT: Duration = Duration::from_secs(30);

/// A running `vgi-worker` with the functions that only tests need. Dropping it ends it.
pub struct Worker {
    child: Child,
    /// Kept open, so that the worker may write to it.
    _output: BufReader<ChildStdout>,
    url: String,
}

impl Worker {
    /// Starts it on a free port of 127.0.0.1 and waits until it listens.
    pub fn start() -> Result<Self, String> {
        let binary = binary()?;
        let mut child = Command::new(&binary)
            .args(["serve", "--port", "0", "--storage", "memory", "--test-functions"])
            .args(["--parent-pid", &std::process::id().to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", binary.display()))?;
        match announced(&mut child) {
            Ok((output, url)) => Ok(Self { child, _output: output, url }),
            Err(problem) => {
                end(&mut child);
                Err(format!("{} does not start: {problem}", binary.display()))
            }
        }
    }

    /// `http://127.0.0.1:PORT`
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    // it may have ended by itself; either way it is reaped
    drop(child.kill());
    drop(child.wait());
}

/// The worker stands next to the directory of the test executable.
pub fn binary() -> Result<PathBuf, String> {
    let test = std::env::current_exe().map_err(|error| error.to_string())?;
    let directory = test.parent().and_then(|deps| deps.parent()).ok_or("the test executable has no directory")?;
    let binary = directory.join(format!("vgi-worker{}", std::env::consts::EXE_SUFFIX));
    if binary.is_file() { Ok(binary) } else { Err(format!("{} is missing; `make build` makes it", binary.display())) }
}

/// Reads the first line, which says where the worker listens.
fn announced(child: &mut Child) -> Result<(BufReader<ChildStdout>, String), String> {
    let mut output = BufReader::new(child.stdout.take().ok_or("no standard output")?);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let read = output.read_line(&mut line);
        // nobody listens any more when the start took too long
        drop(sender.send((output, line, read)));
    });
    let (output, line, read) = receiver.recv_timeout(START_LIMIT).map_err(|_| "it says nothing".to_owned())?;
    read.map_err(|error| error.to_string())?;
    let url = line.trim().strip_prefix("listening on ").ok_or_else(|| format!("its first line is {line:?}"))?;
    Ok((output, url.to_owned()))
}
