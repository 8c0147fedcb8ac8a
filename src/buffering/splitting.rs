//! Requests stay below what the server accepts: a batch that is too large is sent in pieces.

use arrow_array::RecordBatch;
use vgi_wire::ipc::{self, Segments};

use crate::error::{Error, ExceptionClass};

/// A part of a batch, ready to be sent.
pub(super) struct Piece {
    pub(super) batch: RecordBatch,
    pub(super) payload: Segments,
}

/// Room for what surrounds a batch in a request: names, ids, the server's own opaque data.
const ENVELOPE: usize = 8 * 1024;

/// The limit to assume when a request with so many bytes of payload was too large: its halves, which are a little more than half as
/// large each, fit.
pub(super) fn limit_after(refused: usize) -> usize {
    refused / 2 + refused / 8 + ENVELOPE
}

/// Encodes a batch in as few halves of halves as the limit (bytes of a whole request) demands, in the order of its rows.
pub(super) fn encode(batch: &RecordBatch, limit: Option<usize>) -> Result<Vec<Piece>, Error> {
    let room = limit.map_or(usize::MAX, |limit| limit.saturating_sub(ENVELOPE).max(limit / 2));
    let mut pieces = Vec::new();
    halve(batch, room, &mut pieces)?;
    Ok(pieces)
}

fn halve(batch: &RecordBatch, room: usize, pieces: &mut Vec<Piece>) -> Result<(), Error> {
    let payload = ipc::encode_stream(batch, &[])?;
    let rows = batch.num_rows();
    if payload.len() <= room {
        pieces.push(Piece { batch: batch.clone(), payload });
        return Ok(());
    }
    if rows <= 1 {
        let text =
            format!("one row takes {} bytes, more than the {room} that the server accepts in a request", payload.len());
        return Err(Error::new(ExceptionClass::InvalidInput, text));
    }
    let first = rows / 2;
    halve(&batch.slice(0, first), room, pieces)?;
    halve(&batch.slice(first, rows - first), room, pieces)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::StringArray;
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    fn batch(rows: usize) -> RecordBatch {
        let schema = Schema::new(vec![Field::new("s", DataType::Utf8, true)]);
        let column: StringArray = (0..rows).map(|row| (row % 7 != 0).then(|| "x".repeat(100))).collect();
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(column)]).unwrap()
    }

    fn rows_of(pieces: Vec<Piece>) -> Vec<RecordBatch> {
        pieces.into_iter().map(|piece| ipc::decode_batch(piece.payload.to_bytes()).unwrap()).collect()
    }

    #[test]
    fn what_fits_is_one_piece() {
        assert_eq!(encode(&batch(1000), None).unwrap().len(), 1);
        assert_eq!(encode(&batch(1000), Some(1 << 20)).unwrap().len(), 1);
    }

    #[test]
    fn a_large_batch_goes_in_pieces_that_fit_and_keep_every_row_in_order() {
        let whole = batch(5001);
        let pieces = encode(&whole, Some(64 * 1024)).unwrap();
        assert!(pieces.len() > 1 && pieces.iter().all(|piece| piece.payload.len() <= 56 * 1024));
        assert_eq!(pieces.iter().map(|piece| piece.batch.num_rows()).sum::<usize>(), 5001);
        let mut offset = 0;
        for part in rows_of(pieces) {
            assert_eq!(part, whole.slice(offset, part.num_rows()));
            offset += part.num_rows();
        }
    }

    #[test]
    fn what_was_refused_goes_in_two() {
        for rows in [2, 3, 100, 5_001] {
            let whole = batch(rows);
            let bytes = ipc::encode_stream(&whole, &[]).unwrap().len();
            let pieces = encode(&whole, Some(limit_after(bytes))).unwrap().len();
            // of a few rows the schema is more than an eighth
            assert!(pieces == 2 || rows < 100, "{rows} rows in {pieces}");
            assert!(pieces > 1 || rows < 100);
        }
    }

    #[test]
    fn one_row_that_does_not_fit_is_an_error_that_says_so() {
        let error = encode(&batch(3), Some(300)).err().unwrap();
        assert!(error.to_string().starts_with("one row takes "), "{error}");
    }
}
