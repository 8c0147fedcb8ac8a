//! Finalize streams: a turn at a time, wherever the client goes on.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
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

use crate::catalog::{ErasedTick, Registered};
use crate::context::Scope;
use crate::error::{Error, Result};
use crate::filtering;
use crate::function::Filters;
use crate::ids::{ExecutionId, FinalizeId};
use crate::server::Exchange;
use crate::server::answer::Answer;
use crate::server::execution::{Execution, guarded};
use crate::server::fault::Fault;
use crate::tokens::{Kind, TokenError, random_id};

/// What the call token says.
#[derive(Debug, Serialize, Deserialize)]
struct StreamCall {
    /// Ties the cursor to this call.
    nonce: [u8; 16],
    execution: String,
    stream: String,
    projection: Option<Vec<usize>>,
    budget: Option<u64>,
}

/// What the cursor token says.
#[derive(Debug, Serialize, Deserialize)]
struct Cursor {
    nonce: [u8; 16],
    position: Value,
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
        let (turn, failed) = self.tick(execution, &stream, None, &call, Some(call_token))?;
        body.extend(turn);
        Ok(Answer::turn(body, failed, self.budget))
    }

    pub(super) fn continue_stream(&self, tokens: &Tokens) -> Result<Answer, Fault> {
        let (call, cursor) = self.open_tokens(tokens)?;
        let mut execution =
            self.execution(ExecutionId::new(StreamCall::bytes(&call.execution)?), None, Bytes::new())?;
        execution.scope.projection.clone_from(&call.projection);
        let stream = FinalizeId::new(StreamCall::bytes(&call.stream)?);
        let (body, failed) = self.tick(execution, &stream, Some(cursor.position), &call, None)?;
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

    /// One turn as a data stream; true when it ends with an error.
    fn tick(
        &self,
        execution: Execution,
        stream: &FinalizeId,
        position: Option<Value>,
        call: &StreamCall,
        call_token: Option<String>,
    ) -> Result<(Segments, bool)> {
        let Execution { function, values, scope } = execution;
        self.server.counters.turns.add(1);
        let schema = scope.projected_schema()?;
        let ticked = guarded(|| {
            let tick = function.finalize(values, stream, position, &scope)?;
            let batch = tick.batch.map(|batch| filtered(function.as_ref(), batch, &scope)).transpose()?;
            let batch = batch.map(|batch| narrow(&function.spec().name, &batch, &scope, &schema)).transpose()?;
            Ok(ErasedTick { batch, next: tick.next })
        });
        let mut writer = self.writer(&schema)?;
        for record in self.logger.take() {
            writer.log(&record)?;
        }
        let failed = ticked.is_err();
        match ticked {
            Ok(ErasedTick { batch, next }) => {
                if let Some(batch) = batch {
                    writer.data(&batch)?;
                    self.server.counters.batches_out.add(usize::from(batch.num_rows() > 0));
                    self.server.counters.rows_out.add(batch.num_rows());
                }
                if let Some(position) = next {
                    let cursor = self.seal(Kind::Cursor, &Cursor { nonce: call.nonce, position })?;
                    writer.token(&Tokens { cursor, call: call_token })?;
                }
            }
            Err(error) => writer.error(&Fault::from(error).error)?,
        }
        Ok((writer.finish()?, failed))
    }

    fn seal<T: Serialize>(&self, kind: Kind, content: &T) -> Result<String> {
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

    fn writer(&self, schema: &SchemaRef) -> Result<ReplyWriter> {
        Ok(ReplyWriter::new(Arc::clone(schema), &self.server.id, Some(self.request_id))?)
    }
}

/// Whether a batch of the function has all columns rather than the wanted ones only.
fn is_whole(batch: &RecordBatch, scope: &Scope) -> bool {
    let names = |schema: &Schema| schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    scope.projection.is_none() || names(batch.schema_ref()) == names(&scope.output_schema)
}

/// Without the rows that the client drops, where the function leaves that to the worker.
fn filtered(function: &dyn Registered, batch: RecordBatch, scope: &Scope) -> Result<RecordBatch> {
    if function.spec().flags.filters != Filters::Applied {
        return Ok(batch);
    }
    let whole = is_whole(&batch, scope);
    let place = |column: usize| match &scope.projection {
        Some(projection) if !whole => projection.iter().position(|&wanted| wanted == column),
        _ => Some(column),
    };
    filtering::apply(&batch, &scope.filters, &place)
}

/// What a function emitted, as the client wants it. A function may emit the wanted columns only, or all.
fn narrow(function: &str, batch: &RecordBatch, scope: &Scope, wanted: &SchemaRef) -> Result<RecordBatch> {
    let unfit = |reason: &dyn std::fmt::Display| {
        Error::Failed(format!("{function} emitted a batch that does not fit its output schema: {reason}"))
    };
    let columns = match &scope.projection {
        Some(places) if is_whole(batch, scope) => {
            let column = |place: &usize| {
                batch.columns().get(*place).cloned().ok_or_else(|| unfit(&format!("no column {place}")))
            };
            places.iter().map(column).collect::<Result<Vec<_>>>()?
        }
        _ => batch.columns().to_vec(),
    };
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(wanted), columns, &options).map_err(|error| unfit(&error))
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array};

    use super::*;
    use crate::functions::harness::batch_of;

    fn narrowed(batch: &RecordBatch, whole: &RecordBatch, projection: Option<Vec<usize>>) -> Result<RecordBatch> {
        let storage = Arc::new(crate::storage::MemoryStorage::new());
        let scope = Scope {
            store: crate::storage::Store::new(storage, ExecutionId::new("test")),
            input_schema: whole.schema(),
            output_schema: whole.schema(),
            projection,
            filters: Vec::new(),
            batch_index: None,
            input_blob: Bytes::new(),
            given: crate::given::Given::default(),
            logger: crate::log::Logger::default(),
        };
        narrow("f", batch, &scope, &scope.projected_schema()?)
    }

    #[test]
    fn columns_are_narrowed_by_place_and_not_by_name() {
        let column = |value: i64| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
        let whole = batch_of(vec![("x", column(1)), ("x", column(2)), ("y", column(3))]);
        assert_eq!(narrowed(&whole, &whole, Some(vec![1])).unwrap().columns(), [column(2)]);
        assert_eq!(narrowed(&whole, &whole, Some(vec![2, 0])).unwrap().columns(), [column(3), column(1)]);
        assert_eq!(narrowed(&whole, &whole, None).unwrap(), whole);
        assert_eq!(narrowed(&whole, &whole, Some(vec![])).unwrap().num_rows(), 1);
        let only_y = batch_of(vec![("y", column(4))]);
        assert_eq!(narrowed(&only_y, &whole, Some(vec![2])).unwrap().columns(), [column(4)]);
        let message = narrowed(&only_y, &whole, None).unwrap_err().to_string();
        assert!(message.starts_with("f emitted a batch that does not fit its output schema"), "{message}");
    }
}
