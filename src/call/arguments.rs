//! Arguments: values of the statement, matched with what the function declares and cast to the declared types.

use std::pin::Pin;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use cxx::UniquePtr;
use vgi_wire::arguments::{self, Argument};
use vgi_wire::methods::{FunctionInfo, SettingSpec};

use crate::bridge::{SharedType, ffi};
use crate::convert;
use crate::error::{Error, ExceptionClass};

/// Builds the arguments of a bind request.
pub(super) fn encode(
    mut context: Pin<&mut ffi::ClientContext>,
    function: &FunctionInfo,
    args: &[UniquePtr<ffi::Value>],
    named: &[(String, UniquePtr<ffi::Value>)],
) -> Result<RecordBatch, Error> {
    let declared = function.declared_arguments();
    let positional = positional(context.as_mut(), function, &declared, args)?;
    let named = by_name(context, function, &declared, named)?;
    Ok(arguments::encode_values(positional, named)?)
}

/// How well a form of a function takes these arguments, by their number, names and types: the less the better; `None` when it does not.
/// First counts how far the values are from their declarations, then how many arguments are left to their defaults.
pub(super) fn fit(
    function: &FunctionInfo,
    args: &[UniquePtr<ffi::Value>],
    named: &[(String, UniquePtr<ffi::Value>)],
) -> Option<(usize, usize)> {
    let declared = function.declared_arguments();
    let by_position: Vec<_> = declared.iter().filter(|argument| !argument.named).collect();
    let repeats = by_position.last().is_some_and(|argument| argument.varargs);
    let required = by_position.iter().filter(|argument| !argument.optional && !argument.varargs).count();
    if args.len() < required || (args.len() > by_position.len() && !repeats) {
        return None;
    }
    let mut distance = 0;
    for (index, value) in args.iter().enumerate() {
        distance += family_distance(by_position.get(index).or(by_position.last())?, value.as_ref()?)?;
    }
    for (name, value) in named {
        let argument = declared.iter().find(|argument| argument.named && argument.name.eq_ignore_ascii_case(name))?;
        distance += family_distance(argument, value.as_ref()?)?;
    }
    Some((distance, by_position.len().saturating_sub(args.len())))
}

/// A form as messages show it.
pub(super) fn form(function: &FunctionInfo) -> String {
    let argument = |argument: Argument| {
        let declared = argument.data_type.map_or_else(|| "ANY".to_owned(), |declared| declared.to_string());
        let (name, more) = (argument.name, if argument.varargs { " …" } else { "" });
        if argument.named { format!("{name} := {declared}") } else { format!("{name} {declared}{more}") }
    };
    let arguments: Vec<_> = function.declared_arguments().into_iter().map(argument).collect();
    format!("{}({})", function.name, arguments.join(", "))
}

/// How far a value is from what an argument declares; forms are told apart by kinds of values, not by widths.
fn family_distance(argument: &Argument, value: &ffi::Value) -> Option<usize> {
    const SAME: Option<usize> = Some(0);
    const WIDER: Option<usize> = Some(1);
    const ANY: Option<usize> = Some(2);
    let Some(declared) = &argument.data_type else { return ANY };
    let name = ffi::type_name(ffi::value_type(value)).ok()?;
    let base = name.split('(').next().unwrap_or_default();
    let text = matches!(declared, DataType::Utf8 | DataType::LargeUtf8);
    let fraction = declared.is_floating() || matches!(declared, DataType::Decimal128(..));
    let fits = |fits: bool| fits.then_some(0);
    match base {
        "NULL" | "\"NULL\"" => WIDER,
        _ if name.ends_with(']') => fits(declared.is_nested()),
        "BOOLEAN" => fits(*declared == DataType::Boolean),
        "VARCHAR" | "STRING_LITERAL" => fits(text),
        "DOUBLE" | "FLOAT" | "DECIMAL" => fits(fraction),
        _ if base.ends_with("INT") || base == "INTEGER" || base == "INTEGER_LITERAL" => {
            if declared.is_integer() {
                SAME
            } else {
                WIDER.filter(|_| fraction)
            }
        }
        _ => fits(!declared.is_numeric() && !text && *declared != DataType::Boolean),
    }
}

/// The session's values of the settings that the function reads, in the types that its catalog declares: another catalog may have
/// declared a setting of the name before.
pub(super) fn required_settings(
    mut context: Pin<&mut ffi::ClientContext>,
    function: &FunctionInfo,
    declared: &[SettingSpec],
) -> Result<Option<RecordBatch>, Error> {
    let mut columns = Vec::with_capacity(function.required_settings.len());
    for name in &function.required_settings {
        let value = ffi::setting_value(&context, name).map_err(|error| refuse(function, error.what()))?;
        let value = value.as_ref().ok_or_else(|| {
            refuse(function, &format!("needs the setting '{name}'; ATTACH the catalog, which declares it, and SET it"))
        })?;
        let Some(spec) = declared.iter().find(|spec| spec.name.eq_ignore_ascii_case(name)) else {
            columns.push(convert::value_array(context.as_mut(), name, value)?);
            continue;
        };
        let fail = |error: &str| refuse(function, &format!("cannot be given the setting '{name}': {error}"));
        let types = convert::duckdb_types(context.as_mut(), &Schema::new(vec![spec.field.clone()]), &[])?;
        let (_, target) = types.first().ok_or_else(|| fail("it has no type"))?;
        let cast = ffi::cast_value(context.as_mut(), value, target.get()?)
            .map_err(|error| fail(&convert::exception_text(&error)))?;
        let cast = cast.as_ref().ok_or_else(|| fail("DuckDB gave no value"))?;
        columns.push(convert::value_array(context.as_mut(), name, cast)?);
    }
    if columns.is_empty() {
        return Ok(None);
    }
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
    batch.map(Some).map_err(|error| refuse(function, &error.to_string()))
}

