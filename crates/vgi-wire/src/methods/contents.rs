//! `catalog_contents`: everything that a catalog has, in one reply.

use bytes::Bytes;

use super::Method;
use super::catalog::{ObjectInfo, SchemaInfo, SqlInfo};
use super::function::FunctionInfo;
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

    /// The reply. Tables and indexes are told by name alone.
    ///
    /// # Errors
    /// When a schema cannot be encoded.
    pub fn to_blob(&self) -> Result<Segments, WireError> {
        let objects = |objects: &[ObjectInfo]| category(objects.iter().map(|object| Ok(object.record())));
        RecordBuilder::new()
            .integer("catalog_version", self.catalog_version)
            .optional_text("etag", self.etag.as_deref())
            .flag("not_modified", self.not_modified)
            .optional_bytes("schemas", category(self.schemas.iter().map(|info| Ok(info.record())))?.as_deref())
            .optional_bytes("tables", objects(&self.tables)?.as_deref())
            .optional_bytes("views", category(self.views.iter().map(|view| Ok(view.view_record())))?.as_deref())
            .optional_bytes("functions", category(self.functions.iter().map(FunctionInfo::record))?.as_deref())
            .optional_bytes("macros", category(self.macros.iter().map(SqlInfo::macro_record))?.as_deref())
            .optional_bytes("indexes", objects(&self.indexes)?.as_deref())
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

    #[test]
    fn a_catalog_that_has_not_changed_has_no_contents() {
        let contents = CatalogContents { not_modified: true, etag: Some("e".to_owned()), ..CatalogContents::default() };
        let back = read(&contents);
        assert!(back.not_modified && back.functions.is_empty() && back.schemas.is_empty());
    }
}
