//! The values of one call, checked against the function's declaration.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use vgi_wire::arguments::Values;

use crate::args::convert::{FromArgument, convert, sql_type};
use crate::args::declare::{Argument, Kind};
use crate::error::{Error, Result};

/// The checked arguments of a call. Every declared argument has its values here: one, or any number of one that repeats.
#[derive(Clone, Debug)]
pub struct Arguments {
    function: String,
    values: Vec<(&'static str, Vec<ArrayRef>)>,
}

impl Arguments {
    /// Checks the values of a call: their number, names and types.
    ///
    /// # Errors
    /// With a sentence that names the function, the argument and what was expected.
    pub fn resolve(function: &str, declared: &[Argument], given: Values) -> Result<Self> {
        let mut arguments = Self { function: function.to_owned(), values: Vec::with_capacity(declared.len()) };
        arguments.check_names(declared, &given)?;
        arguments.check_count(declared, given.positional.len())?;
        let mut positional = given.positional.into_iter();
        for argument in declared {
            let values: Vec<ArrayRef> = match argument.kind {
                Kind::Positional => positional.next().into_iter().collect(),
                Kind::Varargs => positional.by_ref().collect(),
                Kind::Named => given
                    .named
                    .iter()
                    .filter(|(name, _)| name == argument.name)
                    .map(|(_, value)| Arc::clone(value))
                    .collect(),
            };
            let values = values.iter().map(|value| arguments.accept(argument, value)).collect::<Result<Vec<_>>>()?;
            let values = match argument.kind {
                Kind::Positional | Kind::Named if values.is_empty() => argument.default_array().into_iter().collect(),
                _ => values,
            };
            arguments.values.push((argument.name, values));
        }
        Ok(arguments)
    }

    fn check_names(&self, declared: &[Argument], given: &Values) -> Result<()> {
        let mut seen = std::collections::HashSet::new();
        for (name, _) in &given.named {
            let known = declared.iter().find(|argument| argument.name == name);
            match known.map(|argument| argument.kind) {
                Some(Kind::Named) if seen.insert(name) => {}
                Some(Kind::Named) => return Err(self.refuse(name, "is given twice")),
                Some(Kind::Positional | Kind::Varargs) => {
                    return Err(self.refuse(name, "is positional: give its value without the name"));
                }
                None => {
                    let names = listed(declared.iter().filter(|argument| argument.kind == Kind::Named));
                    let function = &self.function;
                    return Err(Error::Argument(format!(
                        "{function} has no named argument '{name}' (it has: {names})"
                    )));
                }
            }
        }
        Ok(())
    }

    fn check_count(&self, declared: &[Argument], given: usize) -> Result<()> {
        let by_position = || declared.iter().filter(|argument| argument.kind != Kind::Named);
        let required = by_position().filter(|argument| argument.default.is_none()).count();
        let repeats = by_position().any(|argument| argument.kind == Kind::Varargs);
        let most = by_position().count();
        if given < required {
            let missing = by_position().filter(|argument| argument.default.is_none()).nth(given);
            let (name, wanted) = missing.map_or(("", String::new()), |argument| (argument.name, wanted(argument)));
            return Err(
                self.refuse(name, &format!("({wanted}) is missing: {} given, {required} needed", positional(given)))
            );
        }
        if given > most && !repeats {
            let names = listed(by_position());
            let function = &self.function;
            return Err(Error::Argument(format!(
                "{function} takes {} besides its table ({names}), but got {given}",
                positional(most)
            )));
        }
        Ok(())
    }

    fn accept(&self, argument: &Argument, value: &ArrayRef) -> Result<ArrayRef> {
        if value.is_empty() || value.is_null(0) || *value.data_type() == DataType::Null {
            return match &argument.data_type {
                Some(data_type) if argument.nullable => Ok(arrow_array::new_null_array(data_type, 1)),
                _ => Err(self.refuse(argument.name, &format!("must be {}, not NULL", wanted(argument)))),
            };
        }
        let value = match &argument.data_type {
            Some(wanted) => {
                convert(value, wanted).ok_or_else(|| self.mismatch(argument.name, &sql_type(wanted), value))?
            }
            None => Arc::clone(value),
        };
        match argument.rules.violation(&value) {
            Some(violation) => Err(self.refuse(argument.name, &violation)),
            None => Ok(value),
        }
    }

