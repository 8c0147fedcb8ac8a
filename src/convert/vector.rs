//! The rows of a DuckDB vector, read in place.

use std::marker::PhantomData;

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
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

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + Clone {
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
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, bool)> + Clone {
        self.picks.iter().map(|row| {
            let place = self.place(row);
            (place, self.is_valid(place))
        })
    }

    /// The same, when the rows stand one after the other: much less work for each.
    pub(super) fn dense_places(&self) -> Option<impl Iterator<Item = (usize, bool)> + Clone> {
        let (first, count) = self.run()?;
        Some((first..first + count).map(|place| (place, self.is_valid(place))))
    }

    /// First and number of the rows in the vector's memory, when they stand there one after the other.
    fn run(&self) -> Option<(usize, usize)> {
        match self.picks {
            Picks::Range(first, count) if self.view.selection.is_null() => Some((first, count)),
            _ => None,
        }
    }

    /// Which of the rows are not NULL, when they stand one after the other.
    pub(super) fn validity(&self) -> Option<NullBuffer> {
        let (first, count) = self.run().filter(|_| !self.all_valid())?;
        // SAFETY: the mask has a bit for every place up to that of the last row, and is there for as long as the view.
        let bits = unsafe { std::slice::from_raw_parts(self.view.validity.cast::<u8>(), (first + count).div_ceil(8)) };
        Some(NullBuffer::new(BooleanBuffer::new(Buffer::from(bits), first, count)))
    }

    fn place(&self, row: usize) -> usize {
        if self.view.selection.is_null() {
            return row;
        }
        // SAFETY: a selection has an entry for every row of its vector, and only such rows are picked.
        let place = unsafe { self.view.selection.add(row).read_unaligned() };
        place as usize
    }

    fn is_valid(&self, place: usize) -> bool {
        if self.view.validity.is_null() {
            return true;
        }
        // SAFETY: a validity mask has a bit for every place that a selection of its vector names.
        let word = unsafe { self.view.validity.add(place / 64).read_unaligned() };
        word >> (place % 64) & 1 == 1
    }

    /// The values of the rows, when they stand one after the other and none is NULL.
    ///
    /// # Safety
    /// `T` must have the layout of the vector's physical type, any bit pattern of which is a value.
    pub(super) unsafe fn contiguous<T: Copy>(&self) -> Option<impl ExactSizeIterator<Item = T> + Clone> {
        let (first, count) = self.run().filter(|_| self.all_valid())?;
        // SAFETY: without a selection the values of a vector stand one after the other, and only rows of it are picked. A vector may be a
        // window on a block of a table, where nothing is aligned.
        let values = unsafe { self.view.values.cast::<T>().add(first) };
        // SAFETY: as above.
        Some((0..count).map(move |row| unsafe { values.add(row).read_unaligned() }))
    }

    /// The value at a place that [`places`](Self::places) gave.
    ///
    /// # Safety
    /// `T` must have the layout of the vector's physical type, any bit pattern of which is a value.
    pub(super) unsafe fn value<T: Copy>(&self, place: usize) -> T {
        // SAFETY: every place of a row holds a value, of a NULL too, which need not be aligned.
        unsafe { self.view.values.cast::<T>().add(place).read_unaligned() }
    }
}

/// DuckDB's `string_t`: short texts stand in it, of long ones their first four bytes and where they are.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Text {
    length: u32,
    inlined: [u8; 4],
    rest: TextRest,
}

#[derive(Clone, Copy)]
#[repr(C)]
union TextRest {
    inlined: [u8; 8],
    pointer: *const u8,
}

impl Text {
    /// Its length in bytes.
    pub(super) fn length(self) -> u32 {
        self.length
    }

    /// Copies the text.
    ///
    /// # Safety
    /// The text must be there still. At `to` there must be room for it, and for [`OVERHANG`](Self::OVERHANG) bytes in any case.
    unsafe fn copy_to(self, to: *mut u8) {
        let length = self.length as usize;
        // SAFETY: the caller gives the room. What is read is inside of the text: twelve bytes when they stand in it, and the first and
        // the last eight or sixteen of a text that has as many, which overlap. A text of more than twelve bytes has the pointer.
        unsafe {
            match self.length {
                ..=12 => {
                    to.cast::<[u8; 4]>().write_unaligned(self.inlined);
                    to.add(4).cast::<[u8; 8]>().write_unaligned(self.rest.inlined);
                }
                13..=16 => copy_ends::<8>(self.rest.pointer, to, length),
                17..=32 => copy_ends::<16>(self.rest.pointer, to, length),
                _ => self.rest.pointer.copy_to_nonoverlapping(to, length),
            }
        }
    }

    const OVERHANG: usize = 12;
}

/// Copies `length` bytes, between `N` and twice as many, by copying the first `N` and the last `N`.
///
/// # Safety
/// There must be that many at both places.
unsafe fn copy_ends<const N: usize>(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: as the caller says.
    unsafe {
        let (first, last) = (from.cast::<[u8; N]>(), from.add(length - N).cast::<[u8; N]>());
        let (first, last) = (first.read_unaligned(), last.read_unaligned());
        to.cast::<[u8; N]>().write_unaligned(first);
        to.add(length - N).cast::<[u8; N]>().write_unaligned(last);
    }
}

/// Appends texts to `bytes`, and the place where each ends to `ends`; a NULL takes no bytes. Nothing when they would become more than
/// offsets of 32 bits can tell: then nothing was appended.
///
/// The lengths are added up first, so that nothing has to be checked for each text: a call of a function and a growing vector cost more
/// than the bytes of a short one.
///
/// # Safety
/// The texts must be there still.
pub(super) unsafe fn append_texts(
    texts: impl Iterator<Item = Option<Text>> + Clone,
    bytes: &mut Vec<u8>,
    ends: &mut Vec<i32>,
) -> Option<()> {
    let length = |text: Option<Text>| text.map_or(0, Text::length);
    let added = texts.clone().map(|text| length(text) as usize).sum::<usize>();
    let mut end = i32::try_from(bytes.len()).ok()?;
    let total = bytes.len().checked_add(added).filter(|total| i32::try_from(*total).is_ok())?;
    bytes.reserve(added + Text::OVERHANG);
    // SAFETY: the end of what is there is inside of the allocation.
    let mut to = unsafe { bytes.as_mut_ptr().add(bytes.len()) };
    ends.extend(texts.map(|text| {
        if let Some(text) = text {
            // SAFETY: room for all texts was reserved, and for what the last of them may write beyond its own end.
            unsafe {
                text.copy_to(to);
                to = to.add(text.length as usize);
            }
        }
        end = end.wrapping_add_unsigned(length(text));
        end
    }));
    // SAFETY: so many bytes have been written, as both passes see the same texts.
    unsafe { bytes.set_len(total) };
    Some(())
}
