//! The example, served and called over HTTP.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::Field;
use vgi_transport::{Execution, InitOptions, Location, NeverInterrupted, Options, attach};
use vgi_wire::arguments::encode_values;
use vgi_wire::ipc;
use vgi_wire::methods::BindRequest;

fn lines(texts: &[Option<&str>]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([("line", Arc::new(StringArray::from(texts.to_vec())) as ArrayRef, true)])
        .unwrap()
}

fn value(name: &str, value: ArrayRef) -> (Field, ArrayRef) {
    (Field::new(name, value.data_type().clone(), true), value)
}

fn word_count(min_length: i64, input: &[RecordBatch]) -> Result<Vec<(String, i64)>, vgi_transport::Error> {
    let server = vgi_worker::serve(word_count::catalog().unwrap(), vgi_worker::Options::default()).unwrap();
    let location = Location::parse(&server.url()).unwrap();
    let attached = attach(&location, "words", &Options::default(), &NeverInterrupted)?;
    let positional = vec![value("", Arc::new(StringArray::from(vec!["line"])))];
    let named = vec![value("min_length", Arc::new(Int64Array::from(vec![min_length])))];
    let request = BindRequest {
        function_name: "word_count".to_owned(),
        schema_path: vec!["main".to_owned()],
        arguments: encode_values(positional, named).unwrap(),
        input_schema: lines(&[]).schema(),
        settings: None,
        secrets: None,
        attach_opaque_data: Some(attached.opaque_data()),
        transaction_opaque_data: None,
        resolved_secrets_provided: false,
    };
    let bound = Arc::new(attached.bind(&request, &NeverInterrupted)?);
    let execution = Execution::start(bound, InitOptions::default(), &NeverInterrupted)?;
    let mut ids = Vec::new();
    for batch in input {
        let blob = ipc::encode_stream(batch, &[]).unwrap();
        ids.push(execution.process(blob, None)?.wait(&NeverInterrupted)?.state_id);
    }
    let mut rows = Vec::new();
    for id in execution.combine(ids, &NeverInterrupted)? {
        let mut stream = execution.open_stream(id)?;
        while let Some(batch) = stream.next(&NeverInterrupted)? {
            let words = batch.column(0).as_string::<i32>().iter().map(|word| word.unwrap().to_owned());
            rows.extend(words.zip(batch.column(1).as_primitive::<Int64Type>().values().iter().copied()));
        }
    }
    Ok(rows)
}

#[test]
fn words_are_counted_over_all_pieces() {
    let input = [lines(&[Some("To be, or not"), None]), lines(&[]), lines(&[Some("to be")])];
    let counts =
        |rows: Vec<(String, i64)>| rows.into_iter().map(|(word, count)| format!("{word} {count}")).collect::<Vec<_>>();
    assert_eq!(counts(word_count(1, &input).unwrap()), ["be 2", "not 1", "or 1", "to 2"]);
    assert_eq!(counts(word_count(3, &input).unwrap()), ["not 1"]);
    assert!(word_count(1, &[]).unwrap().is_empty());
}

#[test]
fn a_bad_argument_is_refused_with_a_sentence() {
    let message = word_count(-1, &[]).unwrap_err().to_string();
    assert!(message.contains("word_count: argument 'min_length' must be from 0 to 1000, not -1"), "{message}");
}
