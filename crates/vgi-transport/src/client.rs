//! The HTTP client's settings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder, NoProxy, redirect, retry};

use crate::error::{ErrorKind, Fault, chain};
use crate::options::{Options, Proxy};

/// Below what servers keep a connection: the shortest usual time is five seconds. A connection that the server closes while a chunk is on
/// its way to it cannot be told from one that broke after the chunk was counted.
const POOL_IDLE: Duration = Duration::from_secs(4);
const POOL_IDLE_CONNECTIONS: usize = 32;
/// What an HTTP/2 stream may have in flight. The usual 64 KiB make a far server wait for every piece.
const STREAM_WINDOW: u32 = 16 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;

/// How the network is reached; what a caller asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    http2: bool,
    tls_verify: bool,
    ca_cert_file: Option<PathBuf>,
    proxy: Option<Proxy>,
}

impl From<&Options> for Network {
    fn from(options: &Options) -> Self {
        Self {
            http2: options.http2,
            tls_verify: options.tls_verify,
            ca_cert_file: options.ca_cert_file.clone(),
            proxy: options.proxy.clone(),
        }
    }
}

/// What tells one client from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientKey {
    https: bool,
    loopback: bool,
    connect_timeout: Duration,
    network: Network,
}

impl ClientKey {
    pub(crate) fn new(https: bool, loopback: bool, options: &Options) -> Self {
        Self { https, loopback, connect_timeout: options.connect_timeout, network: Network::from(options) }
    }
}

pub(crate) fn build(key: &ClientKey) -> Result<Client, Fault> {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::trace!("a TLS provider was installed before");
    }
    let builder = Client::builder()
        .user_agent(concat!("vgi/", env!("CARGO_PKG_VERSION")))
        .tcp_nodelay(true)
        .connect_timeout(key.connect_timeout)
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_IDLE_CONNECTIONS)
        .referer(false)
        .redirect(redirect::Policy::none())
        // a chunk that is sent twice is counted twice. What remains below this layer is a pooled connection found closed before any
        // byte of the request was written
        .retry(retry::never());
    let builder = if key.network.http2 {
        builder.http2_initial_stream_window_size(STREAM_WINDOW).http2_initial_connection_window_size(CONNECTION_WINDOW)
    } else {
        builder.http1_only()
    };
    let builder = proxied(builder, key)?;
    let builder = trusting(builder, key)?;
    builder.build().map_err(|error| {
        let what = format!("the HTTP client cannot be set up: {}", chain(&error.without_url()));
        Fault::new(ErrorKind::Internal, what)
    })
}

/// The given proxy, or that of the environment, which the library reads itself. `NO_PROXY` holds for both.
fn proxied(builder: ClientBuilder, key: &ClientKey) -> Result<ClientBuilder, Fault> {
    let Some(proxy) = key.network.proxy.as_ref().filter(|_| !key.loopback) else {
        return Ok(if key.loopback { builder.no_proxy() } else { builder });
    };
    // what stands there may hold a password
    let refuse = || Fault::new(ErrorKind::InvalidLocation, "the proxy is not of the form host:port");
    let route = reqwest::Proxy::all(proxy.url().ok_or_else(refuse)?).map_err(|_| refuse())?;
    let route = match &proxy.username {
        Some(name) => route.basic_auth(name, proxy.password.as_deref().unwrap_or_default()),
        None => route,
    };
    Ok(builder.proxy(route.no_proxy(NoProxy::from_env())))
}

/// The system's certificates and those of the caller.
fn trusting(builder: ClientBuilder, key: &ClientKey) -> Result<ClientBuilder, Fault> {
    let Network { tls_verify, ca_cert_file, proxy, .. } = &key.network;
    let tls = key.https || proxy.as_ref().is_some_and(Proxy::is_https);
    if !tls {
        // the system's certificates are read only where they are needed: a machine without any can still speak http
        return Ok(builder.tls_certs_only([]));
    }
    if !tls_verify {
        return Ok(builder.tls_danger_accept_invalid_certs(true).tls_certs_only([]));
    }
    match ca_cert_file {
        Some(file) => Ok(builder.tls_certs_merge(certificates(file)?)),
        None => Ok(builder),
    }
}

fn certificates(file: &Path) -> Result<Vec<Certificate>, Fault> {
    let refuse = |why: String| {
        Fault::new(
            ErrorKind::InvalidLocation,
            format!("the certificates in '{}' cannot be used: {why}", file.display()),
        )
    };
    let pem = std::fs::read(file).map_err(|error| refuse(error.to_string()))?;
    let found = Certificate::from_pem_bundle(&pem).map_err(|error| refuse(chain(&error)))?;
    if found.is_empty() { Err(refuse("there is none in PEM form".to_owned())) } else { Ok(found) }
}
