//! The IPC message layer: streams of schema, dictionary and record batch messages, with the metadata of each message.

mod columns;
mod decode;
mod encode;
mod message;
mod segments;
mod template;
mod validate;

pub use decode::{
    Batch, Metadata, Stream, decode_batch, decode_first_stream, decode_schema, decode_stream, decode_streams,
};
pub use encode::{StreamWriter, encode_row, encode_schema, encode_stream};
pub(crate) use message::padding;
pub use segments::Segments;
pub use template::{Blob, RowTemplate};
