//! What values must meet beyond their type: choices, a range, a pattern.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Bound, RangeBounds};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_cast::display::array_value_to_string;
use arrow_schema::DataType;
use regex::Regex;
use serde_json::Value;

use crate::args::{DefaultValue, sql_type};

/// The rules of one argument. Each value of one that repeats, and each item of a list, must meet them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) choices: Option<Vec<DefaultValue>>,
    pub(crate) range: Option<Interval>,
    pub(crate) pattern: Option<Pattern>,
}

/// A regular expression that must match a whole text.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    compiled: Result<Regex, regex::Error>,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), compiled: Regex::new(&format!("^(?:{text})$")) }
    }
}

/// A range of numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Interval {
    start: Bound<DefaultValue>,
    end: Bound<DefaultValue>,
}

impl Interval {
    pub(crate) fn new<T: Clone + Into<DefaultValue>>(range: &impl RangeBounds<T>) -> Self {
        let bound = |bound: Bound<&T>| bound.map(|value| value.clone().into());
        Self { start: bound(range.start_bound()), end: bound(range.end_bound()) }
    }

    /// With the beginning of another one where it has none of its own.
    pub(crate) fn beginning_as(mut self, other: Option<Self>) -> Self {
        if let (Bound::Unbounded, Some(other)) = (&self.start, other) {
            self.start = other.start;
        }
        self
    }

    fn contains(&self, number: Number) -> bool {
        let compared = |bound: &DefaultValue| Some(number.compare(Number::of_default(bound)?));
        let above = match &self.start {
            Bound::Unbounded => true,
            Bound::Included(start) => matches!(compared(start), Some(Some(Ordering::Greater | Ordering::Equal))),
            Bound::Excluded(start) => matches!(compared(start), Some(Some(Ordering::Greater))),
        };
        let below = match &self.end {
            Bound::Unbounded => true,
            Bound::Included(end) => matches!(compared(end), Some(Some(Ordering::Less | Ordering::Equal))),
            Bound::Excluded(end) => matches!(compared(end), Some(Some(Ordering::Less))),
        };
        // NaN is in no range
        above && below && number.compare(number).is_some()
    }

    /// Why nothing could be in it.
    fn flaw(&self) -> Option<String> {
        let numbers = [&self.start, &self.end].map(|bound| match bound {
            Bound::Included(value) | Bound::Excluded(value) => Some((value, Number::of_default(value))),
            Bound::Unbounded => None,
        });
        if let Some((value, _)) = numbers.iter().flatten().find(|(_, number)| number.is_none()) {
            return Some(format!("the bound {value} is no number"));
        }
        let [Some((_, Some(start))), Some((_, Some(end)))] = numbers else { return None };
        let closed = matches!((&self.start, &self.end), (Bound::Included(_), Bound::Included(_)));
        let holds = match start.compare(end) {
            Some(Ordering::Less) => true,
            Some(Ordering::Equal) => closed,
            _ => false,
        };
        (!holds).then(|| format!("the range {self} is empty"))
    }

    /// In words.
    fn words(&self) -> String {
        match (&self.start, &self.end) {
            (Bound::Unbounded, Bound::Unbounded) => "a number".to_owned(),
            (Bound::Included(start), Bound::Unbounded) => format!("at least {start}"),
            (Bound::Excluded(start), Bound::Unbounded) => format!("more than {start}"),
            (Bound::Unbounded, Bound::Included(end)) => format!("at most {end}"),
            (Bound::Unbounded, Bound::Excluded(end)) => format!("less than {end}"),
            (Bound::Included(start), Bound::Included(end)) => format!("from {start} to {end}"),
            _ => format!("in {self}"),
        }
    }
}

/// As the protocol writes intervals: `[0, 100]`, `(0, )`.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.start {
            Bound::Included(start) => write!(f, "[{start}, ")?,
            Bound::Excluded(start) => write!(f, "({start}, ")?,
            Bound::Unbounded => f.write_str("(, ")?,
        }
        match &self.end {
            Bound::Included(end) => write!(f, "{end}]"),
            Bound::Excluded(end) => write!(f, "{end})"),
            Bound::Unbounded => f.write_str(")"),
        }
    }
}

