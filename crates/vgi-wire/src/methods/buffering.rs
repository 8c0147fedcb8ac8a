//! `table_buffering_process`, `table_buffering_combine`, `table_buffering_destructor`.

use bytes::Bytes;

use super::bind::{read_schema_path, schema_field};
use crate::WireError;
use crate::generation::Dialect;
use crate::ipc::{self, Segments};
use crate::record::{Record, RecordBuilder};
use crate::reply::UnaryReply;

/// One chunk of the input.
#[derive(Clone, Debug)]
pub struct ProcessRequest {
    /// As at bind.
    pub function_name: String,
    /// From the header of the primary init.
    pub execution_id: Bytes,
    /// An IPC stream with exactly one batch: servers drop a second one without a word.
    pub input_batch: Segments,
    /// From the attach reply.
    pub attach_opaque_data: Option<Bytes>,
    /// Handle of the transaction.
    pub transaction_id: Option<Bytes>,
    /// Position in source order, for functions that require it.
    pub batch_index: Option<i64>,
    /// As at bind.
    pub schema_path: Vec<String>,
}

impl ProcessRequest {
    /// The request as a record around the batch, whose pieces are not copied.
    ///
    /// # Errors
    /// When the batch exceeds 2 GiB.
    pub fn into_blob(self, dialect: &Dialect) -> Result<Segments, WireError> {
        let record = RecordBuilder::new()
            .text("function_name", &self.function_name)
            .bytes("execution_id", self.execution_id)
            .bytes("input_batch", self.input_batch)
            .optional_bytes("attach_opaque_data", self.attach_opaque_data.as_deref())
            .optional_bytes("transaction_id", self.transaction_id.as_deref())
            .optional_integer("batch_index", self.batch_index);
        schema_field(record, dialect.generation.buffering_schema, &self.schema_path).finish(&[])
    }

    /// Reads the record.
    ///
    /// # Errors
    /// When required fields are missing.
    pub fn from_blob(blob: Bytes) -> Result<Self, WireError> {
        let batch = ipc::decode_batch(blob)?;
        let record = Record::first(&batch)?;
        Ok(Self {
            function_name: record.text("function_name")?,
            execution_id: record.bytes("execution_id")?,
            input_batch: record.bytes("input_batch")?.into(),
            attach_opaque_data: record.optional_bytes("attach_opaque_data"),
            transaction_id: record.optional_bytes("transaction_id"),
            batch_index: record.integer("batch_index"),
            schema_path: read_schema_path(&record),
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
    /// As at bind.
    pub function_name: String,
    /// From the header of the primary init.
    pub execution_id: Bytes,
    /// The ids of all process calls, duplicates included.
    pub state_ids: Vec<Bytes>,
    /// From the attach reply.
    pub attach_opaque_data: Option<Bytes>,
    /// Handle of the transaction.
    pub transaction_id: Option<Bytes>,
    /// As at bind.
    pub schema_path: Vec<String>,
}

impl CombineRequest {
    /// The request as a record.
    ///
    /// # Errors
    /// When the ids exceed 2 GiB.
    pub fn to_blob(&self, dialect: &Dialect) -> Result<Segments, WireError> {
        let record = RecordBuilder::new()
            .text("function_name", &self.function_name)
            .bytes("execution_id", self.execution_id.clone())
            .blobs("state_ids", &self.state_ids)
            .optional_bytes("attach_opaque_data", self.attach_opaque_data.as_deref())
            .optional_bytes("transaction_id", self.transaction_id.as_deref());
        schema_field(record, dialect.generation.buffering_schema, &self.schema_path).finish(&[])
    }

    /// Reads the record.
    ///
    /// # Errors
    /// When required fields are missing.
    pub fn from_blob(blob: Bytes) -> Result<Self, WireError> {
        let batch = ipc::decode_batch(blob)?;
        let record = Record::first(&batch)?;
        Ok(Self {
            function_name: record.text("function_name")?,
            execution_id: record.bytes("execution_id")?,
            state_ids: record.blobs("state_ids")?,
            attach_opaque_data: record.optional_bytes("attach_opaque_data"),
            transaction_id: record.optional_bytes("transaction_id"),
            schema_path: read_schema_path(&record),
        })
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

/// Frees an execution.
#[derive(Clone, Debug)]
pub struct DestructorRequest {
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

impl DestructorRequest {
    /// The request as a record.
    ///
    /// # Errors
    /// Never in practice.
    pub fn to_blob(&self, dialect: &Dialect) -> Result<Segments, WireError> {
        let record = RecordBuilder::new()
            .text("function_name", &self.function_name)
            .bytes("execution_id", self.execution_id.clone())
            .optional_bytes("attach_opaque_data", self.attach_opaque_data.as_deref())
            .optional_bytes("transaction_id", self.transaction_id.as_deref());
        schema_field(record, dialect.generation.buffering_schema, &self.schema_path).finish(&[])
    }

    /// Reads the record.
    ///
    /// # Errors
    /// When required fields are missing.
    pub fn from_blob(blob: Bytes) -> Result<Self, WireError> {
        let batch = ipc::decode_batch(blob)?;
        let record = Record::first(&batch)?;
        Ok(Self {
            function_name: record.text("function_name")?,
            execution_id: record.bytes("execution_id")?,
            attach_opaque_data: record.optional_bytes("attach_opaque_data"),
            transaction_id: record.optional_bytes("transaction_id"),
            schema_path: read_schema_path(&record),
        })
    }
}
