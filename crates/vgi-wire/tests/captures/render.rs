//! The text beside a recorded body: schemas, metadata and rows of every stream, nested ones too, as the recorder (Python) wrote it.

use std::fmt::Write;

use arrow_schema::{DataType, Field};
use bytes::Bytes;
use vgi_wire::ipc;

use crate::python::{self, Value};

/// Rows of a batch that the recorder wrote.
const ROWS: usize = 20;

/// Whether the bytes begin like an Arrow stream.
pub(crate) fn is_ipc(bytes: &[u8]) -> bool {
    bytes.len() >= 8 && bytes[..4] == [0xff; 4]
}

/// Where a stream ends, and whether by its end marker.
fn stream_end(bytes: &[u8]) -> (usize, bool) {
    let mut at = 0;
    while let Some(length) = bytes.get(at + 4..at + 8) {
        assert_eq!(bytes[at..at + 4], [0xff; 4], "a message begins with its mark");
        let length = usize::try_from(i32::from_le_bytes(length.try_into().unwrap())).unwrap();
        at += 8;
        if length == 0 {
            return (at, true);
        }
        let message = arrow_ipc::root_as_message(&bytes[at..at + length]).unwrap();
        at += length + usize::try_from(message.bodyLength()).unwrap();
    }
    (at, false)
}

/// All streams of a body, a line each for what is in them.
pub(crate) fn streams(body: &Bytes, indent: &str, out: &mut Vec<String>) {
    let (mut at, mut number) = (0, 0);
    while at < body.len() {
        let (len, ended) = stream_end(&body[at..]);
        let bytes = body.slice(at..at + len);
        number += 1;
        // a schema inside of a record has no end marker
        let (schema, batches) = if ended {
            let stream = ipc::decode_stream(bytes).unwrap();
            (stream.schema, stream.batches)
        } else {
            (ipc::decode_schema(&bytes).unwrap(), Vec::new())
        };
        out.push(format!("{indent}== IPC stream #{number} at byte {at}: schema of {} field(s)", schema.fields().len()));
        for (key, value) in schema.metadata() {
            out.push(format!("{indent}   schema metadata: {key} = {}", python::show_bytes(value.as_bytes())));
        }
        schema.fields().iter().for_each(|one| field(one, &format!("{indent}   "), out));
        for (index, batch) in batches.iter().enumerate() {
            let rows = batch.batch.num_rows();
            out.push(format!("{indent}   -- batch {}: {rows} row(s)", index + 1));
            for (key, value) in &batch.metadata {
                out.push(format!("{indent}      custom_metadata: {key} = {}", python::show_bytes(value.as_bytes())));
            }
            for row in 0..rows.min(ROWS) {
                for (one, column) in schema.fields().iter().zip(batch.batch.columns()) {
                    let name = format!("[{row}] {}", one.name());
                    value(&name, &python::value(column, row), &format!("{indent}      "), out);
                }
            }
            if rows > ROWS {
                out.push(format!("{indent}      ... {} more row(s)", rows - ROWS));
            }
        }
        let end = if ended { "EOS marker" } else { "NO EOS marker (ends by length)" };
        out.push(format!("{indent}   -- {end}; {} batch(es), stream is bytes {at}..{}", batches.len(), at + len));
        at += len;
    }
}

fn field(field: &Field, indent: &str, out: &mut Vec<String>) {
    let null = if field.is_nullable() { "" } else { " not null" };
    out.push(format!("{indent}{}: {}{null}", field.name(), type_name(field.data_type())));
    for (key, value) in field.metadata() {
        out.push(format!("{indent}    @ {key} = {}", python::show_bytes(value.as_bytes())));
    }
    if let DataType::Struct(children) = field.data_type() {
        let with_metadata = children.iter().filter(|child| !child.metadata().is_empty());
        with_metadata.for_each(|child| self::field(child, &format!("{indent}  > "), out));
    }
}

