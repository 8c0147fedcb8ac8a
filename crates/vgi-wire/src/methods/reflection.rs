//! Introspection: which protocol and version a server speaks.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;

use super::outer::empty_batch;
use crate::ipc::Segments;
use crate::record::{Record, RecordBuilder};
use crate::reply::UnaryReply;
use crate::{WireError, meta};

/// Path of `list_protocols` below the base URL, the same on every routed server.
pub const LIST_PROTOCOLS_PATH: &str = "vgi_rpc.Reflection.v1/list_protocols";
/// Path of the introspection of flat servers.
pub const DESCRIBE_PATH: &str = "__describe__";

/// The body of `list_protocols`. It declares no version, since reflection is exempt from the check.
///
/// # Errors
/// Never in practice.
pub fn list_protocols_body() -> Result<Segments, WireError> {
    empty_batch(&[
        (meta::METHOD, "list_protocols"),
        (meta::REQUEST_VERSION, meta::REQUEST_VERSION_VALUE),
        (meta::PROTOCOL, "vgi_rpc.Reflection.v1"),
    ])
}

/// A protocol that a server hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolEntry {
    /// Name, such as `vgi.v2`.
    pub protocol: String,
    /// Version, such as `2.2.0`.
    pub version: String,
}

/// The protocols in the reply of `list_protocols`; their order means nothing.
///
/// # Errors
/// When the reply has no list of protocols.
pub fn protocol_entries(reply: &UnaryReply) -> Result<Vec<ProtocolEntry>, WireError> {
    let batch = reply.result()?;
    let wrong = || WireError::protocol("field 'protocols' is not a list of records");
    let items = Record::first(&batch)?.items("protocols").ok_or_else(wrong)?;
    let entries = RecordBatch::from(items.as_struct_opt().ok_or_else(wrong)?.clone());
    Record::all(&entries)
        .map(|entry| Ok(ProtocolEntry { protocol: entry.text("protocol")?, version: entry.text("protocol_version")? }))
        .collect()
}

/// The reply of `list_protocols`.
///
/// # Errors
/// Never in practice.
pub fn list_protocols_blob(server_id: &str, entries: &[ProtocolEntry]) -> Result<Segments, WireError> {
    let protocol = |entry: &ProtocolEntry| {
        RecordBuilder::new()
            .text("protocol", &entry.protocol)
            .text("protocol_version", &entry.version)
            .text("protocol_hash", "")
            .flag("deprecated", false)
            .text("deprecation_message", "")
            .texts::<&str>("features", &[])
    };
    RecordBuilder::new()
        .text("server_id", server_id)
        .text("server_version", env!("CARGO_PKG_VERSION"))
        .text("request_version", meta::REQUEST_VERSION_VALUE)
        .structs("protocols", entries.iter().map(protocol).collect())?
        .finish(&[])
}

/// The body of `__describe__`.
///
/// # Errors
/// Never in practice.
pub fn describe_body() -> Result<Segments, WireError> {
    empty_batch(&[(meta::METHOD, "__describe__"), (meta::REQUEST_VERSION, meta::REQUEST_VERSION_VALUE)])
}

/// The version that the reply of `__describe__` declares, if it declares one.
pub fn describe_version(reply: &UnaryReply) -> Option<String> {
    reply.metadata.iter().find(|(key, _)| key == meta::PROTOCOL_VERSION).map(|(_, version)| version.clone())
}
