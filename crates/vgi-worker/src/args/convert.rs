//! Conversion of argument values to the types that functions read, where it loses nothing.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field};

/// A Rust type that an argument can be read as.
pub trait FromArgument: Sized {
    /// The declared type.
    fn data_type() -> DataType;

    /// The value of a one-row array of that type; `None` for NULL.
    fn from_array(array: &dyn Array) -> Option<Self>;

    /// Whether NULL is a value.
    fn nullable() -> bool {
        false
    }

    /// The smallest value, of a type that has fewer than the declared one.
    fn at_least() -> Option<i64> {
        None
    }
}

impl FromArgument for bool {
    fn data_type() -> DataType {
        DataType::Boolean
    }
    fn from_array(array: &dyn Array) -> Option<Self> {
        array.as_boolean_opt()?.iter().next()?
    }
}

macro_rules! primitive {
    ($($rust:ty => $arrow:ident),* $(,)?) => {$(
        impl FromArgument for $rust {
            fn data_type() -> DataType {
                <$arrow as ArrowPrimitiveType>::DATA_TYPE
            }
            fn from_array(array: &dyn Array) -> Option<Self> {
                array.as_primitive_opt::<$arrow>()?.iter().next()?
            }
        }
    )*};
}

primitive! {
    i8 => Int8Type, i16 => Int16Type, i32 => Int32Type, i64 => Int64Type,
    u8 => UInt8Type, u16 => UInt16Type, u32 => UInt32Type, u64 => UInt64Type,
    f32 => Float32Type, f64 => Float64Type,
}

/// A count: declared as the integer that SQL uses, of which the negative half is refused.
impl FromArgument for usize {
    fn data_type() -> DataType {
        DataType::Int64
    }
    fn from_array(array: &dyn Array) -> Option<Self> {
        i64::from_array(array).and_then(|value| Self::try_from(value).ok())
    }
    fn at_least() -> Option<i64> {
        Some(0)
    }
}

impl FromArgument for String {
    fn data_type() -> DataType {
        DataType::Utf8
    }
    fn from_array(array: &dyn Array) -> Option<Self> {
        array.as_string_opt::<i32>()?.iter().next()?.map(str::to_owned)
    }
}

/// NULL, or not given.
impl<T: FromArgument> FromArgument for Option<T> {
    fn data_type() -> DataType {
        T::data_type()
    }
    fn from_array(array: &dyn Array) -> Option<Self> {
        if array.is_empty() || array.is_null(0) { Some(None) } else { T::from_array(array).map(Some) }
    }
    fn nullable() -> bool {
        true
    }
    fn at_least() -> Option<i64> {
        T::at_least()
    }
}

impl<T: FromArgument> FromArgument for Vec<T> {
    fn data_type() -> DataType {
        DataType::List(Arc::new(Field::new_list_field(T::data_type(), true)))
    }
    fn from_array(array: &dyn Array) -> Option<Self> {
        let items = array.as_list_opt::<i32>()?.iter().next()??;
        (0..items.len()).map(|row| T::from_array(&items.slice(row, 1))).collect()
    }
    fn at_least() -> Option<i64> {
        T::at_least()
    }
}

