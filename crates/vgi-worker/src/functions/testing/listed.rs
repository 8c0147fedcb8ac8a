//! Objects of every kind that a client may see in a listing; most of them cannot be called here.

use std::sync::Arc;

use arrow_array::Int64Array;
use arrow_schema::{DataType, Field, Schema};
use vgi_wire::methods::{Example, FunctionInfo, FunctionType, ObjectInfo};

use crate::catalog::Catalog;

pub(super) fn declare(catalog: &mut Catalog) {
    catalog.declare_view("main", "three_numbers", "SELECT i FROM range(3) r(i)");
    catalog.declare_view("main", "view_in_another_dialect", "SELEKT * FROM nothing; nothing");
    catalog.declare_macro("main", "plus_one", &["x"], "x + 1", false);
    catalog.declare_macro("main", "times", &["x", "factor"], "x * factor", false);
    if let Some(times) = catalog.macros.last_mut() {
        times.defaults = vec![("factor".to_owned(), Arc::new(Int64Array::from(vec![10])))];
    }
    catalog.declare_macro("main", "numbers_below", &["n"], "SELECT i FROM range(n) r(i)", true);
    let object = |name: &str| ObjectInfo {
        name: name.to_owned(),
        schema_path: vec!["main".to_owned()],
        comment: Some("Only listed.".to_owned()),
    };
    catalog.listed.tables.push(object("listed_table"));
    catalog.listed.indexes.push(object("listed_index"));
    for (name, kind) in [
        ("listed_scalar", FunctionType::Scalar),
        ("listed_aggregate", FunctionType::Aggregate),
        ("listed_streaming", FunctionType::Table),
    ] {
        catalog.listed.functions.push(function(name, kind));
    }
}

fn function(name: &str, function_type: FunctionType) -> FunctionInfo {
    let arguments = Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, true)]));
    FunctionInfo {
        description: "Only listed.".to_owned(),
        examples: vec![Example { sql: format!("SELECT {name}(1);"), description: "An error.".to_owned() }],
        ..FunctionInfo::new(name, vec!["main".to_owned()], function_type, arguments)
    }
}
