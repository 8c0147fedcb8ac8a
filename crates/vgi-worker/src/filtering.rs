//! Applies the filters of a client to what a function emits, by DuckDB's rules: NULL is not true, NaN is a number like any other and the
//! greatest one, and the two zeros are equal.

use std::sync::Arc;

use arrow_arith::boolean::{and_kleene, is_not_null, is_null, not, or_kleene};
use arrow_arith::numeric;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Datum, RecordBatch, Scalar};
use arrow_ord::cmp;
use arrow_schema::DataType;
use vgi_wire::filter::{ArithmeticOp, ComparisonOp, Expression, Predicate};

use crate::error::{Error, Result};

/// The rows of a batch that meet every predicate. `places` says where in the batch a column of the whole output is.
///
/// # Errors
/// When a predicate cannot be evaluated on this batch. Leaving it out would send rows that the client relies on not getting.
pub(crate) fn apply(
    batch: &RecordBatch,
    predicates: &[Predicate],
    places: &dyn Fn(usize) -> Option<usize>,
) -> Result<RecordBatch> {
    let mut mask: Option<BooleanArray> = None;
    for predicate in predicates {
        let met = evaluate(&predicate.expression, batch, places)?.into_mask(batch.num_rows())?;
        mask = Some(match mask {
            Some(mask) => and_kleene(&mask, &met)?,
            None => met,
        });
    }
    let Some(mask) = mask else { return Ok(batch.clone()) };
    // NULL counts as false
    Ok(arrow_select::filter::filter_record_batch(batch, &mask)?)
}

/// A column, or one value for all rows.
enum Operand {
    Column(ArrayRef),
    Value(Scalar<ArrayRef>),
}

impl Operand {
    fn datum(&self) -> &dyn Datum {
        match self {
            Self::Column(column) => column,
            Self::Value(value) => value,
        }
    }

    fn array(&self) -> &dyn Array {
        self.datum().get().0
    }

    fn into_mask(self, rows: usize) -> Result<BooleanArray> {
        let array = self.array();
        let mask = array.as_boolean_opt().ok_or_else(|| refuse("is not boolean"))?;
        if matches!(self, Self::Column(_)) {
            return Ok(mask.clone());
        }
        let value = mask.is_valid(0).then(|| mask.value(0));
        Ok((0..rows).map(|_| value).collect())
    }
}

fn refuse(what: &str) -> Error {
    Error::Protocol(format!("a filter {what}"))
}

fn evaluate(expression: &Expression, batch: &RecordBatch, places: &dyn Fn(usize) -> Option<usize>) -> Result<Operand> {
    let operand = |expression: &Expression| evaluate(expression, batch, places);
    let mask = |expression: &Expression| operand(expression)?.into_mask(batch.num_rows());
    let column = |mask: BooleanArray| Operand::Column(Arc::new(mask) as ArrayRef);
    Ok(match expression {
        Expression::Column { index, name } => {
            let column = places(*index).and_then(|place| batch.columns().get(place));
            Operand::Column(normal(
                column.ok_or_else(|| refuse(&format!("needs the column '{name}', which was not emitted")))?,
            ))
        }
        Expression::Literal(value) => Operand::Value(Scalar::new(normal(value))),
        Expression::Comparison { op, left, right } => {
            let (left, right) = (operand(left)?, operand(right)?);
            column(expand(compare(*op, left.datum(), right.datum())?, &left, &right, batch.num_rows()))
        }
        Expression::And(children) => column(join(children, mask, and_kleene)?),
        Expression::Or(children) => column(join(children, mask, or_kleene)?),
        Expression::Not(expression) => column(not(&mask(expression)?)?),
        Expression::IsNull { expression, negated } => {
            let operand = operand(expression)?;
            let result = if *negated { is_not_null(operand.array())? } else { is_null(operand.array())? };
            match operand {
                Operand::Column(_) => column(result),
                Operand::Value(_) => Operand::Value(Scalar::new(Arc::new(result))),
            }
        }
        Expression::In { expression, negated, values } => {
            let operand = operand(expression)?;
            let found = among(&operand, values, batch.num_rows())?;
            column(if *negated { not(&found)? } else { found })
        }
        Expression::Arithmetic { op, left, right } => {
            let (left, right) = (operand(left)?, operand(right)?);
            let (l, r) = (left.datum(), right.datum());
            let result = match op {
                ArithmeticOp::Add => numeric::add(l, r)?,
                ArithmeticOp::Subtract => numeric::sub(l, r)?,
                ArithmeticOp::Multiply => numeric::mul(l, r)?,
            };
            match (&left, &right) {
                (Operand::Value(_), Operand::Value(_)) => Operand::Value(Scalar::new(result)),
                _ => Operand::Column(result),
            }
        }
        Expression::Call { function, arguments } => {
            let [text, part] = arguments.as_slice() else { return Err(refuse(&format!("calls {function} wrongly"))) };
            let (text, part) = (operand(text)?, operand(part)?);
            let result = match function.as_str() {
                "starts_with" => arrow_string::like::starts_with(text.datum(), part.datum())?,
                "ends_with" => arrow_string::like::ends_with(text.datum(), part.datum())?,
                "contains" => arrow_string::like::contains(text.datum(), part.datum())?,
                _ => return Err(refuse(&format!("calls {function}, which is not known"))),
            };
            column(expand(result, &text, &part, batch.num_rows()))
        }
        _ => return Err(refuse("has an expression that is not known")),
    })
}