fn refuse(function: &FunctionInfo, text: &str) -> Error {
    Error::new(ExceptionClass::Binder, format!("function '{}' {text}", function.name))
}

fn positional(
    mut context: Pin<&mut ffi::ClientContext>,
    function: &FunctionInfo,
    declared: &[Argument],
    args: &[UniquePtr<ffi::Value>],
) -> Result<Vec<(Field, ArrayRef)>, Error> {
    let declared: Vec<_> = declared.iter().filter(|argument| !argument.named).collect();
    let values: Vec<&ffi::Value> = args.iter().filter_map(UniquePtr::as_ref).collect();
    let repeats = declared.last().is_some_and(|argument| argument.varargs);
    let required = declared.iter().filter(|argument| !argument.optional && !argument.varargs).count();
    if values.len() < required || (values.len() > declared.len() && !repeats) {
        let text = format!("takes {} in args, but {} given", expected(&declared), given(values.len()));
        return Err(refuse(function, &text));
    }
    values
        .iter()
        .enumerate()
        .filter_map(|(index, value)| Some((declared.get(index).or(declared.last())?, *value)))
        .map(|(argument, value)| encode_value(context.as_mut(), function, argument, value))
        .collect()
}

fn given(count: usize) -> String {
    if count == 1 { "1 value is".to_owned() } else { format!("{count} values are") }
}

/// "no value", "2 values (k, probs)", "at least 1 value (by …)".
fn expected(declared: &[&Argument]) -> String {
    if declared.is_empty() {
        return "no value".to_owned();
    }
    let names: Vec<_> = declared
        .iter()
        .map(|argument| format!("{}{}", argument.name, if argument.varargs { " …" } else { "" }))
        .collect();
    let optional = declared.iter().any(|argument| argument.optional || argument.varargs);
    let amount = if optional {
        "these values".to_owned()
    } else {
        format!("{} value{}", names.len(), if names.len() == 1 { "" } else { "s" })
    };
    format!("{amount} ({})", names.join(", "))
}

fn by_name(
    mut context: Pin<&mut ffi::ClientContext>,
    function: &FunctionInfo,
    declared: &[Argument],
    named: &[(String, UniquePtr<ffi::Value>)],
) -> Result<Vec<(Field, ArrayRef)>, Error> {
    named
        .iter()
        .filter_map(|(name, value)| Some((name, value.as_ref()?)))
        .map(|(name, value)| {
            let argument = declared.iter().find(|argument| argument.named && argument.name.eq_ignore_ascii_case(name));
            let argument = argument.ok_or_else(|| unknown_name(function, declared, name))?;
            encode_value(context.as_mut(), function, argument, value)
        })
        .collect()
}

fn unknown_name(function: &FunctionInfo, declared: &[Argument], name: &str) -> Error {
    let known: Vec<_> =
        declared.iter().filter(|argument| argument.named).map(|argument| argument.name.as_str()).collect();
    let known = if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
    refuse(function, &format!("has no named argument '{name}'; {known}"))
}

/// Servers do not cast: a value must come in the declared type.
fn encode_value(
    mut context: Pin<&mut ffi::ClientContext>,
    function: &FunctionInfo,
    argument: &Argument,
    value: &ffi::Value,
) -> Result<(Field, ArrayRef), Error> {
    let fail = |error: &str| refuse(function, &format!("does not accept argument '{}': {error}", argument.name));
    let Some(target) = declared_type(context.as_mut(), argument)? else {
        return convert::value_array(context, &argument.name, value).map_err(|error| fail(&error.to_string()));
    };
    let cast = ffi::cast_value(context.as_mut(), value, target.get()?)
        .map_err(|error| fail(&convert::exception_text(&error)))?;
    let cast = cast.as_ref().ok_or_else(|| fail("DuckDB gave no value"))?;
    convert::value_array(context, &argument.name, cast).map_err(|error| fail(&error.to_string()))
}

fn declared_type(context: Pin<&mut ffi::ClientContext>, argument: &Argument) -> Result<Option<SharedType>, Error> {
    if argument.data_type.is_none() {
        return Ok(None);
    }
    let schema = Schema::new(vec![argument.field.clone()]);
    let types = convert::duckdb_types(context, &schema, &[])?;
    Ok(types.into_iter().next().map(|(_, column_type)| column_type))
}
