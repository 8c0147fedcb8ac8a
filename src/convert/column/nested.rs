//! Lists, maps, arrays and structs. Their elements are collected by collectors of their own.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, FixedSizeListArray, ListArray, MapArray, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Fields};
use libduckdb_sys as sys;

use super::{Collector, Nulls};
use crate::bridge::ffi;
use crate::convert::export::conversion;
use crate::convert::logical::Logical;
use crate::convert::vector::{Picks, Reader};
use crate::error::{Error, ExceptionClass};

pub(super) fn collector(logical: &Logical, data_type: &DataType) -> Option<Box<dyn Collector>> {
    match (logical.id(), data_type) {
        (sys::DUCKDB_TYPE_DUCKDB_TYPE_LIST, DataType::List(field)) => {
            Some(Box::new(Lists::new(<dyn Collector>::of(&logical.element(), field)?)))
        }
        (sys::DUCKDB_TYPE_DUCKDB_TYPE_MAP, DataType::Map(field, _)) => {
            let DataType::Struct(fields) = field.data_type() else { return None };
            Some(Box::new(Lists::new(Box::new(Structs::new(&logical.entry(), fields)?))))
        }
        (sys::DUCKDB_TYPE_DUCKDB_TYPE_ARRAY, DataType::FixedSizeList(field, size)) => {
            let elements = <dyn Collector>::of(&logical.array_element(), field)?;
            let size = usize::try_from(*size).ok()?;
            Some(Box::new(Arrays { reader: Reader::new(), size, elements, nulls: Nulls::new() }))
        }
        (sys::DUCKDB_TYPE_DUCKDB_TYPE_STRUCT, DataType::Struct(fields)) => {
            Some(Box::new(Structs::new(&logical.fields(), fields)?))
        }
        _ => None,
    }
}

/// DuckDB's `list_entry_t`: where the elements of a list are.
#[derive(Clone, Copy)]
#[repr(C)]
struct Entry {
    offset: u64,
    length: u64,
}

/// Lists, and maps, which are lists of entries.
struct Lists {
    reader: Reader,
    /// Where each list ends.
    ends: Vec<i32>,
    elements: Box<dyn Collector>,
    nulls: Nulls,
}

impl Lists {
    fn new(elements: Box<dyn Collector>) -> Self {
        Self { reader: Reader::new(), ends: Vec::new(), elements, nulls: Nulls::new() }
    }
}

impl Collector for Lists {
    fn append(&mut self, vector: &ffi::Vector, picks: Picks<'_>) -> Result<(), Error> {
        let rows = self.reader.rows(vector, picks)?;
        self.nulls.append(&rows);
        let mut end = *self.ends.last().unwrap_or(&0);
        if self.ends.is_empty() {
            self.ends.push(0);
        }
        let mut picked = Picked::default();
        for (place, valid) in rows.places() {
            if valid {
                // SAFETY: the collector was chosen for a column of LIST or MAP, whose values are such entries.
                let entry = unsafe { rows.value::<Entry>(place) };
                let (offset, length) = (index(entry.offset)?, index(entry.length)?);
                picked.push(offset, length);
                end = i32::try_from(length).ok().and_then(|length| end.checked_add(length)).ok_or_else(too_many)?;
            }
            self.ends.push(end);
        }
        let elements = ffi::list_elements(vector).map_err(conversion)?;
        self.elements.append(elements, picked.picks())
    }

    fn bytes(&self) -> usize {
        self.ends.len() * size_of::<i32>() + self.elements.bytes()
    }

    fn take(&mut self, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        let mut ends = std::mem::take(&mut self.ends);
        if ends.is_empty() {
            ends.push(0);
        }
        let (ends, nulls) = (OffsetBuffer::new(ScalarBuffer::from(ends)), self.nulls.take());
        Ok(match data_type {
            DataType::Map(field, sorted) => {
                let entries = self.elements.take(field.data_type())?.as_struct().clone();
                Arc::new(MapArray::try_new(Arc::clone(field), ends, entries, nulls, *sorted)?)
            }
            DataType::List(field) => {
                Arc::new(ListArray::try_new(Arc::clone(field), ends, self.elements.take(field.data_type())?, nulls)?)
            }
            other => return Err(unfit(other)),
        })
    }
}

