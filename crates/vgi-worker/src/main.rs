//! `vgi-worker`: serves the functions of the catalog `example`.
#![forbid(unsafe_code)]

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};
use vgi_worker::storage::Backend;
use vgi_worker::{Credential, Declared, Handle, Options, functions};

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
    /// Where the state of executions is kept: `memory`, for one process, or `sqlite:PATH`, which the processes of a machine share.
    #[arg(long, value_name = "URL", default_value = "memory")]
    storage: Backend,
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
    /// Keep the state of an execution for this long after its last request.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    state_ttl: u64,
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
    let options = Options {
        host: serve.listen.map_or(serve.host, |address| address.ip()),
        port: serve.listen.map_or(serve.port, |address| address.port()),
        max_concurrent_calls: serve.max_concurrent_calls,
        call_timeout: serve.call_timeout.map(Duration::from_secs),
        storage: serve.storage.clone(),
        credentials: serve.tokens.as_deref().map(credentials).transpose()?.unwrap_or_default(),
        max_request_bytes: serve.max_request_bytes,
        state_ttl: Duration::from_secs(serve.state_ttl),
        ..Options::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // before the server is announced, so that no signal is missed
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let mut catalog = functions::example_catalog(serve.test_functions)?;
        functions::generate(&mut catalog, serve.generated_functions)?;
        if let Some(name) = &serve.required_option {
            catalog.declare_attach_option(Declared::new::<String>(name, "Shown to nobody.").secret().required())?;
        }
        let server = vgi_worker::serve(catalog, options)?;
        announce(&server, serve.port_file.as_deref())?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = parent_gone(serve.parent_pid) => {}
        }
        server.shutdown();
        Ok(())
    })
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

fn announce(server: &Handle, port_file: Option<&Path>) -> std::io::Result<()> {
    if let Some(path) = port_file {
        // readers must never see half a number
        let partial = path.with_extension("partial");
        std::fs::write(&partial, server.address().port().to_string())?;
        std::fs::rename(&partial, path)?;
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "listening on {}", server.url())?;
    out.flush()
}

/// Waits until the process is gone; for ever when there is none to watch.
async fn parent_gone(pid: Option<u32>) {
    let Some(pid) = pid else { return std::future::pending().await };
    while alive(pid) {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// A process that ended but was not waited for is gone too.
fn alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // the name before the state is in brackets and may hold anything
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    !matches!(state, Some('Z' | 'X'))
}
