//! An attached catalog: made once per process, shared by every attachment that names the same server, catalog and credentials.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use vgi_wire::generation::Dialect;
use vgi_wire::ipc;
use vgi_wire::methods::{
    AttachReply, AttachRequest, CatalogInfo, Method, detach_body, items, no_parameters_body, request_body, version,
    version_body,
};

use crate::background;
use crate::client::Network;
use crate::contact::{contact, servers_version};
use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::execution::best_effort;
use crate::interrupt::Interrupt;
use crate::listings::Listings;
use crate::location::Location;
use crate::options::Options;
use crate::peer::Peer;
use crate::retry::Repeat;
use crate::runtime::lock;

/// What the server agreed to.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) peer: Peer,
    pub(crate) dialect: Dialect,
    pub(crate) request: AttachRequest,
    pub(crate) reply: AttachReply,
    /// What was listed.
    pub(crate) listings: Listings,
    /// The state of the metadata that was last heard of.
    version: AtomicI64,
    /// The server does not tell its version.
    versionless: AtomicBool,
    /// Callers that have attached the catalog and will say when they leave it.
    holders: AtomicUsize,
    /// Executions that the server keeps state for.
    executions: AtomicUsize,
    /// The last holder has left.
    left: AtomicBool,
    /// The server does not know the attachment any more.
    lost: AtomicBool,
}

/// Keeps the server from being told that the catalog is left.
#[derive(Debug)]
pub(crate) struct InUse(Arc<Session>);

impl InUse {
    pub(crate) fn new(session: &Arc<Session>) -> Self {
        session.executions.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(session))
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.executions.fetch_sub(1, Ordering::AcqRel);
        self.0.detach_if_left();
    }
}

/// What tells one session from another: credentials belong to it, clocks do not.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key {
    base: Location,
    catalog: String,
    data_version_spec: Option<String>,
    implementation_version: Option<String>,
    /// Encoded.
    attach_options: Option<Bytes>,
    bearer_token: Option<String>,
    headers: Vec<(String, String)>,
    /// What was agreed without a check of certificates holds for those alone who do not want one.
    network: Network,
}

impl Key {
    pub(crate) fn new(location: &Location, request: &AttachRequest, options: &Options) -> Self {
        let encode = |options| ipc::encode_stream(options, &[]).ok().map(|blob| blob.to_bytes());
        Self {
            base: location.clone(),
            catalog: request.name.clone(),
            data_version_spec: request.data_version_spec.clone(),
            implementation_version: request.implementation_version.clone(),
            attach_options: request.options.as_ref().and_then(encode),
            bearer_token: options.bearer_token.clone(),
            headers: options.headers.clone(),
            network: Network::from(options),
        }
    }
}

/// Tokens that change would let the cache grow for ever.
const CACHE_SIZE: usize = 128;

/// Oldest first. Never locked during a request, so two threads may both attach; the later one stays.
static SESSIONS: Mutex<Vec<(Key, Arc<Session>)>> = Mutex::new(Vec::new());

pub(crate) fn find(key: &Key) -> Option<Arc<Session>> {
    lock(&SESSIONS).iter().find(|(known, _)| known == key).map(|(_, session)| Arc::clone(session))
}

pub(crate) fn store(key: Key, session: Arc<Session>) {
    let mut sessions = lock(&SESSIONS);
    sessions.retain(|(known, _)| *known != key);
    if sessions.len() >= CACHE_SIZE {
        sessions.remove(0);
    }
    sessions.push((key, session));
}

/// Forgets all sessions.
pub(crate) fn leave_all() {
    let sessions = std::mem::take(&mut *lock(&SESSIONS));
    drop(sessions);
}

/// Forgets a session, unless another took its place already.
pub(crate) fn forget(key: &Key, session: &Arc<Session>) {
    lock(&SESSIONS).retain(|(known, cached)| known != key || !Arc::ptr_eq(cached, session));
}

impl Session {
    /// First contact and attach.
    pub(crate) fn open(
        location: &Location,
        request: &AttachRequest,
        options: &Options,
        interrupt: &dyn Interrupt,
    ) -> Result<Self, Error> {
        let (peer, mut dialect) = contact(location, options, interrupt)?;
        let mut reply = attach(&peer, &dialect, request, interrupt);
        if let Some(version) = reply.as_ref().err().and_then(servers_version) {
            let scope = peer.scope(Phase::Attach);
            dialect =
                Dialect::select(dialect.protocol.as_deref(), Some(&version)).map_err(|error| scope.error(error))?;
            reply = attach(&peer, &dialect, request, interrupt);
        }
        let reply = reply.map_err(|error| explain(error, &peer, &dialect, &request.name, interrupt))?;
        // the cache must not keep a caller's sink alive
        let peer = peer.with_options(&Options { events: None, ..options.clone() });
        tracing::debug!(
            url = peer.base.as_str(),
            catalog = request.name,
            version = dialect.version.as_deref(),
            "attached"
        );
        let version = AtomicI64::new(reply.catalog_version);
        Ok(Self {
            peer,
            dialect,
            request: request.clone(),
            reply,
            listings: Listings::default(),
            version,
            versionless: AtomicBool::new(false),
            holders: AtomicUsize::new(0),
            executions: AtomicUsize::new(0),
            left: AtomicBool::new(false),
            lost: AtomicBool::new(false),
        })
    }

