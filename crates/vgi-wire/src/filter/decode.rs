//! Bytes to filters.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use bytes::Bytes;

use super::document::{Document, DocumentPredicate, Mode, Node, Set, ValueRef};
use super::{ENCODING, Expression, Predicate, SEMANTICS, bounds, names};
use crate::WireError;
use crate::ipc;

/// Reads a filter on the output of this schema.
///
/// # Errors
/// When it is not a filter, names a column that the schema does not have, or passes a bound of the protocol.
pub fn decode(bytes: Bytes, output: &SchemaRef) -> Result<Vec<Predicate>, WireError> {
    bound("bytes", bytes.len(), bounds::PAYLOAD)?;
    let values = ipc::decode_batch(bytes)?;
    let document = document(&values)?;
    bound("predicates", document.predicates.len(), bounds::PREDICATES)?;
    let mut decoder = Decoder { values, output, nodes: 0 };
    document.predicates.into_iter().map(|predicate| decoder.predicate(predicate)).collect()
}

fn bound(what: &str, found: usize, most: usize) -> Result<(), WireError> {
    if found <= most {
        return Ok(());
    }
    Err(WireError::protocol(format!("a filter has {found} {what}, {most} are allowed")))
}

fn document(values: &RecordBatch) -> Result<Document, WireError> {
    let schema = values.schema();
    let encoding = schema.metadata().get(names::ENCODING);
    if encoding.map(String::as_str) != Some(ENCODING) || values.num_rows() != 1 {
        let found = encoding.map_or("nothing", String::as_str);
        return Err(WireError::protocol(format!("a filter must be one row encoded as {ENCODING}, not as {found}")));
    }
    let spec = values.columns().first().and_then(|column| column.as_string_opt::<i32>());
    let spec = spec.filter(|spec| spec.is_valid(0) && schema.field(0).name() == names::SPEC);
    let spec = spec.ok_or_else(|| WireError::protocol("a filter must begin with its document"))?.value(0);
    bound("bytes of its document", spec.len(), bounds::DOCUMENT)?;
    let document: Document = serde_json::from_str(spec)
        .map_err(|error| WireError::protocol(format!("a filter's document cannot be read: {error}")))?;
    if document.encoding != ENCODING || document.semantics != SEMANTICS || document.kind != "snapshot" {
        return Err(WireError::protocol("a filter's document is of a kind that is not known here"));
    }
    Ok(document)
}

struct Decoder<'a> {
    values: RecordBatch,
    output: &'a SchemaRef,
    nodes: usize,
}

impl Decoder<'_> {
    fn predicate(&mut self, predicate: DocumentPredicate) -> Result<Predicate, WireError> {
        bound("bytes in an id", predicate.id.len(), bounds::ID)?;
        Ok(Predicate {
            id: predicate.id,
            required: predicate.mode == Mode::Required,
            expression: self.expression(predicate.expression, 1)?,
        })
    }

    fn expression(&mut self, node: Node, depth: usize) -> Result<Expression, WireError> {
        self.nodes += 1;
        bound("nodes", self.nodes, bounds::NODES)?;
        bound("levels", depth, bounds::DEPTH)?;
        Ok(match node {
            Node::ColumnRef { column_index, column_name } => self.column(column_index, column_name)?,
            Node::Literal { value_ref } => Expression::Literal(self.value(value_ref)?),
            Node::Comparison { op, left, right } => {
                let (left, right) = (self.below(*left, depth)?, self.below(*right, depth)?);
                Expression::Comparison { op, left, right }
            }
            Node::And { children } => Expression::And(self.children(children, depth)?),
            Node::Or { children } => Expression::Or(self.children(children, depth)?),
            Node::Not { expression } => Expression::Not(self.below(*expression, depth)?),
            Node::IsNull { expression, negated } => {
                Expression::IsNull { expression: self.below(*expression, depth)?, negated }
            }
            Node::In { expression, negated, set: Set::Literal { value_ref } } => {
                let expression = self.below(*expression, depth)?;
                Expression::In { expression, negated, values: self.list(value_ref)? }
            }
            Node::FieldRef { expression, field_index, field_name } => {
                let expression = self.below(*expression, depth)?;
                Expression::Field { expression, index: field_index, name: field_name }
            }
            Node::Arithmetic { op, left, right } => {
                let (left, right) = (self.below(*left, depth)?, self.below(*right, depth)?);
                Expression::Arithmetic { op, left, right }
            }
            Node::Call { function, arguments } => {
                bound("arguments", arguments.len(), bounds::ARGUMENTS)?;
                let arguments = arguments.into_iter().map(|argument| self.expression(argument, depth + 1));
                Expression::Call { function, arguments: arguments.collect::<Result<_, _>>()? }
            }
        })
    }

    fn below(&mut self, node: Node, depth: usize) -> Result<Box<Expression>, WireError> {
        self.expression(node, depth + 1).map(Box::new)
    }

    fn children(&mut self, nodes: Vec<Node>, depth: usize) -> Result<Vec<Expression>, WireError> {
        if nodes.len() < 2 {
            return Err(WireError::protocol("a filter joins fewer than two conditions"));
        }
        nodes.into_iter().map(|node| self.expression(node, depth + 1)).collect()
    }

    fn column(&self, index: usize, name: String) -> Result<Expression, WireError> {
        match self.output.fields().get(index) {
            Some(field) if *field.name() == name => Ok(Expression::Column { index, name }),
            _ => Err(WireError::protocol(format!(
                "a filter is on column {index} '{name}', which the output does not have"
            ))),
        }
    }

    fn value(&self, reference: ValueRef) -> Result<ArrayRef, WireError> {
        let missing = || WireError::protocol(format!("a filter lacks its value {reference}"));
        self.values.column_by_name(&format!("value_{reference}")).map(Arc::clone).ok_or_else(missing)
    }

    fn list(&self, reference: ValueRef) -> Result<ArrayRef, WireError> {
        let value = self.value(reference)?;
        let list = value.as_list_opt::<i32>().filter(|list| list.is_valid(0));
        list.map(|list| list.value(0))
            .ok_or_else(|| WireError::protocol(format!("value {reference} of a filter must be a list")))
    }
}