/// A result of two single values holds for every row.
fn expand(result: BooleanArray, left: &Operand, right: &Operand, rows: usize) -> BooleanArray {
    match (left, right) {
        (Operand::Value(_), Operand::Value(_)) => {
            let value = result.is_valid(0).then(|| result.value(0));
            (0..rows).map(|_| value).collect()
        }
        _ => result,
    }
}

fn compare(op: ComparisonOp, left: &dyn Datum, right: &dyn Datum) -> Result<BooleanArray> {
    Ok(match op {
        ComparisonOp::Eq => cmp::eq(left, right)?,
        ComparisonOp::Ne => cmp::neq(left, right)?,
        ComparisonOp::Lt => cmp::lt(left, right)?,
        ComparisonOp::Le => cmp::lt_eq(left, right)?,
        ComparisonOp::Gt => cmp::gt(left, right)?,
        ComparisonOp::Ge => cmp::gt_eq(left, right)?,
        ComparisonOp::DistinctFrom => cmp::distinct(left, right)?,
        ComparisonOp::NotDistinctFrom => cmp::not_distinct(left, right)?,
    })
}

fn join(
    children: &[Expression],
    mask: impl Fn(&Expression) -> Result<BooleanArray>,
    op: impl Fn(&BooleanArray, &BooleanArray) -> std::result::Result<BooleanArray, arrow_schema::ArrowError>,
) -> Result<BooleanArray> {
    let mut masks = children.iter().map(mask);
    let first = masks.next().ok_or_else(|| refuse("joins no conditions"))??;
    masks.try_fold(first, |joined, mask| Ok(op(&joined, &mask?)?))
}

/// Equal to one of the values; NULL when it is equal to none but one of them is NULL.
fn among(operand: &Operand, values: &ArrayRef, rows: usize) -> Result<BooleanArray> {
    let values = normal(values);
    let mut found: BooleanArray = (0..rows).map(|_| Some(false)).collect();
    for index in 0..values.len() {
        let value = Operand::Value(Scalar::new(values.slice(index, 1)));
        let equal = expand(cmp::eq(operand.datum(), value.datum())?, operand, &value, rows);
        found = or_kleene(&found, &equal)?;
    }
    Ok(found)
}

/// The kernels order floating-point numbers by their bits; DuckDB knows one NaN and one zero.
fn normal(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => Arc::new(
            array
                .as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(|x| if x.is_nan() { f32::NAN } else { x + 0.0 }),
        ),
        DataType::Float64 => Arc::new(
            array
                .as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(|x| if x.is_nan() { f64::NAN } else { x + 0.0 }),
        ),
        _ => Arc::clone(array),
    }
}

#[cfg(test)]
#[allow(clippy::unnecessary_box_returns, reason = "operands of expressions are boxes")]
mod tests {
    use arrow_array::types::Int64Type;
    use arrow_array::{Float64Array, Int64Array, StringArray};

    use super::*;
    use crate::functions::harness::batch_of;

