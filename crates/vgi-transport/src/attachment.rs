//! A caller's hold on an attached catalog.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use vgi_wire::generation::Dialect;
use vgi_wire::methods::{AttachReply, AttachRequest, BindReply, BindRequest, Method, request_body};

use crate::capabilities::Capabilities;
use crate::contact::refuses_version;
use crate::error::{Error, Phase};
use crate::interrupt::Interrupt;
use crate::location::Location;
use crate::options::Options;
use crate::peer::Peer;
use crate::runtime;
use crate::session::{self, Key, Session};

/// A catalog of a server, with the caller's options.
pub struct Attachment {
    pub(crate) session: Arc<Session>,
    pub(crate) peer: Peer,
    location: Location,
    options: Options,
}

/// Attaches a catalog. First contact and the server's answer are cached in the process, so a second call costs no request.
///
/// # Errors
/// What first contact or the server's refusal gives; an unknown catalog is [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) with the
/// names of the known ones.
pub fn attach(
    location: &Location,
    catalog: &str,
    options: &Options,
    interrupt: &dyn Interrupt,
) -> Result<Arc<Attachment>, Error> {
    let request = AttachRequest { name: catalog.to_owned(), ..AttachRequest::default() };
    attach_with(location, &request, options, interrupt)
}

/// Attaches a catalog with options and versions of its own; see [`attach`].
///
/// # Errors
/// Those of [`attach`].
pub fn attach_with(
    location: &Location,
    request: &AttachRequest,
    options: &Options,
    interrupt: &dyn Interrupt,
) -> Result<Arc<Attachment>, Error> {
    runtime::check_process().map_err(|fault| Error::local(Phase::Connect, fault))?;
    let key = Key::new(location, request, options);
    let session = if let Some(session) = session::find(&key) {
        session
    } else {
        let session = Arc::new(Session::open(location, request, options, interrupt)?);
        session::store(key, Arc::clone(&session));
        session
    };
    let peer = session.peer.with_options(options);
    Ok(Arc::new(Attachment { session, peer, location: location.clone(), options: options.clone() }))
}

impl Attachment {
    /// Where the server is, as it was given.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The version of the protocol that is spoken.
    pub fn dialect(&self) -> &Dialect {
        &self.session.dialect
    }

    /// Name of the catalog.
    pub fn catalog(&self) -> &str {
        &self.session.request.name
    }

    /// The schema of functions that are named without one; dotted when nested.
    pub fn default_schema(&self) -> &str {
        &self.session.reply.default_schema
    }

    /// What the server wants to see in every request.
    pub fn opaque_data(&self) -> Bytes {
        self.session.reply.attach_opaque_data.clone()
    }

    /// What the server's latest reply announced.
    pub fn capabilities(&self) -> Capabilities {
        self.peer.capabilities()
    }

    /// Binds a function. The request's attach data are those of the attachment, whatever it holds. When the server does not know them any
    /// more, or has changed its version, the catalog is attached anew and the bind repeated, once: a bind changes nothing on the server.
    /// The result's attachment is then the new one.
    ///
    /// # Errors
    /// The server's refusal, or why it cannot be asked.
    pub fn bind(self: &Arc<Self>, request: &BindRequest, interrupt: &dyn Interrupt) -> Result<Bound, Error> {
        match self.bind_once(request, interrupt) {
            Err(error) if is_outdated(&error) => self.renewed(interrupt)?.bind_once(request, interrupt),
            other => other,
        }
    }

    fn bind_once(self: &Arc<Self>, request: &BindRequest, interrupt: &dyn Interrupt) -> Result<Bound, Error> {
        let scope = self.peer.scope(Phase::Bind).for_function(request.function_name.as_str());
        let request = BindRequest { attach_opaque_data: Some(self.opaque_data()), ..request.clone() };
        let dialect = self.dialect();
        let blob = request.to_blob(dialect).map_err(|error| scope.error(error))?;
        let bind_call = blob.to_bytes();
        let body = request_body(dialect, Method::Bind, bind_call.clone().into()).map_err(|error| scope.error(error))?;
        let reply = self.peer.call(&scope, &dialect.path(Method::Bind), body, interrupt)?;
        let reply = BindReply::from_reply(&reply).map_err(|error| scope.error(error))?;
        Ok(Bound {
            attachment: Arc::clone(self),
            function_name: request.function_name,
            schema_path: request.schema_path,
            transaction: request.transaction_opaque_data,
            bind_call,
            reply,
        })
    }

    /// The attachment that takes the place of this one.
    pub(crate) fn renewed(&self, interrupt: &dyn Interrupt) -> Result<Arc<Self>, Error> {
        self.forget();
        attach_with(&self.location, &self.session.request, &self.options, interrupt)
    }

    /// Forgets what the server agreed to and listed: the next [`attach`] of this catalog asks anew.
    pub fn forget(&self) {
        session::forget(&Key::new(&self.location, &self.session.request, &self.options), &self.session);
    }

    /// The same catalog, for a caller with other clocks and another listener.
    ///
    /// # Errors
    /// Those of [`attach`].
    pub fn with_options(&self, options: &Options, interrupt: &dyn Interrupt) -> Result<Arc<Self>, Error> {
        let options = Options {
            bearer_token: self.options.bearer_token.clone(),
            headers: self.options.headers.clone(),
            ca_cert_file: self.options.ca_cert_file.clone().or_else(|| options.ca_cert_file.clone()),
            ..options.clone()
        };
        attach_with(&self.location, &self.session.request, &options, interrupt)
    }

    /// What the server said when the catalog was attached.
    pub fn reply(&self) -> &AttachReply {
        &self.session.reply
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attachment")
            .field("location", &self.location)
            .field("catalog", &self.catalog())
            .finish_non_exhaustive()
    }
}

/// Whether the server has lost or changed what was agreed with it, as after a restart.
pub(crate) fn is_outdated(error: &Error) -> bool {
    error.remote().is_some_and(|remote| {
        refuses_version(remote)
            || remote.kind.as_deref() == Some("protocol_not_supported")
            || matches!(
                remote.exception_type.as_deref(),
                Some("OpaqueDataNotRecognizedError" | "OpaqueDataRejectedError")
            )
    })
}

/// A bound function: what every later request of the call repeats.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The attachment that the server answered under.
    pub attachment: Arc<Attachment>,
    /// As bound.
    pub function_name: String,
    /// As bound.
    pub schema_path: Vec<String>,
    /// The transaction that was bound in.
    pub transaction: Option<Bytes>,
    /// The bytes of the request.
    pub bind_call: Bytes,
    /// The server's answer.
    pub reply: BindReply,
}
