//! One-row records: written column by column in declared order, read by name.
//!
//! Readers are tolerant, since servers differ: an absent column is an absent value, unknown columns are ignored, and any integer
//! width, text or binary layout and dictionary coding is accepted.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Int64Builder, ListBuilder, MapBuilder, MapFieldNames, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Float64Array, GenericBinaryArray, Int16Array,
    Int32Array, Int64Array, LargeBinaryArray, ListArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions, StringArray,
    StructArray, make_array, new_empty_array, new_null_array,
};
use arrow_buffer::OffsetBuffer;
use arrow_data::transform::MutableArrayData;
use arrow_data::{ArrayData, ByteView, MAX_INLINE_VIEW_LEN};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use bytes::Bytes;

use crate::WireError;
use crate::ipc::{self, Blob, RowTemplate, Segments};

/// Writes a one-row record. Columns are added in declared order.
#[derive(Default)]
pub struct RecordBuilder {
    fields: Vec<Field>,
    columns: Vec<ArrayRef>,
    blobs: Vec<Blob>,
}

impl RecordBuilder {
    /// A record without columns.
    pub fn new() -> Self {
        Self::default()
    }

    fn add(mut self, name: &str, nullable: bool, column: ArrayRef) -> Self {
        self.fields.push(Field::new(name, column.data_type().clone(), nullable));
        self.columns.push(column);
        self
    }

    /// `name: utf8`, not null.
    #[must_use]
    pub fn text(self, name: &str, value: &str) -> Self {
        self.add(name, false, Arc::new(StringArray::from(vec![value])))
    }

    /// `name: utf8?`
    #[must_use]
    pub fn optional_text(self, name: &str, value: Option<&str>) -> Self {
        self.add(name, true, Arc::new(StringArray::from(vec![value])))
    }

    /// `name: binary`, not null; the value may be in pieces.
    #[must_use]
    pub fn bytes(mut self, name: &str, value: impl Into<Segments>) -> Self {
        self.blobs.push(Blob { column: self.columns.len(), value: value.into() });
        self.add(name, false, Arc::new(BinaryArray::from(vec![b"".as_slice()])))
    }

    /// `name: binary`, not null; a short value, which the rows of a batch carry too.
    #[must_use]
    pub fn short_bytes(self, name: &str, value: &[u8]) -> Self {
        self.add(name, false, Arc::new(BinaryArray::from(vec![value])))
    }

    /// `name: binary?`
    #[must_use]
    pub fn optional_bytes(self, name: &str, value: Option<&[u8]>) -> Self {
        self.add(name, true, Arc::new(BinaryArray::from(vec![value])))
    }

    /// `name: large_binary?`
    #[must_use]
    pub fn optional_large_bytes(self, name: &str, value: Option<&[u8]>) -> Self {
        self.add(name, true, Arc::new(LargeBinaryArray::from(vec![value])))
    }

    /// `name: bool`, not null.
    #[must_use]
    pub fn flag(self, name: &str, value: bool) -> Self {
        self.add(name, false, Arc::new(BooleanArray::from(vec![value])))
    }

    /// `name: bool?`
    #[must_use]
    pub fn optional_flag(self, name: &str, value: Option<bool>) -> Self {
        self.add(name, true, Arc::new(BooleanArray::from(vec![value])))
    }

    /// `name: int64`, not null.
    #[must_use]
    pub fn integer(self, name: &str, value: i64) -> Self {
        self.add(name, false, Arc::new(Int64Array::from(vec![value])))
    }

    /// `name: int64?`
    #[must_use]
    pub fn optional_integer(self, name: &str, value: Option<i64>) -> Self {
        self.add(name, true, Arc::new(Int64Array::from(vec![value])))
    }

    /// `name: double?`
    #[must_use]
    pub fn optional_double(self, name: &str, value: Option<f64>) -> Self {
        self.add(name, true, Arc::new(Float64Array::from(vec![value])))
    }

