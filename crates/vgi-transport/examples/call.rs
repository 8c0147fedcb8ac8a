//! Runs a table of four rows through a function and prints what comes back.
//!
//! ```text
//! cargo run -p vgi-transport --example call -- http://127.0.0.1:9000 example buffer_input
//! ```

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use vgi_transport::{Execution, InitOptions, Location, NeverInterrupted, Options, attach, drain_background};
use vgi_wire::{arguments, ipc, methods::BindRequest};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(url), Some(catalog), Some(function)) = (args.next(), args.next(), args.next()) else {
        return Err("usage: call URL CATALOG FUNCTION".into());
    };
    let options = Options::default();
    let attachment = attach(&Location::parse(&url)?, &catalog, &options, &NeverInterrupted)?;
    let info = attachment.functions(None, &function, &NeverInterrupted)?.remove(0);
    println!("{} of schema {}: {}", info.name, info.schema_path.join("."), info.description);

    let schema = Schema::new(vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Utf8, true)]);
    let input_schema = Arc::new(schema);
    let bound = attachment.bind(
        &BindRequest {
            function_name: function,
            schema_path: info.schema_path,
            arguments: arguments::encode_values(Vec::new(), Vec::new())?,
            input_schema: Arc::clone(&input_schema),
            settings: None,
            secrets: None,
            attach_opaque_data: None,
            transaction_opaque_data: None,
            resolved_secrets_provided: false,
        },
        &NeverInterrupted,
    )?;
    println!("gives {}", bound.reply.output_schema);

    let execution = Execution::start(Arc::new(bound), InitOptions::default(), &NeverInterrupted)?;
    let mut state_ids = Vec::new();
    for (numbers, words) in [(vec![1, 2, 3], vec!["one", "two", "three"]), (vec![4], vec!["four"])] {
        let columns: Vec<arrow_array::ArrayRef> =
            vec![Arc::new(Int64Array::from(numbers)), Arc::new(StringArray::from(words))];
        let batch = RecordBatch::try_new(Arc::clone(&input_schema), columns)?;
        let pending = execution.process(ipc::encode_stream(&batch, &[])?, None)?;
        state_ids.push(pending.wait(&NeverInterrupted)?.state_id);
    }
    for stream in execution.combine(state_ids, &NeverInterrupted)? {
        let mut stream = execution.open_stream(stream)?;
        while let Some(batch) = stream.next(&NeverInterrupted)? {
            println!("{} rows: {:?}", batch.num_rows(), batch.columns());
        }
    }
    // the server frees what it keeps when the execution is dropped
    drop(execution);
    drain_background(options.connect_timeout);
    Ok(())
}