/// A number that compares exactly with others where both are integers.
#[derive(Clone, Copy, Debug)]
enum Number {
    Integer(i128),
    Double(f64),
}

impl Number {
    fn of_default(value: &DefaultValue) -> Option<Self> {
        match value {
            DefaultValue::Integer(value) => Some(Self::Integer(i128::from(*value))),
            DefaultValue::Double(value) => Some(Self::Double(*value)),
            _ => None,
        }
    }

    fn of_array(value: &ArrayRef) -> Option<Self> {
        if let Some(unsigned) = value.as_primitive_opt::<UInt64Type>() {
            return unsigned.iter().next()?.map(|value| Self::Integer(i128::from(value)));
        }
        if value.data_type().is_integer() {
            let integers = cast(value, &DataType::Int64).ok()?;
            return integers
                .as_primitive_opt::<Int64Type>()?
                .iter()
                .next()?
                .map(|value| Self::Integer(i128::from(value)));
        }
        if !value.data_type().is_numeric() {
            return None;
        }
        let doubles = cast(value, &DataType::Float64).ok()?;
        doubles.as_primitive_opt::<Float64Type>()?.iter().next()?.map(Self::Double)
    }

    fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => Some(one.cmp(&other)),
            (one, other) => one.double().partial_cmp(&other.double()),
        }
    }

    fn double(self) -> f64 {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "it is compared with a double, which is no more exact")]
            Self::Integer(value) => value as f64,
            Self::Double(value) => value,
        }
    }
}

impl Rules {
    /// What is wrong with a value, as the end of a sentence that begins with the argument's name.
    pub(crate) fn violation(&self, value: &ArrayRef) -> Option<String> {
        if self.choices.is_none() && self.range.is_none() && self.pattern.is_none() {
            return None;
        }
        if let Some(items) = items(value) {
            return (0..items.len()).find_map(|row| self.violation(&items.slice(row, 1)));
        }
        if value.is_empty() || value.is_null(0) {
            return None;
        }
        if let Some(choices) = &self.choices
            && !choices.iter().any(|choice| equal(choice, value))
        {
            let choices: Vec<_> = choices.iter().map(ToString::to_string).collect();
            return Some(format!("must be one of {}, not {}", choices.join(", "), shown(value)));
        }
        if let Some(range) = &self.range
            && !Number::of_array(value).is_some_and(|number| range.contains(number))
        {
            return Some(format!("must be {}, not {}", range.words(), shown(value)));
        }
        match &self.pattern {
            Some(Pattern { text, compiled: Ok(compiled) })
                if !texts(value).is_some_and(|value| compiled.is_match(&value)) =>
            {
                Some(format!("must match the pattern {text}, not {}", shown(value)))
            }
            _ => None,
        }
    }

    /// Why an argument of this type could not be given at all.
    pub(crate) fn flaw(&self, data_type: Option<&DataType>) -> Option<String> {
        let item = data_type.map(|data_type| match data_type {
            DataType::List(item) => item.data_type(),
            other => other,
        });
        if let Some(choices) = &self.choices {
            if choices.is_empty() {
                return Some("has no choice".to_owned());
            }
            if let Some(unfit) = choices.iter().find(|choice| choice.array_of(item).is_none()) {
                return Some(format!(
                    "has the choice {unfit}, which is not {}",
                    item.map(sql_type).unwrap_or_default()
                ));
            }
        }
        if let Some(range) = &self.range {
            if item.is_some_and(|item| !item.is_numeric()) {
                return Some("has a range, but is no number".to_owned());
            }
            if let Some(flaw) = range.flaw() {
                return Some(format!("has a range that nothing is in: {flaw}"));
            }
        }
        if let Some(pattern) = &self.pattern {
            if item.is_some_and(|item| *item != DataType::Utf8) {
                return Some("has a pattern, but is no text".to_owned());
            }
            if let Err(error) = &pattern.compiled {
                return Some(format!("has a pattern that cannot be read: {error}"));
            }
        }
        None
    }