    /// `name: dictionary<int16, utf8>`: how enums travel.
    #[must_use]
    pub fn choice(self, name: &str, value: &str) -> Self {
        self.add(name, false, choice_array(Some(value)))
    }

    /// A nullable [`choice`](Self::choice).
    #[must_use]
    pub fn optional_choice(self, name: &str, value: Option<&str>) -> Self {
        self.add(name, true, choice_array(value))
    }

    /// `name: list<utf8>`, not null.
    #[must_use]
    pub fn texts<S: AsRef<str>>(self, name: &str, values: &[S]) -> Self {
        self.add(name, false, text_list(Some(values)))
    }

    /// `name: list<utf8>?`
    #[must_use]
    pub fn optional_texts<S: AsRef<str>>(self, name: &str, values: Option<&[S]>) -> Self {
        self.add(name, true, text_list(values))
    }

    /// `name: list<binary>`, not null.
    #[must_use]
    pub fn blobs<B: AsRef<[u8]>>(self, name: &str, values: &[B]) -> Self {
        let mut builder = ListBuilder::new(BinaryBuilder::new());
        for value in values {
            builder.values().append_value(value);
        }
        builder.append(true);
        self.add(name, false, Arc::new(builder.finish()))
    }

    /// `name: list<int64>?`
    #[must_use]
    pub fn optional_integers(self, name: &str, values: Option<&[i64]>) -> Self {
        let mut builder = ListBuilder::new(Int64Builder::new());
        values.into_iter().flatten().for_each(|value| builder.values().append_value(*value));
        builder.append(values.is_some());
        self.add(name, true, Arc::new(builder.finish()))
    }

    /// A null of a type that this crate never sends a value of.
    #[must_use]
    pub fn null(self, name: &str, data_type: &DataType) -> Self {
        self.add(name, true, new_null_array(data_type, 1))
    }

    /// `name: int32?`
    #[must_use]
    pub fn optional_small_integer(self, name: &str, value: Option<i32>) -> Self {
        self.add(name, true, Arc::new(Int32Array::from(vec![value])))
    }

    /// `name: dictionary<int32, binary>`: how newer servers code repeated blobs.
    #[must_use]
    pub fn coded_bytes(self, name: &str, nullable: bool, value: Option<&[u8]>) -> Self {
        let values = Arc::new(BinaryArray::from(vec![value.unwrap_or_default()]));
        let keys = Int32Array::from(vec![value.map(|_| 0)]);
        self.add(name, nullable, Arc::new(DictionaryArray::new(keys, values)))
    }

    /// `name: map<utf8, utf8>` without entries, not null.
    #[must_use]
    pub fn empty_map(self, name: &str) -> Self {
        self.pairs::<&str>(name, &[])
    }

    /// `name: map<utf8, utf8>`, not null.
    #[must_use]
    pub fn pairs<S: AsRef<str>>(self, name: &str, pairs: &[(S, S)]) -> Self {
        let mut builder = MapBuilder::new(Some(map_names()), StringBuilder::new(), StringBuilder::new());
        for (key, value) in pairs {
            builder.keys().append_value(key);
            builder.values().append_value(value);
        }
        // cannot fail: every key was added with its value
        builder.append(true).ok();
        self.add(name, false, Arc::new(builder.finish()))
    }

    /// `name: map<utf8, int64>?`, null.
    #[must_use]
    pub fn null_counts(self, name: &str) -> Self {
        let mut builder = MapBuilder::new(Some(map_names()), StringBuilder::new(), Int64Builder::new());
        builder.append(false).ok();
        self.add(name, true, Arc::new(builder.finish()))
    }

    /// `name: list<struct<…>>` without elements, not null.
    #[must_use]
    pub fn empty_structs(self, name: &str, fields: Vec<Field>) -> Self {
        self.empty_list(name, DataType::Struct(fields.into()))
    }

