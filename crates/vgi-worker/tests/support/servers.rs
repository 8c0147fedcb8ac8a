//! The real servers that keep state, started for a test and ended with it. They listen on the loopback interface only.
#![allow(dead_code, reason = "every test file uses its own part")]

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// In every URL, and never to be seen elsewhere.
pub const PASSWORD: &str = "s3same";

/// A port that nobody listens on now, and that no other test of this process was given.
pub fn free_port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let fresh = |port: &u16| GIVEN.lock().unwrap().insert(*port);
    (0..1000).map(|_| free()).find(fresh).unwrap()
}

pub fn await_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} does not come about");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The process ends with the value.
struct Process(Child);

impl Process {
    fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Waits for an end that was asked for.
    fn ended(&mut self) {
        await_until("the end of a server", || self.0.try_wait().unwrap().is_some());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

pub fn redis_program() -> Option<PathBuf> {
    on_path("redis-server")
}

fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Redis, with a password.
pub struct RedisServer {
    process: Option<Process>,
    folder: TempDir,
    port: u16,
}

impl RedisServer {
    pub fn start() -> Self {
        let mut server = Self { process: None, folder: tempfile::tempdir().unwrap(), port: free_port() };
        server.resume();
        server
    }

    pub fn url(&self) -> String {
        format!("redis://:{PASSWORD}@127.0.0.1:{}/0", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn client(&self) -> redis::Connection {
        redis::Client::open(self.url()).unwrap().get_connection().unwrap()
    }

    /// Every key but that of the secret.
    pub fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut self.client()).unwrap();
        keys.retain(|key| key != "vgi-worker:secret");
        keys
    }

    /// Kills it; what was not saved is lost.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it again, with what it saved.
    pub fn resume(&mut self) {
        let port = self.port.to_string();
        let child = Command::new(redis_program().unwrap())
            .args([
                "--port",
                &port,
                "--bind",
                "127.0.0.1",
                "--requirepass",
                PASSWORD,
                "--save",
                "",
                "--appendonly",
                "no",
            ])
            .arg("--dir")
            .arg(self.folder.path())
            .stdout(Stdio::null())
            .spawn();
        self.process = Some(Process(child.unwrap()));
        await_until("a Redis that answers", || {
            let client = redis::Client::open(self.url()).unwrap();
            client.get_connection().is_ok_and(|mut client| redis::cmd("PING").exec(&mut client).is_ok())
        });
    }
}

/// Where Debian keeps the newest PostgreSQL, or a folder of PATH.
pub fn postgres_programs() -> Option<PathBuf> {
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<_> = debian.map(|version| version.path().join("bin")).collect();
    folders.sort();
    folders.reverse();
    folders.extend(on_path("initdb").and_then(|path| path.parent().map(Path::to_owned)));
    folders.into_iter().find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
}

/// PostgreSQL refuses to run as root, so it runs as somebody else then.
fn unprivileged() -> Option<(u32, u32)> {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let find = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let fields: Vec<_> = line.split(':').collect();
        Some((fields[2].parse().unwrap(), fields[3].parse().unwrap()))
    };
    find("postgres").or_else(|| find("nobody"))
}

/// PostgreSQL, with a password.
pub struct PostgresServer {
    process: Option<Process>,
    folder: TempDir,
    port: u16,
}

impl PostgresServer {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        if let Some((user, group)) = unprivileged() {
            chown(folder.path(), Some(user), Some(group)).unwrap();
        }
        let password = folder.path().join("password");
        std::fs::write(&password, PASSWORD).unwrap();
        let mut server = Self { process: None, folder, port: free_port() };
        let made = server
            .command("initdb")
            .args(["--username=ann", "--auth=scram-sha-256", "--no-sync", "--encoding=UTF8", "--locale=C"])
            .arg(format!("--pwfile={}", password.display()))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        server.resume();
        server
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(postgres_programs().unwrap().join(name));
        command.arg("-D").arg(self.folder.path().join("data")).current_dir(self.folder.path()).stdout(Stdio::null());
        if let Some((user, group)) = unprivileged() {
            command.uid(user).gid(group);
        }
        command
    }

    pub fn url(&self, database: &str) -> String {
        format!("postgres://ann:{PASSWORD}@127.0.0.1:{}/{database}", self.port)
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// The first column of the first row.
    pub fn ask(&self, database: &str, statement: &str) -> Option<i64> {
        self.try_ask(database, statement).unwrap()
    }

    fn try_ask(&self, database: &str, statement: &str) -> Result<Option<i64>, tokio_postgres::Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&self.url(database), tokio_postgres::NoTls).await?;
            let driver = tokio::spawn(connection);
            let rows = client.query(statement, &[]).await;
            driver.abort();
            Ok(rows?.first().and_then(|row| row.try_get(0).ok()))
        })
    }

    /// A new database, empty.
    pub fn create(&self, database: &str) -> String {
        self.ask("postgres", &format!("CREATE DATABASE {database}"));
        self.url(database)
    }

    /// Rows of all tables of the storage but the secret's.
    pub fn rows(&self, database: &str) -> usize {
        let tables = ["executions", "pairs", "lengths", "logs", "counters", "queues"];
        let counts = tables.map(|table| format!("(SELECT count(*) FROM vgi_worker.{table})")).join(" + ");
        usize::try_from(self.ask(database, &format!("SELECT {counts}")).unwrap()).unwrap()
    }

    /// Ends it as a crash does: all its processes at once.
    pub fn crash(&mut self) {
        let mut process = self.process.take().unwrap();
        process.signal("QUIT");
        process.ended();
    }

    pub fn resume(&mut self) {
        let child = self
            .command("postgres")
            .args(["-p", &self.port.to_string(), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-k"])
            .arg(self.folder.path())
            .stderr(Stdio::from(std::fs::File::create(self.folder.path().join("log")).unwrap()))
            .spawn();
        self.process = Some(Process(child.unwrap()));
        await_until("a PostgreSQL that answers", || self.try_ask("postgres", "SELECT 1").is_ok());
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.signal("INT");
            process.ended();
        }
    }
}
