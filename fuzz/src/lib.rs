//! What the targets share.

use std::sync::Arc;

use arrow_array::{Array, BinaryArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use vgi_wire::reply::UnaryReply;

/// Panics unless a batch that a decoder gave is valid Arrow: what reads it next trusts it.
pub fn check(batch: &RecordBatch) {
    for column in batch.columns() {
        assert_eq!(column.len(), batch.num_rows());
        column.to_data().validate_full().expect("a decoder gave invalid Arrow");
    }
}

/// Splits an input into which reader it is for, and the bytes; the selector stands at the end, so that bytes begin as on the wire.
pub fn select(data: &[u8]) -> Option<(u8, Bytes)> {
    let (selector, bytes) = data.split_last()?;
    Some((*selector, Bytes::copy_from_slice(bytes)))
}

/// A unary reply around a record.
pub fn reply(record: &Bytes) -> UnaryReply {
    let schema = Schema::new(vec![Field::new("result", DataType::Binary, false)]);
    let column = Arc::new(BinaryArray::from(vec![record.as_ref()]));
    let batch = RecordBatch::try_new(Arc::new(schema), vec![column]).expect("one column of one row");
    UnaryReply { logs: Vec::new(), batch: Some(batch), metadata: Vec::new() }
}

/// The readers of records in replies, in the order of their selectors.
pub mod responses {
    use super::*;
    use vgi_wire::methods::{
        AttachReply, BindReply, CatalogInfo, CombineReply, FunctionInfo, ProcessReply, SchemaInfo, items,
        protocol_entries,
    };

    /// Selectors by method, for seeds.
    pub const SELECTORS: [(&str, u8); 8] = [
        ("catalog_attach", 0),
        ("bind", 1),
        ("table_buffering_process", 2),
        ("table_buffering_combine", 3),
        ("list_protocols", 4),
        ("catalog_catalogs", 5),
        ("catalog_schemas", 6),
        ("catalog_schema_contents_functions", 7),
    ];

    pub fn read(selector: u8, record: &Bytes) {
        let reply = reply(record);
        let listed = || items(&reply).unwrap_or_default().into_iter();
        match selector % 11 {
            0 => drop(AttachReply::from_reply(&reply)),
            1 => drop(BindReply::from_reply(&reply)),
            2 => drop(ProcessReply::from_reply(&reply)),
            3 => drop(CombineReply::from_reply(&reply)),
            4 => drop(protocol_entries(&reply)),
            5 => listed().for_each(|item| drop(CatalogInfo::from_blob(item))),
            6 => listed().for_each(|item| drop(SchemaInfo::from_blob(item))),
            7 => listed().for_each(function),
            8 => drop(CatalogInfo::from_blob(record.clone())),
            9 => drop(SchemaInfo::from_blob(record.clone())),
            _ => function(record.clone()),
        }
    }

    fn function(item: Bytes) {
        if let Ok(function) = FunctionInfo::from_blob(item) {
            drop(function.declared_arguments());
        }
    }
}

/// The readers of records in requests, in the order of their selectors.
pub mod requests {
    use super::*;
    use vgi_wire::methods::{AttachRequest, BindRequest, CombineRequest, ExecutionRef, InitRequest, ProcessRequest};
    use vgi_wire::{ipc, server};

    /// Selectors by method, for seeds; 0 is a whole body.
    pub const SELECTORS: [(&str, u8); 6] = [
        ("catalog_attach", 1),
        ("bind", 2),
        ("init", 3),
        ("table_buffering_process", 4),
        ("table_buffering_combine", 5),
        ("table_buffering_destructor", 6),
    ];

    pub fn read(selector: u8, bytes: Bytes) {
        match selector % 7 {
            0 => {
                drop(server::decode_turn(bytes.clone()));
                if let Ok(call) = server::decode_call(bytes) {
                    check(&call.params);
                    drop(call.request_blob().map(ipc::decode_batch));
                }
            }
            1 => drop(AttachRequest::from_blob(bytes)),
            2 => drop(BindRequest::from_blob(bytes)),
            3 => {
                drop(InitRequest::join_keys(bytes.clone()));
                if let Ok(init) = InitRequest::from_blob(bytes) {
                    drop(BindRequest::from_blob(init.bind_call));
                    drop(ipc::decode_schema(&init.output_schema));
                }
            }
            4 => {
                if let Ok(process) = ProcessRequest::from_blob(bytes) {
                    drop(ipc::decode_batch(process.input_batch.to_bytes()));
                }
            }
            5 => drop(CombineRequest::from_blob(bytes)),
            _ => drop(ExecutionRef::from_blob(bytes)),
        }
    }
}

/// The schema that filters are read against.
pub fn output_schema() -> Arc<Schema> {
    let inner = DataType::Struct(vec![Field::new("x", DataType::Int64, true)].into());
    Arc::new(Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Utf8, true),
        Field::new("c", inner, true),
    ]))
}

/// Filters of every kind, over [`output_schema`].
pub mod filters {
    use super::*;
    use arrow_array::{ArrayRef, Int64Array};
    use vgi_wire::filter::{ArithmeticOp, ComparisonOp, Expression, Predicate};

    pub fn all() -> Vec<Predicate> {
        let column = || Box::new(Expression::Column { index: 0, name: "a".to_owned() });
        let text = || Expression::Column { index: 1, name: "b".to_owned() };
        let array = || Arc::new(Int64Array::from(vec![3])) as ArrayRef;
        let literal = || Box::new(Expression::Literal(array()));
        let compared = || Expression::Comparison { op: ComparisonOp::Lt, left: column(), right: literal() };
        let structure = Box::new(Expression::Column { index: 2, name: "c".to_owned() });
        let field = Box::new(Expression::Field { expression: structure, index: 0, name: "x".to_owned() });
        let sum = Box::new(Expression::Arithmetic { op: ArithmeticOp::Add, left: field, right: literal() });
        let expressions = vec![
            compared(),
            Expression::In { expression: column(), negated: true, values: array() },
            Expression::Or(vec![
                Expression::Not(Box::new(compared())),
                Expression::IsNull { expression: sum, negated: false },
            ]),
            Expression::Call { function: "contains".to_owned(), arguments: vec![text(), text()] },
            Expression::And(vec![compared(), compared()]),
        ];
        let numbered = expressions.into_iter().enumerate();
        numbered
            .map(|(index, expression)| Predicate { id: format!("p{index}"), required: index == 0, expression })
            .collect()
    }
}
