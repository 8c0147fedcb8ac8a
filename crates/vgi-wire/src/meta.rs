//! Keys of a batch's metadata (protocol file 04).

/// Name of the called method.
pub const METHOD: &str = "vgi_rpc.method";
/// Version of the framing; always [`REQUEST_VERSION_VALUE`].
pub const REQUEST_VERSION: &str = "vgi_rpc.request_version";
/// The only version of the framing there is.
pub const REQUEST_VERSION_VALUE: &str = "1";
/// Name of the routed protocol, such as `vgi.v2`.
pub const PROTOCOL: &str = "vgi_rpc.protocol";
/// Version of the protocol; major and minor must be the server's own.
pub const PROTOCOL_VERSION: &str = "vgi_rpc.protocol_version";
/// Correlates a request with the server's log.
pub const REQUEST_ID: &str = "vgi_rpc.request_id";
/// Which server answered.
pub const SERVER_ID: &str = "vgi_rpc.server_id";
/// Level of a log line; [`EXCEPTION`] marks an error.
pub const LOG_LEVEL: &str = "vgi_rpc.log_level";
/// The level that makes a log batch an error batch.
pub const EXCEPTION: &str = "EXCEPTION";
/// Text of a log line or an error.
pub const LOG_MESSAGE: &str = "vgi_rpc.log_message";
/// JSON object with more about a log line or an error.
pub const LOG_EXTRA: &str = "vgi_rpc.log_extra";
/// Machine word of an error.
pub const ERROR_KIND: &str = "vgi_rpc.error_kind";
/// Code of an error.
pub const ERROR_CODE: &str = "vgi_rpc.error_code";
/// Cursor token of a stream.
pub const STREAM_STATE: &str = "vgi_rpc.stream_state#b64";
/// Call token of a stream.
pub const CALL_STATE: &str = "vgi_rpc.call_state#b64";
/// Present in a turn that ends its stream early.
pub const CANCEL: &str = "vgi_rpc.cancel";
/// Where a batch that was stored outside can be fetched.
pub const LOCATION: &str = "vgi_rpc.location";
/// SHA-256 of the object at that place.
pub const LOCATION_SHA256: &str = "vgi_rpc.location.sha256";
/// Marks a pointer into shared memory; never valid over HTTP.
pub const SHM_OFFSET: &str = "vgi_rpc.shm_offset";
