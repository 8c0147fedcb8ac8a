//! Transactions of a catalog that has them.

use bytes::Bytes;

use super::Method;
use super::outer::routing;
use crate::WireError;
use crate::generation::Dialect;
use crate::ipc::Segments;
use crate::record::{Record, RecordBuilder};
use crate::reply::UnaryReply;

/// The body of `catalog_transaction_begin`.
///
/// # Errors
/// Never in practice.
pub fn begin_body(dialect: &Dialect, attach: &Bytes) -> Result<Segments, WireError> {
    RecordBuilder::new().bytes("attach_opaque_data", attach.clone()).finish(&routing(dialect, Method::TransactionBegin))
}

/// The handle in the reply of `catalog_transaction_begin`; `None` when the server keeps nothing for the transaction.
///
/// # Errors
/// When the reply is not one.
pub fn begun(reply: &UnaryReply) -> Result<Option<Bytes>, WireError> {
    let batch = reply.result()?;
    Ok(Record::first(&batch)?.optional_bytes("transaction_opaque_data").filter(|handle| !handle.is_empty()))
}

/// The body of `catalog_transaction_commit` or `catalog_transaction_rollback`.
///
/// # Errors
/// Never in practice.
pub fn end_body(dialect: &Dialect, method: Method, attach: &Bytes, transaction: &Bytes) -> Result<Segments, WireError> {
    RecordBuilder::new()
        .bytes("attach_opaque_data", attach.clone())
        .bytes("transaction_opaque_data", transaction.clone())
        .finish(&routing(dialect, method))
}

/// The reply to `catalog_transaction_begin` as a record.
///
/// # Errors
/// Never in practice.
pub fn begun_blob(transaction: &Bytes) -> Result<Segments, WireError> {
    RecordBuilder::new().optional_bytes("transaction_opaque_data", Some(transaction)).finish(&[])
}