    /// `name: list<…>` without elements, not null.
    #[must_use]
    pub fn empty_list(self, name: &str, element: DataType) -> Self {
        let item = FieldRef::new(Field::new("item", element, true));
        let values = new_empty_array(item.data_type());
        self.add(name, false, Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([0]), values, None)))
    }

    /// `name: list<struct<…>>` whose elements are the rows of records of one shape, not null.
    ///
    /// # Errors
    /// When they are not of one shape.
    pub fn structs(self, name: &str, records: Vec<Self>) -> Result<Self, WireError> {
        let lengths = OffsetBuffer::from_lengths([records.len()]);
        let structs = records.into_iter().map(Self::into_struct).collect::<Result<Vec<_>, _>>()?;
        let values: Vec<ArrayData> = structs.into_iter().map(Array::into_data).collect();
        let values = concat(&values)?;
        let item = FieldRef::new(Field::new("item", values.data_type().clone(), true));
        Ok(self.add(name, false, Arc::new(ListArray::new(item, lengths, values, None))))
    }

    /// Records of one shape as the rows of a batch. Values that [`bytes`](Self::bytes) added are not carried.
    ///
    /// # Errors
    /// When there is none, or they are not of one shape.
    pub fn rows(records: Vec<Self>) -> Result<RecordBatch, WireError> {
        let structs = records.into_iter().map(Self::into_struct).collect::<Result<Vec<_>, _>>()?;
        let values: Vec<ArrayData> = structs.into_iter().map(Array::into_data).collect();
        let schema = values.first().map(|values| match values.data_type() {
            DataType::Struct(fields) => Schema::new(fields.clone()),
            _ => Schema::empty(),
        });
        let rows = concat(&values)?;
        let columns = rows.as_struct_opt().map(|rows| rows.columns().to_vec()).unwrap_or_default();
        RecordBatch::try_new(Arc::new(schema.unwrap_or_else(Schema::empty)), columns).map_err(WireError::Encode)
    }

    /// The record as a struct of one row.
    fn into_struct(self) -> Result<StructArray, WireError> {
        StructArray::try_new(self.fields.into(), self.columns, None).map_err(WireError::Encode)
    }

    /// The record as an IPC stream.
    ///
    /// # Errors
    /// When a value exceeds the limits of the format.
    pub fn finish(self, metadata: &[(&str, &str)]) -> Result<Segments, WireError> {
        let (row, blobs) = self.into_row()?;
        ipc::encode_row(&row, blobs, metadata)
    }

    /// The record as a template, and its [`bytes`](Self::bytes), which must be filled in.
    pub(crate) fn template(self, metadata: &[(&str, &str)]) -> Result<(RowTemplate, Vec<Blob>), WireError> {
        let (row, blobs) = self.into_row()?;
        Ok((RowTemplate::new(&row, metadata)?, blobs))
    }

    fn into_row(self) -> Result<(RecordBatch, Vec<Blob>), WireError> {
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let row = RecordBatch::try_new_with_options(Arc::new(Schema::new(self.fields)), self.columns, &options);
        Ok((row.map_err(WireError::Encode)?, self.blobs))
    }
}

fn map_names() -> MapFieldNames {
    MapFieldNames { entry: "entries".to_owned(), key: "key".to_owned(), value: "value".to_owned() }
}

/// Lays arrays of one type end to end.
fn concat(arrays: &[ArrayData]) -> Result<ArrayRef, WireError> {
    let first = arrays.first().ok_or_else(|| WireError::protocol("a list of records needs at least one"))?;
    if arrays.iter().any(|array| array.data_type() != first.data_type()) {
        return Err(WireError::protocol("the records of a list must have one shape"));
    }
    let mut out = MutableArrayData::new(arrays.iter().collect(), false, arrays.len());
    for (index, array) in arrays.iter().enumerate() {
        out.try_extend(index, 0, array.len()).map_err(WireError::Encode)?;
    }
    Ok(make_array(out.freeze()))
}

fn choice_array(value: Option<&str>) -> ArrayRef {
    // a dictionary must be sent even when every value is null
    let values = Arc::new(StringArray::from(vec![value.unwrap_or_default()]));
    let keys = Int16Array::from(vec![value.map(|_| 0)]);
    Arc::new(DictionaryArray::new(keys, values))
}

