use crate::script::{Comparison, Condition};
use crate::variables::*;

#[test]
fn replaces_variables_and_directories() {
    let mut variables = Variables::new("/tmp/x", "/src");
    assert!(variables.define("URL", "http://h".to_owned()));
    assert!(!variables.define("URL", "other".to_owned()));
    assert!(!variables.define("TEST_DIR", "other".to_owned()));
    assert_eq!(
        variables.replace("${URL} {URL} $URL {'URL': 1} __TEST_DIR__/a {TEST_DIR} __WORKING_DIRECTORY__"),
        "http://h http://h $URL {'URL': 1} /tmp/x/a /tmp/x /src"
    );
}

#[test]
fn replaces_loop_variables() {
    let loops = Loops::default().with("i", "7").with("t,u", "a,b");
    assert_eq!(loops.replace("${i} {t} ${u} {x} i"), "7 a b {x} i");
    assert_eq!(loops.describe(), "i=7, t=a, u=b");
}

#[test]
fn conditions_compare_words_and_numbers() {
    let condition = |comparison, value: &str, skip| Condition {
        variable: "i".to_owned(),
        comparison,
        value: value.to_owned(),
        skip,
    };
    let loops = Loops::default().with("i", "10");
    assert_eq!(loops.admit(&[condition(Comparison::Greater, "9", false)]), Ok(true));
    assert_eq!(loops.admit(&[condition(Comparison::Greater, "9", true)]), Ok(false));
    assert_eq!(
        loops.admit(&[condition(Comparison::Less, "9", true), condition(Comparison::Equal, "10", false)]),
        Ok(true)
    );
    assert_eq!(loops.admit(&[condition(Comparison::NotEqual, "10", false)]), Ok(false));
    assert_eq!(
        loops.admit(&[
            condition(Comparison::LessOrEqual, "10", false),
            condition(Comparison::GreaterOrEqual, "11", false)
        ]),
        Ok(false)
    );
    assert!(loops.admit(&[condition(Comparison::Less, "x", false)]).is_err());
    assert!(Loops::default().admit(&[condition(Comparison::Equal, "1", false)]).is_err());
}
