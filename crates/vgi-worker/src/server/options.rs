//! How a server is set up.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use crate::server::auth::Credential;
use crate::storage::Backend;

/// Bytes that a request may have when no other limit is given.
const DEFAULT_BODY_LIMIT: u64 = 1 << 30;

/// Below it a reply costs as much as its rows; larger ones leave the processor's cache between the steps that read them.
const DEFAULT_PAGE: usize = 1 << 20;

/// How a server is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address to listen on.
    pub host: IpAddr,
    /// Port to listen on; 0 takes any free one.
    pub port: u16,
    /// Bytes that a request body may have, before and after decompression. It is announced to clients; without it the limit is 1 GiB.
    pub max_request_bytes: Option<u64>,
    /// How many calls are answered at the same time; more are refused and may be tried again. `None` is no limit.
    pub max_concurrent_calls: Option<usize>,
    /// How long the answer to one request may take. What its function computes then is thrown away. `None` is no limit.
    pub call_timeout: Option<Duration>,
    /// To a client that reads several batches in a reply, as ours does: gather batches of a stream until they have this many bytes, and
    /// begin no further one after 20 ms. 0 is a batch a reply.
    pub page_bytes: usize,
    /// Where the state of executions is kept.
    pub storage: Backend,
    /// Who may use the server; nobody is asked when this is empty.
    pub credentials: Vec<Credential>,
    /// How long the state of an execution is kept after its last request.
    pub state_ttl: Duration,
    /// How long a stream token is good.
    pub token_ttl: Duration,
    /// The file in which the processes behind one address add up what they count, so that whichever answers `/stats` and `/metrics` tells
    /// what all did. `None`: each counts for itself.
    pub shared_counters: Option<PathBuf>,
    /// How long executions and requests that are being answered may go on after a shutdown began.
    pub grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            max_request_bytes: None,
            max_concurrent_calls: None,
            call_timeout: None,
            page_bytes: DEFAULT_PAGE,
            storage: Backend::default(),
            credentials: Vec::new(),
            state_ttl: Duration::from_secs(3600),
            token_ttl: Duration::from_secs(3600),
            shared_counters: None,
            grace: Duration::from_secs(2),
        }
    }
}

impl Options {
    pub(super) fn body_limit(&self) -> u64 {
        self.max_request_bytes.unwrap_or(DEFAULT_BODY_LIMIT)
    }
}
