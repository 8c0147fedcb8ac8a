//! Arguments of a function: how they are declared, and how values travel (protocol file 02 §2).

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{DataType, Field, Fields, Schema};

use crate::WireError;

/// A declared argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Name of the parameter.
    pub name: String,
    /// Declared type; `None` when any is accepted.
    pub data_type: Option<DataType>,
    /// The field as declared, with its extension metadata.
    pub field: Field,
    /// Given by name rather than by position.
    pub named: bool,
    /// The last positional one, which may repeat.
    pub varargs: bool,
    /// May be left out.
    pub optional: bool,
    /// Description.
    pub doc: Option<String>,
    /// Default, as JSON, for display.
    pub default: Option<String>,
}

/// The arguments that a declaration schema lists, without the table parameter.
pub fn declared(schema: &Schema) -> Vec<Argument> {
    schema
        .fields()
        .iter()
        .filter(|field| field.metadata().get("vgi_type").map(String::as_str) != Some("table"))
        .map(|field| argument(field))
        .collect()
}

fn argument(field: &Field) -> Argument {
    let metadata = field.metadata();
    let text = |key: &str| metadata.get(key).cloned();
    let named = metadata.get("vgi_arg").is_some_and(|kind| kind == "named");
    let varargs = metadata.get("vgi_varargs").is_some_and(|flag| flag == "true");
    let any = metadata.get("vgi_type").is_some_and(|kind| kind == "any");
    Argument {
        name: field.name().clone(),
        data_type: (!any && *field.data_type() != DataType::Null).then(|| field.data_type().clone()),
        field: field.clone(),
        named,
        varargs,
        optional: named || metadata.contains_key("vgi_default"),
        doc: text("vgi_doc"),
        default: text("vgi_default"),
    }
}

/// Values for `BindRequest.arguments`: one row with one struct column `args`. No values at all is a struct without children, of one
/// row, which servers require.
///
/// # Errors
/// When a value does not have exactly one row.
pub fn encode_values(
    positional: Vec<(Field, ArrayRef)>,
    named: Vec<(Field, ArrayRef)>,
) -> Result<RecordBatch, WireError> {
    let positional = positional
        .into_iter()
        .enumerate()
        .map(|(index, (field, value))| (field.with_name(format!("positional_{index}")), value));
    let named = named.into_iter().map(|(field, value)| {
        let name = format!("named_{}", field.name());
        (field.with_name(name), value)
    });
    let (fields, values): (Vec<Field>, Vec<ArrayRef>) = positional.chain(named).unzip();
    let args = if fields.is_empty() {
        StructArray::new_empty_fields(1, None)
    } else {
        StructArray::try_new(Fields::from(fields), values, None).map_err(WireError::Encode)?
    };
    let schema = Schema::new(vec![Field::new("args", DataType::Struct(args.fields().clone()), true)]);
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    RecordBatch::try_new_with_options(Arc::new(schema), vec![Arc::new(args)], &options).map_err(WireError::Encode)
}

/// The values of an arguments batch: positional ones in order, and named ones.
#[derive(Clone, Debug, Default)]
pub struct Values {
    /// `positional_0`, `positional_1` …
    pub positional: Vec<ArrayRef>,
    /// `named_*`, without the prefix.
    pub named: Vec<(String, ArrayRef)>,
}

/// Reads an arguments batch; each value is an array of one row.
///
/// # Errors
/// When it is not one row with a struct column, or a position is missing.
pub fn decode_values(batch: &RecordBatch) -> Result<Values, WireError> {
    let wrong = || WireError::protocol("arguments must be one row with a struct column");
    let args = batch
        .columns()
        .first()
        .and_then(|column| arrow_array::cast::AsArray::as_struct_opt(column))
        .ok_or_else(wrong)?;
    if batch.num_rows() != 1 {
        return Err(wrong());
    }
    let mut values = Values::default();
    let mut positional = Vec::new();
    for (field, column) in args.fields().iter().zip(args.columns()) {
        if let Some(name) = field.name().strip_prefix("named_") {
            values.named.push((name.to_owned(), Arc::clone(column)));
        } else if let Some(index) =
            field.name().strip_prefix("positional_").and_then(|index| index.parse::<usize>().ok())
        {
            positional.push((index, Arc::clone(column)));
        }
    }
    positional.sort_by_key(|(index, _)| *index);
    if positional.iter().enumerate().any(|(wanted, (index, _))| wanted != *index) {
        return Err(WireError::protocol("positional arguments must be numbered without gaps"));
    }
    values.positional = positional.into_iter().map(|(_, value)| value).collect();
    Ok(values)
}

#[cfg(test)]
mod tests {
    use arrow_array::{Array, Int64Array, StringArray};

    use super::*;

    #[test]
    fn values_come_back_by_position_and_name() {
        let int = |value| (Field::new("x", DataType::Int64, true), Arc::new(Int64Array::from(vec![value])) as ArrayRef);
        let text = (Field::new("mode", DataType::Utf8, true), Arc::new(StringArray::from(vec!["fast"])) as ArrayRef);
        let batch = encode_values(vec![int(7), int(8)], vec![text]).unwrap();
        assert_eq!(batch.num_rows(), 1);
        let values = decode_values(&batch).unwrap();
        assert_eq!(values.positional.len(), 2);
        assert_eq!(values.named[0].0, "mode");
    }

    #[test]
    fn no_values_are_one_row_of_an_empty_struct() {
        let batch = encode_values(Vec::new(), Vec::new()).unwrap();
        assert_eq!((batch.num_rows(), batch.num_columns(), batch.column(0).len()), (1, 1, 1));
        assert!(decode_values(&batch).unwrap().positional.is_empty());
    }
}
