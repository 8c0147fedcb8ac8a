//! A caller's hold on an attached catalog.

use std::fmt;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use vgi_wire::generation::Dialect;
use vgi_wire::methods::{AttachReply, AttachRequest, BindReply, BindRequest, FunctionInfo, Method, request_body};

use crate::capabilities::Capabilities;
use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::interrupt::Interrupt;
use crate::location::Location;
use crate::options::Options;
use crate::peer::Peer;
use crate::runtime::{self, lock};
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

    /// Binds a function. The request's attach data are those of the attachment, whatever it holds.
    ///
    /// # Errors
    /// The server's refusal, or why it cannot be asked. One that [is outdated](Error::is_outdated) means that everything that is known of
    /// the function may have changed.
    pub fn bind(self: &Arc<Self>, request: &BindRequest, interrupt: &dyn Interrupt) -> Result<Bound, Error> {
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
            function_name: request.function_name.clone(),
            schema_path: request.schema_path.clone(),
            transaction: request.transaction_opaque_data.clone(),
            declared: self.known_functions(&request.schema_path, &request.function_name),
            bind_call,
            reply,
            request: Arc::new(request),
            successor: Arc::default(),
        })
    }

    /// The attachment that takes the place of this one when the server does not know it any more.
    ///
    /// # Errors
    /// Those of [`attach`].
    pub fn renewed(&self, interrupt: &dyn Interrupt) -> Result<Arc<Self>, Error> {
        self.session.lose();
        self.forget();
        attach_with(&self.location, &self.session.request, &self.options, interrupt)
    }

    /// Does something in the attachment. When the server does not know it any more, or has changed its version, the catalog is attached
    /// anew and it is done again, once.
    ///
    /// # Errors
    /// Those of the work, and of [`attach`].
    pub fn renewing<T>(
        self: &Arc<Self>,
        interrupt: &dyn Interrupt,
        work: impl Fn(&Arc<Self>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match work(self) {
            Err(error) if error.is_outdated() => work(&self.renewed(interrupt)?),
            other => other,
        }
    }

    /// Asks whether the catalog has changed, and forgets what was listed if it has. A catalog that promised not to change is only asked
    /// `anyway`, which shows whether the server still knows the attachment.
    ///
    /// # Errors
    /// One that [is outdated](Error::is_outdated) when the server does not know the attachment any more; or why it cannot be asked.
    pub fn check_version(&self, anyway: bool, interrupt: &dyn Interrupt) -> Result<(), Error> {
        if self.session.reply.catalog_version_frozen && !anyway {
            return Ok(());
        }
        self.session.check_version(&self.peer, interrupt)
    }

    /// The caller has attached the catalog, and will [`leave`](Self::leave) it.
    pub fn hold(&self) {
        self.session.hold();
    }

    /// Whether both are one attachment to the server.
    pub fn shares(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.session, &other.session)
    }

    /// The caller leaves the catalog. The server hears of it, in the background, when nobody else holds the attachment and the last
    /// execution is destroyed.
    pub fn leave(&self) {
        if self.session.leave() {
            self.forget();
        }
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
    /// What the server said of the function, as far as it was listed.
    declared: Vec<FunctionInfo>,
    request: Arc<BindRequest>,
    /// What took the place of this one after the server had lost its attachment.
    successor: Arc<Mutex<Option<Arc<Self>>>>,
}

impl Bound {
    /// The bind that is valid now, as far as is known.
    pub(crate) fn latest(self: Arc<Self>) -> Arc<Self> {
        let mut latest = self;
        loop {
            let successor = lock(&latest.successor).clone();
            match successor {
                Some(successor) => latest = successor,
                None => return latest,
            }
        }
    }

    /// Binds again after the server has lost the attachment. A plan was made for this bind, so the function must be the same as before.
    pub(crate) fn again(&self, lost: &Error, interrupt: &dyn Interrupt) -> Result<Arc<Self>, Error> {
        let scope = self.attachment.peer.scope(Phase::Bind).for_function(self.function_name.as_str());
        let refuse = |text: &str| {
            let message = format!("{text}; run the statement again (the server said: {})", lost.message());
            scope.error(Fault::new(ErrorKind::Changed, message))
        };
        if self.transaction.is_some() {
            return Err(refuse("the server has lost the catalog's transaction"));
        }
        let attachment = self.attachment.renewed(interrupt)?;
        let schema = self.schema_path.join(".");
        let same = |one: &FunctionInfo, other: &FunctionInfo| behaviour(one) == behaviour(other);
        let declared = attachment.functions(
            Some(schema.as_str()).filter(|name| !name.is_empty()),
            &self.function_name,
            interrupt,
        )?;
        let unchanged = declared.len() == self.declared.len()
            && declared.iter().zip(&self.declared).all(|(now, before)| same(now, before));
        if !self.declared.is_empty() && !unchanged {
            return Err(refuse("the function has changed at the server since the statement was planned"));
        }
        let bound = Arc::new(attachment.bind(&self.request, interrupt)?);
        if bound.reply.output_schema != self.reply.output_schema || !bound.reply.secret_lookups.is_empty() {
            return Err(refuse("the function's output has changed at the server since the statement was planned"));
        }
        *lock(&self.successor) = Some(Arc::clone(&bound));
        Ok(bound)
    }
}

/// A declaration without what is only for people.
fn behaviour(function: &FunctionInfo) -> FunctionInfo {
    FunctionInfo {
        description: String::new(),
        comment: None,
        examples: Vec::new(),
        categories: Vec::new(),
        tags: Vec::new(),
        ..function.clone()
    }
}
