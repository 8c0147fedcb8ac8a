//! `table_buffering_process`, `table_buffering_combine`, `table_buffering_destructor`.

use bytes::Bytes;

use super::bind::{read_schema_path, schema_field};
use crate::WireError;
use crate::generation::Dialect;
use crate::ipc::{self, Segments};
use crate::record::{Record, RecordBuilder};
use crate::reply::UnaryReply;

/// The execution that a request belongs to: what all three requests repeat. By itself it is the destructor's request.
#[derive(Clone, Debug)]
pub struct ExecutionRef {
    /// As at bind.
    pub function_name: String,
    /// From the header of the primary init.
    pub execution_id: Bytes,
    /// From the attach reply.
    pub attach_opaque_data: Option<Bytes>,
    /// Handle of the transaction.
    pub transaction_id: Option<Bytes>,
    /// As at bind.
    pub schema_path: Vec<String>,
}

impl ExecutionRef {
    /// The columns that every request begins with.
    fn head(&self) -> RecordBuilder {
        RecordBuilder::new().text("function_name", &self.function_name).bytes("execution_id", self.execution_id.clone())
    }

    /// The columns that follow a request's own.
    fn handles(&self, record: RecordBuilder) -> RecordBuilder {
        record
            .optional_bytes("attach_opaque_data", self.attach_opaque_data.as_deref())
            .optional_bytes("transaction_id", self.transaction_id.as_deref())
    }

    /// The last column, in the form of the generation.
    fn finish(&self, record: RecordBuilder, dialect: &Dialect) -> Result<Segments, WireError> {
        schema_field(record, dialect.generation.buffering_schema, &self.schema_path).finish(&[])
    }

    fn read(record: &Record<'_>) -> Result<Self, WireError> {
        Ok(Self {
            function_name: record.text("function_name")?,
            execution_id: record.bytes("execution_id")?,
            attach_opaque_data: record.optional_bytes("attach_opaque_data"),
            transaction_id: record.optional_bytes("transaction_id"),
            schema_path: read_schema_path(record),
        })
    }

    /// The destructor's request as a record.
    ///
    /// # Errors
    /// Never in practice.
    pub fn to_blob(&self, dialect: &Dialect) -> Result<Segments, WireError> {
        self.finish(self.handles(self.head()), dialect)
    }

    /// Reads the destructor's record.
    ///
    /// # Errors
    /// When required fields are missing.
    pub fn from_blob(blob: Bytes) -> Result<Self, WireError> {
        Self::read(&Record::first(&ipc::decode_batch(blob)?)?)
    }
}

/// One chunk of the input.
#[derive(Clone, Debug)]
pub struct ProcessRequest {
    /// The execution.
    pub execution: ExecutionRef,
    /// An IPC stream with exactly one batch: servers drop a second one without a word.
    pub input_batch: Segments,
    /// Position in source order, for functions that require it.
    pub batch_index: Option<i64>,
}

impl ProcessRequest {
    /// The request as a record around the batch, whose pieces are not copied.
    ///
    /// # Errors
    /// When the batch exceeds 2 GiB.
    pub fn into_blob(self, dialect: &Dialect) -> Result<Segments, WireError> {
        let record = self.execution.head().bytes("input_batch", self.input_batch);
        let record = self.execution.handles(record).optional_integer("batch_index", self.batch_index);
        self.execution.finish(record, dialect)
    }

    /// Reads the record.
    ///
    /// # Errors
    /// When required fields are missing.
    pub fn from_blob(blob: Bytes) -> Result<Self, WireError> {
        let batch = ipc::decode_batch(blob)?;
        let record = Record::first(&batch)?;
        Ok(Self {
            execution: ExecutionRef::read(&record)?,
            input_batch: record.bytes("input_batch")?.into(),
            batch_index: record.integer("batch_index"),
        })
    }
}

/// The id under which the server keeps what it made of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessReply {
    /// Opaque; may repeat; every one must reach combine.
    pub state_id: Bytes,
}

impl ProcessReply {
    /// Reads the reply.
    ///
    /// # Errors
    /// When there is no id.
    pub fn from_reply(reply: &UnaryReply) -> Result<Self, WireError> {
        let batch = reply.result()?;
        Ok(Self { state_id: Record::first(&batch)?.bytes("state_id")? })
    }

    /// The reply as a record.
    ///
    /// # Errors
    /// Never in practice.
    pub fn to_blob(&self) -> Result<Segments, WireError> {
        RecordBuilder::new().bytes("state_id", self.state_id.clone()).finish(&[])
    }
}

/// The end of the input.
#[derive(Clone, Debug)]
pub struct CombineRequest {
    /// The execution.
    pub execution: ExecutionRef,
    /// The ids of all process calls, duplicates included.
    pub state_ids: Vec<Bytes>,
}

impl CombineRequest {
    /// The request as a record.
    ///
    /// # Errors
    /// When the ids exceed 2 GiB.
    pub fn to_blob(&self, dialect: &Dialect) -> Result<Segments, WireError> {
        let record = self.execution.head().blobs("state_ids", &self.state_ids);
        self.execution.finish(self.execution.handles(record), dialect)
    }

    /// Reads the record.
    ///
    /// # Errors
    /// When required fields are missing.
    pub fn from_blob(blob: Bytes) -> Result<Self, WireError> {
        let batch = ipc::decode_batch(blob)?;
        let record = Record::first(&batch)?;
        Ok(Self { execution: ExecutionRef::read(&record)?, state_ids: record.blobs("state_ids")? })
    }
}

/// The streams that hold the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CombineReply {
    /// One stream each; may be empty; order matters to `source_order_dependent` functions.
    pub finalize_state_ids: Vec<Bytes>,
}

impl CombineReply {
    /// Reads the reply.
    ///
    /// # Errors
    /// When there is no list of ids.
    pub fn from_reply(reply: &UnaryReply) -> Result<Self, WireError> {
        let batch = reply.result()?;
        let record = Record::first(&batch)?;
        if !record.has("finalize_state_ids") {
            return Err(WireError::protocol("field 'finalize_state_ids' is missing"));
        }
        Ok(Self { finalize_state_ids: record.blobs("finalize_state_ids")? })
    }

    /// The reply as a record.
    ///
    /// # Errors
    /// Never in practice.
    pub fn to_blob(&self) -> Result<Segments, WireError> {
        RecordBuilder::new().blobs("finalize_state_ids", &self.finalize_state_ids).finish(&[])
    }
}
