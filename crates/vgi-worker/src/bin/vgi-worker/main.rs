//! `vgi-worker`: serves the functions of the catalog `example`.
#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
mod allocator;
mod supervisor;
mod watch;

use std::env::VarError;
use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use supervisor::{Handed, Workers};
use tokio::signal::unix::{Signal, SignalKind, signal};
use vgi_worker::storage::{Backend, Scratch};
use vgi_worker::{Catalog, Credential, Declared, Options, functions};

/// Names the storage where arguments can be read by others: every user of a machine sees the arguments of its processes.
const STORAGE_VARIABLE: &str = "VGI_WORKER_STORAGE";

/// Serves buffered functions to VGI clients.
#[derive(Debug, Parser)]
#[command(name = "vgi-worker")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the catalog `example` over HTTP until SIGTERM or SIGINT.
    Serve(Serve),
}

#[derive(Debug, Args)]
struct Serve {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// Port to listen on; 0 takes any free one.
    #[arg(long, default_value_t = 9000)]
    port: u16,
    /// Address and port to listen on, in one.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["host", "port"])]
    listen: Option<SocketAddr>,
    /// Where the state of executions is kept: `memory`, for one process; `sqlite:PATH`, which the processes of a machine share;
    /// `redis://USER:PASSWORD@HOST:PORT/NUMBER` or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, which processes of many machines
    /// share. Without it, the environment variable VGI_WORKER_STORAGE says so, which keeps a password out of the list of processes;
    /// without both it is SQLite in a private folder in TMPDIR, which is removed at the end.
    // not parsed here, because what clap says about a wrong value repeats the value
    #[arg(long, value_name = "URL")]
    storage: Option<String>,
    /// Serve with this many processes, which share the port and are started again when they die. All storages but `memory` will do.
    #[arg(long, value_name = "COUNT", default_value = "1")]
    workers: NonZeroUsize,
    /// Serve as one of the processes of this one: the listener is the standard input.
    #[arg(long, value_name = "PID", hide = true)]
    supervisor: Option<u32>,
    /// Where the processes of this one add up what they count.
    #[arg(long, value_name = "PATH", hide = true)]
    shared_counters: Option<PathBuf>,
    /// Ask clients for a bearer token of this file, which has lines of the form `NAME TOKEN`.
    #[arg(long, value_name = "PATH")]
    tokens: Option<PathBuf>,
    /// Also serve the functions that only tests need.
    #[arg(long)]
    test_functions: bool,
    /// Also serve this many generated functions.
    #[arg(long, value_name = "COUNT", default_value_t = 0, hide = true)]
    generated_functions: usize,
    /// Also require this attach option.
    #[arg(long, value_name = "NAME", hide = true)]
    required_option: Option<String>,
    /// Write the port to this file when the server is ready.
    #[arg(long, value_name = "PATH")]
    port_file: Option<PathBuf>,
    /// Refuse larger requests, and announce the limit to clients.
    #[arg(long, value_name = "BYTES")]
    max_request_bytes: Option<u64>,
    /// Answer at most this many calls at the same time, and refuse more until one is done.
    #[arg(long, value_name = "COUNT")]
    max_concurrent_calls: Option<usize>,
    /// Give up on a request that is not answered within this time.
    #[arg(long, value_name = "SECONDS")]
    call_timeout: Option<u64>,
    /// Gather the batches of a stream into replies of about this size, where the client reads such replies; 0 is a batch a reply.
    #[arg(long, value_name = "BYTES", default_value_t = Options::default().page_bytes)]
    page_bytes: usize,
    /// Keep the state of an execution for this long after its last request.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    state_ttl: u64,
    /// Wait this long, after SIGTERM or SIGINT, for executions to be finished; a second signal stops at once.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    grace: u64,
    /// Stop when this process is gone.
    #[arg(long, value_name = "PID")]
    parent_pid: Option<u32>,
}

fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_env("VGI_WORKER_LOG").unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let Command::Serve(serve) = Cli::parse().command;
    match run(&serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(serve: &Serve) -> Result<(), Box<dyn std::error::Error>> {
    let mut options = options(serve)?;
    let several = serve.supervisor.is_none() && serve.workers.get() > 1;
    let private = options.storage == Backend::Private;
    // here rather than in the server, so that it is removed however the server ends
    let scratch = if several || private { Some(Scratch::new()?) } else { None };
    if let Some(scratch) = scratch.as_ref().filter(|_| private) {
        options.storage = if several { Backend::Sqlite(scratch.database()) } else { scratch.backend() };
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        // before the server is announced, so that no signal is missed
        let mut stop = Stop::new(serve.supervisor.or(serve.parent_pid))?;
        if let Some(scratch) = scratch.as_ref().filter(|_| several) {
            let handed = handed(scratch, private)?;
            return serve_together(serve, options, handed, stop).await;
        }
        let catalog = catalog(serve)?;
        let server = if serve.supervisor.is_some() {
            let listener = TcpListener::from(std::io::stdin().as_fd().try_clone_to_owned()?);
            vgi_worker::serve_on(catalog, options, listener)?
        } else {
            vgi_worker::serve(catalog, options)?
        };
        announce(server.address(), serve.port_file.as_deref().filter(|_| serve.supervisor.is_none()))?;
        stop.told().await;
        let finished = tokio::task::spawn_blocking(move || server.shutdown());
        tokio::select! {
            finished = finished => Ok(finished?),
            () = stop.told() => Err("stopped at once by a second signal".into()),
        }
    });
    // a second signal waits for nothing
    runtime.shutdown_background();
    served
}

