//! The JSON document of a filter. Members that are unknown or missing are errors, as the protocol demands.

use serde::{Deserialize, Serialize};

/// A comparison's operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonOp {
    /// `=`
    Eq,
    /// `<>`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `IS DISTINCT FROM`
    DistinctFrom,
    /// `IS NOT DISTINCT FROM`
    NotDistinctFrom,
}

/// An arithmetic operator. Division and modulo depend on the session's settings and are not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArithmeticOp {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    pub(super) encoding: String,
    pub(super) semantics: String,
    pub(super) kind: String,
    pub(super) predicates: Vec<DocumentPredicate>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DocumentPredicate {
    pub(super) id: String,
    pub(super) revision: u64,
    pub(super) mode: Mode,
    pub(super) source: Source,
    pub(super) expression: Node,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    Required,
    Advisory,
}

/// Where a predicate comes from.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Source {
    Query,
    Join,
    TopN,
    SplitRefinement,
    Other,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "node", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Node {
    ColumnRef { column_index: usize, column_name: String },
    FieldRef { expression: Box<Node>, field_index: usize, field_name: String },
    Literal { value_ref: ValueRef },
    Comparison { op: ComparisonOp, left: Box<Node>, right: Box<Node> },
    And { children: Vec<Node> },
    Or { children: Vec<Node> },
    Not { expression: Box<Node> },
    IsNull { expression: Box<Node>, negated: bool },
    In { expression: Box<Node>, negated: bool, set: Set },
    Arithmetic { op: ArithmeticOp, left: Box<Node>, right: Box<Node> },
    Call { function: String, arguments: Vec<Node> },
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Set {
    Literal {
        value_ref: ValueRef,
    },
    /// A column of a batch of join keys, which travels beside the filter.
    External {
        batch_index: usize,
        column_index: usize,
        column_name: String,
    },
}

/// The value in the column `value_N`.
pub(super) type ValueRef = u64;
