//! Filters that a client hands to a function, so that rows which the query drops are not sent (protocol file 02 §8, `vgi.filters.v2`).
//!
//! A filter is a batch of one row: the first column is a JSON document, the others are the values that it refers to.

mod decode;
mod document;
mod encode;

use arrow_array::ArrayRef;

pub use decode::{decode, decode_with_join_keys};
pub use document::{ArithmeticOp, ComparisonOp};
pub use encode::encode;

/// What the encoding is called in a client's capabilities.
pub const ENCODING: &str = "vgi.filters.v2";
/// The meaning of the expressions, as a function must name it to be sent filters.
pub const SEMANTICS: &str = "vgi.duckdb.standard.v1";

/// A condition that every row of the output has to meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicate {
    /// Unique in the filter.
    pub id: String,
    /// Whether the client relies on it; otherwise it keeps a filter of its own, and a function may ignore this one.
    pub required: bool,
    /// A boolean expression over the output's columns.
    pub expression: Expression,
}

/// An expression over the output's columns.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Expression {
    /// A column of the whole output, whatever is projected.
    Column {
        /// Its position in the bound output schema.
        index: usize,
        /// Its name there, which must agree.
        name: String,
    },
    /// One value: an array of one row, which may be NULL.
    Literal(ArrayRef),
    /// A comparison.
    Comparison {
        /// Which one.
        op: ComparisonOp,
        /// The left side.
        left: Box<Expression>,
        /// The right side.
        right: Box<Expression>,
    },
    /// All hold; at least two.
    And(Vec<Expression>),
    /// One holds; at least two.
    Or(Vec<Expression>),
    /// The opposite.
    Not(Box<Expression>),
    /// Whether the value is NULL, or is not.
    IsNull {
        /// The value.
        expression: Box<Expression>,
        /// `IS NOT NULL`.
        negated: bool,
    },
    /// Whether the value is one of many.
    In {
        /// The value.
        expression: Box<Expression>,
        /// `NOT IN`.
        negated: bool,
        /// The many: an array of one element each.
        values: ArrayRef,
    },
    /// A member of a struct.
    Field {
        /// The struct.
        expression: Box<Expression>,
        /// The member's position.
        index: usize,
        /// The member's name, which must agree.
        name: String,
    },
    /// Arithmetic.
    Arithmetic {
        /// Which one.
        op: ArithmeticOp,
        /// The left side.
        left: Box<Expression>,
        /// The right side.
        right: Box<Expression>,
    },
    /// A function of the standard profile: `starts_with`, `ends_with`, `contains` or `list_contains`.
    Call {
        /// Its name.
        function: String,
        /// Its arguments.
        arguments: Vec<Expression>,
    },
}

/// Bounds that the protocol sets; a filter beyond them is not sent and not read.
mod bounds {
    /// Bytes of the JSON document.
    pub(super) const DOCUMENT: usize = 1 << 20;
    /// Bytes of the whole filter.
    pub(super) const PAYLOAD: usize = 16 << 20;
    pub(super) const DEPTH: usize = 64;
    pub(super) const NODES: usize = 10_000;
    pub(super) const PREDICATES: usize = 1024;
    pub(super) const ARGUMENTS: usize = 256;
    /// Bytes of an id.
    pub(super) const ID: usize = 128;
}

/// Names of the columns and metadata.
mod names {
    pub(super) const SPEC: &str = "filter_spec";
    pub(super) const ENCODING: &str = "vgi_filter_encoding";
    pub(super) const VERSION: &str = "vgi_filter_version";
    pub(super) const VERSION_2: &str = "2";
    pub(super) const CONTEXT: &str = "vgi_evaluation_context";
    /// No session's settings are needed to evaluate the expressions.
    pub(super) const NO_CONTEXT: &str = "vgi.none.v1";
}

#[cfg(test)]
#[allow(clippy::unnecessary_box_returns, reason = "operands of expressions are boxes")]
mod tests;
