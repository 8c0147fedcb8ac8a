//! What is generated, and what is refused.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use syn::DeriveInput;

use super::args;

fn expanded(source: &str) -> String {
    let text = args(&syn::parse_str::<DeriveInput>(source).unwrap()).unwrap().to_string();
    text.split_whitespace().collect()
}

/// The messages of all errors.
fn refused(source: &str) -> Vec<String> {
    let error = args(&syn::parse_str::<DeriveInput>(source).unwrap()).unwrap_err();
    error.into_iter().map(|error| error.to_string()).collect()
}

fn refused_field(field: &str) -> String {
    refused(&format!("struct A {{ {field} }}")).join("; ")
}

#[test]
fn fields_become_arguments() {
    let code = expanded(
        r#"struct A {
            #[arg(doc = "How many.", range = 1..=100)] k: usize,
            #[arg(name = "type", pattern = "[a-z]+")] r#type: Option<String>,
            /// Read
            /// more.
            #[arg(named, default = -1.5, choices = [-1.5, 2.0])] scale: f64,
        }"#,
    );
    for part in [
        r#"::vgi_worker::Argument::positional::<usize>("k","Howmany.").range((::std::ops::Bound::Included(::vgi_worker::DefaultValue::Integer(1)),::std::ops::Bound::Included(::vgi_worker::DefaultValue::Integer(100))))"#,
        r#"::vgi_worker::Argument::positional::<Option<String>>("type","").or(::vgi_worker::DefaultValue::Null).pattern("[a-z]+")"#,
        r#"::vgi_worker::Argument::named::<f64>("scale",::vgi_worker::DefaultValue::Double(-1.5),"Readmore.").choices([::vgi_worker::DefaultValue::Double(-1.5),::vgi_worker::DefaultValue::Double(2.0)])"#,
        r#"r#type:values.get::<Option<String>>("type")?"#,
    ] {
        assert!(code.contains(part), "{part}\nis not in\n{code}");
    }
}

#[test]
fn repeated_and_flattened_arguments() {
    let code = expanded(
        "struct A {
            #[arg(varargs, any, range = 0.0..1.0)] probs: std::vec::Vec<f64>,
            #[arg(flatten)] rest: Rest,
        }",
    );
    for part in [
        r#"any_varargs("probs","").range((::std::ops::Bound::Included(::vgi_worker::DefaultValue::Double(0.0)),::std::ops::Bound::Excluded("#,
        r#"probs:values.many::<f64>("probs")?"#,
        "declared.extend(<Restas::vgi_worker::Args>::declare());",
        "rest:<Restas::vgi_worker::Args>::parse(values)?",
    ] {
        assert!(code.contains(part), "{part}\nis not in\n{code}");
    }
    let code = expanded(
        "struct A { #[arg(varargs, default = [])] by: Vec<String>, #[arg(named, default = [1, 2])] n: Vec<i64> }",
    );
    assert!(code.contains(r#"varargs::<String>("by","").or(::vgi_worker::DefaultValue::Nothing)"#), "{code}");
    assert!(code.contains("DefaultValue::List(::std::vec![::vgi_worker::DefaultValue::Integer(1),"), "{code}");
    let code = expanded("struct A { #[arg(named, default = SEED)] seed: i64 }");
    assert!(code.contains("::vgi_worker::DefaultValue::from(SEED)"), "{code}");
}

#[test]
fn only_structs_with_named_fields_have_arguments() {
    assert!(refused("enum A { B }")[0].contains("derived for a struct"));
    assert!(refused("struct A(i64);")[0].contains("named fields"));
    assert!(refused("struct A;")[0].contains("type Args = ()"));
    assert!(expanded("struct A<T: X> { #[arg(flatten)] t: T }").contains("impl<T:X>::vgi_worker::ArgsforA<T>"));
}

#[test]
fn what_cannot_be_called_is_refused() {
    for (field, reason) in [
        ("#[arg(nmaed)] a: i64", "unknown setting"),
        ("#[arg(named, default = 1, default = 2)] a: i64", "`default` is given twice"),
        ("#[arg(named)] a: i64", "give it a `default`"),
        ("#[arg(default = 1)] a: Option<i64>", "need not be an `Option`"),
        ("#[arg(varargs)] a: i64", "read into a `Vec`"),
        ("#[arg(varargs, named)] a: Vec<i64>", "cannot be `named`"),
        ("#[arg(varargs, default = [1])] a: Vec<i64>", "no other default than `[]`"),
        ("#[arg(any)] a: Vec<i64>", "`any` stands with `varargs`"),
        ("#[arg(flatten, named)] a: B", "no other setting"),
        ("#[arg(default = 'x')] a: String", "wants a text"),
        ("#[arg(default = 1)] a: bool", "wants true or false"),
        ("#[arg(default = 1.5)] a: i64", "wants an integer"),
        ("#[arg(default = -\"x\")] a: f64", "wants a number"),
        ("#[arg(default = 1)] a: Vec<i64>", "default of a list is a list"),
        ("#[arg(choices = \"a\")] a: String", "`choices` is a list"),
        ("#[arg(choices = [\"a\", 1])] a: String", "wants a text"),
        ("#[arg(range = 5)] a: i64", "`range` is a range"),
        ("#[arg(range = ..)] a: i64", "without bounds"),
        ("#[arg(range = 0..\"x\")] a: i64", "wants an integer"),
        ("#[arg(range = 0..5)] a: String", "only numbers"),
        ("#[arg(pattern = \"x\")] a: i64", "only texts"),
        ("#[arg(named, default = 1)] a: i64, b: i64", "before all named ones"),
        ("#[arg(varargs)] a: Vec<i64>, b: i64", "follow an argument that repeats"),
        ("a: Option<i64>, b: i64", "required argument stands before"),
        ("a: i64, #[arg(name = \"a\")] b: i64", "`a` is declared twice"),
    ] {
        let message = refused_field(field);
        assert!(message.contains(reason), "{field}: {message}");
    }
}

#[test]
fn all_errors_are_told_at_once() {
    // where each stands cannot be asked outside of the compiler
    let told = refused("struct A { #[arg(named)] a: i64, #[arg(varargs)] b: i64 }");
    assert_eq!(told.len(), 3, "{told:?}");
}
