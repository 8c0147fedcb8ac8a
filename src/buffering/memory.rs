//! What a thread holds, counted by DuckDB, so that its memory limit covers it.

use std::pin::Pin;

use arrow_array::{Array, RecordBatch};
use cxx::UniquePtr;

use crate::bridge::ffi;
use crate::convert::exception_text;
use crate::error::{Error, ExceptionClass};

/// Claims are made in steps of this many bytes: a small query should not pay for the counting.
const STEP: usize = 256 << 10;

/// Memory of one thread.
pub(super) struct Memory {
    claim: UniquePtr<ffi::MemoryClaim>,
    claimed: usize,
}

impl Memory {
    pub(super) fn new(context: Pin<&mut ffi::ClientContext>) -> Result<Self, Error> {
        Ok(Self { claim: ffi::new_memory_claim(context).map_err(|error| refused(&error))?, claimed: 0 })
    }

    /// Claims what is held now in the place of what was held before.
    pub(super) fn hold(&mut self, bytes: usize) -> Result<(), Error> {
        let wanted = (bytes / STEP).saturating_mul(STEP);
        if wanted != self.claimed {
            self.claim.pin_mut().resize(wanted).map_err(|error| refused(&error))?;
            self.claimed = wanted;
        }
        Ok(())
    }
}

fn refused(error: &cxx::Exception) -> Error {
    Error::new(ExceptionClass::OutOfMemory, exception_text(error))
}

/// Bytes that the rows of a batch occupy.
pub(super) fn batch_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| column.to_data().get_slice_memory_size().unwrap_or_default()).sum()
}
