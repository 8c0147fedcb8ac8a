//! The functions of a schema, as DuckDB's entries need them.

use std::collections::BTreeMap;
use std::pin::Pin;

use arrow_schema::Schema;
use serde_json::Value as Json;
use vgi_wire::arguments::Argument;
use vgi_wire::methods::FunctionInfo;

use crate::bridge::{SharedType, ffi};
use crate::convert;

/// Functions by name; overloads of one name are one entry.
pub struct FunctionList {
    entries: Vec<FunctionEntry>,
    /// Put before the names of published ones.
    prefix: String,
}

/// One name.
pub struct FunctionEntry {
    /// The first form of the function.
    pub info: FunctionInfo,
    /// How many forms it has. Several are told apart by the arguments of a call.
    pub forms: usize,
    /// In the order of the declaration.
    pub parameters: Vec<Parameter>,
}

/// One parameter.
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// `None` accepts any type.
    pub column_type: Option<SharedType>,
    /// The value of an optional positional one, as text.
    pub default: Option<String>,
}

/// How a parameter is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The input table.
    Table,
    /// By position.
    Positional,
    /// By position, any number of times.
    Varargs,
    /// By name.
    Named,
}

impl FunctionList {
    pub(super) fn new(
        mut context: Pin<&mut ffi::ClientContext>,
        functions: impl Iterator<Item = FunctionInfo>,
    ) -> Self {
        let mut forms: BTreeMap<String, Vec<FunctionInfo>> = BTreeMap::new();
        for function in functions {
            forms.entry(function.name.to_lowercase()).or_default().push(function);
        }
        let mut entries = Vec::with_capacity(forms.len());
        for forms in forms.into_values() {
            let count = forms.len();
            let Some(info) = forms.into_iter().next() else { continue };
            let parameters = parameters(context.as_mut(), &info);
            entries.push(FunctionEntry { info, forms: count, parameters });
        }
        Self { entries, prefix: String::new() }
    }

    /// Functions that are called without their catalog's name.
    pub(super) fn published(
        context: Pin<&mut ffi::ClientContext>,
        functions: impl Iterator<Item = FunctionInfo>,
        prefix: String,
    ) -> Self {
        Self { prefix, ..Self::new(context, functions) }
    }

    /// Name of a published function.
    pub fn published_name_of(&self, index: usize) -> String {
        let name = self.entry(index).map(|entry| entry.info.name.as_str()).unwrap_or_default();
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}_{name}", self.prefix) }
    }

    /// How many names there are.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// One of them.
    pub fn entry(&self, index: usize) -> Option<&FunctionEntry> {
        self.entries.get(index)
    }
}

/// The parameters in order, the table parameter at its place.
fn parameters(mut context: Pin<&mut ffi::ClientContext>, info: &FunctionInfo) -> Vec<Parameter> {
    let mut declared = info.declared_arguments().into_iter();
    let mut parameters = Vec::with_capacity(info.arguments.fields().len());
    for field in info.arguments.fields() {
        if field.metadata().get("vgi_type").is_some_and(|kind| kind == "table") {
            let name = field.name().clone();
            parameters.push(Parameter { name, role: Role::Table, column_type: None, default: None });
        } else if let Some(argument) = declared.next() {
            parameters.push(parameter(context.as_mut(), argument));
        }
    }
    if !parameters.iter().any(|parameter| parameter.role == Role::Table) {
        // a buffering function without a declared table parameter takes the table all the same
        parameters
            .insert(0, Parameter { name: "data".to_owned(), role: Role::Table, column_type: None, default: None });
    }
    // only the last positional parameters can be left out, and a table cannot
    let required = |parameter: &Parameter| {
        parameter.role == Role::Table || (parameter.role == Role::Positional && parameter.default.is_none())
    };
    let last = parameters.iter().rposition(required).unwrap_or_default();
    for parameter in parameters.iter_mut().take(last).filter(|parameter| parameter.role == Role::Positional) {
        parameter.default = None;
    }
    parameters
}

fn parameter(context: Pin<&mut ffi::ClientContext>, argument: Argument) -> Parameter {
    let role = match (argument.named, argument.varargs) {
        (true, _) => Role::Named,
        (false, true) => Role::Varargs,
        (false, false) => Role::Positional,
    };
    let column_type = match argument.data_type {
        // a type that DuckDB does not have must not hide the function: the server will say what it wants
        Some(_) => convert::duckdb_types(context, &Schema::new(vec![argument.field.clone()]), &[])
            .ok()
            .and_then(|types| types.into_iter().next())
            .map(|(_, column_type)| column_type),
        None => None,
    };
    let default =
        argument.default.as_deref().and_then(|json| serde_json::from_str::<Json>(json).ok()).map(|json| match json {
            Json::String(text) => text,
            other => other.to_string(),
        });
    Parameter { name: argument.name, role, column_type, default: default.filter(|_| argument.optional) }
}
