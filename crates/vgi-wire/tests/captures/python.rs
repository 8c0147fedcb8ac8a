//! Values as Python's `repr` writes them.

use std::fmt::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use bytes::Bytes;

/// A cell.
pub(crate) enum Value {
    Bytes(Bytes),
    Text(String),
    /// Anything whose form does not depend on where it stands.
    Plain(String),
    List(Vec<Value>),
    /// The entries of a map.
    Pairs(Vec<(Value, Value)>),
    Struct(Vec<(String, Value)>),
}

pub(crate) fn value(array: &ArrayRef, row: usize) -> Value {
    use DataType as T;
    if array.data_type() == &T::Null || array.is_null(row) {
        return Value::Plain("None".to_owned());
    }
    let plain = |text: String| Value::Plain(text);
    let items = |items: ArrayRef| Value::List((0..items.len()).map(|index| value(&items, index)).collect());
    match array.data_type() {
        T::Utf8 => Value::Text(array.as_string::<i32>().value(row).to_owned()),
        T::LargeUtf8 => Value::Text(array.as_string::<i64>().value(row).to_owned()),
        T::Binary => Value::Bytes(Bytes::copy_from_slice(array.as_binary::<i32>().value(row))),
        T::LargeBinary => Value::Bytes(Bytes::copy_from_slice(array.as_binary::<i64>().value(row))),
        T::Boolean => plain(if array.as_boolean().value(row) { "True" } else { "False" }.to_owned()),
        T::Int8 => plain(array.as_primitive::<Int8Type>().value(row).to_string()),
        T::Int16 => plain(array.as_primitive::<Int16Type>().value(row).to_string()),
        T::Int32 => plain(array.as_primitive::<Int32Type>().value(row).to_string()),
        T::Int64 => plain(array.as_primitive::<Int64Type>().value(row).to_string()),
        T::UInt8 => plain(array.as_primitive::<UInt8Type>().value(row).to_string()),
        T::UInt16 => plain(array.as_primitive::<UInt16Type>().value(row).to_string()),
        T::UInt32 => plain(array.as_primitive::<UInt32Type>().value(row).to_string()),
        T::UInt64 => plain(array.as_primitive::<UInt64Type>().value(row).to_string()),
        T::Float32 => plain(float(array.as_primitive::<Float32Type>().value(row).into())),
        T::Float64 => plain(float(array.as_primitive::<Float64Type>().value(row))),
        T::Decimal128(_, _) => {
            plain(format!("Decimal('{}')", array.as_primitive::<Decimal128Type>().value_as_string(row)))
        }
        T::Date32 => {
            let (year, month, day) = civil(array.as_primitive::<Date32Type>().value(row).into());
            plain(format!("datetime.date({year}, {month}, {day})"))
        }
        T::Time64(TimeUnit::Microsecond) => {
            plain(format!("datetime.time({})", clock(array.as_primitive::<Time64MicrosecondType>().value(row))))
        }
        T::Timestamp(TimeUnit::Microsecond, zone) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            let (year, month, day) = civil(micros.div_euclid(DAY));
            let zone = zone.as_ref().map(|zone| format!(", tzinfo=zoneinfo.ZoneInfo(key='{zone}')"));
            let clock = clock(micros.rem_euclid(DAY));
            plain(format!("datetime.datetime({year}, {month}, {day}, {clock}{})", zone.unwrap_or_default()))
        }
        T::Interval(_) => {
            let interval = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
            let (months, days, nanoseconds) = (interval.months, interval.days, interval.nanoseconds);
            plain(format!("MonthDayNano(months={months}, days={days}, nanoseconds={nanoseconds})"))
        }
        T::List(_) => items(array.as_list::<i32>().value(row)),
        T::FixedSizeList(_, _) => items(array.as_fixed_size_list().value(row)),
        T::Map(_, _) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            Value::Pairs((0..entries.len()).map(|index| (value(keys, index), value(values, index))).collect())
        }
        T::Struct(fields) => {
            let members = fields.iter().zip(array.as_struct().columns());
            Value::Struct(members.map(|(field, column)| (field.name().clone(), value(column, row))).collect())
        }
        T::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            value(dictionary.values(), dictionary.normalized_keys()[row])
        }
        T::Union(_, _) => {
            let union = array.as_any().downcast_ref::<arrow_array::UnionArray>().unwrap();
            value(&union.value(row), 0)
        }
        other => panic!("no form for {other}"),
    }
}

