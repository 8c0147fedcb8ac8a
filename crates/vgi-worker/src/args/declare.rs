//! The declaration of arguments, as listings show it to clients (protocol file 02 §2.1).

use std::collections::HashMap;
use std::ops::RangeBounds;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::args::convert::{FromArgument, sql_type};
use crate::args::rule::{Interval, Pattern, Rules};
use crate::args::value::DefaultValue;
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

/// One declared argument.
#[derive(Clone, Debug)]
pub struct Argument {
    pub(crate) name: &'static str,
    /// `None` accepts any type.
    pub(crate) data_type: Option<DataType>,
    pub(crate) kind: Kind,
    pub(crate) default: Option<DefaultValue>,
    pub(crate) nullable: bool,
    pub(crate) rules: Rules,
    pub(crate) doc: &'static str,
}

impl Argument {
    fn new<T: FromArgument>(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        let range = T::at_least().map(|least| Interval::new(&(least..)));
        Self {
            name,
            data_type: Some(T::data_type()),
            kind,
            default: None,
            nullable: T::nullable(),
            rules: Rules { range, ..Rules::default() },
            doc,
        }
    }

    /// A required positional argument.
    #[must_use]
    pub fn positional<T: FromArgument>(name: &'static str, doc: &'static str) -> Self {
        Self::new::<T>(name, Kind::Positional, doc)
    }

    /// A positional argument that repeats, at least once; read with [`super::Arguments::many`].
    #[must_use]
    pub fn varargs<T: FromArgument>(name: &'static str, doc: &'static str) -> Self {
        Self::new::<T>(name, Kind::Varargs, doc)
    }

    /// Like [`Argument::varargs`], but each value may be of any type, such as a number or a list of numbers.
    #[must_use]
    pub fn any_varargs(name: &'static str, doc: &'static str) -> Self {
        Self { data_type: None, ..Self::new::<bool>(name, Kind::Varargs, doc) }
    }

    /// A named argument with its default.
    #[must_use]
    pub fn named<T: FromArgument>(name: &'static str, default: DefaultValue, doc: &'static str) -> Self {
        Self { default: Some(default), ..Self::new::<T>(name, Kind::Named, doc) }
    }

    /// Allows a positional argument to be left out.
    #[must_use]
    pub fn or(mut self, default: DefaultValue) -> Self {
        self.default = Some(default);
        self
    }

    /// The only accepted values.
    #[must_use]
    pub fn choices<T: Into<DefaultValue>>(mut self, choices: impl IntoIterator<Item = T>) -> Self {
        self.rules.choices = Some(choices.into_iter().map(Into::into).collect());
        self
    }

    /// The accepted numbers.
    #[must_use]
    pub fn range<T: Clone + Into<DefaultValue>>(mut self, range: impl RangeBounds<T>) -> Self {
        // a count stays one, whatever its upper bound
        self.rules.range = Some(Interval::new(&range).beginning_as(self.rules.range.take()));
        self
    }

    /// A regular expression that must match the whole of a text.
    #[must_use]
    pub fn pattern(mut self, pattern: &str) -> Self {
        self.rules.pattern = Some(Pattern::new(pattern));
        self
    }

    /// The default in the declared type.
    pub(crate) fn default_array(&self) -> Option<ArrayRef> {
        self.default.as_ref()?.array_of(self.data_type.as_ref())
    }