    pub(crate) fn hold(&self) {
        self.holders.fetch_add(1, Ordering::AcqRel);
    }

    /// A holder leaves; whether it was the last.
    pub(crate) fn leave(&self) -> bool {
        let last = self.holders.fetch_sub(1, Ordering::AcqRel) == 1;
        if last {
            self.left.store(true, Ordering::Release);
            self.detach_if_left();
        }
        last
    }

    fn detach_if_left(&self) {
        if self.left.load(Ordering::Acquire) && self.executions.load(Ordering::Acquire) == 0 {
            self.detach();
        }
    }

    /// The server may free what it keeps for the attachment. Nobody waits for the answer: there is nothing that could be done about it.
    fn detach(&self) {
        if self.lost.swap(true, Ordering::AcqRel) {
            return;
        }
        let method = Method::CatalogDetach;
        let Ok(body) = detach_body(&self.dialect, &self.reply.attach_opaque_data) else { return };
        let Ok(request) = self.peer.post(&self.dialect.path(method), body, Repeat::Unsent) else { return };
        drop(background::detach(best_effort(request)));
    }

    /// The server has lost the attachment, so it need not be told of its end.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
    }

    /// Asks for the version of the metadata, and forgets them when it has changed. A server that does not tell it is not asked again.
    pub(crate) fn check_version(&self, peer: &Peer, interrupt: &dyn Interrupt) -> Result<(), Error> {
        if self.versionless.load(Ordering::Acquire) {
            return Ok(());
        }
        let scope = peer.scope(Phase::Discover);
        let dialect = &self.dialect;
        let body = version_body(dialect, &self.reply.attach_opaque_data, None).map_err(|error| scope.error(error))?;
        let reply = peer.call(&scope, &dialect.path(Method::CatalogVersion), body, interrupt);
        let now = match reply.and_then(|reply| version(&reply).map_err(|error| scope.error(error))) {
            Ok(now) => now,
            Err(error) if error.is_outdated() => return Err(error),
            Err(error)
                if matches!(error.kind(), ErrorKind::Remote | ErrorKind::Protocol) || error.status().is_some() =>
            {
                self.versionless.store(true, Ordering::Release);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if self.version.swap(now, Ordering::AcqRel) != now {
            self.listings.forget();
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.detach();
    }
}

fn attach(
    peer: &Peer,
    dialect: &Dialect,
    request: &AttachRequest,
    interrupt: &dyn Interrupt,
) -> Result<AttachReply, Error> {
    let scope = peer.scope(Phase::Attach);
    let body = request.to_blob(dialect).and_then(|blob| request_body(dialect, Method::CatalogAttach, blob));
    let body = body.map_err(|error| scope.error(error))?;
    let reply = peer.call(&scope, &dialect.path(Method::CatalogAttach), body, interrupt)?;
    AttachReply::from_reply(&reply).map_err(|error| scope.error(error))
}

/// A refused attach most often means a wrong name; then the right ones help more than the server's words. And any web server may have
/// a health document.
fn explain(error: Error, peer: &Peer, dialect: &Dialect, catalog: &str, interrupt: &dyn Interrupt) -> Error {
    let unconfirmed = dialect.protocol.is_none() && dialect.version.is_none();
    if unconfirmed && matches!(error.kind(), ErrorKind::Http | ErrorKind::Protocol) && error.status().is_some() {
        let message = format!("this is not a VGI server: {}", error.message());
        return peer.scope(Phase::Connect).error(Fault::new(ErrorKind::NotVgi, message));
    }
    if error.kind() != ErrorKind::Remote {
        return error;
    }
    let Ok(known) = catalogs(peer, dialect, interrupt) else { return error };
    // a server's only catalog may have no name and accept any
    if known.iter().any(|name| name.is_empty() || name == catalog) {
        return error;
    }
    let message = if known.is_empty() {
        format!("catalog '{catalog}' does not exist; the server has none")
    } else {
        format!("catalog '{catalog}' does not exist; the server has {}", crate::lookup::name_list(&known))
    };
    peer.scope(Phase::Attach).error(Fault::new(ErrorKind::NotFound, message))
}

fn catalogs(peer: &Peer, dialect: &Dialect, interrupt: &dyn Interrupt) -> Result<Vec<String>, Error> {
    Ok(fetch_catalogs(peer, dialect, interrupt)?.into_iter().map(|info| info.name).collect())
}

/// What a server offers to attach.
pub(crate) fn fetch_catalogs(
    peer: &Peer,
    dialect: &Dialect,
    interrupt: &dyn Interrupt,
) -> Result<Vec<CatalogInfo>, Error> {
    let scope = peer.scope(Phase::Attach);
    let body = no_parameters_body(dialect, Method::CatalogCatalogs).map_err(|error| scope.error(error))?;
    let reply = peer.call(&scope, &dialect.path(Method::CatalogCatalogs), body, interrupt)?;
    let items = items(&reply).map_err(|error| scope.error(error))?;
    Ok(items.into_iter().filter_map(|item| CatalogInfo::from_blob(item).ok()).collect())
}
