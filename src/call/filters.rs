//! Filters of a query that are handed to the server: built from DuckDB's expressions node by node, in postfix order.

use std::pin::Pin;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field};
use bytes::Bytes;
use vgi_wire::filter::{self, ComparisonOp, Expression, Predicate};

use super::bound::BoundCall;
use crate::bridge::ffi;
use crate::convert;
use crate::error::Error;

/// The predicates that one pass of the optimizer found.
pub struct FilterBuilder {
    call: BoundCall,
    stack: Vec<Expression>,
    predicates: Vec<Predicate>,
    texts: Vec<String>,
}

/// What is pushed to the server.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    predicates: Vec<Predicate>,
    /// As EXPLAIN shows them.
    texts: Vec<String>,
}

impl Filters {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.predicates.is_empty()
    }

    /// One line for EXPLAIN.
    pub fn text(&self) -> String {
        self.texts.join(" AND ")
    }

    /// In the protocol's encoding.
    pub fn encode(&self) -> Result<Option<Bytes>, Error> {
        if self.is_empty() { Ok(None) } else { Ok(Some(filter::encode(&self.predicates)?)) }
    }
}

impl FilterBuilder {
    /// A builder for the output of a call.
    pub fn new(call: BoundCall) -> Self {
        Self { call, stack: Vec::new(), predicates: Vec::new(), texts: Vec::new() }
    }

    /// Whether the server removes every row that a filter excludes, so that DuckDB need not.
    pub fn exact(&self) -> bool {
        self.call.function().filters_exactly_applied
    }

    /// A column of the whole output; false when its values mean more than their Arrow type says.
    pub fn column(&mut self, index: usize) -> bool {
        let Some(field) = self.call.output_schema().fields().get(index).filter(|field| is_plain(field)) else {
            return false;
        };
        self.stack.push(Expression::Column { index, name: field.name().clone() });
        true
    }

    /// One value.
    pub fn constant(&mut self, context: Pin<&mut ffi::ClientContext>, value: &ffi::Value) -> Result<(), Error> {
        let (_, array) = convert::value_array(context, "value", value)?;
        self.stack.push(Expression::Literal(array));
        Ok(())
    }

    /// A comparison of the two expressions on top; false when the server would have to cast to compare them.
    pub fn comparison(&mut self, op: &str) -> bool {
        let op = match op {
            "=" => ComparisonOp::Eq,
            "!=" => ComparisonOp::Ne,
            "<" => ComparisonOp::Lt,
            "<=" => ComparisonOp::Le,
            ">" => ComparisonOp::Gt,
            ">=" => ComparisonOp::Ge,
            "IS DISTINCT FROM" => ComparisonOp::DistinctFrom,
            "IS NOT DISTINCT FROM" => ComparisonOp::NotDistinctFrom,
            _ => return false,
        };
        let (Some(right), Some(left)) = (self.stack.pop(), self.stack.pop()) else { return false };
        if !self.comparable(&left, &right) {
            return false;
        }
        self.stack.push(Expression::Comparison { op, left: Box::new(left), right: Box::new(right) });
        true
    }

    fn comparable(&self, left: &Expression, right: &Expression) -> bool {
        let data_type = |expression: &Expression| match expression {
            Expression::Column { index, .. } => {
                self.call.output_schema().fields().get(*index).map(|field| field.data_type().clone())
            }
            Expression::Literal(value) => Some(value.data_type().clone()),
            _ => None,
        };
        match (data_type(left), data_type(right)) {
            (Some(left), Some(right)) => left == right,
            _ => false,
        }
    }

    /// All or one of the conditions on top.
    pub fn conjunction(&mut self, all: bool, count: usize) -> bool {
        let Some(children) = self.take(count).filter(|children| children.len() > 1) else { return false };
        self.stack.push(if all { Expression::And(children) } else { Expression::Or(children) });
        true
    }

    /// The opposite of the condition on top.
    pub fn negation(&mut self) -> bool {
        let Some(expression) = self.stack.pop() else { return false };
        self.stack.push(Expression::Not(Box::new(expression)));
        true
    }

    /// Whether the expression on top is NULL, or is not.
    pub fn null_test(&mut self, negated: bool) -> bool {
        let Some(expression) = self.stack.pop() else { return false };
        self.stack.push(Expression::IsNull { expression: Box::new(expression), negated });
        true
    }

    /// Whether an expression is among the values above it.
    pub fn among(&mut self, count: usize, negated: bool) -> bool {
        let Some(values) = self.take(count) else { return false };
        let Some(expression) = self.stack.pop() else { return false };
        if values.is_empty() || !values.iter().all(|value| self.comparable(&expression, value)) {
            return false;
        }
        let arrays: Option<Vec<ArrayRef>> = values
            .into_iter()
            .map(|value| if let Expression::Literal(array) = value { Some(array) } else { None })
            .collect();
        let Some(arrays) = arrays else { return false };
        let Ok(values) = arrow_select::concat::concat(&arrays.iter().map(AsRef::as_ref).collect::<Vec<_>>()) else {
            return false;
        };
        self.stack.push(Expression::In { expression: Box::new(expression), negated, values });
        true
    }

    /// A test of one text by another.
    pub fn text_test(&mut self, function: &str) -> bool {
        let (Some(part), Some(text)) = (self.stack.pop(), self.stack.pop()) else { return false };
        if !self.comparable(&text, &part) {
            return false;
        }
        self.stack.push(Expression::Call { function: function.to_owned(), arguments: vec![text, part] });
        true
    }

    fn take(&mut self, count: usize) -> Option<Vec<Expression>> {
        self.stack.len().checked_sub(count).map(|start| self.stack.split_off(start))
    }

    /// Takes the expression on the stack as a predicate, when it was `written` as a whole; `text` is how SQL writes it. Whether it was
    /// taken.
    pub fn finish_predicate(&mut self, written: bool, text: &str) -> bool {
        let expression = self.stack.pop().filter(|_| written && self.stack.is_empty());
        self.stack.clear();
        let Some(expression) = expression else { return false };
        let id = format!("p{}", self.call.filters().predicates.len() + self.predicates.len());
        self.predicates.push(Predicate { id, required: self.exact(), expression });
        self.texts.push(text.to_owned());
        true
    }

    /// Whether the protocol has room for all of them.
    pub fn fits(&self) -> bool {
        self.all().encode().is_ok()
    }

    /// The optimizer may push several times: a filter that DuckDB keeps comes again and replaces itself, one that it gave away does not
    /// and stays.
    fn all(&self) -> Filters {
        let mut filters = if self.exact() { self.call.filters().clone() } else { Filters::default() };
        filters.predicates.extend(self.predicates.iter().cloned());
        filters.texts.extend(self.texts.iter().cloned());
        filters
    }

    /// The call with these filters.
    pub fn finish(&self) -> BoundCall {
        self.call.with_filters(Arc::new(self.all()))
    }
}

/// Whether servers compare the values of a column as DuckDB does: not so those that are numbers only to DuckDB, such as HUGEINT and
/// UUID, which travel as bytes.
fn is_plain(field: &Field) -> bool {
    let data_type = field.data_type();
    let plain = data_type.is_primitive()
        || matches!(
            data_type,
            DataType::Boolean | DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary
        );
    plain && !matches!(data_type, DataType::Interval(_)) && !field.metadata().contains_key("ARROW:extension:name")
}