const DAY: i64 = 86_400_000_000;

/// Year, month and day of a day since 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day = shifted.rem_euclid(146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, of_year - (153 * shifted_month + 2) / 5 + 1)
}

/// Hour and minute, and what else is not zero.
fn clock(micros: i64) -> String {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let mut out = format!("{}, {}", seconds / 3600, seconds / 60 % 60);
    if seconds % 60 != 0 || fraction != 0 {
        write!(out, ", {}", seconds % 60).unwrap();
    }
    if fraction != 0 {
        write!(out, ", {fraction}").unwrap();
    }
    out
}

fn float(number: f64) -> String {
    if number.is_nan() { "nan".to_owned() } else { format!("{number:?}") }
}

pub(crate) fn unit(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

/// The recorder's own form of a cell.
pub(crate) fn show(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => show_bytes(bytes),
        Value::Text(text) => show_text(text),
        other => repr(other),
    }
}

fn show_text(text: &str) -> String {
    let count = text.chars().count();
    if count < 3000 {
        return serde_json::to_string(text).unwrap();
    }
    let start: String = text.chars().take(3000).collect();
    let mut escaped = String::new();
    for unit in serde_json::to_string(&start).unwrap().encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => escaped.push(char::from(byte)),
            _ => write!(escaped, "\\u{unit:04x}").unwrap(),
        }
    }
    format!("{escaped}...({count})")
}

pub(crate) fn show_bytes(bytes: &[u8]) -> String {
    let text = std::str::from_utf8(bytes).ok();
    let text = text.filter(|text| text.chars().all(|letter| printable(letter) || matches!(letter, '\n' | '\t')));
    match text {
        Some("") => "b''".to_owned(),
        Some(text) if bytes.len() <= 600 => format!("b{} ({} bytes)", quoted(text), bytes.len()),
        Some(text) => {
            let start: String = text.chars().take(600).collect();
            format!("b{}... ({} bytes)", quoted(&start), bytes.len())
        }
        None => {
            let hex = bytes.iter().take(48).fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
            format!("<{} bytes 0x{hex}{}>", bytes.len(), if bytes.len() > 48 { "..." } else { "" })
        }
    }
}

fn printable(letter: char) -> bool {
    letter == ' ' || !(letter.is_control() || letter.is_whitespace())
}

/// `repr` of a text.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\\' => out += "\\\\",
            '\n' => out += "\\n",
            '\t' => out += "\\t",
            '\r' => out += "\\r",
            letter if letter == quote => out.extend(['\\', quote]),
            letter => out.push(letter),
        }
    }
    out.push(quote);
    out
}

fn repr(value: &Value) -> String {
    match value {
        Value::Plain(text) => text.clone(),
        Value::Text(text) => quoted(text),
        Value::Bytes(bytes) => {
            let mut out = String::from("b'");
            for &byte in bytes {
                match byte {
                    b'\\' => out += "\\\\",
                    b'\'' => out += "\\'",
                    b'\n' => out += "\\n",
                    b'\r' => out += "\\r",
                    b'\t' => out += "\\t",
                    0x20..=0x7e => out.push(char::from(byte)),
                    _ => write!(out, "\\x{byte:02x}").unwrap(),
                }
            }
            out.push('\'');
            // Python prefers the other quotes when these occur inside
            if bytes.contains(&b'\'') && !bytes.contains(&b'"') {
                let inner = out[2..out.len() - 1].replace("\\'", "'");
                out = format!("b\"{inner}\"");
            }
            out
        }
        Value::List(items) => format!("[{}]", items.iter().map(repr).collect::<Vec<_>>().join(", ")),
        Value::Pairs(pairs) => {
            let pairs: Vec<_> = pairs.iter().map(|(key, value)| format!("({}, {})", repr(key), repr(value))).collect();
            format!("[{}]", pairs.join(", "))
        }
        Value::Struct(members) => {
            let members: Vec<_> =
                members.iter().map(|(key, member)| format!("{}: {}", quoted(key), repr(member))).collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}
