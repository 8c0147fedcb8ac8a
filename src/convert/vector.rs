//! The rows of a DuckDB vector, read in place.

use std::marker::PhantomData;

use cxx::UniquePtr;

use super::export::conversion;
use crate::bridge::ffi;
use crate::error::Error;

/// Which values of a vector are meant.
#[derive(Clone, Copy)]
pub(super) enum Picks<'a> {
    /// The values of a range.
    Range(usize, usize),
    /// These, in this order.
    Some(&'a [usize]),
}

impl Picks<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Range(_, count) => *count,
            Self::Some(picks) => picks.len(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        let (range, picks) = match *self {
            Self::Range(first, count) => (first..first + count, [].as_slice()),
            Self::Some(picks) => (0..0, picks),
        };
        range.chain(picks.iter().copied())
    }
}

/// Looks at vectors. The buffers that a look may need are kept from one to the next.
pub(super) struct Reader(UniquePtr<ffi::VectorReader>);

impl Reader {
    pub(super) fn new() -> Self {
        Self(ffi::new_vector_reader())
    }

    /// The rows that are picked, whatever form the vector has: flat, constant, with a dictionary, or a sequence.
    pub(super) fn rows<'a>(&'a mut self, vector: &'a ffi::Vector, picks: Picks<'a>) -> Result<Rows<'a>, Error> {
        let view = self.0.pin_mut().look(vector).map_err(conversion)?;
        Ok(Rows { view, picks, vector: PhantomData })
    }
}

/// Rows of a vector. What is read of them must be of the vector's physical type, which is why every reading function is unsafe.
pub(super) struct Rows<'a> {
    view: ffi::VectorView,
    picks: Picks<'a>,
    vector: PhantomData<&'a ffi::Vector>,
}

impl Rows<'_> {
    pub(super) fn len(&self) -> usize {
        self.picks.len()
    }

    /// Whether no row can be NULL.
    pub(super) fn all_valid(&self) -> bool {
        self.view.validity.is_null()
    }

    /// The places of the rows in the vector's memory, each with whether the row is there (and not NULL).
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, bool)> {
        self.picks.iter().map(|row| {
            let place = self.place(row);
            (place, self.is_valid(place))
        })
    }

    fn place(&self, row: usize) -> usize {
        if self.view.selection.is_null() {
            return row;
        }
        // SAFETY: a selection has an entry for every row of its vector, and only such rows are picked.
        let place = unsafe { *self.view.selection.add(row) };
        place as usize
    }

    fn is_valid(&self, place: usize) -> bool {
        if self.view.validity.is_null() {
            return true;
        }
        // SAFETY: a validity mask has a bit for every place that a selection of its vector names.
        let word = unsafe { *self.view.validity.add(place / 64) };
        word >> (place % 64) & 1 == 1
    }

    /// The rows as one piece of memory, where they are.
    ///
    /// # Safety
    /// `T` must be the vector's physical type, any bit pattern of which is a value.
    pub(super) unsafe fn contiguous<T: Copy>(&self) -> Option<&[T]> {
        match self.picks {
            Picks::Range(first, count) if self.view.selection.is_null() && count > 0 => {
                // SAFETY: without a selection the values of a vector stand one after the other, and the range is inside of it.
                Some(unsafe { std::slice::from_raw_parts(self.view.values.cast::<T>().add(first), count) })
            }
            _ => None,
        }
    }

    /// The value at a place that [`places`](Self::places) gave.
    ///
    /// # Safety
    /// `T` must be the vector's physical type, any bit pattern of which is a value.
    pub(super) unsafe fn value<T: Copy>(&self, place: usize) -> T {
        // SAFETY: every place of a row holds a value, of a NULL too; the alignment is that of the type, as DuckDB reads it the same way.
        unsafe { *self.view.values.cast::<T>().add(place) }
    }

    /// The bytes of the text or blob at a place of a row that is not NULL.
    ///
    /// # Safety
    /// The vector must be of VARCHAR or BLOB.
    pub(super) unsafe fn text(&self, place: usize) -> &[u8] {
        // SAFETY: the caller says that the vector holds texts.
        let text = unsafe { &*self.view.values.cast::<Text>().add(place) };
        text.bytes()
    }
}

/// DuckDB's `string_t`: short texts stand in it, of long ones their first four bytes and where they are.
#[repr(C)]
struct Text {
    length: u32,
    inlined: [u8; 4],
    rest: TextRest,
}

#[repr(C)]
union TextRest {
    inlined: [u8; 8],
    pointer: *const u8,
}

impl Text {
    const INLINED: usize = 12;

    fn bytes(&self) -> &[u8] {
        let length = self.length as usize;
        let start = if length <= Self::INLINED {
            // the twelve bytes after the length
            (&raw const *self).cast::<u8>().wrapping_add(size_of::<u32>())
        } else {
            // SAFETY: a text of more than twelve bytes has the pointer there.
            unsafe { self.rest.pointer }
        };
        // SAFETY: the text has that many bytes there, for as long as its vector lives.
        unsafe { std::slice::from_raw_parts(start, length) }
    }
}
