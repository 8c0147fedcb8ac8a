use crate::compare::*;
use crate::database::{Kind, Table};
use crate::script::Sort;

fn table(kinds: &[Kind], values: &[&str]) -> Table {
    Table {
        names: (0..kinds.len()).map(|column| format!("c{column}")).collect(),
        kinds: kinds.to_vec(),
        rows: values.len() / kinds.len(),
        values: values.iter().map(ToString::to_string).collect(),
    }
}

fn check(kinds: &[Kind], values: &[&str], expected: &[&str]) -> Result<(), Mismatch> {
    let lines: Vec<String> = expected.iter().map(ToString::to_string).collect();
    compare(kinds.len(), &lines, &table(kinds, values))
}

const TEXT: Kind = Kind::Other;

#[test]
fn takes_rows_by_tab_and_values_by_line() {
    assert_eq!(check(&[TEXT, TEXT], &["a", "b", "c", "d"], &["a\tb", "c\td"]), Ok(()));
    assert_eq!(check(&[TEXT, TEXT], &["a", "b", "c", "d"], &["a", "b", "c", "d"]), Ok(()));
    assert_eq!(check(&[TEXT], &[], &[]), Ok(()));
    assert_eq!(check(&[TEXT, TEXT], &[], &[]), Ok(()));
}

#[test]
fn names_the_first_difference() {
    let mismatch = check(&[TEXT, TEXT], &["a", "b", "c", "d"], &["a\tb", "c\te"]);
    let expected =
        Mismatch::Value { row: 2, column: 2, name: "c1".to_owned(), expected: "e".to_owned(), got: "d".to_owned() };
    assert_eq!(mismatch, Err(expected));
}

#[test]
fn counts_rows_columns_and_values() {
    assert_eq!(check(&[TEXT], &["a"], &["a", "b"]), Err(Mismatch::Rows { expected: 2, got: 1 }));
    assert_eq!(check(&[TEXT], &["a"], &[]), Err(Mismatch::Rows { expected: 0, got: 1 }));
    assert_eq!(check(&[TEXT], &[], &["a"]), Err(Mismatch::Rows { expected: 1, got: 0 }));
    assert_eq!(
        compare(3, &["a".to_owned()], &table(&[TEXT, TEXT], &["a", "b"])),
        Err(Mismatch::Columns { expected: 3, got: 2 })
    );
    assert_eq!(
        check(&[TEXT, TEXT], &["a", "b", "c", "d"], &["a", "b", "c"]),
        Err(Mismatch::Uneven { values: 3, columns: 2 })
    );
    assert_eq!(check(&[TEXT, TEXT], &["a", "b"], &["a\tb\tc"]), Err(Mismatch::Width { row: 1, expected: 2, got: 3 }));
    assert_eq!(check(&[TEXT, TEXT], &["a", "b"], &["a b"]), Err(Mismatch::Width { row: 1, expected: 2, got: 1 }));
}

#[test]
fn compares_numbers_as_numbers() {
    let exact = |expected, got| equal(Kind::Exact, expected, got);
    assert!(exact("1.50", "1.5") && exact("007", "7") && exact("-0", "0") && exact("+3", "3") && exact(".5", "0.5"));
    assert!(!exact("1.51", "1.5") && !exact("-7", "7") && !exact("", "0") && !exact("NULL", "0") && !exact(".", "0"));
    assert!(!exact("170141183460469231731687303715884105727", "170141183460469231731687303715884105728"));
    assert!(!equal(TEXT, "1.50", "1.5"));
}

#[test]
fn floating_point_is_approximate() {
    let close = |expected, got| equal(Kind::Approximate, expected, got);
    assert!(
        close("0.3", "0.30000000000000004") && close("1e3", "1000.0") && close("nan", "nan") && close("inf", "inf")
    );
    assert!(!close("1.0", "1.02") && !close("nan", "1.0") && !close("inf", "-inf") && !close("inf", "1.0"));
    assert!(!close("NULL", "0.0") && !close("0.0", "NULL"));
}

#[test]
fn booleans_have_two_spellings() {
    assert!(equal(Kind::Boolean, "1", "true") && equal(Kind::Boolean, "FALSE", "false"));
    assert!(!equal(Kind::Boolean, "0", "true") && !equal(Kind::Boolean, "yes", "NULL"));
    assert!(!equal(TEXT, "1", "true"));
}

#[test]
fn patterns_match_the_whole_value() {
    assert!(equal(TEXT, "<REGEX>:a.*z", "a\nz") && !equal(TEXT, "<REGEX>:a", "ab"));
    assert!(equal(TEXT, "<!REGEX>:a", "ab") && !equal(TEXT, "<!REGEX>:.*b", "ab"));
    assert!(!equal(TEXT, "<REGEX>:(", "(") && !equal(TEXT, "<!REGEX>:(", "x"));
    assert!(!equal(TEXT, "<REGEX>:a|b", "ax"));
}

#[test]
fn sorts_rows_and_values() {
    let values = ["b", "1", "a", "3", "a", "2"].map(str::to_owned).to_vec();
    let sorted = |style| {
        let mut copy = values.clone();
        sort(&mut copy, 2, style);
        copy.concat()
    };
    assert_eq!(sorted(Sort::None), "b1a3a2");
    assert_eq!(sorted(Sort::Rows), "a2a3b1");
    assert_eq!(sorted(Sort::Values), "123aab");
}

#[test]
fn knows_a_hash_line() {
    let line = |text: &str| as_hash(&[text.to_owned()]).is_some();
    assert!(line("30 values hashing to acd848208cc35c7324ece9fcdd507823"));
    assert!(!line("x values hashing to acd848208cc35c7324ece9fcdd507823"));
    assert!(!line("30 values hashing to acd848208cc35c7324ece9fcdd50782"));
    assert!(!line(" values hashing to acd848208cc35c7324ece9fcdd507823"));
    assert_eq!(as_hash(&[]), None);
    assert_eq!(hash_input(&["a".to_owned(), "b".to_owned()]), "a\nb\n");
}