    /// What the declaration tells clients.
    pub(crate) fn metadata(&self) -> impl Iterator<Item = (&'static str, String)> {
        let choices =
            self.choices.as_ref().map(|choices| Value::Array(choices.iter().map(DefaultValue::json).collect()));
        let all = [
            ("vgi_choices", choices.map(|choices| choices.to_string())),
            ("vgi_range", self.range.as_ref().map(ToString::to_string)),
            ("vgi_pattern", self.pattern.as_ref().map(|pattern| pattern.text.clone())),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key, value?)))
    }
}

/// The items of a list of any layout; none of a NULL.
fn items(value: &ArrayRef) -> Option<ArrayRef> {
    let none = || value.slice(0, 0);
    match value.data_type() {
        DataType::List(_) => Some(value.as_list::<i32>().iter().next().flatten().unwrap_or_else(none)),
        DataType::LargeList(_) => Some(value.as_list::<i64>().iter().next().flatten().unwrap_or_else(none)),
        DataType::FixedSizeList(..) => Some(value.as_fixed_size_list().iter().next().flatten().unwrap_or_else(none)),
        _ => None,
    }
}

fn equal(choice: &DefaultValue, value: &ArrayRef) -> bool {
    match choice {
        DefaultValue::Bool(choice) => value.as_boolean_opt().is_some_and(|value| value.value(0) == *choice),
        DefaultValue::Text(choice) => texts(value).is_some_and(|value| value == *choice),
        number => match (Number::of_default(number), Number::of_array(value)) {
            (Some(number), Some(value)) => number.compare(value) == Some(Ordering::Equal),
            _ => false,
        },
    }
}