fn value(name: &str, value: &Value, indent: &str, out: &mut Vec<String>) {
    let deeper = format!("{indent}    ");
    match value {
        Value::Bytes(bytes) if is_ipc(bytes) => {
            out.push(format!("{indent}{name} = <IPC blob, {} bytes>", bytes.len()));
            streams(bytes, &format!("{deeper}| "), out);
        }
        Value::Struct(members) => {
            out.push(format!("{indent}{name} = struct"));
            for (key, member) in members {
                self::value(&format!(".{key}"), member, &deeper, out);
            }
        }
        Value::List(items) if items.iter().any(|item| matches!(item, Value::Bytes(bytes) if is_ipc(bytes))) => {
            out.push(format!("{indent}{name} = list of {}", items.len()));
            for (index, item) in items.iter().take(60).enumerate() {
                self::value(&format!("[{index}]"), item, &deeper, out);
            }
        }
        Value::List(items) => {
            let shown: Vec<_> = items.iter().take(50).map(python::show).collect();
            let mut line = format!("{indent}{name} = [{}]", shown.join(", "));
            if items.len() > 50 {
                write!(line, " ({})", items.len()).unwrap();
            }
            out.push(line);
        }
        other => out.push(format!("{indent}{name} = {}", python::show(other))),
    }
}

/// A type as pyarrow calls it.
fn type_name(data_type: &DataType) -> String {
    use DataType as T;
    let typed = |field: &Field| format!("{}: {}", field.name(), type_name(field.data_type()));
    let whole = |field: &Field| format!("{}{}", typed(field), if field.is_nullable() { "" } else { " not null" });
    match data_type {
        T::Utf8 => "string".to_owned(),
        T::LargeBinary => "large_binary".to_owned(),
        T::LargeUtf8 => "large_string".to_owned(),
        T::Boolean => "bool".to_owned(),
        T::Float64 => "double".to_owned(),
        T::Float32 => "float".to_owned(),
        T::Date32 => "date32[day]".to_owned(),
        T::Interval(_) => "month_day_nano_interval".to_owned(),
        T::Time64(unit) => format!("time64[{}]", python::unit(*unit)),
        T::Timestamp(unit, None) => format!("timestamp[{}]", python::unit(*unit)),
        T::Timestamp(unit, Some(zone)) => format!("timestamp[{}, tz={zone}]", python::unit(*unit)),
        T::Decimal128(precision, scale) => format!("decimal128({precision}, {scale})"),
        T::List(item) => format!("list<{}>", whole(item)),
        T::FixedSizeList(item, size) => format!("fixed_size_list<{}>[{size}]", whole(item)),
        T::Map(entries, _) => match entries.data_type() {
            T::Struct(pair) => {
                format!("map<{}, {}>", type_name(pair[0].data_type()), type_name(pair[1].data_type()))
            }
            other => panic!("a map of {other}"),
        },
        T::Struct(children) => {
            let names = children.iter().map(|child| whole(child));
            format!("struct<{}>", names.collect::<Vec<_>>().join(", "))
        }
        T::Dictionary(keys, values) => {
            format!("dictionary<values={}, indices={}, ordered=0>", type_name(values), type_name(keys))
        }
        T::Union(children, _) => {
            let names = children.iter().map(|(id, child)| format!("{}={id}", whole(child)));
            format!("sparse_union<{}>", names.collect::<Vec<_>>().join(", "))
        }
        other => format!("{other:?}").to_lowercase(),
    }
}

/// The lines in the order of the text, but metadata of a field or schema sorted: they are a set.
pub(crate) fn normal(lines: Vec<String>) -> Vec<String> {
    let is_metadata = |line: &String| line.contains(" @ ") || line.contains("schema metadata: ");
    let mut out: Vec<String> = Vec::with_capacity(lines.len());
    for line in lines {
        let run = if is_metadata(&line) { out.iter().rev().take_while(|line| is_metadata(line)).count() } else { 0 };
        let start = out.len() - run;
        let place = start + out[start..].partition_point(|other| *other < line);
        out.insert(if run == 0 { out.len() } else { place }, line);
    }
    out
}
