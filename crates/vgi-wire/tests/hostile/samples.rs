//! A column of every type, with values that a wrong length would show in.

use std::sync::Arc;

use arrow_array::builder::{
    FixedSizeBinaryBuilder, Int32Builder, LargeListBuilder, LargeListViewBuilder, ListBuilder, ListViewBuilder,
    MapBuilder, StringBuilder, StringDictionaryBuilder,
};
use arrow_array::types::{Int8Type, Int32Type, Int64Type};
use arrow_array::{
    ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Decimal128Array, Decimal256Array, DictionaryArray,
    FixedSizeListArray, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, LargeBinaryArray,
    LargeStringArray, ListArray, NullArray, RecordBatch, RunArray, StringArray, StringViewArray, StructArray,
    UnionArray,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields, UnionFields};

const TEXTS: [Option<&str>; 5] =
    [Some("a"), None, Some("a text that is longer than a view holds"), Some(""), Some("ö")];

fn lists() -> Vec<(&'static str, ArrayRef)> {
    let mut list = ListBuilder::new(Int32Builder::new());
    let mut large = LargeListBuilder::new(StringBuilder::new());
    let mut view = ListViewBuilder::new(Int32Builder::new());
    let mut large_view = LargeListViewBuilder::new(StringBuilder::new());
    for length in [2, 0, 3, 1, 0] {
        for value in 0..length {
            list.values().append_value(value);
            large.values().append_value("v");
            view.values().append_value(value);
            large_view.values().append_value("v");
        }
        list.append(length != 0);
        large.append(true);
        view.append(length != 0);
        large_view.append(true);
    }
    let fixed = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(
        (0..5).map(|row| (row != 1).then(|| vec![Some(row), None])),
        2,
    );
    let item = Arc::new(Field::new("item", DataType::Utf8, true));
    let of_none = FixedSizeListArray::try_new_with_length(item, 0, Arc::new(StringArray::new_null(0)), None, 5);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for row in 0..5 {
        map.keys().append_value("k");
        map.values().append_option((row > 2).then_some(row));
        map.append(row != 3).unwrap();
    }
    vec![
        ("list", Arc::new(list.finish())),
        ("large list", Arc::new(large.finish())),
        ("list view", Arc::new(view.finish())),
        ("large list view", Arc::new(large_view.finish())),
        ("fixed list", Arc::new(fixed)),
        ("fixed list of none", Arc::new(of_none.unwrap())),
        ("map", Arc::new(map.finish())),
    ]
}

fn structs() -> Vec<(&'static str, ArrayRef)> {
    let fields = Fields::from(vec![Field::new("x", DataType::Int32, true), Field::new("y", DataType::Utf8, true)]);
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int32Array::from_iter_values(0..5)), Arc::new(StringArray::from(TEXTS.to_vec()))];
    let nulls = Some(vec![true, true, false, true, false].into());
    let plain = StructArray::new(fields.clone(), columns, nulls);
    let item = Arc::new(Field::new("item", DataType::Struct(fields), true));
    let offsets = OffsetBuffer::from_lengths([1, 0, 2, 1, 1]);
    let nested = ListArray::new(item, offsets, Arc::new(plain.clone()), None);
    let none = Arc::new(Field::new("item", DataType::Struct(Fields::empty()), true));
    let empties = Arc::new(StructArray::new_empty_fields(5, None));
    let of_empties = ListArray::new(none, OffsetBuffer::from_lengths([5, 0, 0, 0, 0]), empties, None);
    vec![
        ("struct", Arc::new(plain)),
        ("empty struct", Arc::new(StructArray::new_empty_fields(5, None))),
        ("list of structs", Arc::new(nested)),
        ("list of empty structs", Arc::new(of_empties)),
    ]
}

fn coded() -> Vec<(&'static str, ArrayRef)> {
    let mut texts = StringDictionaryBuilder::<Int8Type>::new();
    for text in TEXTS {
        texts.append_option(text);
    }
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1), None]), None]);
    let lists = DictionaryArray::new(Int32Array::from(vec![Some(0), None, Some(1), Some(0), Some(0)]), Arc::new(list));
    let runs =
        RunArray::try_new(&Int32Array::from(vec![2, 3, 5]), &StringArray::from(vec![Some("r"), None, Some("s")]));
    let children: Vec<ArrayRef> =
        vec![Arc::new(Int32Array::from_iter_values(0..5)), Arc::new(StringArray::from(TEXTS.to_vec()))];
    let fields: UnionFields = [(0, Field::new("i", DataType::Int32, true)), (3, Field::new("s", DataType::Utf8, true))]
        .map(|(id, field)| (id, Arc::new(field)))
        .into_iter()
        .collect();
    let ids = || ScalarBuffer::from(vec![0_i8, 3, 3, 0, 3]);
    let sparse = UnionArray::try_new(fields.clone(), ids(), None, children.clone()).unwrap();
    let dense = UnionArray::try_new(fields, ids(), Some(vec![0, 1, 2, 4, 0].into()), children).unwrap();
    vec![
        ("dictionary", Arc::new(texts.finish())),
        ("dictionary of lists", Arc::new(lists)),
        ("runs", Arc::new(runs.unwrap())),
        ("sparse union", Arc::new(sparse)),
        ("dense union", Arc::new(dense)),
    ]
}

/// A batch of one column of five rows for every type.
pub(crate) fn every_type() -> Vec<(&'static str, RecordBatch)> {
    let bytes = [Some(&b"a"[..]), None, Some(&[0xff; 40][..]), Some(b""), Some(b"xyz")];
    let mut fixed = FixedSizeBinaryBuilder::new(3);
    for row in 0..5_u8 {
        if row == 2 { fixed.append_null() } else { fixed.append_value([row; 3]).unwrap() }
    }
    let numbers = [Some(1), None, Some(-3), Some(0), Some(7)];
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("null", Arc::new(NullArray::new(5))),
        ("boolean", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true), None]))),
        ("int8", Arc::new(Int8Array::from(numbers.to_vec()))),
        ("int16", Arc::new(Int16Array::from_iter(numbers.map(|n| n.map(i16::from))))),
        ("int64", Arc::new(Int64Array::from_iter(numbers.map(|n| n.map(i64::from))))),
        ("double", Arc::new(Float64Array::from_iter(numbers.map(|n| n.map(f64::from))))),
        ("decimal128", Arc::new(Decimal128Array::from_iter(numbers.map(|n| n.map(i128::from))))),
        ("decimal256", Arc::new(Decimal256Array::from_iter(numbers.map(|n| n.map(|n| i128::from(n).into()))))),
        ("text", Arc::new(StringArray::from(TEXTS.to_vec()))),
        ("large text", Arc::new(LargeStringArray::from(TEXTS.to_vec()))),
        ("text view", Arc::new(StringViewArray::from(TEXTS.to_vec()))),
        ("binary", Arc::new(BinaryArray::from(bytes.to_vec()))),
        ("large binary", Arc::new(LargeBinaryArray::from(bytes.to_vec()))),
        ("binary view", Arc::new(BinaryViewArray::from(bytes.to_vec()))),
        ("fixed binary", Arc::new(fixed.finish())),
    ];
    columns.extend(lists());
    columns.extend(structs());
    columns.extend(coded());
    columns
        .into_iter()
        .map(|(name, column)| {
            let field = Field::new("c", column.data_type().clone(), true);
            (name, RecordBatch::try_new(Arc::new(arrow_schema::Schema::new(vec![field])), vec![column]).unwrap())
        })
        .collect()
}
