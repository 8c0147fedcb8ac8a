//! Batches that a server stored outside of the reply (protocol file 01 §10): a pointer stands in their place. Fetching is the
//! transport's; this module finds the pointers and puts what they point to in their place.

use bytes::Bytes;

use crate::ipc::{self, Batch, Stream};
use crate::{WireError, meta};

/// Where a batch can be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// URL, to be fetched without the credentials of the call.
    pub url: String,
    /// SHA-256 of the object, in hexadecimal, when the server gives it.
    pub sha256: Option<String>,
}

fn pointer(batch: &Batch) -> Option<Pointer> {
    // a log line or rows with this key are no pointer
    let is_one = batch.batch.num_rows() == 0 && batch.get(meta::LOG_LEVEL).is_none();
    let url = batch.get(meta::LOCATION).filter(|_| is_one)?.to_owned();
    Some(Pointer { url, sha256: batch.get(meta::LOCATION_SHA256).map(str::to_owned) })
}

/// The pointers of a reply, in order.
pub fn pointers(streams: &[Stream]) -> Vec<Pointer> {
    streams.iter().flat_map(|stream| &stream.batches).filter_map(pointer).collect()
}

/// Puts the fetched objects, in the order of [`pointers`], in the place of the pointers: each is an IPC stream of log lines and one
/// data batch.
///
/// # Errors
/// When an object is not such a stream, has another schema, or holds a pointer itself; or when there are too few.
pub fn resolve(streams: Vec<Stream>, objects: Vec<Bytes>) -> Result<Vec<Stream>, WireError> {
    let mut objects = objects.into_iter();
    streams
        .into_iter()
        .map(|Stream { schema, batches }| {
            let mut resolved = Vec::with_capacity(batches.len());
            for batch in batches {
                if pointer(&batch).is_none() {
                    resolved.push(batch);
                    continue;
                }
                let object = objects.next().ok_or_else(|| WireError::protocol("a stored batch was not fetched"))?;
                let stream = ipc::decode_stream(object)?;
                if stream.schema.fields() != schema.fields() {
                    return Err(WireError::protocol("a stored batch has another schema than its reply"));
                }
                if stream.batches.iter().any(|batch| pointer(batch).is_some()) {
                    return Err(WireError::protocol("a stored batch points to another one"));
                }
                resolved.extend(stream.batches);
            }
            Ok(Stream { schema, batches: resolved })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, RecordBatch};
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    fn batch(values: Vec<i64>) -> RecordBatch {
        let schema = Schema::new(vec![Field::new("v", DataType::Int64, true)]);
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(Int64Array::from(values))]).unwrap()
    }

    fn streams(rows: Vec<i64>, metadata: &[(&str, &str)]) -> Vec<Stream> {
        ipc::decode_streams(ipc::encode_stream(&batch(rows), metadata).unwrap().to_bytes()).unwrap()
    }

    #[test]
    fn an_object_takes_the_place_of_its_pointer() {
        let reply = streams(vec![], &[(meta::LOCATION, "http://x/1"), (meta::LOCATION_SHA256, "ab")]);
        assert_eq!(pointers(&reply), [Pointer { url: "http://x/1".to_owned(), sha256: Some("ab".to_owned()) }]);
        let object = ipc::encode_stream(&batch(vec![1, 2]), &[]).unwrap().to_bytes();
        let resolved = resolve(reply, vec![object]).unwrap();
        assert_eq!(resolved[0].batches[0].batch, batch(vec![1, 2]));
    }

    #[test]
    fn rows_are_no_pointer() {
        assert!(pointers(&streams(vec![1], &[(meta::LOCATION, "http://x/1")])).is_empty());
    }

    #[test]
    fn a_pointer_to_a_pointer_is_refused() {
        let reply = streams(vec![], &[(meta::LOCATION, "http://x/1")]);
        let object = ipc::encode_stream(&batch(vec![]), &[(meta::LOCATION, "http://x/2")]).unwrap().to_bytes();
        assert!(resolve(reply.clone(), vec![object]).is_err());
        assert!(resolve(reply, vec![]).is_err());
    }
}
