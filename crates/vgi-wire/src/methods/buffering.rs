//! `table_buffering_process`, `table_buffering_combine`, `table_buffering_destructor`.

use bytes::Bytes;

use super::Method;
use super::bind::{read_schema_path, schema_field};
use super::outer::request_template;
use crate::WireError;
use crate::generation::Dialect;
use crate::ipc::{self, Blob, RowTemplate, Segments};
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
    fn with_schema(&self, record: RecordBuilder, dialect: &Dialect) -> RecordBuilder {
        schema_field(record, dialect.generation.buffering_schema, &self.schema_path)
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
        self.with_schema(self.handles(self.head()), dialect).finish(&[])
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
        self.into_record(dialect).finish(&[])
    }

    fn into_record(self, dialect: &Dialect) -> RecordBuilder {
        let record = self.execution.head().bytes("input_batch", self.input_batch);
        let record = self.execution.handles(record).optional_integer("batch_index", self.batch_index);
        self.execution.with_schema(record, dialect)
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

/// The requests that send the chunks of one execution: everything but the chunk is encoded once.
#[derive(Clone, Debug)]
pub struct ProcessTemplate {
    /// The record without a batch index, and the one with.
    records: [(RowTemplate, Vec<Blob>); 2],
    /// The outer row.
    envelope: RowTemplate,
}

impl ProcessTemplate {
    const INPUT_BATCH: usize = 2;
    const BATCH_INDEX: usize = 5;

    /// A template of the requests of an execution.
    ///
    /// # Errors
    /// Never in practice.
    pub fn new(dialect: &Dialect, execution: &ExecutionRef) -> Result<Self, WireError> {
        let record = |batch_index| {
            let empty = ProcessRequest { execution: execution.clone(), input_batch: Segments::new(), batch_index };
            empty.into_record(dialect).template(&[])
        };
        Ok(Self { records: [record(None)?, record(Some(0))?], envelope: request_template(dialect, Method::Process)? })
    }

    /// The whole body of a request with this chunk, whose pieces are not copied.
    ///
    /// # Errors
    /// When the chunk exceeds 2 GiB.
    pub fn body(&self, input_batch: Segments, batch_index: Option<i64>) -> Result<Segments, WireError> {
        let [plain, indexed] = &self.records;
        let (record, constants) = if batch_index.is_some() { indexed } else { plain };
        let mut blobs = constants.clone();
        blobs.push(Blob { column: Self::INPUT_BATCH, value: input_batch });
        let record = record.fill(&blobs, batch_index.map(|index| (Self::BATCH_INDEX, index)))?;
        self.envelope.fill(&[Blob { column: 0, value: record }], None)
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
        self.execution.with_schema(self.execution.handles(record), dialect).finish(&[])
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generation::GENERATIONS;
    use crate::methods::request_body;

    #[test]
    fn a_template_gives_the_bytes_of_the_request() {
        for generation in GENERATIONS {
            let version = format!("{}.{}.0", generation.major, generation.minor);
            let protocol = format!("vgi.v{}", generation.major);
            let routed = generation.major > 1;
            let dialect = Dialect::select(routed.then_some(protocol.as_str()), Some(&version)).unwrap();
            let execution = ExecutionRef {
                function_name: "f".to_owned(),
                execution_id: Bytes::from_static(b"an id"),
                attach_opaque_data: Some(Bytes::from_static(b"attached")),
                transaction_id: None,
                schema_path: vec!["main".to_owned()],
            };
            let template = ProcessTemplate::new(&dialect, &execution).unwrap();
            for (batch_index, len) in [(None, 0), (None, 3), (Some(7), 4096), (Some(i64::MAX), 17)] {
                let input_batch = Segments::from(vec![5; len]);
                let filled = template.body(input_batch.clone(), batch_index).unwrap();
                let request = ProcessRequest { execution: execution.clone(), input_batch, batch_index };
                let whole = request_body(&dialect, Method::Process, request.into_blob(&dialect).unwrap()).unwrap();
                assert_eq!(filled.to_bytes(), whole.to_bytes(), "{version}");
            }
        }
    }
}
