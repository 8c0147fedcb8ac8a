//! What it costs to write the request that is sent most: one chunk of the input.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use vgi_wire::generation::Dialect;
use vgi_wire::ipc;
use vgi_wire::methods::{ExecutionRef, Method, ProcessRequest, ProcessTemplate, request_body};

fn chunk() -> RecordBatch {
    let rows = 0..2048_i32;
    let integers: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.clone().map(i64::from)));
    let doubles: ArrayRef = Arc::new(Float64Array::from_iter_values(rows.clone().map(f64::from)));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(rows.map(|row| format!("row {row}"))));
    RecordBatch::try_from_iter([("a", integers), ("b", doubles), ("s", texts)]).unwrap()
}

fn execution() -> ExecutionRef {
    ExecutionRef {
        function_name: "sum_all_columns".to_owned(),
        execution_id: Bytes::from_static(&[7; 16]),
        attach_opaque_data: Some(Bytes::from(vec![9; 73])),
        transaction_id: None,
        schema_path: vec!["main".to_owned()],
    }
}

fn benches(criterion: &mut Criterion) {
    let dialect = Dialect::select(Some("vgi.v2"), Some("2.2.0")).unwrap();
    let (chunk, execution) = (chunk(), execution());
    let mut group = criterion.benchmark_group("process request of 2048 rows, 3 columns");
    group.throughput(Throughput::Elements(2048));
    group.bench_function("batch", |bencher| bencher.iter(|| ipc::encode_stream(black_box(&chunk), &[]).unwrap()));
    let input = ipc::encode_stream(&chunk, &[]).unwrap();
    group.bench_function("envelopes", |bencher| {
        bencher.iter(|| {
            let request =
                ProcessRequest { execution: execution.clone(), input_batch: input.clone(), batch_index: Some(3) };
            request_body(&dialect, Method::Process, request.into_blob(&dialect).unwrap()).unwrap()
        });
    });
    let template = ProcessTemplate::new(&dialect, &execution).unwrap();
    group.bench_function("envelopes from a template", |bencher| {
        bencher.iter(|| template.body(input.clone(), Some(3)).unwrap());
    });
    group.bench_function("whole from a template", |bencher| {
        bencher.iter(|| template.body(ipc::encode_stream(black_box(&chunk), &[]).unwrap(), Some(3)).unwrap());
    });
    group.bench_function("whole", |bencher| {
        bencher.iter(|| {
            let input_batch = ipc::encode_stream(black_box(&chunk), &[]).unwrap();
            let request = ProcessRequest { execution: execution.clone(), input_batch, batch_index: Some(3) };
            request_body(&dialect, Method::Process, request.into_blob(&dialect).unwrap()).unwrap()
        });
    });
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
