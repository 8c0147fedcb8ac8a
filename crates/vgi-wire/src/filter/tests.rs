use std::sync::Arc;

use arrow_array::{Array, Int64Array, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;

use super::*;
use crate::WireError;
use crate::ipc;

fn output() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Utf8, true)]))
}

fn column(index: usize, name: &str) -> Box<Expression> {
    Box::new(Expression::Column { index, name: name.to_owned() })
}

fn integer(value: Option<i64>) -> Box<Expression> {
    Box::new(Expression::Literal(Arc::new(Int64Array::from(vec![value]))))
}

fn predicate(expression: Expression) -> Predicate {
    Predicate { id: "p0".to_owned(), required: false, expression }
}

fn less(value: i64) -> Expression {
    Expression::Comparison { op: ComparisonOp::Lt, left: column(0, "a"), right: integer(Some(value)) }
}

#[test]
fn every_expression_comes_back() {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let expressions = [
        less(5),
        Expression::And(vec![less(5), Expression::Not(Box::new(less(1)))]),
        Expression::Or(vec![less(5), Expression::IsNull { expression: column(1, "b"), negated: true }]),
        Expression::In { expression: column(0, "a"), negated: false, values: Arc::new(Int64Array::from(vec![1, 2])) },
        Expression::Call {
            function: "starts_with".to_owned(),
            arguments: vec![*column(1, "b"), Expression::Literal(text)],
        },
        Expression::Comparison {
            op: ComparisonOp::NotDistinctFrom,
            left: Box::new(Expression::Arithmetic {
                op: ArithmeticOp::Add,
                left: column(0, "a"),
                right: integer(None),
            }),
            right: Box::new(Expression::Field { expression: column(1, "b"), index: 0, name: "x".to_owned() }),
        },
    ];
    for expression in expressions {
        let predicates = vec![
            predicate(expression.clone()),
            Predicate { id: "p1".to_owned(), required: true, ..predicate(expression) },
        ];
        assert_eq!(decode(encode(&predicates).unwrap(), &output()).unwrap(), predicates);
    }
}

#[test]
fn the_document_is_what_the_protocol_says() {
    let batch = ipc::decode_batch(encode(&[predicate(less(5))]).unwrap()).unwrap();
    let spec = batch.column(0).as_any().downcast_ref::<StringArray>().unwrap().value(0).to_owned();
    let expected = concat!(
        r#"{"encoding":"vgi.filters.v2","semantics":"vgi.duckdb.standard.v1","kind":"snapshot","predicates":[{"id":"p0","#,
        r#""revision":0,"mode":"advisory","source":"query","expression":{"node":"comparison","op":"lt","#,
        r#""left":{"node":"column_ref","column_index":0,"column_name":"a"},"right":{"node":"literal","value_ref":0}}}]}"#
    );
    assert_eq!(spec, expected);
    assert_eq!(batch.schema().metadata()["vgi_filter_version"], "2");
}

fn rewritten(change: impl Fn(String) -> String) -> Result<Vec<Predicate>, WireError> {
    let batch = ipc::decode_batch(encode(&[predicate(less(5))]).unwrap()).unwrap();
    let spec = batch.column(0).as_any().downcast_ref::<StringArray>().unwrap().value(0).to_owned();
    let mut columns = batch.columns().to_vec();
    columns[0] = Arc::new(StringArray::from(vec![change(spec)]));
    let batch = arrow_array::RecordBatch::try_new(batch.schema(), columns).unwrap();
    decode(ipc::encode_stream(&batch, &[]).unwrap().to_bytes(), &output())
}

