//! Arguments: values of the statement, matched with what the function declares and cast to the declared types.

use std::pin::Pin;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};
use cxx::UniquePtr;
use vgi_wire::arguments::{self, Argument};
use vgi_wire::methods::FunctionInfo;

use crate::bridge::{SharedType, ffi};
use crate::convert;
use crate::error::{Error, ExceptionClass};

/// Builds the arguments of a bind request from `args` (a list, a struct or one value) and `named` (a struct).
pub(super) fn encode(
    mut context: Pin<&mut ffi::ClientContext>,
    function: &FunctionInfo,
    args: Option<&ffi::Value>,
    named: Option<&ffi::Value>,
) -> Result<RecordBatch, Error> {
    let declared = function.declared_arguments();
    let positional = positional(context.as_mut(), function, &declared, args)?;
    let named = by_name(context, function, &declared, named)?;
    Ok(arguments::encode_values(positional, named)?)
}

fn refuse(function: &FunctionInfo, text: &str) -> Error {
    Error::new(ExceptionClass::Binder, format!("function '{}' {text}", function.name))
}

fn positional(
    mut context: Pin<&mut ffi::ClientContext>,
    function: &FunctionInfo,
    declared: &[Argument],
    args: Option<&ffi::Value>,
) -> Result<Vec<(Field, ArrayRef)>, Error> {
    let declared: Vec<_> = declared.iter().filter(|argument| !argument.named).collect();
    let parts = args.map(|args| ffi::value_parts(args).map_err(|error| refuse(function, error.what()))).transpose()?;
    let values: Vec<&ffi::Value> = parts.iter().filter_map(UniquePtr::as_ref).flatten().collect();
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
    named: Option<&ffi::Value>,
) -> Result<Vec<(Field, ArrayRef)>, Error> {
    let Some(named) = named else { return Ok(Vec::new()) };
    let what = |error: cxx::Exception| refuse(function, error.what());
    let given = ffi::part_names(named).map_err(what)?;
    let values = ffi::value_parts(named).map_err(what)?;
    if values.as_ref().is_none_or(cxx::CxxVector::is_empty) {
        return Ok(Vec::new());
    }
    if given.is_empty() {
        return Err(refuse(function, "wants its named arguments as a struct, such as named := {'name': value}"));
    }
    let values = values.as_ref().into_iter().flatten();
    given
        .iter()
        .zip(values)
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
