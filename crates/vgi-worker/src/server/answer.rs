//! From a request's bytes to a reply's bytes.

use bytes::Bytes;
use http::StatusCode;
use vgi_wire::WireError;
use vgi_wire::ipc::Segments;
use vgi_wire::methods::{Method, ProtocolEntry, list_protocols_blob};
use vgi_wire::server::{Call, decode_call, decode_turn, error_body, result_body};

use crate::error::{Error, Result};
use crate::server::fault::Fault;
use crate::server::protocol::PROTOCOLS;
use crate::server::route::{Place, Route};
use crate::server::{Exchange, budget, gate};
use crate::transactions::Transactions;

/// A reply.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// Whether a function or the catalog raised the error in it.
    pub(super) failed: bool,
    pub(super) body: Segments,
    /// Bytes that the reply may have by an agreement earlier than this request.
    pub(super) budget: Option<u64>,
}

impl Answer {
    pub(super) fn success(body: Segments) -> Self {
        Self { status: StatusCode::OK, failed: false, body, budget: None }
    }

    /// One turn of a stream. With an error, what comes before the error is good.
    pub(super) fn turn(body: Segments, failed: bool, budget: Option<u64>) -> Self {
        Self { status: StatusCode::OK, failed, body, budget }
    }
}

impl Exchange<'_> {
    /// The reply to a call, whatever it is.
    pub(super) fn answer(&self, place: Place, body: Bytes) -> Answer {
        let answered = match place.route {
            Route::Turn => self.turn(body),
            Route::Open => Self::admit(place, body).and_then(|call| self.open(&call)),
            Route::Unary(method) => {
                Self::admit(place, body).and_then(|call| self.unary(method, &call)).map(Answer::success)
            }
            Route::ListProtocols => Self::admit(place, body).and_then(|_| self.protocols()).map(Answer::success),
        };
        let affordable = answered.and_then(|answer| {
            budget::check(budget::tighter(self.budget, answer.budget), answer.body.len())?;
            Ok(answer)
        });
        let answer = affordable.unwrap_or_else(|fault| self.refuse(fault));
        if answer.failed || answer.status != StatusCode::OK {
            self.server.counters.errors.add(1);
        }
        answer
    }

    /// The reply that is nothing but an error.
    pub(super) fn refuse(&self, fault: Fault) -> Answer {
        let Fault { status, error } = fault;
        tracing::debug!(request_id = self.request_id, %status, %error, "answered with an error");
        let body = error_body(&self.logger.take(), &self.server.id, Some(self.request_id), &error);
        // only a text beyond the format's limits could not be written
        Answer { status, failed: status == StatusCode::OK, body: body.unwrap_or_default(), budget: None }
    }

    fn turn(&self, body: Bytes) -> Result<Answer, Fault> {
        let (tokens, cancel) = decode_turn(body)?;
        if cancel { self.cancel_stream(&tokens) } else { self.continue_stream(&tokens) }
    }

    /// The call in the body, if it may be answered.
    fn admit(place: Place, body: Bytes) -> Result<Call, Fault> {
        let call = decode_call(body)?;
        gate::check(place, &call)?;
        Ok(call)
    }

    fn protocols(&self) -> Result<Segments, Fault> {
        let entries = PROTOCOLS
            .each_ref()
            .map(|protocol| ProtocolEntry { protocol: protocol.name.to_owned(), version: protocol.version.to_owned() });
        self.result(list_protocols_blob(&self.server.id, &entries))
    }

    fn unary(&self, method: Method, call: &Call) -> Result<Segments, Fault> {
        match method {
            Method::Bind => self.bind(call),
            Method::Process => self.process(call),
            Method::Combine => self.combine(call),
            Method::Destructor => self.destroy(call),
            Method::Cardinality => self.cardinality(call),
            Method::CatalogCatalogs => self.catalogs(),
            Method::CatalogAttach => self.attach(call),
            Method::CatalogDetach => self.detach(call),
            Method::CatalogVersion => self.version(call),
            Method::CatalogContents => self.contents(call),
            Method::CatalogSchemas => self.schemas(call),
            Method::SchemaFunctions => self.functions(call),
            Method::SchemaTables | Method::SchemaViews | Method::SchemaMacros | Method::SchemaIndexes => {
                self.objects(method, call)
            }
            Method::TransactionBegin => self.begin_transaction(call),
            Method::TransactionCommit => self.end_transaction(call, Transactions::commit),
            Method::TransactionRollback => self.end_transaction(call, Transactions::rollback),
            // has routes of its own
            Method::Init => Err(Fault::bad_request("ProtocolError", "init is a stream")),
        }
    }

    /// A unary reply around a record, with the log lines so far.
    pub(super) fn result(&self, record: Result<Segments, WireError>) -> Result<Segments, Fault> {
        let written =
            record.and_then(|record| result_body(&self.logger.take(), &self.server.id, Some(self.request_id), record));
        written.map_err(|error| Fault::from(Error::Wire(error)))
    }
}
