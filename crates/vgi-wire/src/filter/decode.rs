//! Bytes to filters.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
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
    decode_with_join_keys(bytes, &[], output)
}

/// [`decode`] of a filter whose sets may stand in the join keys beside it
/// ([`InitRequest::join_keys`](crate::methods::InitRequest::join_keys)).
///
/// # Errors
/// As [`decode`], and when a set is not where the filter says.
pub fn decode_with_join_keys(
    bytes: Bytes,
    join_keys: &[Bytes],
    output: &SchemaRef,
) -> Result<Vec<Predicate>, WireError> {
    bound("bytes", bytes.len(), bounds::PAYLOAD)?;
    let values = ipc::decode_batch(bytes)?;
    let document = document(&values)?;
    bound("predicates", document.predicates.len(), bounds::PREDICATES)?;
    let mut ids = HashSet::new();
    if !document.predicates.iter().all(|predicate| predicate.revision == 0 && ids.insert(&predicate.id)) {
        return Err(WireError::protocol("the predicates of a filter must have ids of their own and revision 0"));
    }
    let mut decoder = Decoder { values, join_keys, output, nodes: 0 };
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
    for (key, wanted) in
        [(names::ENCODING, ENCODING), (names::VERSION, names::VERSION_2), (names::CONTEXT, names::NO_CONTEXT)]
    {
        let found = schema.metadata().get(key).map_or("nothing", String::as_str);
        if found != wanted {
            return Err(WireError::protocol(format!("a filter's {key} must be '{wanted}', not '{found}'")));
        }
    }
    if values.num_rows() != 1 {
        return Err(WireError::protocol("a filter must be one row"));
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
    join_keys: &'a [Bytes],
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
            Node::In { expression, negated, set } => {
                Expression::In { expression: self.below(*expression, depth)?, negated, values: self.set(set)? }
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

    fn set(&self, set: Set) -> Result<ArrayRef, WireError> {
        match set {
            Set::Literal { value_ref } => self.list(value_ref),
            Set::External { batch_index, column_index, column_name } => {
                let missing = || WireError::protocol(format!("a filter lacks its join keys '{column_name}'"));
                let keys = ipc::decode_batch(self.join_keys.get(batch_index).ok_or_else(missing)?.clone())?;
                let named = keys.schema_ref().fields().get(column_index).filter(|field| *field.name() == column_name);
                named.and_then(|_| keys.columns().get(column_index)).map(Arc::clone).ok_or_else(missing)
            }
        }
    }

    fn list(&self, reference: ValueRef) -> Result<ArrayRef, WireError> {
        let value = self.value(reference)?;
        let elements = match value.data_type() {
            _ if value.is_null(0) => None,
            DataType::List(_) => Some(value.as_list::<i32>().value(0)),
            DataType::LargeList(_) => Some(value.as_list::<i64>().value(0)),
            DataType::FixedSizeList(_, _) => Some(value.as_fixed_size_list().value(0)),
            _ => None,
        };
        elements.ok_or_else(|| WireError::protocol(format!("value {reference} of a filter must be a list")))
    }
}
