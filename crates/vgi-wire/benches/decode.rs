//! What it costs to read a page of output, every check included: the bytes are a stranger's.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Float64Array, Int64Array, ListArray, RecordBatch, StringArray};
use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use vgi_wire::ipc;

fn mixed(rows: i32) -> RecordBatch {
    let integers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows).map(i64::from)));
    let doubles: ArrayRef = Arc::new(Float64Array::from_iter_values((0..rows).map(f64::from)));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("row {row:012}"))));
    RecordBatch::try_from_iter([("a", integers), ("b", doubles), ("s", texts)]).unwrap()
}

fn accented(rows: i32) -> RecordBatch {
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("été {row:09}"))));
    RecordBatch::try_from_iter([("s", texts)]).unwrap()
}

fn lists(rows: i32) -> RecordBatch {
    let lists = (0..rows).map(|row| Some((0..row % 5).map(|element| Some(i64::from(element)))));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
    RecordBatch::try_from_iter([("l", lists)]).unwrap()
}

fn benches(criterion: &mut Criterion) {
    let pages = [
        ("2048 rows, 3 columns", mixed(2048)),
        ("65536 rows, 3 columns", mixed(65_536)),
        ("accented texts", accented(65_536)),
        ("lists", lists(65_536)),
    ];
    let mut group = criterion.benchmark_group("decode");
    for (name, page) in pages {
        let bytes: Bytes = ipc::encode_stream(&page, &[]).unwrap().to_bytes();
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| ipc::decode_stream(black_box(bytes.clone())).unwrap());
        });
    }
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