/// The value as an array of `wanted` type, if that loses nothing.
pub(crate) fn convert(value: &ArrayRef, wanted: &DataType) -> Option<ArrayRef> {
    if value.data_type() == wanted {
        return Some(Arc::clone(value));
    }
    if !convertible(value.data_type(), wanted) {
        return None;
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let converted = cast_with_options(value, wanted, &strict).ok()?;
    lossless(value, &converted).then_some(converted)
}

fn convertible(from: &DataType, to: &DataType) -> bool {
    let number = |data_type: &DataType| data_type.is_numeric();
    let text = |data_type: &DataType| matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    match (from, to) {
        (DataType::Dictionary(_, values), _) => convertible(values, to),
        (DataType::List(from) | DataType::LargeList(from) | DataType::FixedSizeList(from, _), DataType::List(to)) => {
            from.data_type() == to.data_type()
                || *from.data_type() == DataType::Null
                || convertible(from.data_type(), to.data_type())
        }
        _ => (number(from) && number(to)) || (text(from) && text(to)),
    }
}

/// Only a number that becomes an integer can lose something: its fraction.
fn lossless(value: &ArrayRef, converted: &ArrayRef) -> bool {
    if !converted.data_type().is_integer() || value.data_type().is_integer() {
        return true;
    }
    let double = |array: &ArrayRef| {
        let doubles = cast_with_options(array, &DataType::Float64, &CastOptions::default()).ok()?;
        f64::from_array(&doubles)
    };
    double(value) == double(converted)
}

/// The type as SQL writes it, for messages.
#[must_use]
pub fn sql_type(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "NULL".to_owned(),
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INTEGER".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::UInt8 => "UTINYINT".to_owned(),
        DataType::UInt16 => "USMALLINT".to_owned(),
        DataType::UInt32 => "UINTEGER".to_owned(),
        DataType::UInt64 => "UBIGINT".to_owned(),
        DataType::Float32 => "FLOAT".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "BLOB".to_owned(),
        DataType::Date32 => "DATE".to_owned(),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => format!("DECIMAL({precision},{scale})"),
        DataType::List(item) | DataType::LargeList(item) => format!("{}[]", sql_type(item.data_type())),
        DataType::FixedSizeList(item, size) => format!("{}[{size}]", sql_type(item.data_type())),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Decimal128Array, Float64Array, Int32Array, Int64Array, ListArray, StringArray};

    use super::*;

    fn converted<T: FromArgument>(value: impl Array + 'static) -> Option<T> {
        let value: ArrayRef = Arc::new(value);
        convert(&value, &T::data_type()).and_then(|array| T::from_array(&array))
    }

    #[test]
    fn numbers_convert_when_nothing_is_lost() {
        let decimal = || Decimal128Array::from(vec![150]).with_precision_and_scale(3, 2).unwrap();
        assert_eq!(converted::<f64>(decimal()), Some(1.5));
        assert_eq!(converted::<i64>(decimal()), None);
        assert_eq!(converted::<i64>(Float64Array::from(vec![3.0])), Some(3));
        assert_eq!(converted::<i64>(Float64Array::from(vec![3.5])), None);
        assert_eq!(converted::<i64>(Float64Array::from(vec![1e300])), None);
        assert_eq!(converted::<i64>(Int32Array::from(vec![-7])), Some(-7));
        assert_eq!(converted::<f64>(Int64Array::from(vec![2])), Some(2.0));
        assert_eq!(converted::<i64>(StringArray::from(vec!["3"])), None);
        assert_eq!(converted::<bool>(Int64Array::from(vec![1])), None);
        assert_eq!(converted::<u8>(Int64Array::from(vec![255])), Some(255));
        assert_eq!(converted::<u8>(Int64Array::from(vec![256])), None);
        assert_eq!(converted::<i16>(Float64Array::from(vec![-1.0])), Some(-1));
        assert_eq!(converted::<u64>(Int64Array::from(vec![-1])), None);
        assert_eq!(converted::<usize>(Int32Array::from(vec![3])), Some(3));
        assert_eq!(converted::<f32>(Int64Array::from(vec![2])), Some(2.0));
        assert_eq!(converted::<Option<i64>>(Int64Array::from(vec![None])), Some(None));
        assert_eq!(converted::<Option<i64>>(Int32Array::from(vec![4])), Some(Some(4)));
    }

    #[test]
    fn lists_convert_by_item() {
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), Some(2)])]);
        assert_eq!(converted::<Vec<f64>>(list), Some(vec![1.0, 2.0]));
        let with_null = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None])]);
        assert_eq!(converted::<Vec<f64>>(with_null.clone()), None);
        assert_eq!(converted::<Vec<Option<i64>>>(with_null), Some(vec![Some(1), None]));
    }
}
