//! Numbers, times and truth values.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, make_array};
use arrow_buffer::{BooleanBufferBuilder, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, TimeUnit};
use libduckdb_sys as sys;

use super::{Collector, Nulls};
use crate::bridge::ffi;
use crate::convert::logical::Logical;
use crate::convert::vector::{Picks, Reader};
use crate::error::Error;

pub(super) fn collector(logical: &Logical, data_type: &DataType) -> Option<Box<dyn Collector>> {
    use DataType::{
        Boolean, Date32, Decimal128, Float32, Float64, Int8, Int16, Int32, Int64, Time64, Timestamp, UInt8, UInt16,
        UInt32, UInt64,
    };
    Some(match (logical.id(), data_type) {
        (sys::DUCKDB_TYPE_DUCKDB_TYPE_BOOLEAN, Boolean) => Box::new(Bits::new()),
        (sys::DUCKDB_TYPE_DUCKDB_TYPE_TINYINT, Int8) => Box::new(Fixed::<i8>::new()),
        (sys::DUCKDB_TYPE_DUCKDB_TYPE_SMALLINT, Int16) => Box::new(Fixed::<i16>::new()),
        (sys::DUCKDB_TYPE_DUCKDB_TYPE_INTEGER, Int32) | (sys::DUCKDB_TYPE_DUCKDB_TYPE_DATE, Date32) => {
            Box::new(Fixed::<i32>::new())
        }
        (sys::DUCKDB_TYPE_DUCKDB_TYPE_BIGINT, Int64)
        | (sys::DUCKDB_TYPE_DUCKDB_TYPE_TIME, Time64(TimeUnit::Microsecond))
        | (
            sys::DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP | sys::DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_TZ,
            Timestamp(TimeUnit::Microsecond, _),
        )
        | (sys::DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_S, Timestamp(TimeUnit::Second, _))
        | (sys::DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_MS, Timestamp(TimeUnit::Millisecond, _))
        | (sys::DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_NS, Timestamp(TimeUnit::Nanosecond, _)) => {
            Box::new(Fixed::<i64>::new())
        }
        (sys::DUCKDB_TYPE_DUCKDB_TYPE_UTINYINT, UInt8) => Box::new(Fixed::<u8>::new()),
        (sys::DUCKDB_TYPE_DUCKDB_TYPE_USMALLINT, UInt16) => Box::new(Fixed::<u16>::new()),
        (sys::DUCKDB_TYPE_DUCKDB_TYPE_UINTEGER, UInt32) => Box::new(Fixed::<u32>::new()),
        (sys::DUCKDB_TYPE_DUCKDB_TYPE_UBIGINT, UInt64) => Box::new(Fixed::<u64>::new()),
        (sys::DUCKDB_TYPE_DUCKDB_TYPE_FLOAT, Float32) => Box::new(Fixed::<f32>::new()),
        (sys::DUCKDB_TYPE_DUCKDB_TYPE_DOUBLE, Float64) => Box::new(Fixed::<f64>::new()),
        (sys::DUCKDB_TYPE_DUCKDB_TYPE_DECIMAL, Decimal128(..)) => match logical.decimal_storage() {
            sys::DUCKDB_TYPE_DUCKDB_TYPE_SMALLINT => Box::new(Fixed::<i16, i128>::new()),
            sys::DUCKDB_TYPE_DUCKDB_TYPE_INTEGER => Box::new(Fixed::<i32, i128>::new()),
            sys::DUCKDB_TYPE_DUCKDB_TYPE_BIGINT => Box::new(Fixed::<i64, i128>::new()),
            sys::DUCKDB_TYPE_DUCKDB_TYPE_HUGEINT => Box::new(Fixed::<i128>::new()),
            _ => return None,
        },
        _ => return None,
    })
}

/// A type of the same layout in a vector and in an Arrow buffer, any bit pattern of which is a value.
trait Plain: Copy + Default + Send + 'static {}

macro_rules! plain {
    ($($name:ty),*) => { $(impl Plain for $name {})* };
}
plain!(i8, i16, i32, i64, i128, u8, u16, u32, u64, f32, f64);

/// Values of one width, `S` in the vector and `T` in the buffer.
struct Fixed<S, T = S> {
    reader: Reader,
    values: Vec<T>,
    nulls: Nulls,
    /// Values of the batch before: the next will have about as many.
    usual: usize,
    source: std::marker::PhantomData<S>,
}

impl<S: Plain, T: Plain + From<S> + arrow_buffer::ArrowNativeType> Fixed<S, T> {
    fn new() -> Self {
        Self {
            reader: Reader::new(),
            values: Vec::new(),
            nulls: Nulls::new(),
            usual: 0,
            source: std::marker::PhantomData,
        }
    }
}

impl<S: Plain, T: Plain + From<S> + arrow_buffer::ArrowNativeType> Collector for Fixed<S, T> {
    fn append(&mut self, vector: &ffi::Vector, picks: Picks<'_>) -> Result<(), Error> {
        let rows = self.reader.rows(vector, picks)?;
        if self.values.is_empty() {
            self.values.reserve(self.usual.max(rows.len()));
        }
        self.nulls.append(&rows);
        // SAFETY: the collector was chosen by the column's type, whose values are of type S.
        if let Some(values) = unsafe { rows.contiguous::<S>() } {
            self.values.extend(values.map(T::from));
            return Ok(());
        }
        // what stands in the place of a NULL may be left over from something else, which is nobody's business
        // SAFETY: as above.
        let value = |(place, valid)| if valid { T::from(unsafe { rows.value::<S>(place) }) } else { T::default() };
        match rows.dense_places() {
            Some(places) => self.values.extend(places.map(value)),
            None => self.values.extend(rows.places().map(value)),
        }
        Ok(())
    }

    fn weigh(&mut self, _: &ffi::Vector, count: usize) -> Result<usize, Error> {
        Ok(count * size_of::<T>())
    }

    fn bytes(&self) -> usize {
        self.values.len() * size_of::<T>()
    }

    fn take(&mut self, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        self.usual = self.values.len();
        let values: ScalarBuffer<T> = std::mem::take(&mut self.values).into();
        let length = values.len();
        let data = ArrayData::builder(data_type.clone()).len(length).nulls(self.nulls.take());
        Ok(make_array(data.add_buffer(values.into_inner()).build()?))
    }
}

/// Truth values: a byte each in the vector, a bit in the buffer.
struct Bits {
    reader: Reader,
    values: BooleanBufferBuilder,
    nulls: Nulls,
}

impl Bits {
    fn new() -> Self {
        Self { reader: Reader::new(), values: BooleanBufferBuilder::new(0), nulls: Nulls::new() }
    }
}

impl Collector for Bits {
    fn append(&mut self, vector: &ffi::Vector, picks: Picks<'_>) -> Result<(), Error> {
        let rows = self.reader.rows(vector, picks)?;
        self.nulls.append(&rows);
        for (place, valid) in rows.places() {
            // SAFETY: the collector was chosen for a column of BOOLEAN, whose values are bytes.
            self.values.append(valid && unsafe { rows.value::<u8>(place) } != 0);
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.values.len() / 8
    }

    fn take(&mut self, _: &DataType) -> Result<ArrayRef, ArrowError> {
        Ok(Arc::new(BooleanArray::new(self.values.finish(), self.nulls.take())))
    }
}
