//! Starting and stopping a server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::catalog::Catalog;
use crate::server::{Options, Server, Stats, http_service};

/// How often a server that is about to stop looks whether it may.
const PAUSE: Duration = Duration::from_millis(50);

/// A running server. It stops when this is dropped.
pub struct Handle {
    address: SocketAddr,
    server: Arc<Server>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Handle {
    /// Where the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL that clients attach to.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What the server did so far, without those that it shares its counters with.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of(self.server.counters.values(), self.server.live())
    }

    /// Stops the server: it begins no more executions, those that it serves are finished in the time that the options grant, and it ends.
    pub fn shutdown(mut self) {
        self.stop_and_wait();
    }

    /// Serves until the process is told to stop by SIGTERM or SIGINT, and stops then as [`Handle::shutdown`] does.
    ///
    /// # Errors
    /// When the signals cannot be waited for.
    pub fn serve_until_told(self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            io::Result::Ok(())
        })?;
        self.shutdown();
        Ok(())
    }

    fn stop_and_wait(&mut self) {
        if let Some(stop) = self.stop.take() {
            // the server may have stopped by itself
            stop.send(()).ok();
        }
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop_and_wait();
    }
}

/// Serves a catalog, on threads of its own, until the handle is dropped.
///
/// # Errors
/// When the address cannot be listened on, the storage cannot be opened, or no thread can be started.
pub fn serve(catalog: Catalog, options: Options) -> io::Result<Handle> {
    start(catalog, options, None)
}

/// Serves a catalog on a listener that is there already, such as one that several processes share.
///
/// # Errors
/// When the storage cannot be opened, or no thread can be started.
pub fn serve_on(catalog: Catalog, options: Options, listener: std::net::TcpListener) -> io::Result<Handle> {
    start(catalog, options, Some(listener))
}

fn start(catalog: Catalog, options: Options, listener: Option<std::net::TcpListener>) -> io::Result<Handle> {
    let server = Arc::new(Server::new(catalog, options)?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("vgi-worker-io")
        .enable_all()
        .build()?;
    let (stop, stopped) = oneshot::channel();
    let (started, start) = mpsc::channel();
    let shared = Arc::clone(&server);
    let thread = std::thread::Builder::new().name("vgi-worker".to_owned()).spawn(move || {
        runtime.block_on(run(shared, listener, started, stopped));
        // a function that still computes cannot be stopped, and is not waited for
        runtime.shutdown_timeout(Duration::ZERO);
    })?;
    let address = start.recv().map_err(|_| io::Error::other("the server stopped before it listened"))??;
    Ok(Handle { address, server, stop: Some(stop), thread: Some(thread) })
}

async fn listen(server: &Server, given: Option<std::net::TcpListener>) -> io::Result<(SocketAddr, TcpListener)> {
    let listener = match given {
        None => TcpListener::bind((server.options.host, server.options.port)).await?,
        Some(listener) => {
            listener.set_nonblocking(true)?;
            TcpListener::from_std(listener)?
        }
    };
    Ok((listener.local_addr()?, listener))
}

async fn run(
    server: Arc<Server>,
    given: Option<std::net::TcpListener>,
    started: mpsc::Sender<io::Result<SocketAddr>>,
    stopped: oneshot::Receiver<()>,
) {
    let listener = match listen(&server, given).await {
        Ok((address, listener)) => {
            started.send(Ok(address)).ok();
            listener
        }
        Err(error) => {
            started.send(Err(error)).ok();
            return;
        }
    };
    // a reply is often smaller than a packet and must not wait for the next one
    let listener = listener.tap_io(|connection| {
        connection.set_nodelay(true).ok();
    });
    let service = Router::new().fallback(http_service::handle).with_state(Arc::clone(&server));
    let (closing, close) = oneshot::channel::<()>();
    let graceful = axum::serve(listener, service).with_graceful_shutdown(async {
        close.await.ok();
    });
    let limit = async {
        stopped.await.ok();
        let end = Instant::now() + server.options.grace;
        tokio::time::timeout_at(end, drained(&server)).await.ok();
        closing.send(()).ok();
        tokio::time::sleep_until(end).await;
    };
    tokio::select! {
        ended = graceful => {
            if let Err(error) = ended {
                tracing::error!(%error, "the server ended");
            }
        }
        () = limit => tracing::warn!("requests were still being answered when the server stopped"),
    }
}

/// Waits until the executions that this process served are done.
async fn drained(server: &Arc<Server>) {
    server.drain.stop();
    loop {
        let server = Arc::clone(server);
        // a thread that cannot be had means that nothing else can go on either
        if tokio::task::spawn_blocking(move || server.drain.is_empty(&*server.storage)).await.unwrap_or(true) {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}
