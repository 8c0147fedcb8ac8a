//! `catalog_contents`: everything that a catalog has, in one reply.

use bytes::Bytes;

use super::Method;
use super::catalog::{SchemaInfo, SqlInfo};
use super::function::FunctionInfo;
use super::object::ObjectInfo;
use super::outer::routing;
use crate::WireError;
use crate::generation::Dialect;
use crate::ipc::{self, Segments, StreamWriter};
use crate::record::{Record, RecordBuilder};
use crate::reply::UnaryReply;

/// How many rows a batch of a category has when this library writes it: far below what the keys of an enum can count.
const ROWS_PER_BATCH: usize = 1024;

/// The body of `catalog_contents`. With the `etag` of an earlier reply the server may answer that nothing has changed.
///
/// # Errors
/// Never in practice.
pub fn catalog_contents_body(dialect: &Dialect, attach: &Bytes, etag: Option<&str>) -> Result<Segments, WireError> {
    RecordBuilder::new()
        .bytes("attach_opaque_data", attach.clone())
        .optional_text("if_none_match", etag)
        .finish(&routing(dialect, Method::CatalogContents))
}

/// All objects of all schemas of a catalog.
#[derive(Clone, Debug, Default)]
pub struct CatalogContents {
    /// Counter of metadata changes.
    pub catalog_version: i64,
    /// Names this state of the catalog.
    pub etag: Option<String>,
    /// The state is the one whose etag was sent; everything else is empty then.
    pub not_modified: bool,
    /// Parents stand before their children.
    pub schemas: Vec<SchemaInfo>,
    /// Tables.
    pub tables: Vec<ObjectInfo>,
    /// Views.
    pub views: Vec<SqlInfo>,
    /// Functions of every kind.
    pub functions: Vec<FunctionInfo>,
    /// Scalar and table macros.
    pub macros: Vec<SqlInfo>,
    /// Indexes.
    pub indexes: Vec<ObjectInfo>,
    /// Objects that could not be read, such as those of a newer kind.
    pub unreadable: usize,
}

impl CatalogContents {
    /// Reads the reply.
    ///
    /// # Errors
    /// When it is not one. Single objects that cannot be read are left out.
    pub fn from_reply(reply: &UnaryReply) -> Result<Self, WireError> {
        let batch = reply.result()?;
        let record = Record::first(&batch)?;
        let mut contents = Self {
            catalog_version: record.integer("catalog_version").unwrap_or_default(),
            etag: record.optional_text("etag"),
            not_modified: record.flag("not_modified"),
            ..Self::default()
        };
        let unreadable = &mut contents.unreadable;
        contents.schemas = rows(&record, "schemas", unreadable, SchemaInfo::from_record)?;
        contents.tables = rows(&record, "tables", unreadable, ObjectInfo::from_record)?;
        contents.views = rows(&record, "views", unreadable, SqlInfo::from_record)?;
        contents.functions = rows(&record, "functions", unreadable, FunctionInfo::from_record)?;
        contents.macros = rows(&record, "macros", unreadable, SqlInfo::from_record)?;
        contents.indexes = rows(&record, "indexes", unreadable, ObjectInfo::from_record)?;
        Ok(contents)
    }

    /// The reply.
    ///
    /// # Errors
    /// When a schema cannot be encoded.
    pub fn to_blob(&self) -> Result<Segments, WireError> {
        RecordBuilder::new()
            .integer("catalog_version", self.catalog_version)
            .optional_text("etag", self.etag.as_deref())
            .flag("not_modified", self.not_modified)
            .optional_bytes("schemas", category(self.schemas.iter().map(|info| Ok(info.record())))?.as_deref())
            .optional_bytes("tables", category(self.tables.iter().map(ObjectInfo::table_record))?.as_deref())
            .optional_bytes("views", category(self.views.iter().map(|view| Ok(view.view_record())))?.as_deref())
            .optional_bytes("functions", category(self.functions.iter().map(FunctionInfo::record))?.as_deref())
            .optional_bytes("macros", category(self.macros.iter().map(SqlInfo::macro_record))?.as_deref())
            .optional_bytes("indexes", category(self.indexes.iter().map(|index| Ok(index.index_record())))?.as_deref())
            .finish(&[])
    }
}

