//! The HTTP server: VGI protocols `vgi.v2`, versions 2.0 to 2.2, and `vgi.v3`, version 3.0, over HTTP/1.1.
//!
//! Requests are read and replies written on the runtime's I/O threads; everything between, decoding included, runs on threads that may
//! block, because functions compute.

mod answer;
mod auth;
mod body;
mod budget;
mod catalog_methods;
mod drain;
mod execution;
mod fault;
mod gate;
mod handle;
mod http_service;
mod landing;
mod metrics;
mod options;
mod protocol;
mod recent;
mod route;
mod stats;
mod stream;
mod tally;
mod turn;

pub use auth::Credential;
pub use handle::{Handle, serve, serve_on};
pub use options::Options;
pub use stats::Stats;

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::ids::ExecutionId;
use crate::log::Logger;
use crate::storage::Storage;
use crate::tokens::{Sealer, random_id, random_key};
use drain::Drain;
use execution::Blueprint;
use recent::Recent;
use stats::{Counters, Gauge};
use tally::Tally;

/// What all requests share.
pub(crate) struct Server {
    catalog: Catalog,
    /// That of the catalog.
    fingerprint: u64,
    /// Everything that is in it, once a client asked for that.
    contents: OnceLock<Bytes>,
    storage: Arc<dyn Storage>,
    sealer: Sealer,
    options: Options,
    counters: Counters,
    /// Where the counters of all processes come together.
    tally: Option<Tally>,
    processing: Gauge,
    recent: Recent<Blueprint>,
    drain: Drain,
    /// One permit for every call that may be answered now.
    calls: Arc<Semaphore>,
    /// Tells this process from others.
    id: String,
    swept: Mutex<Instant>,
}

impl Server {
    fn new(catalog: Catalog, options: Options) -> io::Result<Self> {
        let storage = options.storage.open().map_err(io::Error::other)?;
        let secret = storage.shared_secret(random_key()).map_err(io::Error::other)?;
        let calls = options.max_concurrent_calls.unwrap_or(Semaphore::MAX_PERMITS).min(Semaphore::MAX_PERMITS);
        Ok(Self {
            fingerprint: catalog.fingerprint(),
            contents: OnceLock::new(),
            catalog,
            sealer: Sealer::new(secret, options.token_ttl),
            storage,
            tally: options.shared_counters.as_deref().map(Tally::open).transpose()?,
            options,
            counters: Counters::default(),
            processing: Gauge::default(),
            recent: Recent::default(),
            drain: Drain::default(),
            calls: Arc::new(Semaphore::new(calls)),
            id: hexadecimal(6),
            swept: Mutex::new(Instant::now()),
        })
    }

    /// What all processes did that share their counters.
    fn stats(&self) -> io::Result<Stats> {
        let counters = &self.counters;
        let counted = self.tally.as_ref().map_or_else(|| Ok(counters.values()), |tally| tally.sums(counters))?;
        Ok(Stats::of(counted, self.live()))
    }

    /// Executions that live in the storage.
    fn live(&self) -> u64 {
        // an operator who looks wants to see what is really there
        self.storage.expire(self.options.state_ttl).ok();
        self.storage.live().ok().and_then(|live| u64::try_from(live).ok()).unwrap_or_default()
    }

    /// Lets the other processes know what this one has counted. They hear it with the next call if they cannot now.
    fn tell_counters(&self) {
        self.tally.as_ref().map_or(Ok(()), |tally| tally.add(&self.counters)).ok();
    }

    /// Frees executions that their clients abandoned, now and then.
    fn sweep(&self) -> Result<()> {
        let pause = (self.options.state_ttl / 4).min(Duration::from_secs(30));
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.elapsed() >= pause {
            *swept = Instant::now();
            drop(swept);
            self.storage.expire(self.options.state_ttl)?;
            self.drain.forget(self.options.state_ttl);
        }
        Ok(())
    }
}

/// One request that is being answered.
struct Exchange<'a> {
    server: &'a Server,
    request_id: &'a str,
    /// Whose request it is.
    principal: &'a str,
    logger: &'a Logger,
    /// Bytes that the reply may have.
    budget: Option<u64>,
    /// Whether a reply of a stream may have several batches.
    reads_several: bool,
}

/// The first bytes of a random id, as text.
fn hexadecimal(bytes: usize) -> String {
    ExecutionId::from(random_id().into_iter().take(bytes).collect::<Vec<u8>>()).to_string()
}