/// What is served.
fn catalog(serve: &Serve) -> Result<Catalog, vgi_worker::Error> {
    let mut catalog = functions::example_catalog(serve.test_functions)?;
    functions::generate(&mut catalog, serve.generated_functions)?;
    if let Some(name) = &serve.required_option {
        catalog.declare_attach_option(Declared::new::<String>(name, "Shown to nobody.").secret().required())?;
    }
    Ok(catalog)
}

fn options(serve: &Serve) -> Result<Options, Box<dyn std::error::Error>> {
    let storage = match serve.storage.clone().map_or_else(|| std::env::var(STORAGE_VARIABLE), Ok) {
        Ok(storage) => storage.parse()?,
        Err(VarError::NotPresent) => Backend::default(),
        Err(VarError::NotUnicode(_)) => return Err(format!("{STORAGE_VARIABLE} is not UTF-8").into()),
    };
    Ok(Options {
        host: serve.listen.map_or(serve.host, |address| address.ip()),
        port: serve.listen.map_or(serve.port, |address| address.port()),
        max_concurrent_calls: serve.max_concurrent_calls,
        call_timeout: serve.call_timeout.map(Duration::from_secs),
        page_bytes: serve.page_bytes,
        storage,
        credentials: serve.tokens.as_deref().map(credentials).transpose()?.unwrap_or_default(),
        max_request_bytes: serve.max_request_bytes,
        state_ttl: Duration::from_secs(serve.state_ttl),
        shared_counters: serve.shared_counters.clone(),
        grace: Duration::from_secs(serve.grace),
        ..Options::default()
    })
}

/// Serves with several processes, of which this one is none.
async fn serve_together(
    serve: &Serve,
    options: Options,
    handed: Handed,
    mut stop: Stop,
) -> Result<(), Box<dyn std::error::Error>> {
    if !options.storage.is_shared() {
        let count = serve.workers;
        return Err(format!(
            "--workers {count} needs a storage that the processes share, because any of them may get any request: leave out \
             --storage, or name sqlite:PATH, redis://… or postgres://…"
        )
        .into());
    }
    let listener = tokio::net::TcpListener::bind((options.host, options.port)).await?.into_std()?;
    let address = listener.local_addr()?;
    let mut workers = Workers::start(serve.workers.get(), listener, handed).await?;
    announce(address, serve.port_file.as_deref())?;
    stop.told().await;
    tokio::select! {
        stopped = workers.stop(options.grace) => Ok(stopped?),
        () = stop.told() => Err("stopped at once by a second signal".into()),
    }
}

/// What the processes of this one have in its folder: the counters, and the storage if it is not elsewhere.
fn handed(scratch: &Scratch, private: bool) -> Result<Handed, String> {
    let path = |path: PathBuf| {
        path.into_os_string().into_string().map_err(|path| format!("{} is not UTF-8; set TMPDIR", path.display()))
    };
    let mut handed = Handed::default();
    handed.arguments.extend(["--shared-counters".to_owned(), path(scratch.path().join("counters"))?]);
    if private {
        handed.environment.push((STORAGE_VARIABLE, format!("sqlite:{}", path(scratch.database())?)));
    }
    Ok(handed)
}

/// What tells a server to stop: signals, and the end of the process that it watches.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
    watched: Option<u32>,
}

impl Stop {
    fn new(watched: Option<u32>) -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())?, watched })
    }

    /// Waits until there is a reason to stop. The end of the other process is one reason only.
    async fn told(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            () = watch::gone(self.watched) => self.watched = None,
        }
    }
}

/// A file without a token would let everybody in, which nobody who names one wants.
fn credentials(path: &Path) -> Result<Vec<Credential>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let credentials = lines.map(|line| {
        let (principal, token) = line.split_once(' ').ok_or("a line has not the form NAME TOKEN")?;
        Ok(Credential { principal: principal.to_owned(), token: token.trim().to_owned() })
    });
    let credentials: Vec<_> =
        credentials.collect::<Result<_, &str>>().map_err(|error| format!("{}: {error}", path.display()))?;
    if credentials.is_empty() {
        return Err(format!("{}: there is no token in it", path.display()));
    }
    Ok(credentials)
}

fn announce(address: SocketAddr, port_file: Option<&Path>) -> std::io::Result<()> {
    if let Some(path) = port_file {
        // readers must never see half a number
        let partial = path.with_extension("partial");
        std::fs::write(&partial, address.port().to_string())?;
        std::fs::rename(&partial, path)?;
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "listening on http://{address}")?;
    out.flush()
}