#[test]
fn what_is_not_known_is_refused() {
    assert!(rewritten(|spec| spec).is_ok());
    for (from, to) in [
        (r#""node":"comparison""#, r#""node":"runtime_filter""#),
        (r#""revision":0"#, r#""revision":0,"more":1"#),
        (r#""revision":0"#, r#""revision":1"#),
        (r#""source":"query""#, r#""source":"rumour""#),
        (r#""op":"lt""#, r#""op":"like""#),
        (r#""op":"lt","#, ""),
        (r#""column_index":0"#, r#""column_index":9"#),
        (r#""column_name":"a""#, r#""column_name":"b""#),
        (r#""value_ref":0"#, r#""value_ref":1"#),
        (r#""value_ref":0"#, r#""value_ref":-1"#),
        (r#""value_ref":0"#, r#""value_ref":"value_0""#),
        ("vgi.duckdb.standard.v1", "another"),
        ("snapshot", "delta"),
        ("{", ""),
    ] {
        let changed = rewritten(|spec| {
            assert!(spec.contains(from), "{from}");
            spec.replace(from, to)
        });
        assert!(matches!(changed, Err(WireError::Protocol(_))), "{from} -> {to}");
    }
    assert!(decode(Bytes::new(), &output()).is_err());
}

#[test]
fn bounds_are_kept_on_both_sides() {
    let mut deep = less(1);
    for _ in 0..70 {
        deep = Expression::Not(Box::new(deep));
    }
    assert!(matches!(encode(&[predicate(deep)]), Err(WireError::TooLarge(_))));
    let wide = Expression::Or((0..11_000).map(less).collect());
    assert!(matches!(encode(&[predicate(wide)]), Err(WireError::TooLarge(_))));
    let nested = rewritten(|spec| {
        let not = r#"{"node":"not","expression":"#;
        let start = spec.find(r#"{"node":"comparison""#).unwrap();
        let (head, expression) = spec.split_at(start);
        let expression = expression.trim_end_matches("}]}");
        format!("{head}{}{expression}{}}}]}}", not.repeat(70), "}".repeat(70))
    });
    assert!(nested.is_err());
}

#[test]
fn sets_may_stand_in_join_keys() {
    let set = r#"{"node":"in","expression":{"node":"column_ref","column_index":0,"column_name":"a"},"negated":false,"set":{"kind":"external","batch_index":0,"column_index":0,"column_name":"k"}}"#;
    let batch = ipc::decode_batch(encode(&[predicate(less(5))]).unwrap()).unwrap();
    let json = format!(
        r#"{{"encoding":"{ENCODING}","semantics":"{SEMANTICS}","kind":"snapshot","predicates":[{{"id":"j","revision":0,"mode":"advisory","source":"join","expression":{set}}}]}}"#
    );
    let columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from(vec![json])), Arc::clone(batch.column(1))];
    let batch = arrow_array::RecordBatch::try_new(batch.schema(), columns).unwrap();
    let filter = ipc::encode_stream(&batch, &[]).unwrap().to_bytes();
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![4, 5]));
    let named = |name: &str| {
        let batch = arrow_array::RecordBatch::try_from_iter([(name, Arc::clone(&keys))]).unwrap();
        ipc::encode_stream(&batch, &[]).unwrap().to_bytes()
    };
    let read = decode_with_join_keys(filter.clone(), &[named("k")], &output()).unwrap();
    let expected = Expression::In { expression: column(0, "a"), negated: false, values: Arc::clone(&keys) };
    assert_eq!(read[0].expression, expected);
    for keys in [vec![], vec![named("other")]] {
        assert!(decode_with_join_keys(filter.clone(), &keys, &output()).is_err());
    }
    assert!(decode(filter, &output()).is_err());
}

#[test]
fn ids_and_context_are_checked() {
    let twice = encode(&[predicate(less(5)), predicate(less(6))]).unwrap();
    assert!(decode(twice, &output()).unwrap_err().to_string().contains("ids of their own"));
    let batch = ipc::decode_batch(encode(&[predicate(less(5))]).unwrap()).unwrap();
    let mut metadata = batch.schema().metadata().clone();
    metadata.insert("vgi_evaluation_context".to_owned(), "vgi.duckdb.session.v1".to_owned());
    let schema = Arc::new(batch.schema().as_ref().clone().with_metadata(metadata));
    let batch = arrow_array::RecordBatch::try_new(schema, batch.columns().to_vec()).unwrap();
    let error = decode(ipc::encode_stream(&batch, &[]).unwrap().to_bytes(), &output()).unwrap_err().to_string();
    assert!(error.contains("vgi.none.v1") && error.contains("vgi.duckdb.session.v1"), "{error}");
    assert!(encode(&[predicate(Expression::And(vec![less(1)]))]).is_err());
}
