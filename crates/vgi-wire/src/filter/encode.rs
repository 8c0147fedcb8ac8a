//! Filters to bytes.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray, RecordBatch, StringArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;

use super::document::{Document, DocumentPredicate, Mode, Node, Set, Source, ValueRef};
use super::{ENCODING, Expression, Predicate, SEMANTICS, bounds, names};
use crate::WireError;
use crate::ipc;

/// Encodes the predicates that a query puts on a function's output.
///
/// # Errors
/// [`WireError::TooLarge`] when they pass a bound of the protocol: the filter is then better left out. [`WireError::Protocol`] for a
/// conjunction or disjunction of fewer than two conditions, which servers refuse.
pub fn encode(predicates: &[Predicate]) -> Result<Bytes, WireError> {
    let mut encoder = Encoder::default();
    let predicates: Result<Vec<_>, WireError> =
        predicates.iter().map(|predicate| encoder.predicate(predicate)).collect();
    let document = Document {
        encoding: ENCODING.to_owned(),
        semantics: SEMANTICS.to_owned(),
        kind: "snapshot".to_owned(),
        predicates: predicates?,
    };
    bound("predicates", document.predicates.len(), bounds::PREDICATES)?;
    let document = serde_json::to_string(&document).map_err(WireError::corrupt)?;
    bound("bytes of its document", document.len(), bounds::DOCUMENT)?;
    let bytes = ipc::encode_stream(&encoder.batch(document)?, &[])?;
    bound("bytes", bytes.len(), bounds::PAYLOAD)?;
    Ok(bytes.to_bytes())
}

fn bound(what: &str, found: usize, most: usize) -> Result<(), WireError> {
    if found <= most {
        return Ok(());
    }
    Err(WireError::TooLarge(format!("the filter has {found} {what}, the protocol allows {most}")))
}

#[derive(Default)]
struct Encoder {
    values: Vec<ArrayRef>,
    nodes: usize,
}

impl Encoder {
    fn predicate(&mut self, predicate: &Predicate) -> Result<DocumentPredicate, WireError> {
        bound("bytes in an id", predicate.id.len(), bounds::ID)?;
        Ok(DocumentPredicate {
            id: predicate.id.clone(),
            revision: 0,
            mode: if predicate.required { Mode::Required } else { Mode::Advisory },
            source: Source::Query,
            expression: self.node(&predicate.expression, 1)?,
        })
    }

    fn node(&mut self, expression: &Expression, depth: usize) -> Result<Node, WireError> {
        self.nodes += 1;
        bound("nodes", self.nodes, bounds::NODES)?;
        bound("levels", depth, bounds::DEPTH)?;
        if matches!(expression, Expression::And(children) | Expression::Or(children) if children.len() < 2) {
            return Err(WireError::protocol("a filter joins fewer than two conditions"));
        }
        let mut below = |expression: &Expression| self.node(expression, depth + 1);
        Ok(match expression {
            Expression::Column { index, name } => Node::ColumnRef { column_index: *index, column_name: name.clone() },
            Expression::Literal(value) => Node::Literal { value_ref: self.value(Arc::clone(value)) },
            Expression::Comparison { op, left, right } => {
                Node::Comparison { op: *op, left: Box::new(below(left)?), right: Box::new(below(right)?) }
            }
            Expression::And(children) => Node::And { children: children.iter().map(below).collect::<Result<_, _>>()? },
            Expression::Or(children) => Node::Or { children: children.iter().map(below).collect::<Result<_, _>>()? },
            Expression::Not(expression) => Node::Not { expression: Box::new(below(expression)?) },
            Expression::IsNull { expression, negated } => {
                Node::IsNull { expression: Box::new(below(expression)?), negated: *negated }
            }
            Expression::In { expression, negated, values } => {
                let expression = Box::new(below(expression)?);
                Node::In { expression, negated: *negated, set: Set::Literal { value_ref: self.list(values)? } }
            }
            Expression::Field { expression, index, name } => Node::FieldRef {
                expression: Box::new(below(expression)?),
                field_index: *index,
                field_name: name.clone(),
            },
            Expression::Arithmetic { op, left, right } => {
                Node::Arithmetic { op: *op, left: Box::new(below(left)?), right: Box::new(below(right)?) }
            }
            Expression::Call { function, arguments } => {
                bound("arguments", arguments.len(), bounds::ARGUMENTS)?;
                let arguments = arguments.iter().map(below).collect::<Result<_, _>>()?;
                Node::Call { function: function.clone(), arguments }
            }
        })
    }

    fn value(&mut self, value: ArrayRef) -> ValueRef {
        self.values.push(value);
        ValueRef::try_from(self.values.len() - 1).unwrap_or(ValueRef::MAX)
    }

    /// Many values as the one row of a list.
    fn list(&mut self, values: &ArrayRef) -> Result<ValueRef, WireError> {
        let item = Arc::new(Field::new("item", values.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths([values.len()]);
        let list = ListArray::try_new(item, offsets, Arc::clone(values), None).map_err(WireError::Encode)?;
        Ok(self.value(Arc::new(list)))
    }

    fn batch(self, document: String) -> Result<RecordBatch, WireError> {
        let mut fields = vec![Field::new(names::SPEC, DataType::Utf8, false)];
        let mut columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from(vec![document]))];
        for (index, value) in self.values.into_iter().enumerate() {
            fields.push(Field::new(format!("value_{index}"), value.data_type().clone(), true));
            columns.push(value);
        }
        let metadata =
            [(names::ENCODING, ENCODING), (names::VERSION, names::VERSION_2), (names::CONTEXT, names::NO_CONTEXT)];
        let metadata: HashMap<_, _> =
            metadata.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let schema = Schema::new_with_metadata(fields, metadata);
        RecordBatch::try_new(Arc::new(schema), columns).map_err(WireError::Encode)
    }
}
