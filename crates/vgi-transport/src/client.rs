//! The HTTP client's settings.

use std::time::Duration;

use reqwest::{Client, redirect, retry};

use crate::error::{ErrorKind, Fault, chain};

/// Below what servers keep a connection: the shortest usual time is five seconds. A connection that the server closes while a chunk is on
/// its way to it cannot be told from one that broke after the chunk was counted.
const POOL_IDLE: Duration = Duration::from_secs(4);
const POOL_IDLE_CONNECTIONS: usize = 32;

/// What tells one client from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientKey {
    pub(crate) https: bool,
    pub(crate) loopback: bool,
    pub(crate) connect_timeout: Duration,
}

pub(crate) fn build(key: ClientKey) -> Result<Client, Fault> {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::trace!("a TLS provider was installed before");
    }
    let builder = Client::builder()
        .user_agent(concat!("vgi/", env!("CARGO_PKG_VERSION")))
        .http1_only()
        .tcp_nodelay(true)
        .connect_timeout(key.connect_timeout)
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_IDLE_CONNECTIONS)
        .referer(false)
        .redirect(redirect::Policy::none())
        // a chunk that is sent twice is counted twice. What remains below this layer is a pooled connection found closed before any
        // byte of the request was written
        .retry(retry::never());
    let builder = if key.loopback { builder.no_proxy() } else { builder };
    // the system's certificates are read only where they are needed: a machine without any can still speak http
    let builder = if key.https { builder } else { builder.tls_certs_only([]) };
    builder.build().map_err(|error| {
        Fault::new(ErrorKind::Internal, format!("the HTTP client cannot be set up: {}", chain(&error)))
    })
}