fn text_list<S: AsRef<str>>(values: Option<&[S]>) -> ArrayRef {
    let mut builder = ListBuilder::new(StringBuilder::new());
    values.into_iter().flatten().for_each(|value| builder.values().append_value(value));
    builder.append(values.is_some());
    Arc::new(builder.finish())
}

/// A field of `list<T>` in declared form: the element is nullable and named `item`.
pub fn list_of(data_type: DataType) -> DataType {
    DataType::List(FieldRef::new(Field::new("item", data_type, true)))
}

/// One row of a batch, read by column name.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    batch: &'a RecordBatch,
    row: usize,
}

impl<'a> Record<'a> {
    /// The first row.
    ///
    /// # Errors
    /// When there is none.
    pub fn first(batch: &'a RecordBatch) -> Result<Self, WireError> {
        Self::all(batch).next().ok_or_else(|| WireError::protocol("a record without a row"))
    }

    /// All rows.
    pub fn all(batch: &'a RecordBatch) -> impl Iterator<Item = Self> {
        (0..batch.num_rows()).map(move |row| Self { batch, row })
    }

    /// Whether the column exists and has a value in this row.
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    fn value(&self, name: &str) -> Option<&'a ArrayRef> {
        let column = self.batch.column_by_name(name)?;
        column.is_valid(self.row).then_some(column)
    }

    fn required<T>(name: &str, value: Option<T>) -> Result<T, WireError> {
        value.ok_or_else(|| WireError::protocol(format!("field '{name}' is missing")))
    }

    /// A text that must be there.
    ///
    /// # Errors
    /// When it is not.
    pub fn text(&self, name: &str) -> Result<String, WireError> {
        Self::required(name, self.optional_text(name))
    }

    /// A text; enums are texts too.
    pub fn optional_text(&self, name: &str) -> Option<String> {
        text_at(self.value(name)?, self.row).map(str::to_owned)
    }

    /// Bytes that must be there.
    ///
    /// # Errors
    /// When they are not.
    pub fn bytes(&self, name: &str) -> Result<Bytes, WireError> {
        Self::required(name, self.optional_bytes(name))
    }

    /// Bytes; shared with the body that they came in where the layout allows.
    pub fn optional_bytes(&self, name: &str) -> Option<Bytes> {
        bytes_at(self.value(name)?, self.row)
    }

    /// A flag; absent is false.
    pub fn flag(&self, name: &str) -> bool {
        self.optional_flag(name).unwrap_or_default()
    }

    /// A flag.
    pub fn optional_flag(&self, name: &str) -> Option<bool> {
        Some(self.value(name)?.as_boolean_opt()?.value(self.row))
    }

    /// An integer of any width.
    pub fn integer(&self, name: &str) -> Option<i64> {
        integer_at(self.value(name)?, self.row)
    }

    /// A list of texts; absent is empty. So is one whose elements repeat a value so often that they are far longer than the list.
    pub fn texts(&self, name: &str) -> Vec<String> {
        self.items(name).map_or_else(Vec::new, |items| texts_of(&items).into_iter().flatten().collect())
    }

    /// The entries of a map from texts to texts; absent is empty.
    pub fn pairs(&self, name: &str) -> Vec<(String, String)> {
        let map = self.value(name).and_then(|column| column.as_map_opt());
        let Some(entries) = map.map(|map| map.value(self.row)).filter(|entries| entries.num_columns() == 2) else {
            return Vec::new();
        };
        let (keys, values) = (texts_of(entries.column(0)), texts_of(entries.column(1)));
        keys.into_iter().zip(values).filter_map(|(key, value)| Some((key?, value.unwrap_or_default()))).collect()
    }

    /// A list of byte strings. A null element is an error, since ids must all arrive.
    ///
    /// # Errors
    /// When the column is there but is not a list of byte strings.
    pub fn blobs(&self, name: &str) -> Result<Vec<Bytes>, WireError> {
        if !self.has(name) {
            return Ok(Vec::new());
        }
        let items = Self::required(name, self.items(name))?;
        let wrong = || WireError::protocol(format!("field '{name}' is not a list of byte strings"));
        (0..items.len())
            .map(|row| items.is_valid(row).then(|| bytes_at(&items, row)).flatten().ok_or_else(wrong))
            .collect()
    }

    /// A list of integers.
    pub fn integers(&self, name: &str) -> Option<Vec<i64>> {
        let items = self.items(name)?;
        (0..items.len()).map(|row| items.is_valid(row).then(|| integer_at(&items, row)).flatten()).collect()
    }

    /// The elements of a list.
    pub fn items(&self, name: &str) -> Option<ArrayRef> {
        let column = self.value(name)?;
        match column.data_type() {
            DataType::List(_) => Some(column.as_list::<i32>().value(self.row)),
            DataType::LargeList(_) => Some(column.as_list::<i64>().value(self.row)),
            _ => None,
        }
    }
}