/// The elements of the picked lists. As a rule they stand one after the other, which is much cheaper to copy.
enum Picked {
    Run(usize, usize),
    Scattered(Vec<usize>),
}

impl Default for Picked {
    fn default() -> Self {
        Self::Run(0, 0)
    }
}

impl Picked {
    fn push(&mut self, offset: usize, length: usize) {
        match self {
            Self::Run(first, count) if *count == 0 => (*first, *count) = (offset, length),
            Self::Run(first, count) if *first + *count == offset || length == 0 => *count += length,
            Self::Run(first, count) => {
                *self = Self::Scattered((*first..*first + *count).chain(offset..offset + length).collect());
            }
            Self::Scattered(picks) => picks.extend(offset..offset + length),
        }
    }

    fn picks(&self) -> Picks<'_> {
        match self {
            Self::Run(first, count) => Picks::Range(*first, *count),
            Self::Scattered(picks) => Picks::Some(picks),
        }
    }
}

/// Arrays: lists of one length, whose elements have a place for the NULL ones too.
struct Arrays {
    reader: Reader,
    size: usize,
    elements: Box<dyn Collector>,
    nulls: Nulls,
}

impl Collector for Arrays {
    fn append(&mut self, vector: &ffi::Vector, picks: Picks<'_>) -> Result<(), Error> {
        let rows = self.reader.rows(vector, picks)?;
        self.nulls.append(&rows);
        let mut picked = Picked::default();
        rows.places().for_each(|(place, _)| picked.push(place * self.size, self.size));
        let elements = ffi::array_elements(vector).map_err(conversion)?;
        self.elements.append(elements, picked.picks())
    }

    fn bytes(&self) -> usize {
        self.elements.bytes()
    }

    fn take(&mut self, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        let DataType::FixedSizeList(field, size) = data_type else { return Err(unfit(data_type)) };
        let elements = self.elements.take(field.data_type())?;
        Ok(Arc::new(FixedSizeListArray::try_new(Arc::clone(field), *size, elements, self.nulls.take())?))
    }
}

/// Structs; the fields of a row have the row's number in vectors of their own.
struct Structs {
    reader: Reader,
    fields: Vec<Box<dyn Collector>>,
    nulls: Nulls,
}

impl Structs {
    fn new(types: &[Logical<'_>], fields: &Fields) -> Option<Self> {
        if fields.is_empty() || types.len() != fields.len() {
            return None;
        }
        let fields = types.iter().zip(fields).map(|(logical, field)| <dyn Collector>::of(logical, field));
        Some(Self { reader: Reader::new(), fields: fields.collect::<Option<_>>()?, nulls: Nulls::new() })
    }
}

impl Collector for Structs {
    fn append(&mut self, vector: &ffi::Vector, picks: Picks<'_>) -> Result<(), Error> {
        self.nulls.append(&self.reader.rows(vector, picks)?);
        for (index, field) in self.fields.iter_mut().enumerate() {
            field.append(ffi::struct_field(vector, index).map_err(conversion)?, picks)?;
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.fields.iter().map(|field| field.bytes()).sum()
    }

    fn take(&mut self, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        let DataType::Struct(fields) = data_type else { return Err(unfit(data_type)) };
        let arrays = self.fields.iter_mut().zip(fields).map(|(collector, field)| collector.take(field.data_type()));
        let arrays = arrays.collect::<Result<_, _>>()?;
        Ok(Arc::new(StructArray::try_new(fields.clone(), arrays, self.nulls.take())?))
    }
}

fn index(value: u64) -> Result<usize, Error> {
    usize::try_from(value).map_err(|_| too_many())
}

fn too_many() -> Error {
    let text =
        "the lists of one request cannot have more than 2,147,483,647 elements; set vgi_batch_bytes to a smaller size";
    Error::new(ExceptionClass::InvalidInput, text)
}

fn unfit(data_type: &DataType) -> ArrowError {
    ArrowError::CastError(format!("a nested column cannot be sent as {data_type}"))
}
