//! Compares a result with what a file expects, by the rules of DuckDB's runner.

use regex::Regex;

use crate::database::{Kind, Table};
use crate::script::Sort;

const MATCHES: &str = "<REGEX>:";
const DIFFERS: &str = "<!REGEX>:";

/// Why a result is not the expected one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("{expected} columns are expected, the result has {got}")]
    Columns { expected: usize, got: usize },
    #[error("{expected} rows are expected, the result has {got}")]
    Rows { expected: usize, got: usize },
    #[error("the expected result has {values} values, which is no multiple of {columns} columns")]
    Uneven { values: usize, columns: usize },
    #[error("row {row} of the expected result has {got} values instead of {expected}; values are separated by tabs")]
    Width { row: usize, expected: usize, got: usize },
    #[error("row {row}, column {column} ({name}): expected {expected:?}, got {got:?}")]
    Value { row: usize, column: usize, name: String, expected: String, got: String },
}

/// Puts the values into the order in which they are compared.
pub fn sort(values: &mut Vec<String>, columns: usize, style: Sort) {
    match style {
        Sort::None => {}
        Sort::Values => values.sort(),
        Sort::Rows if columns == 0 => {}
        Sort::Rows => {
            let mut rows: Vec<Vec<String>> = values.chunks(columns).map(<[String]>::to_vec).collect();
            rows.sort();
            *values = rows.concat();
        }
    }
}

/// The line `N values hashing to …` that a file may expect instead of the values.
pub fn as_hash(expected: &[String]) -> Option<&str> {
    let [line] = expected else { return None };
    let (count, digest) = line.split_once(" values hashing to ")?;
    let digits = |text: &str, valid: fn(&char) -> bool| !text.is_empty() && text.chars().all(|c| valid(&c));
    let fits = digits(count, char::is_ascii_digit) && digest.len() == 32 && digits(digest, char::is_ascii_hexdigit);
    fits.then_some(line)
}

/// The text whose MD5 stands for the values.
pub fn hash_input(values: &[String]) -> String {
    values.iter().flat_map(|value| [value.as_str(), "\n"]).collect()
}

/// Compares the lines after `----` with the values of the (sorted) table.
pub fn compare(expected_columns: usize, expected: &[String], table: &Table) -> Result<(), Mismatch> {
    let columns = table.names.len();
    if columns != expected_columns {
        return Err(Mismatch::Columns { expected: expected_columns, got: columns });
    }
    let expected = split(expected, columns, table.rows)?;
    let rows = expected.len() / columns;
    if rows != table.rows {
        return Err(Mismatch::Rows { expected: rows, got: table.rows });
    }
    for (index, (expected, got)) in expected.iter().zip(&table.values).enumerate() {
        let column = index % columns;
        let kind = table.kinds.get(column).copied().unwrap_or(Kind::Other);
        if !equal(kind, expected, got) {
            return Err(Mismatch::Value {
                row: index / columns + 1,
                column: column + 1,
                name: table.names.get(column).cloned().unwrap_or_default(),
                expected: expected.clone(),
                got: got.clone(),
            });
        }
    }
    Ok(())
}

/// One value per element, from lines that hold a value or a row each.
fn split(lines: &[String], columns: usize, rows: usize) -> Result<Vec<String>, Mismatch> {
    let by_row = columns > 1 && (lines.len() == rows || lines.iter().all(|line| line.contains('\t')));
    if !by_row {
        return if lines.len().is_multiple_of(columns) {
            Ok(lines.to_vec())
        } else {
            Err(Mismatch::Uneven { values: lines.len(), columns })
        };
    }
    let mut values = Vec::with_capacity(lines.len() * columns);
    for (row, line) in lines.iter().enumerate() {
        let before = values.len();
        values.extend(line.split('\t').map(str::to_owned));
        let got = values.len() - before;
        if got != columns {
            return Err(Mismatch::Width { row: row + 1, expected: columns, got });
        }
    }
    Ok(values)
}

/// Whether a value is as expected: literally, by a pattern, or as a number.
pub fn equal(kind: Kind, expected: &str, got: &str) -> bool {
    if expected == got {
        return true;
    }
    if let Some(matched) = by_pattern(expected, got) {
        return matched;
    }
    match kind {
        Kind::Boolean => truth(expected).is_some() && truth(expected) == truth(got),
        Kind::Approximate => match (expected.parse::<f64>(), got.parse::<f64>()) {
            (Ok(expected), Ok(got)) => approximately(expected, got),
            _ => false,
        },
        Kind::Exact => number(expected).is_some() && number(expected) == number(got),
        Kind::Other => false,
    }
}

/// Whether a text is as `<REGEX>:…` or `<!REGEX>:…` wants; `None` when the expectation is no pattern. A broken pattern matches nothing.
pub fn by_pattern(expected: &str, got: &str) -> Option<bool> {
    let (pattern, wanted) = match expected.strip_prefix(MATCHES) {
        Some(pattern) => (pattern, true),
        None => (expected.strip_prefix(DIFFERS)?, false),
    };
    // the whole text must match, and a dot matches a line's end, as in DuckDB's runner
    Some(Regex::new(&format!("(?s)\\A(?:{pattern})\\z")).is_ok_and(|regex| regex.is_match(got) == wanted))
}

/// DuckDB's runner takes floating-point numbers for equal that differ by one percent. Who wants more casts to VARCHAR in the query.
fn approximately(expected: f64, got: f64) -> bool {
    if expected.is_nan() || got.is_nan() {
        return expected.is_nan() && got.is_nan();
    }
    if expected.is_infinite() || got.is_infinite() {
        return expected.total_cmp(&got).is_eq();
    }
    (expected - got).abs() <= expected.abs() * 0.01 + 1e-8
}

fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// Sign, digits before and digits after the point, without zeros that change nothing.
fn number(text: &str) -> Option<(bool, &str, &str)> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let zero = whole.is_empty() && fraction.is_empty();
    Some((negative && !zero, whole, fraction))
}
