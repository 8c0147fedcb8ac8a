//! Finalize streams: a turn at a time, wherever the client goes on.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use vgi_wire::ipc::{self, Segments};
use vgi_wire::methods::{InitHeader, InitRequest};
use vgi_wire::reply::Tokens;
use vgi_wire::server::ReplyWriter;

use crate::error::{Error, Result};
use crate::ids::{ExecutionId, FinalizeId};
use crate::server::Exchange;
use crate::server::answer::Answer;
use crate::server::execution::Execution;
use crate::server::fault::Fault;
use crate::tokens::{Kind, TokenError, random_id};

/// What the call token says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StreamCall {
    /// Ties the cursor to this call.
    pub(super) nonce: [u8; 16],
    execution: String,
    stream: String,
    projection: Option<Vec<usize>>,
    pub(super) budget: Option<u64>,
}

/// What the cursor token says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Cursor {
    pub(super) nonce: [u8; 16],
    pub(super) position: Value,
}

impl StreamCall {
    fn bytes(text: &str) -> Result<Bytes, TokenError> {
        STANDARD.decode(text).map(Bytes::from).map_err(|_| TokenError::Invalid)
    }
}

impl Exchange<'_> {
    /// The reply to the init of an execution: its header, and a stream that has ended.
    pub(super) fn opened(&self, execution: &Execution) -> Result<Answer, Fault> {
        let mut body = self.header(execution)?;
        body.extend(self.writer(&execution.scope.projected_schema()?)?.finish().map_err(Error::from)?);
        Ok(Answer::success(body))
    }

    /// Opens a stream; the reply holds its first turn.
    pub(super) fn open_stream(&self, request: &InitRequest) -> Result<Answer, Fault> {
        let missing = |field: &str| Error::Protocol(format!("phase TABLE_BUFFERING_FINALIZE needs {field}"));
        let id = request.execution_id.clone().ok_or_else(|| missing("execution_id"))?;
        let stream = FinalizeId::new(request.finalize_state_id.clone().ok_or_else(|| missing("finalize_state_id"))?);
        let mut execution = self.execution(ExecutionId::new(id.clone()), None, Bytes::new())?;
        execution.narrow_to(request.projection_ids.as_deref())?;
        self.server.counters.streams.add(1);
        let call = StreamCall {
            nonce: random_id(),
            execution: STANDARD.encode(&id),
            stream: STANDARD.encode(stream.as_bytes()),
            projection: execution.scope.projection.clone(),
            budget: self.budget,
        };
        let call_token = self.seal(Kind::Call, &call)?;
        let mut body = self.header(&execution)?;
        let (turn, failed) = self.next_turn(&execution, &stream, &call, None, Some(call_token))?;
        body.extend(turn);
        Ok(Answer::turn(body, failed, self.budget))
    }

    pub(super) fn continue_stream(&self, tokens: &Tokens) -> Result<Answer, Fault> {
        let (call, cursor) = self.open_tokens(tokens)?;
        let mut execution =
            self.execution(ExecutionId::new(StreamCall::bytes(&call.execution)?), None, Bytes::new())?;
        execution.scope.projection.clone_from(&call.projection);
        let stream = FinalizeId::new(StreamCall::bytes(&call.stream)?);
        let (body, failed) = self.next_turn(&execution, &stream, &call, Some(cursor.position), None)?;
        Ok(Answer::turn(body, failed, call.budget))
    }

    /// Nothing is held for a stream, so there is nothing to free: the reply is a stream without batches.
    pub(super) fn cancel_stream(&self, tokens: &Tokens) -> Result<Answer, Fault> {
        let (call, _) = self.open_tokens(tokens)?;
        self.server.counters.cancels.add(1);
        let schema = match self.execution(ExecutionId::new(StreamCall::bytes(&call.execution)?), None, Bytes::new()) {
            Ok(mut execution) => {
                execution.scope.projection = call.projection;
                execution.scope.projected_schema()?
            }
            Err(_) => Arc::new(Schema::empty()),
        };
        Ok(Answer::success(self.writer(&schema)?.finish().map_err(Error::from)?))
    }

    fn open_tokens(&self, tokens: &Tokens) -> Result<(StreamCall, Cursor), Fault> {
        let missing = || {
            Fault::bad_request(
                "InvalidStateTokenError",
                "the call token is missing: a turn needs both tokens of its stream",
            )
        };
        let sealer = &self.server.sealer;
        let call: StreamCall = sealer.open(Kind::Call, self.principal, tokens.call.as_deref().ok_or_else(missing)?)?;
        let cursor: Cursor = sealer.open(Kind::Cursor, self.principal, &tokens.cursor)?;
        if call.nonce != cursor.nonce {
            return Err(Fault::bad_request("InvalidStateTokenError", "the two tokens belong to different streams"));
        }
        Ok((call, cursor))
    }

    pub(super) fn seal<T: Serialize>(&self, kind: Kind, content: &T) -> Result<String> {
        self.server.sealer.seal(kind, self.principal, content).map_err(|error| Error::Failed(error.to_string()))
    }

    fn header(&self, execution: &Execution) -> Result<Segments> {
        let header = InitHeader {
            execution_id: execution.scope.store.execution().as_bytes().clone(),
            opaque_data: None,
            max_workers: execution.function.spec().max_workers,
        };
        let row = ipc::decode_batch(header.to_stream()?.to_bytes())?;
        let mut writer = self.writer(&row.schema())?;
        for record in self.logger.take() {
            writer.log(&record)?;
        }
        writer.data(&row)?;
        Ok(writer.finish()?)
    }

    pub(super) fn writer(&self, schema: &SchemaRef) -> Result<ReplyWriter> {
        Ok(ReplyWriter::new(Arc::clone(schema), &self.server.id, Some(self.request_id))?)
    }
}