    /// Why no client could give it, or leave it out.
    fn flaw(&self) -> Option<String> {
        if let Some(flaw) = self.rules.flaw(self.data_type.as_ref()) {
            return Some(flaw);
        }
        let default = self.default.as_ref()?;
        match (default, self.kind) {
            (DefaultValue::Nothing, Kind::Varargs) => return None,
            (DefaultValue::Nothing, _) => return Some("does not repeat, so its default must be a value".to_owned()),
            (_, Kind::Varargs) => return Some(format!("repeats, so its default cannot be {default}")),
            (DefaultValue::Null, _) if !self.nullable => {
                return Some("has the default NULL, but is no Option".to_owned());
            }
            _ => {}
        }
        let Some(value) = self.default_array() else {
            let wanted = self.data_type.as_ref().map(sql_type).unwrap_or_default();
            return Some(format!("is {wanted}, but its default is {default}"));
        };
        self.rules.violation(&value).map(|violation| format!("has a default that is not accepted: it {violation}"))
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
        // what is NULL when it is left out has no default to show, but a positional one is optional only with a default
        if let Some(default) =
            self.default.as_ref().filter(|default| **default != DefaultValue::Null || self.kind != Kind::Named)
        {
            set("vgi_default", &default.json().to_string());
        }
        for (key, value) in self.rules.metadata() {
            set(key, &value);
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

/// The defaults as typed values, one row with one column each; `None` when there is none.
pub(crate) fn defaults(arguments: &[Argument]) -> Result<Option<RecordBatch>> {
    let given = arguments.iter().filter(|argument| argument.kind != Kind::Varargs);
    let columns: Vec<_> = given.filter_map(|argument| Some((argument.name, argument.default_array()?, true))).collect();
    if columns.is_empty() {
        return Ok(None);
    }
    Ok(Some(RecordBatch::try_from_iter_with_nullable(columns)?))
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
        if let Some(flaw) = argument.flaw() {
            return refuse(format!("argument '{name}' {flaw}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;

    use super::*;

    #[test]
    fn a_declaration_is_read_back_by_the_clients_side() {
        let arguments = [
            Argument::positional::<i64>("k", "How many."),
            Argument::any_varargs("probs", "Which."),
            Argument::named::<bool>("exact", DefaultValue::Bool(true), "How."),
            Argument::named::<Option<i64>>("seed", DefaultValue::Null, "").range(0..),
            Argument::named::<String>("mode", DefaultValue::Text("a"), "").choices(["a", "b"]).pattern("[ab]"),
        ];
        let schema = declaration(&arguments);
        assert_eq!(schema.field(0).metadata()["vgi_type"], "table");
        let read = vgi_wire::arguments::declared(&schema);
        assert_eq!(read.len(), 5);
        assert_eq!((read[0].data_type.clone(), read[0].optional), (Some(DataType::Int64), false));
        assert_eq!((read[1].data_type.clone(), read[1].varargs), (None, true));
        assert_eq!((read[2].named, read[2].optional, read[2].default.as_deref()), (true, true, Some("true")));
        assert_eq!(read[0].doc.as_deref(), Some("How many."));
        assert_eq!((read[3].optional, read[3].default.as_deref()), (true, None));
        let told = |argument: usize, key: &str| schema.field(argument + 1).metadata().get(key).map(String::as_str);
        assert_eq!(told(3, "vgi_range"), Some("[0, )"));
        assert_eq!((told(4, "vgi_choices"), told(4, "vgi_pattern")), (Some(r#"["a","b"]"#), Some("[ab]")));
        let defaults = defaults(&arguments).unwrap().unwrap();
        let names: Vec<_> = defaults.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["exact", "seed", "mode"]);
        assert_eq!((defaults.num_rows(), defaults.column(1).is_null(0)), (1, true));
    }

    #[test]
    fn a_default_takes_the_declared_type() {
        let argument = Argument::named::<Vec<f32>>("p", DefaultValue::List(vec![1.into(), 2.into()]), "");
        assert!(check("f", std::slice::from_ref(&argument)).is_ok());
        assert_eq!(*argument.default_array().unwrap().data_type(), <Vec<f32>>::data_type());
        let empty = Argument::named::<Vec<String>>("p", DefaultValue::List(Vec::new()), "");
        assert!(check("f", &[empty]).is_ok());
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
            (vec![positional().or(DefaultValue::Text("x"))], "'p' is BIGINT, but its default is 'x'"),
            (vec![positional().or(DefaultValue::Null)], "is no Option"),
            (vec![positional().or(DefaultValue::Nothing)], "does not repeat"),
            (vec![varargs().or(DefaultValue::Integer(1))], "its default cannot be 1"),
            (vec![named().range(2..)], "default that is not accepted: it must be at least 2, not 1"),
            (vec![named().choices([5, 6])], "it must be one of 5, 6, not 1"),
            (vec![named().range(1..1)], "the range [1, 1) is empty"),
            (vec![positional().pattern("x")], "has a pattern, but is no text"),
        ] {
            let message = check("f", &bad).unwrap_err().to_string();
            assert!(message.contains(reason) && message.starts_with("f: "), "{message}");
        }
    }
}
