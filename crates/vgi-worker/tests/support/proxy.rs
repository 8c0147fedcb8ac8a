//! What stands before several servers: every connection goes to the next of them, as nginx does it, or nginx itself.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A proxy that ends when it is dropped.
pub enum Proxy {
    Own { address: SocketAddr, stop: Arc<AtomicBool>, thread: Option<JoinHandle<()>> },
    Nginx { address: SocketAddr, child: Child, _folder: tempfile::TempDir },
}

impl Proxy {
    /// nginx when `VGI_TEST_NGINX=1` asks for it, and a small proxy of our own otherwise.
    pub fn start(servers: Vec<SocketAddr>) -> Self {
        if std::env::var_os("VGI_TEST_NGINX").is_some_and(|value| value == "1") {
            return Self::nginx(&servers);
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let next = AtomicUsize::new(0);
        let thread = std::thread::spawn(move || {
            for client in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let turn = next.fetch_add(1, Ordering::Relaxed);
                // a server that is gone is passed over
                let reached =
                    (0..servers.len()).find_map(|skip| TcpStream::connect(servers[(turn + skip) % servers.len()]).ok());
                if let (Ok(client), Some(server)) = (client, reached) {
                    forward(&client, &server);
                    forward(&server, &client);
                }
            }
        });
        Self::Own { address, stop, thread: Some(thread) }
    }

    fn nginx(servers: &[SocketAddr]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = {
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap()
        };
        let servers = servers.iter().map(|server| format!("server {server};")).collect::<Vec<_>>().concat();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {}/{kind};", folder.path().display()))
            .concat();
        let configuration = format!(
            "daemon off; master_process off; pid {0}/pid; error_log {0}/error.log;
             events {{ worker_connections 1024; }}
             http {{ access_log off; client_max_body_size 0; {temporary}
                     upstream workers {{ {servers} }}
                     server {{ listen {address}; location / {{ proxy_pass http://workers; proxy_next_upstream error; }} }} }}",
            folder.path().display()
        );
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, configuration).unwrap();
        let child = Command::new("nginx").arg("-c").arg(&file).stderr(Stdio::null()).spawn();
        let child = child.unwrap_or_else(|error| panic!("VGI_TEST_NGINX=1 asks for nginx on the PATH: {error}"));
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(10), "nginx does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self::Nginx { address, child, _folder: folder }
    }

    pub fn address(&self) -> SocketAddr {
        match self {
            Self::Own { address, .. } | Self::Nginx { address, .. } => *address,
        }
    }
}

/// Copies one direction until it ends; both ends of a broken connection are closed.
fn forward(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count) = from.read(&mut buffer) {
            if count == 0 || to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        to.shutdown(Shutdown::Write).ok();
    });
}

impl Drop for Proxy {
    fn drop(&mut self) {
        match self {
            Self::Own { address, stop, thread } => {
                stop.store(true, Ordering::SeqCst);
                // wakes the thread that accepts
                TcpStream::connect(*address).ok();
                if let Some(thread) = thread.take() {
                    thread.join().ok();
                }
            }
            Self::Nginx { child, .. } => {
                child.kill().ok();
                child.wait().ok();
            }
        }
    }
}