    fn mismatch(&self, name: &str, wanted: &str, value: &dyn Array) -> Error {
        self.refuse(name, &format!("must be {wanted}, but the value given is {}", sql_type(value.data_type())))
    }

    fn values(&self, name: &str) -> Result<&[ArrayRef]> {
        let found = self.values.iter().find(|(declared, _)| *declared == name);
        found.map(|(_, values)| values.as_slice()).ok_or_else(|| self.refuse(name, "is read but was never declared"))
    }

    /// The value of an argument, or its default.
    ///
    /// # Errors
    /// When it is not declared with this type.
    pub fn get<T: FromArgument>(&self, name: &str) -> Result<T> {
        let value = self.values(name)?.first();
        let typed = value.and_then(|value| T::from_array(value));
        typed.ok_or_else(|| self.refuse(name, &format!("must be {}", sql_type(&T::data_type()))))
    }

    /// The values of an argument that repeats. A value that is a list of that type gives all its items.
    ///
    /// # Errors
    /// When a value is neither of the type nor a list of it.
    pub fn many<T: FromArgument>(&self, name: &str) -> Result<Vec<T>> {
        let mut all = Vec::new();
        for value in self.values(name)? {
            let one = convert(value, &T::data_type()).and_then(|value| T::from_array(&value));
            let list = || convert(value, &Vec::<T>::data_type()).and_then(|value| Vec::<T>::from_array(&value));
            match one {
                Some(item) => all.push(item),
                None => all.extend(list().ok_or_else(|| {
                    let item = sql_type(&T::data_type());
                    self.mismatch(name, &format!("{item} or {item}[] without NULLs"), value)
                })?),
            }
        }
        Ok(all)
    }