fn texts(value: &ArrayRef) -> Option<String> {
    let is_text = matches!(value.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    is_text.then(|| array_value_to_string(value, 0).ok()).flatten()
}

/// A value as SQL writes it; not more of a text than a message can carry.
fn shown(value: &ArrayRef) -> String {
    match texts(value) {
        Some(text) if text.chars().count() > 100 => {
            format!("'{}…'", text.chars().take(100).collect::<String>().replace('\'', "''"))
        }
        Some(text) => format!("'{}'", text.replace('\'', "''")),
        None => array_value_to_string(value, 0).unwrap_or_else(|_| sql_type(value.data_type())),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int64Type;
    use arrow_array::{
        BooleanArray, Decimal128Array, FixedSizeListArray, Float64Array, Int64Array, ListArray, StringArray,
        UInt64Array,
    };

    use super::*;

    fn int(value: i64) -> ArrayRef {
        Arc::new(Int64Array::from(vec![value]))
    }

    fn double(value: f64) -> ArrayRef {
        Arc::new(Float64Array::from(vec![value]))
    }

    fn text(value: &str) -> ArrayRef {
        Arc::new(StringArray::from(vec![value]))
    }

    fn ranged<T: Clone + Into<DefaultValue>>(range: impl RangeBounds<T>) -> Rules {
        Rules { range: Some(Interval::new(&range)), ..Rules::default() }
    }

    #[test]
    fn ranges_compare_integers_exactly_and_know_no_nan() {
        let rules = ranged(0..=9_007_199_254_740_992_i64);
        assert_eq!(rules.violation(&int(9_007_199_254_740_992)), None);
        assert_eq!(
            rules.violation(&int(9_007_199_254_740_993)).unwrap(),
            "must be from 0 to 9007199254740992, not 9007199254740993"
        );
        assert!(rules.violation(&(Arc::new(UInt64Array::from(vec![u64::MAX])) as ArrayRef)).is_some());
        assert_eq!(ranged(1..).violation(&int(0)).unwrap(), "must be at least 1, not 0");
        assert_eq!(ranged(..1.5).violation(&double(1.5)).unwrap(), "must be less than 1.5, not 1.5");
        assert_eq!(ranged(0..3).violation(&int(3)).unwrap(), "must be in [0, 3), not 3");
        assert_eq!(ranged(0.0..).violation(&double(f64::INFINITY)), None);
        assert!(ranged(0.0..).violation(&double(f64::NAN)).is_some());
        assert!(ranged::<f64>(..).violation(&double(f64::NAN)).is_some());
        let decimal = Decimal128Array::from(vec![150]).with_precision_and_scale(3, 2).unwrap();
        assert_eq!(ranged(0..=1).violation(&(Arc::new(decimal) as ArrayRef)).unwrap(), "must be from 0 to 1, not 1.50");
        assert!(ranged(0..=1).violation(&text("0")).is_some());
    }

    #[test]
    fn choices_are_compared_by_value() {
        let choices = |choices: Vec<DefaultValue>| Rules { choices: Some(choices), ..Rules::default() };
        let words = choices(vec!["a".into(), "it's".into()]);
        assert_eq!(words.violation(&text("it's")), None);
        assert_eq!(words.violation(&text("A")).unwrap(), "must be one of 'a', 'it''s', not 'A'");
        let long = "x".repeat(200);
        assert!(words.violation(&text(&long)).unwrap().ends_with(&format!("not '{}…'", "x".repeat(100))));
        assert_eq!(choices(vec![1.into(), 2.into()]).violation(&double(2.0)), None);
        let yes: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
        assert_eq!(choices(vec![false.into()]).violation(&yes).unwrap(), "must be one of false, not true");
    }

    #[test]
    fn a_pattern_matches_the_whole_text_and_every_item_of_a_list() {
        let rules = Rules { pattern: Some(Pattern::new("a|b+")), ..Rules::default() };
        assert_eq!(rules.violation(&text("bbb")), None);
        assert_eq!(rules.violation(&text("ab")).unwrap(), "must match the pattern a|b+, not 'ab'");
        let list: ArrayRef =
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(vec![Some(vec![Some(1), None, Some(7)])]));
        assert_eq!(ranged(0..=5).violation(&list).unwrap(), "must be from 0 to 5, not 7");
        let fixed: ArrayRef =
            Arc::new(FixedSizeListArray::from_iter_primitive::<Int64Type, _, _>(vec![Some(vec![Some(1), Some(6)])], 2));
        assert_eq!(ranged(0..=5).violation(&fixed).unwrap(), "must be from 0 to 5, not 6");
        assert_eq!(ranged(0..=6).violation(&fixed), None);
    }

    #[test]
    fn rules_that_nothing_can_meet_are_flaws() {
        let double = Some(&DataType::Float64);
        let text = Some(&DataType::Utf8);
        let choices = |choices: Vec<DefaultValue>| Rules { choices: Some(choices), ..Rules::default() };
        for (rules, data_type, flaw) in [
            (ranged((Bound::Included(3), Bound::Included(2))), double, "the range [3, 2] is empty"),
            (ranged(2..2), double, "the range [2, 2) is empty"),
            (ranged(f64::NAN..), double, ""),
            (ranged(0..=1), text, "is no number"),
            (ranged("a"..), double, "the bound 'a' is no number"),
            (choices(vec![]), text, "has no choice"),
            (choices(vec![1.into()]), text, "has the choice 1, which is not VARCHAR"),
            (Rules { pattern: Some(Pattern::new("(")), ..Rules::default() }, text, "cannot be read"),
            (Rules { pattern: Some(Pattern::new("a")), ..Rules::default() }, double, "is no text"),
        ] {
            match rules.flaw(data_type) {
                Some(found) => assert!(found.contains(flaw), "{found}"),
                None => assert!(flaw.is_empty(), "{rules:?}"),
            }
        }
        assert_eq!(ranged(2..=2).flaw(double), None);
    }
}
