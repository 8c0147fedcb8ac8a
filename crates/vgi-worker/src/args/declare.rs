//! The declaration of arguments, as listings show it to clients (protocol file 02 §2.1).

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use serde_json::json;

use crate::args::convert::FromArgument;
use crate::error::{Error, Result};

/// How an argument is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By position; required unless it has a default.
    Positional,
    /// By position, last, any number of times.
    Varargs,
    /// By name; has a default.
    Named,
}

/// The value of an argument that is not given.
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
            Self::Nothing => Arc::new(ListArray::new_null(Arc::new(Field::new_list_field(DataType::Null, true)), 1)),
        }
    }

    fn json(&self) -> String {
        match self {
            Self::Bool(value) => json!(value),
            Self::Integer(value) => json!(value),
            Self::Double(value) => json!(value),
            Self::Text(value) => json!(value),
            Self::Nothing => json!([]),
        }
        .to_string()
    }
}

/// One declared argument.
#[derive(Clone, Debug)]
pub struct Argument {
    pub(crate) name: &'static str,
    /// `None` accepts any type.
    pub(crate) data_type: Option<DataType>,
    pub(crate) kind: Kind,
    pub(crate) default: Option<DefaultValue>,
    doc: &'static str,
    choices: Option<String>,
}

impl Argument {
    fn new(name: &'static str, data_type: Option<DataType>, kind: Kind, doc: &'static str) -> Self {
        Self { name, data_type, kind, default: None, doc, choices: None }
    }

    /// A required positional argument.
    #[must_use]
    pub fn positional<T: FromArgument>(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Some(T::data_type()), Kind::Positional, doc)
    }

    /// A positional argument that repeats, at least once; read with [`super::Arguments::many`].
    #[must_use]
    pub fn varargs<T: FromArgument>(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Some(T::data_type()), Kind::Varargs, doc)
    }

    /// Like [`Argument::varargs`], but each value may be of any type, such as a number or a list of numbers.
    #[must_use]
    pub fn any_varargs(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, None, Kind::Varargs, doc)
    }

    /// A named argument with its default.
    #[must_use]
    pub fn named<T: FromArgument>(name: &'static str, default: DefaultValue, doc: &'static str) -> Self {
        Self { default: Some(default), ..Self::new(name, Some(T::data_type()), Kind::Named, doc) }
    }

    /// Allows a positional argument to be left out.
    #[must_use]
    pub fn or(mut self, default: DefaultValue) -> Self {
        self.default = Some(default);
        self
    }

    /// The only accepted values, for display; [`super::Args::parse`] enforces them.
    #[must_use]
    pub fn choices(mut self, choices: &[&str]) -> Self {
        self.choices = Some(json!(choices).to_string());
        self
    }

    fn field(&self) -> Field {
        let mut metadata = HashMap::from([("vgi_doc".to_owned(), self.doc.to_owned())]);
        let mut set = |key: &str, value: &str| metadata.insert(key.to_owned(), value.to_owned());
        match self.kind {
            Kind::Positional => {}
            Kind::Varargs => {
                set("vgi_varargs", "true");
            }
            Kind::Named => {
                set("vgi_arg", "named");
            }
        }
        if self.data_type.is_none() {
            set("vgi_type", "any");
        }
        if let Some(default) = &self.default {
            set("vgi_default", &default.json());
        }
        if let Some(choices) = &self.choices {
            set("vgi_choices", choices);
        }
        Field::new(self.name, self.data_type.clone().unwrap_or(DataType::Null), true).with_metadata(metadata)
    }
}

/// The declaration as a schema: the table, then the arguments.
pub(crate) fn declaration(arguments: &[Argument]) -> SchemaRef {
    let metadata = HashMap::from([
        ("vgi_type".to_owned(), "table".to_owned()),
        ("vgi_doc".to_owned(), "The input table.".to_owned()),
    ]);
    let table = Field::new("data", DataType::Null, true).with_metadata(metadata);
    Arc::new(Schema::new(std::iter::once(table).chain(arguments.iter().map(Argument::field)).collect::<Vec<_>>()))
}

/// Refuses a declaration that clients could not call.
pub(crate) fn check(function: &str, arguments: &[Argument]) -> Result<()> {
    let refuse = |reason: String| Err(Error::Declaration(format!("{function}: {reason}")));
    let mut names = std::collections::HashSet::new();
    let mut earlier = Kind::Positional;
    let mut optional = false;
    for argument in arguments {
        let name = argument.name;
        if !names.insert(name) {
            return refuse(format!("argument '{name}' is declared twice"));
        }
        match (earlier, argument.kind) {
            (Kind::Named, Kind::Positional | Kind::Varargs) => {
                return refuse(format!("positional argument '{name}' is declared after a named one"));
            }
            (Kind::Varargs, Kind::Positional | Kind::Varargs) => {
                return refuse(format!("argument '{name}' is declared after one that repeats"));
            }
            _ => earlier = argument.kind,
        }
        if argument.kind != Kind::Named && optional && argument.default.is_none() {
            return refuse(format!("argument '{name}' is required, but one before it is not"));
        }
        optional |= argument.default.is_some();
        if argument.kind == Kind::Named && argument.default.is_none() {
            return refuse(format!("named argument '{name}' needs a default"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_is_read_back_by_the_clients_side() {
        let arguments = [
            Argument::positional::<i64>("k", "How many."),
            Argument::any_varargs("probs", "Which."),
            Argument::named::<bool>("exact", DefaultValue::Bool(true), "How."),
        ];
        let schema = declaration(&arguments);
        assert_eq!(schema.field(0).metadata()["vgi_type"], "table");
        let read = vgi_wire::arguments::declared(&schema);
        assert_eq!(read.len(), 3);
        assert_eq!((read[0].data_type.clone(), read[0].optional), (Some(DataType::Int64), false));
        assert_eq!((read[1].data_type.clone(), read[1].varargs), (None, true));
        assert_eq!((read[2].named, read[2].optional, read[2].default.as_deref()), (true, true, Some("true")));
        assert_eq!(read[0].doc.as_deref(), Some("How many."));
    }

    #[test]
    fn declarations_that_cannot_be_called_are_refused() {
        let named = || Argument::named::<i64>("n", DefaultValue::Integer(1), "");
        let positional = || Argument::positional::<i64>("p", "");
        let varargs = || Argument::varargs::<i64>("v", "");
        assert!(check("f", &[positional(), varargs(), named()]).is_ok());
        for (bad, reason) in [
            (vec![named(), positional()], "after a named one"),
            (vec![varargs(), positional()], "after one that repeats"),
            (vec![positional(), positional()], "declared twice"),
            (vec![positional().or(DefaultValue::Integer(0)), varargs()], "is required, but one before it is not"),
        ] {
            let message = check("f", &bad).unwrap_err().to_string();
            assert!(message.contains(reason) && message.starts_with("f: "), "{message}");
        }
    }
}