/// The texts of an array; none at all when they repeat a value so often that they are far longer than the array.
fn texts_of(items: &ArrayRef) -> Vec<Option<String>> {
    let texts = || (0..items.len()).map(|row| items.is_valid(row).then(|| text_at(items, row)).flatten());
    let justified = items.get_buffer_memory_size().saturating_mul(16);
    if texts().flatten().map(str::len).fold(0, usize::saturating_add) > justified {
        return Vec::new();
    }
    texts().map(|text| text.map(str::to_owned)).collect()
}

/// Text in any layout.
pub(crate) fn text_at(array: &dyn Array, row: usize) -> Option<&str> {
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().value(row)),
        DataType::Utf8View => Some(array.as_string_view().value(row)),
        DataType::Dictionary(_, _) => {
            let (values, key) = dictionary_entry(array, row)?;
            text_at(values, key)
        }
        _ => None,
    }
}

/// Bytes in any layout, shared with the array: many elements may be one and the same value.
fn bytes_at(array: &dyn Array, row: usize) -> Option<Bytes> {
    match array.data_type() {
        DataType::Binary => binary_at(array.as_binary::<i32>(), row),
        DataType::LargeBinary => binary_at(array.as_binary::<i64>(), row),
        DataType::BinaryView => {
            let array = array.as_binary_view();
            let value = array.value(row);
            let view = ByteView::from(*array.views().get(row)?);
            // short values stand in the view itself
            if view.length <= MAX_INLINE_VIEW_LEN {
                return Some(Bytes::copy_from_slice(value));
            }
            let buffer = array.data_buffers().get(usize::try_from(view.buffer_index).ok()?)?;
            Some(Bytes::from_owner(buffer.slice_with_length(usize::try_from(view.offset).ok()?, value.len())))
        }
        DataType::Dictionary(_, _) => {
            let (values, key) = dictionary_entry(array, row)?;
            bytes_at(values, key)
        }
        _ => None,
    }
}

fn binary_at<O: OffsetSizeTrait>(array: &GenericBinaryArray<O>, row: usize) -> Option<Bytes> {
    let offsets = array.value_offsets();
    let (start, end) = (offsets.get(row)?.as_usize(), offsets.get(row + 1)?.as_usize());
    Some(Bytes::from_owner(array.values().slice_with_length(start, end.checked_sub(start)?)))
}

fn dictionary_entry(array: &dyn Array, row: usize) -> Option<(&dyn Array, usize)> {
    let dictionary = array.as_any_dictionary_opt()?;
    let key = usize::try_from(integer_at(dictionary.keys(), row)?).ok()?;
    let values: &dyn Array = dictionary.values().as_ref();
    (key < values.len() && values.is_valid(key)).then_some((values, key))
}

fn integer_at(array: &dyn Array, row: usize) -> Option<i64> {
    Some(match array.data_type() {
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).into(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row),
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).into(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).into(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).into(),
        DataType::UInt64 => i64::try_from(array.as_primitive::<UInt64Type>().value(row)).ok()?,
        _ => return None,
    })
}
