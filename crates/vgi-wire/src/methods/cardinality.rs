//! `table_function_cardinality`: how many rows a call will give.

use bytes::Bytes;

use crate::WireError;
use crate::ipc::{self, Segments};
use crate::record::{Record, RecordBuilder};
use crate::reply::UnaryReply;

/// Asks how many rows a call will give.
#[derive(Clone, Debug)]
pub struct CardinalityRequest {
    /// The bytes of the bind request.
    pub bind_call: Bytes,
}

impl CardinalityRequest {
    /// The request as a record.
    ///
    /// # Errors
    /// Never in practice.
    pub fn to_blob(&self) -> Result<Segments, WireError> {
        let record = RecordBuilder::new().bytes("bind_call", self.bind_call.clone());
        record.optional_bytes("bind_opaque_data", None).finish(&[])
    }

    /// Reads the record.
    ///
    /// # Errors
    /// When it is not one.
    pub fn from_blob(blob: Bytes) -> Result<Self, WireError> {
        let batch = ipc::decode_batch(blob)?;
        Ok(Self { bind_call: Record::first(&batch)?.bytes("bind_call")? })
    }
}

/// The reply as a record: the likely number of rows, and the largest possible one, where they are known.
///
/// # Errors
/// Never in practice.
pub fn cardinality_blob(estimate: Option<i64>, most: Option<i64>) -> Result<Segments, WireError> {
    RecordBuilder::new().optional_integer("estimate", estimate).optional_integer("max", most).finish(&[])
}

/// What [`cardinality_blob`] wrote.
///
/// # Errors
/// When the reply is not one.
pub fn cardinality_of(reply: &UnaryReply) -> Result<(Option<i64>, Option<i64>), WireError> {
    let batch = reply.result()?;
    let record = Record::first(&batch)?;
    Ok((record.integer("estimate"), record.integer("max")))
}