    fn column(index: usize) -> Box<Expression> {
        Box::new(Expression::Column { index, name: format!("c{index}") })
    }

    fn literal(array: impl Array + 'static) -> Box<Expression> {
        Box::new(Expression::Literal(Arc::new(array)))
    }

    /// The numbers of the rows that stay.
    fn kept(expression: Expression) -> Vec<i64> {
        let batch = batch_of(vec![
            ("c0", Arc::new(Int64Array::from(vec![Some(0), Some(1), None, Some(3)])) as ArrayRef),
            ("c1", Arc::new(Float64Array::from(vec![-0.0, -f64::NAN, 1.0, f64::INFINITY]))),
            ("c2", Arc::new(StringArray::from(vec![Some("abc"), Some("b"), Some("ab"), None]))),
            ("row", Arc::new(Int64Array::from(vec![0, 1, 2, 3]))),
        ]);
        let predicate = Predicate { id: "p".to_owned(), required: true, expression };
        let batch = apply(&batch, &[predicate], &Some).unwrap();
        batch.column(3).as_primitive::<Int64Type>().values().to_vec()
    }

    fn comparison(op: ComparisonOp, left: Box<Expression>, right: Box<Expression>) -> Expression {
        Expression::Comparison { op, left, right }
    }

    #[test]
    fn null_is_not_true() {
        let one = || literal(Int64Array::from(vec![1]));
        assert_eq!(kept(comparison(ComparisonOp::Ge, column(0), one())), [1, 3]);
        assert_eq!(kept(Expression::Not(Box::new(comparison(ComparisonOp::Ge, column(0), one())))), [0]);
        assert_eq!(kept(comparison(ComparisonOp::DistinctFrom, column(0), one())), [0, 2, 3]);
        assert_eq!(kept(Expression::IsNull { expression: column(0), negated: false }), [2]);
        let null = literal(Int64Array::from(vec![None]));
        assert_eq!(kept(comparison(ComparisonOp::Eq, column(0), null)), [0i64; 0]);
        assert_eq!(kept(comparison(ComparisonOp::Lt, one(), one())), [0i64; 0]);
    }

    #[test]
    fn floating_point_numbers_are_duckdbs() {
        let number = |value| literal(Float64Array::from(vec![value]));
        assert_eq!(kept(comparison(ComparisonOp::Eq, column(1), number(0.0))), [0]);
        assert_eq!(kept(comparison(ComparisonOp::Eq, column(1), number(f64::NAN))), [1]);
        assert_eq!(kept(comparison(ComparisonOp::Gt, column(1), number(1.0))), [1, 3]);
    }

    #[test]
    fn conditions_are_joined_and_lists_searched() {
        let among = |values: Vec<Option<i64>>, negated| Expression::In {
            expression: column(0),
            negated,
            values: Arc::new(Int64Array::from(values)),
        };
        assert_eq!(kept(among(vec![Some(0), Some(3)], false)), [0, 3]);
        assert_eq!(kept(among(vec![Some(0), None], false)), [0]);
        assert_eq!(kept(among(vec![Some(0), None], true)), [0i64; 0]);
        assert_eq!(kept(among(vec![Some(0)], true)), [1, 3]);
        let starts = Expression::Call {
            function: "starts_with".to_owned(),
            arguments: vec![*column(2), *literal(StringArray::from(vec!["ab"]))],
        };
        assert_eq!(kept(starts.clone()), [0, 2]);
        assert_eq!(kept(Expression::And(vec![starts.clone(), among(vec![Some(0)], false)])), [0]);
        assert_eq!(kept(Expression::Or(vec![starts, among(vec![Some(3)], false)])), [0, 2, 3]);
    }

    #[test]
    fn what_cannot_be_evaluated_is_an_error() {
        let batch = batch_of(vec![("c0", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]);
        let refused = |expression| {
            apply(&batch, &[Predicate { id: "p".to_owned(), required: false, expression }], &Some).is_err()
        };
        assert!(refused(*column(7)));
        assert!(refused(*column(0)), "a number is no condition");
        assert!(refused(comparison(ComparisonOp::Eq, column(0), literal(StringArray::from(vec!["x"])))));
        assert!(refused(Expression::Call { function: "regexp".to_owned(), arguments: vec![*column(0), *column(0)] }));
    }
}