    /// An error about one argument: `function: argument 'name' <what is wrong>`.
    #[must_use]
    pub fn refuse(&self, name: &str, what: &str) -> Error {
        Error::Argument(format!("{}: argument '{name}' {what}", self.function))
    }
}

fn positional(count: usize) -> String {
    format!("{count} positional argument{}", if count == 1 { "" } else { "s" })
}

fn wanted(argument: &Argument) -> String {
    argument.data_type.as_ref().map_or_else(|| "a value".to_owned(), sql_type)
}

fn listed<'a>(arguments: impl Iterator<Item = &'a Argument>) -> String {
    let names: Vec<_> = arguments.map(|argument| argument.name).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{Float64Type, Int64Type};
    use arrow_array::{Float64Array, Int64Array, ListArray, StringArray};

    use super::*;
    use crate::args::DefaultValue;

    fn declared() -> Vec<Argument> {
        vec![Argument::positional::<i64>("k", ""), Argument::named::<i64>("seed", DefaultValue::Integer(42), "")]
    }

    fn int(value: i64) -> ArrayRef {
        Arc::new(Int64Array::from(vec![value]))
    }

    fn resolve(positional: Vec<ArrayRef>, named: Vec<(&str, ArrayRef)>) -> Result<Arguments> {
        let named = named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Arguments::resolve("kmeans", &declared(), Values { positional, named })
    }

    #[test]
    fn values_and_defaults_are_read() {
        let arguments = resolve(vec![int(3)], vec![]).unwrap();
        assert_eq!((arguments.get::<i64>("k").unwrap(), arguments.get::<i64>("seed").unwrap()), (3, 42));
        assert_eq!(resolve(vec![int(3)], vec![("seed", int(7))]).unwrap().get::<i64>("seed").unwrap(), 7);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["three"]));
        let null: ArrayRef = Arc::new(Int64Array::from(vec![None]));
        let cases = [
            (
                resolve(vec![], vec![]),
                "kmeans: argument 'k' (BIGINT) is missing: 0 positional arguments given, 1 needed",
            ),
            (resolve(vec![text], vec![]), "kmeans: argument 'k' must be BIGINT, but the value given is VARCHAR"),
            (resolve(vec![null], vec![]), "kmeans: argument 'k' must be BIGINT, not NULL"),
            (
                resolve(vec![int(1), int(2)], vec![]),
                "kmeans takes 1 positional argument besides its table (k), but got 2",
            ),
            (resolve(vec![int(1)], vec![("sed", int(2))]), "kmeans has no named argument 'sed' (it has: seed)"),
            (
                resolve(vec![int(1)], vec![("k", int(2))]),
                "kmeans: argument 'k' is positional: give its value without the name",
            ),
            (resolve(vec![int(1)], vec![("seed", int(2)), ("seed", int(2))]), "kmeans: argument 'seed' is given twice"),
        ];
        for (result, message) in cases {
            assert_eq!(result.unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn choices_ranges_and_patterns_are_checked_with_the_value() {
        let declared = [
            Argument::positional::<i64>("k", "").range(1..=9),
            Argument::named::<String>("mode", DefaultValue::Text("a"), "").choices(["a", "b"]),
            Argument::named::<Option<String>>("code", DefaultValue::Null, "").pattern("[A-Z]{2}"),
            Argument::named::<Vec<usize>>("sizes", DefaultValue::List(Vec::new()), ""),
        ];
        let resolve = |k: i64, named: Vec<(&str, ArrayRef)>| {
            let named = named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            Arguments::resolve("f", &declared, Values { positional: vec![int(k)], named })
        };
        let text = |value: Option<&str>| Arc::new(StringArray::from(vec![value])) as ArrayRef;
        let list = |value: i64| {
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(vec![Some(vec![Some(value)])])) as ArrayRef
        };
        let good = resolve(9, vec![("code", text(Some("DE"))), ("sizes", list(3))]).unwrap();
        assert_eq!(good.get::<Option<String>>("code").unwrap().as_deref(), Some("DE"));
        assert_eq!(good.get::<Vec<usize>>("sizes").unwrap(), [3]);
        let none = resolve(1, vec![("code", text(None))]).unwrap();
        assert_eq!(none.get::<Option<String>>("code").unwrap(), None);
        assert_eq!(resolve(1, vec![]).unwrap().get::<Option<String>>("code").unwrap(), None);
        assert!(resolve(1, vec![]).unwrap().get::<Vec<usize>>("sizes").unwrap().is_empty());
        let refused = |result: Result<Arguments>| result.unwrap_err().to_string();
        assert_eq!(refused(resolve(10, vec![])), "f: argument 'k' must be from 1 to 9, not 10");
        assert_eq!(
            refused(resolve(1, vec![("mode", text(Some("c")))])),
            "f: argument 'mode' must be one of 'a', 'b', not 'c'"
        );
        assert_eq!(
            refused(resolve(1, vec![("code", text(Some("DEU")))])),
            "f: argument 'code' must match the pattern [A-Z]{2}, not 'DEU'"
        );
        assert_eq!(refused(resolve(1, vec![("sizes", list(-1))])), "f: argument 'sizes' must be at least 0, not -1");
        assert_eq!(refused(resolve(1, vec![("mode", text(None))])), "f: argument 'mode' must be VARCHAR, not NULL");
    }

    #[test]
    fn a_repeated_argument_takes_values_and_lists() {
        let declared = [Argument::any_varargs("probs", "")];
        let list: ArrayRef =
            Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(vec![Some(vec![Some(0.1), Some(0.2)])]));
        let one: ArrayRef = Arc::new(Float64Array::from(vec![0.9]));
        let given = Values { positional: vec![list, one], named: vec![] };
        let arguments = Arguments::resolve("q", &declared, given).unwrap();
        assert_eq!(arguments.many::<f64>("probs").unwrap(), [0.1, 0.2, 0.9]);

        let text: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
        let arguments = Arguments::resolve("q", &declared, Values { positional: vec![text], named: vec![] }).unwrap();
        let message = arguments.many::<f64>("probs").unwrap_err().to_string();
        assert_eq!(
            message,
            "q: argument 'probs' must be DOUBLE or DOUBLE[] without NULLs, but the value given is VARCHAR"
        );
        assert!(Arguments::resolve("q", &declared, Values::default()).is_err());
    }
}
