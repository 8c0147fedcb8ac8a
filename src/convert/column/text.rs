//! Texts and blobs.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType};
use libduckdb_sys as sys;

use super::{Collector, Nulls};
use crate::bridge::ffi;
use crate::convert::logical::Logical;
use crate::convert::vector::{Picks, Reader, Text, append_texts};
use crate::error::{Error, ExceptionClass};

pub(super) fn collector(logical: &Logical, data_type: &DataType) -> Option<Box<dyn Collector>> {
    match (logical.id(), data_type) {
        (sys::DUCKDB_TYPE_DUCKDB_TYPE_VARCHAR, DataType::Utf8)
        | (sys::DUCKDB_TYPE_DUCKDB_TYPE_BLOB, DataType::Binary) => Some(Box::new(Texts::new())),
        _ => None,
    }
}

struct Texts {
    reader: Reader,
    bytes: Vec<u8>,
    /// Where each text ends.
    ends: Vec<i32>,
    nulls: Nulls,
    /// Bytes and texts of the batch before: the next will have about as many.
    usual: (usize, usize),
}

impl Texts {
    fn new() -> Self {
        Self { reader: Reader::new(), bytes: Vec::new(), ends: Vec::new(), nulls: Nulls::new(), usual: (0, 0) }
    }
}

impl Collector for Texts {
    fn append(&mut self, vector: &ffi::Vector, picks: Picks<'_>) -> Result<(), Error> {
        let rows = self.reader.rows(vector, picks)?;
        if self.ends.is_empty() {
            // a little more than that saves most batches from growing, which copies what is there
            self.bytes.reserve(self.usual.0 + self.usual.0 / 8);
            self.ends.reserve(1 + self.usual.1.max(rows.len()));
            self.ends.push(0);
        }
        self.nulls.append(&rows);
        let (bytes, ends) = (&mut self.bytes, &mut self.ends);
        // SAFETY: the collector was chosen for a column of VARCHAR or BLOB, whose vector is there for as long as the call lasts.
        let appended = unsafe {
            let text = |(place, valid): (usize, bool)| valid.then(|| rows.value::<Text>(place));
            match (rows.contiguous::<Text>(), rows.dense_places()) {
                (Some(texts), _) => append_texts(texts.map(Some), bytes, ends),
                (None, Some(places)) => append_texts(places.map(text), bytes, ends),
                (None, None) => append_texts(rows.places().map(text), bytes, ends),
            }
        };
        appended.ok_or_else(too_long)
    }

    fn weigh(&mut self, vector: &ffi::Vector, count: usize) -> Result<usize, Error> {
        let rows = self.reader.rows(vector, Picks::Range(0, count))?;
        let weight = |(place, valid): (usize, bool)| {
            // SAFETY: as in `append`.
            if valid { unsafe { rows.value::<Text>(place) }.length() as usize } else { 0 }
        };
        let texts: usize =
            rows.dense_places().map_or_else(|| rows.places().map(weight).sum(), |places| places.map(weight).sum());
        Ok(texts + count * size_of::<i32>())
    }

    fn bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<i32>()
    }

    fn take(&mut self, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        self.usual = (self.bytes.len(), self.nulls.len());
        let mut ends = std::mem::take(&mut self.ends);
        if ends.is_empty() {
            ends.push(0);
        }
        let bytes = Buffer::from_vec(std::mem::take(&mut self.bytes));
        let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
        let nulls = self.nulls.take();
        Ok(match data_type {
            // SAFETY: DuckDB's VARCHAR is UTF-8, and the offsets are where texts end.
            DataType::Utf8 => Arc::new(unsafe { StringArray::new_unchecked(offsets, bytes, nulls) }),
            _ => Arc::new(BinaryArray::try_new(offsets, bytes, nulls)?),
        })
    }
}

fn too_long() -> Error {
    let text =
        "the texts of one request cannot have more than 2 GiB in a column; set vgi_batch_bytes to a smaller size";
    Error::new(ExceptionClass::InvalidInput, text)
}
