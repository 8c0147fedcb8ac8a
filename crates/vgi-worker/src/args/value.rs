//! Values that a declaration holds: defaults, choices, bounds.

use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, NullArray, StringArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use serde_json::{Value, json};

use crate::args::convert;

/// A value in a declaration: that of an argument that is not given, a choice, or a bound.
#[derive(Clone, Debug, PartialEq)]
pub enum DefaultValue {
    /// A BOOLEAN.
    Bool(bool),
    /// A BIGINT.
    Integer(i64),
    /// A DOUBLE.
    Double(f64),
    /// A VARCHAR.
    Text(&'static str),
    /// A list.
    List(Vec<DefaultValue>),
    /// NULL: of an argument that may be left out.
    Null,
    /// No value at all: of a repeated argument.
    Nothing,
}

impl DefaultValue {
    pub(crate) fn array(&self) -> ArrayRef {
        match self {
            Self::Bool(value) => Arc::new(BooleanArray::from(vec![*value])),
            Self::Integer(value) => Arc::new(Int64Array::from(vec![*value])),
            Self::Double(value) => Arc::new(Float64Array::from(vec![*value])),
            Self::Text(value) => Arc::new(StringArray::from(vec![*value])),
            Self::List(items) => list(items),
            Self::Null => Arc::new(NullArray::new(1)),
            Self::Nothing => Arc::new(ListArray::new_null(Arc::new(Field::new_list_field(DataType::Null, true)), 1)),
        }
    }

    /// The value in the declared type of its argument, if it has one and the value fits.
    pub(crate) fn array_of(&self, wanted: Option<&DataType>) -> Option<ArrayRef> {
        match (self, wanted) {
            (_, None) => Some(self.array()),
            (Self::Null | Self::Nothing, Some(wanted)) => Some(arrow_array::new_null_array(wanted, 1)),
            (_, Some(wanted)) => convert(&self.array(), wanted),
        }
    }

    /// An integer as a double; everything else as it is.
    fn double(&self) -> Self {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "it stands among doubles")]
            Self::Integer(value) => Self::Double(*value as f64),
            other => other.clone(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        match self {
            Self::Bool(value) => json!(value),
            Self::Integer(value) => json!(value),
            Self::Double(value) => json!(value),
            Self::Text(value) => json!(value),
            Self::List(items) => Value::Array(items.iter().map(Self::json).collect()),
            Self::Null => Value::Null,
            Self::Nothing => json!([]),
        }
    }
}

/// Items of different types have no list; what stands there instead fits no declared type, so registration refuses it.
fn list(items: &[DefaultValue]) -> ArrayRef {
    let mixed = items.iter().any(|item| matches!(item, DefaultValue::Double(_)));
    let doubles: Vec<_> = items.iter().map(DefaultValue::double).collect();
    let items = if mixed { doubles.as_slice() } else { items };
    let arrays: Vec<ArrayRef> = items.iter().map(DefaultValue::array).collect();
    let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    let values = match arrays.as_slice() {
        [] => Ok(Arc::new(NullArray::new(0)) as ArrayRef),
        some => arrow_select::concat::concat(some),
    };
    let Ok(values) = values else { return Arc::new(NullArray::new(1)) };
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([values.len()]), values, None))
}

/// As SQL writes it.
impl fmt::Display for DefaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Double(value) => write!(f, "{value}"),
            Self::Text(value) => write!(f, "'{}'", value.replace('\'', "''")),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Self::Null => f.write_str("NULL"),
            Self::Nothing => f.write_str("[]"),
        }
    }
}

macro_rules! from {
    ($($from:ty => $variant:ident),* $(,)?) => {$(
        impl From<$from> for DefaultValue {
            fn from(value: $from) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}

from! {
    bool => Bool,
    i8 => Integer, i16 => Integer, i32 => Integer, i64 => Integer, u8 => Integer, u16 => Integer, u32 => Integer,
    f32 => Double, f64 => Double,
    &'static str => Text,
}