/// The rows of one category, which is a stream of any number of batches.
fn rows<T>(
    record: &Record<'_>,
    name: &str,
    unreadable: &mut usize,
    read: impl Fn(&Record<'_>) -> Result<T, WireError>,
) -> Result<Vec<T>, WireError> {
    let Some(blob) = record.optional_bytes(name).filter(|blob| !blob.is_empty()) else { return Ok(Vec::new()) };
    let stream = ipc::decode_stream(blob)?;
    let mut found = Vec::with_capacity(stream.batches.iter().map(|batch| batch.batch.num_rows()).sum());
    for batch in &stream.batches {
        for row in Record::all(&batch.batch) {
            match read(&row) {
                Ok(item) => found.push(item),
                Err(_) => *unreadable += 1,
            }
        }
    }
    Ok(found)
}

/// A category; `None` when it is empty.
fn category(records: impl Iterator<Item = Result<RecordBuilder, WireError>>) -> Result<Option<Bytes>, WireError> {
    let mut records = records.peekable();
    let mut writer: Option<StreamWriter> = None;
    while records.peek().is_some() {
        let part = records.by_ref().take(ROWS_PER_BATCH).collect::<Result<Vec<_>, _>>()?;
        let batch = RecordBuilder::rows(part)?;
        if writer.is_none() {
            writer = Some(StreamWriter::new(&batch.schema())?);
        }
        if let Some(writer) = &mut writer {
            writer.write(&batch, &[])?;
        }
    }
    writer.map(|writer| Ok(writer.finish()?.to_bytes())).transpose()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::{DataType, Field, Schema};

    use super::*;
    use crate::methods::FunctionType;
    use crate::{reply, server};

    fn function(number: usize) -> FunctionInfo {
        let field = Field::new(format!("a{}", number % 7), DataType::Int64, true);
        let path = vec!["main".to_owned(), format!("s{}", number % 3)];
        let arguments = Arc::new(Schema::new(vec![field]));
        FunctionInfo {
            description: format!("The function {number}."),
            categories: vec!["numbers".to_owned()],
            projection_pushdown: number.is_multiple_of(2),
            sink_order_dependent: number.is_multiple_of(5),
            ..FunctionInfo::new(format!("f{number}"), path, FunctionType::TableBuffering, arguments)
        }
    }

    fn read(contents: &CatalogContents) -> CatalogContents {
        let body = server::result_body(&[], "s", None, contents.to_blob().unwrap()).unwrap().to_bytes();
        CatalogContents::from_reply(&reply::read_unary(body).unwrap()).unwrap()
    }

    #[test]
    fn thousands_of_functions_come_back_in_their_order() {
        let path = |path: &[&str]| path.iter().map(|&part| part.to_owned()).collect::<Vec<_>>();
        let contents = CatalogContents {
            catalog_version: 7,
            etag: Some("e".to_owned()),
            schemas: [path(&["main"]), path(&["main", "s0"])].map(|path| SchemaInfo { path, comment: None }).into(),
            functions: (0..2500).map(function).collect(),
            ..CatalogContents::default()
        };
        let back = read(&contents);
        assert_eq!((back.catalog_version, back.etag.as_deref(), back.not_modified), (7, Some("e"), false));
        assert_eq!(back.schemas, contents.schemas);
        assert_eq!((back.functions.len(), back.unreadable), (2500, 0));
        for (back, sent) in back.functions.iter().zip(&contents.functions) {
            assert_eq!((&back.name, &back.schema_path), (&sent.name, &sent.schema_path));
            assert_eq!(back.arguments, sent.arguments, "{}", sent.name);
            assert_eq!(
                (back.projection_pushdown, back.sink_order_dependent),
                (sent.projection_pushdown, sent.sink_order_dependent)
            );
        }
    }

    /// What the protocol lists, in its order and notation: `!` is not null.
    const BEGIN: [&str; 4] = ["comment utf8?", "tags map<utf8,utf8>!", "name utf8!", "schema_path list<utf8>!"];
    const TABLE: [&str; 17] = [
        "columns binary!",
        "not_null_constraints list<int32>!",
        "unique_constraints list<list<int32>>!",
        "check_constraints list<utf8>!",
        "primary_key_constraints list<list<int32>>!",
        "foreign_key_constraints list<binary>!",
        "write_result_modes map<utf8,utf8>!",
        "supports_column_statistics bool!",
        "scan_function binary?",
        "insert_function binary?",
        "update_function binary?",
        "delete_function binary?",
        "cardinality_estimate int64?",
        "cardinality_max int64?",
        "column_statistics binary?",
        "bind_result binary?",
        "required_filters list<list<utf8>>!",
    ];
    const INDEX: [&str; 5] = [
        "table_name utf8!",
        "index_type utf8!",
        "constraint_type dictionary<int16,utf8>!",
        "expressions list<utf8>!",
        "options map<utf8,utf8>!",
    ];

    fn notation(data_type: &DataType) -> String {
        match data_type {
            DataType::List(item) => format!("list<{}>", notation(item.data_type())),
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(fields) => {
                    format!("map<{},{}>", notation(fields[0].data_type()), notation(fields[1].data_type()))
                }
                other => panic!("no entries: {other}"),
            },
            DataType::Dictionary(keys, values) => format!("dictionary<{},{}>", notation(keys), notation(values)),
            DataType::Boolean => "bool".to_owned(),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    fn shape(record: RecordBuilder) -> Vec<String> {
        let rows = RecordBuilder::rows(vec![record]).unwrap();
        let field = |field: &Arc<Field>| {
            format!("{} {}{}", field.name(), notation(field.data_type()), if field.is_nullable() { '?' } else { '!' })
        };
        rows.schema().fields().iter().map(field).collect()
    }

    #[test]
    fn tables_and_indexes_have_the_columns_that_the_protocol_lists() {
        let object = |name: &str| ObjectInfo {
            name: name.to_owned(),
            schema_path: vec!["main".to_owned()],
            comment: Some("c".to_owned()),
        };
        let contents = CatalogContents {
            tables: vec![object("t1"), object("t2")],
            indexes: vec![object("i")],
            ..CatalogContents::default()
        };
        let back = read(&contents);
        assert_eq!((&back.tables, &back.indexes, back.unreadable), (&contents.tables, &contents.indexes, 0));
        assert_eq!(shape(object("t").table_record().unwrap()), BEGIN.iter().chain(&TABLE).copied().collect::<Vec<_>>());
        assert_eq!(shape(object("i").index_record()), BEGIN.iter().chain(&INDEX).copied().collect::<Vec<_>>());
    }

    #[test]
    fn a_catalog_that_has_not_changed_has_no_contents() {
        let contents = CatalogContents { not_modified: true, etag: Some("e".to_owned()), ..CatalogContents::default() };
        let back = read(&contents);
        assert!(back.not_modified && back.functions.is_empty() && back.schemas.is_empty());
    }
}
