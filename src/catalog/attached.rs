//! One attached catalog.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{Array, ArrayRef};
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, Schema};
use vgi_transport::{Attachment, FunctionKind, Listing, Options};
use vgi_wire::methods::{FunctionInfo, FunctionType, SecretTypeSpec, SettingSpec, SqlInfo};

use super::listing::FunctionList;
use crate::bridge::{QueryInterrupt, SharedType, ffi};
use crate::convert;
use crate::error::{Error, ExceptionClass};
use crate::logging::CallLog;
use crate::settings;

/// What a catalog of DuckDB's forwards to. Shared by all connections of a database.
pub struct AttachedCatalog {
    attachment: Mutex<Arc<Attachment>>,
    /// Whether listings are kept for more than one statement.
    caching: bool,
    /// Whether what the catalog publishes is made known.
    publishing: bool,
    asked: Mutex<Asked>,
    log: Arc<CallLog>,
}

/// The statements for which the server was last asked whether its catalog has changed.
#[derive(Default)]
struct Asked {
    /// At its first look at the catalog.
    first: u64,
    /// Because a name was not there.
    missing: u64,
}

/// A schema as DuckDB is shown it.
pub struct SchemaEntry {
    /// The whole path, dotted; what the other methods call the schema.
    pub path: String,
    /// The path of what it is in; empty at the top.
    pub parent: String,
    /// Its own name.
    pub name: String,
    /// Description.
    pub comment: String,
}

/// A view or macro, as a statement that makes it.
pub struct SqlObject {
    /// Its name.
    pub name: String,
    /// `CREATE VIEW …` or `CREATE MACRO …`
    pub statement: String,
    /// Description.
    pub comment: String,
}

impl AttachedCatalog {
    pub(super) fn new(attachment: Arc<Attachment>, caching: bool, publishing: bool) -> Self {
        attachment.hold();
        Self { attachment: Mutex::new(attachment), caching, publishing, asked: Mutex::default(), log: Arc::default() }
    }

    /// Lines for DuckDB's log.
    pub fn log(&self) -> &CallLog {
        &self.log
    }

    /// Schema of names without one.
    pub fn default_schema_name(&self) -> String {
        self.current().default_schema().to_owned()
    }

    /// What the server was asked for.
    pub fn catalog_name(&self) -> String {
        self.current().catalog().to_owned()
    }

    /// The server.
    pub fn server(&self) -> String {
        self.current().location().as_str().to_owned()
    }

    fn current(&self) -> Arc<Attachment> {
        Arc::clone(&self.attachment.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The attachment, for one query: with its clocks and its log. Attaches anew when the server's answers were forgotten.
    pub fn attachment(&self, context: &ffi::ClientContext, log: &Arc<CallLog>) -> Result<Arc<Attachment>, Error> {
        log.listen(context);
        let options = Options { events: Some(Arc::clone(log) as _), ..settings::transport_options(context)? };
        let attachment = self.current().with_options(&options, &QueryInterrupt(context))?;
        // the kept one must not keep the query's log alive
        let quiet = attachment.with_options(&Options { events: None, ..options }, &QueryInterrupt(context))?;
        let renewed = !quiet.shares(&self.current());
        if renewed {
            quiet.hold();
        }
        let before = std::mem::replace(&mut *self.attachment.lock().unwrap_or_else(PoisonError::into_inner), quiet);
        if renewed {
            before.leave();
        }
        Ok(attachment)
    }

    /// Asks the server something about the catalog. One that has lost the attachment is attached anew and asked again, once.
    pub(super) fn ask<T>(
        &self,
        context: &ffi::ClientContext,
        question: impl Fn(&Arc<Attachment>) -> Result<T, vgi_transport::Error>,
    ) -> Result<T, Error> {
        Ok(self.attachment(context, &self.log)?.renewing(&QueryInterrupt(context), question)?)
    }

    /// Forgets what the server listed.
    pub fn forget(&self) {
        self.current().forget_listings();
    }

    /// A number that is another one whenever the catalog's entries must be made anew. Each statement's first look may ask the server.
    pub fn stamp(&self, context: &ffi::ClientContext) -> Result<u64, Error> {
        let statement = ffi::statement_of(context);
        let last = std::mem::replace(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner).first, statement);
        if last != statement {
            if self.caching {
                self.check(context, false)?;
            } else {
                self.attachment(context, &self.log)?.forget_listings();
            }
        }
        Ok(self.attachment(context, &self.log)?.listing_stamp())
    }

    /// Whether there may be more now than before: asked when a name is not there, at most once for each statement.
    pub fn changed(&self, context: &ffi::ClientContext) -> Result<bool, Error> {
        let statement = ffi::statement_of(context);
        let last = std::mem::replace(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner).missing, statement);
        if last == statement {
            return Ok(false);
        }
        let before = self.attachment(context, &self.log)?.listing_stamp();
        self.check(context, true)?;
        Ok(self.attachment(context, &self.log)?.listing_stamp() != before)
    }

    /// A server that cannot be asked is no reason to fail a statement that may only look for a name in passing.
    fn check(&self, context: &ffi::ClientContext, anyway: bool) -> Result<(), Error> {
        match self.ask(context, |attachment| attachment.check_version(anyway, &QueryInterrupt(context))) {
            Err(error) if error.class() == ExceptionClass::Interrupt => Err(error),
            _ => Ok(()),
        }
    }

    /// The schemas; each stands after what it is in.
    pub fn list_schemas(&self, context: &ffi::ClientContext) -> Result<Vec<SchemaEntry>, Error> {
        let schemas = self.ask(context, |attachment| attachment.schemas(&QueryInterrupt(context)))?;
        let mut entries: Vec<SchemaEntry> = Vec::with_capacity(schemas.len());
        for info in schemas.iter() {
            add_schema(&mut entries, &info.path, info.comment.as_deref().unwrap_or_default());
        }
        add_schema(&mut entries, &self.current().path_of(&self.default_schema_name()), "");
        Ok(entries)
    }

    /// The functions of a schema that can be called.
    pub fn list_callable(
        &self,
        mut context: Pin<&mut ffi::ClientContext>,
        schema: &str,
    ) -> Result<FunctionList, Error> {
        let listing = self.of_kind(&context, schema, FunctionKind::Table)?;
        let callable =
            listing.functions.iter().filter(|function| function.function_type == FunctionType::TableBuffering);
        Ok(FunctionList::new(context.as_mut(), callable.cloned()))
    }

    /// The functions that the catalog publishes for use without its name, and that can be called.
    pub fn list_published(&self, context: Pin<&mut ffi::ClientContext>) -> FunctionList {
        let attachment = self.current();
        let reply = attachment.reply();
        let functions = reply.global_functions.iter().filter_map(|blob| FunctionInfo::from_blob(blob.clone()).ok());
        let callable =
            functions.filter(|function| self.publishing && function.function_type == FunctionType::TableBuffering);
        FunctionList::published(context, callable, reply.global_function_prefix.clone())
    }

    fn of_kind(&self, context: &ffi::ClientContext, schema: &str, kind: FunctionKind) -> Result<Arc<Listing>, Error> {
        let interrupt = QueryInterrupt(context);
        self.ask(context, |attachment| attachment.list_functions(&attachment.path_of(schema), kind, &interrupt))
    }

    /// Why a name of the schema cannot be used, when it is a function of a kind that is not supported or a table; empty when the schema
    /// has no such name.
    pub fn why_not(
        &self,
        context: &ffi::ClientContext,
        schema: &str,
        name: &str,
        table: bool,
    ) -> Result<String, Error> {
        let sentence = |kind: &str| {
            format!("'{name}' of catalog '{}' is {kind}, which this version of vgi cannot use yet", self.catalog_name())
        };
        let interrupt = QueryInterrupt(context);
        if table {
            let tables =
                self.ask(context, |attachment| attachment.list_tables(&attachment.path_of(schema), &interrupt))?;
            let found = tables.iter().any(|table| table.name.eq_ignore_ascii_case(name));
            return Ok(if found { sentence("a table") } else { String::new() });
        }
        for (kind, text) in [
            (FunctionKind::Table, "a table function that is not buffering"),
            (FunctionKind::Scalar, "a scalar function"),
            (FunctionKind::Aggregate, "an aggregate function"),
        ] {
            let listing = self.of_kind(context, schema, kind)?;
            let unsupported = |function: &FunctionInfo| {
                function.name.eq_ignore_ascii_case(name) && function.function_type != FunctionType::TableBuffering
            };
            if listing.functions.iter().any(unsupported) {
                return Ok(sentence(text));
            }
        }
        Ok(String::new())
    }

    /// The views of a schema.
    pub fn list_views(&self, context: &ffi::ClientContext, schema: &str) -> Result<Vec<SqlObject>, Error> {
        let interrupt = QueryInterrupt(context);
        let views = self.ask(context, |attachment| attachment.list_views(&attachment.path_of(schema), &interrupt))?;
        let statement = |view: &SqlInfo| format!("CREATE VIEW {} AS {}", quoted(&view.name), view.definition);
        Ok(views.iter().map(|view| object(statement(view), view)).collect())
    }

    /// The macros of a schema.
    pub fn list_macros(&self, context: &ffi::ClientContext, schema: &str) -> Result<Vec<SqlObject>, Error> {
        let interrupt = QueryInterrupt(context);
        let macros = self.ask(context, |attachment| attachment.list_macros(&attachment.path_of(schema), &interrupt))?;
        let statement = |info: &SqlInfo| {
            let parameters: Vec<_> = info.parameters.iter().map(|name| parameter(info, name)).collect();
            let table = if info.table { "TABLE " } else { "" };
            format!("CREATE MACRO {}({}) AS {table}{}", quoted(&info.name), parameters.join(", "), info.definition)
        };
        Ok(macros.iter().map(|info| object(statement(info), info)).collect())
    }

    /// How many settings the catalog declares.
    pub fn setting_count(&self) -> usize {
        self.current().reply().settings.len()
    }

    /// Name of a declared setting.
    pub fn setting_name(&self, setting: usize) -> String {
        self.setting(setting).map(|spec| spec.name).unwrap_or_default()
    }

    /// Description of a declared setting.
    pub fn setting_description(&self, setting: usize) -> String {
        self.setting(setting).map(|spec| spec.description).unwrap_or_default()
    }

    /// Default of a declared setting as text; empty for NULL.
    pub fn setting_default(&self, setting: usize) -> String {
        let default = self.setting(setting).and_then(|spec| spec.default);
        let default = default.filter(|value| value.is_valid(0));
        default.and_then(|value| array_value_to_string(&value, 0).ok()).unwrap_or_default()
    }

    /// Type of a declared setting.
    pub fn type_of_setting(&self, context: Pin<&mut ffi::ClientContext>, setting: usize) -> Result<SharedType, Error> {
        let missing = || Error::new(ExceptionClass::Io, "the catalog declares a setting without a type");
        let spec = self.setting(setting).ok_or_else(missing)?;
        let types = convert::duckdb_types(context, &Schema::new(vec![spec.field]), &[])?;
        types.into_iter().next().map(|(_, column_type)| column_type).ok_or_else(missing)
    }

    /// Whether statements in the catalog belong to transactions of the server's.
    pub fn has_transactions(&self) -> bool {
        self.current().reply().supports_transactions
    }

    /// The types of secrets that the catalog declares.
    pub fn declared_secret_types(&self) -> Vec<SecretTypeSpec> {
        self.current().reply().secret_types.clone()
    }

    /// Types of the parameters of one of them, in their order.
    pub fn types_of_secret(
        &self,
        context: Pin<&mut ffi::ClientContext>,
        secret_type: usize,
    ) -> Result<Vec<SharedType>, Error> {
        let specs = self.declared_secret_types();
        let Some(spec) = specs.get(secret_type) else { return Ok(Vec::new()) };
        let types = convert::duckdb_types(context, &spec.parameters, &[])?;
        Ok(types.into_iter().map(|(_, parameter)| parameter).collect())
    }

    fn setting(&self, setting: usize) -> Option<SettingSpec> {
        self.current().reply().settings.get(setting).cloned()
    }
}

/// The server hears of the end of the attachment when nobody else uses it.
impl Drop for AttachedCatalog {
    fn drop(&mut self) {
        self.current().leave();
    }
}

/// Adds a schema, and before it what it is in.
fn add_schema(entries: &mut Vec<SchemaEntry>, path: &[String], comment: &str) {
    let joined = path.join(".");
    if let Some(known) = entries.iter_mut().find(|entry| entry.path == joined) {
        if known.comment.is_empty() {
            comment.clone_into(&mut known.comment);
        }
        return;
    }
    let Some((name, parents)) = path.split_last() else { return };
    if !parents.is_empty() {
        add_schema(entries, parents, "");
    }
    let (parent, name, comment) = (parents.join("."), name.clone(), comment.to_owned());
    entries.push(SchemaEntry { path: joined, parent, name, comment });
}

fn object(statement: String, info: &SqlInfo) -> SqlObject {
    SqlObject { name: info.name.clone(), statement, comment: info.comment.clone().unwrap_or_default() }
}

/// A parameter of a macro, with its default.
fn parameter(info: &SqlInfo, name: &str) -> String {
    match info.defaults.iter().find(|(parameter, _)| parameter == name) {
        Some((_, value)) => format!("{} := {}", quoted(name), literal(value)),
        None => quoted(name),
    }
}

/// A value as SQL writes it; what is neither number nor truth value as text, which DuckDB casts.
fn literal(value: &ArrayRef) -> String {
    let data_type = value.data_type();
    match array_value_to_string(value, 0).ok().filter(|_| value.is_valid(0)) {
        None => "NULL".to_owned(),
        Some(text) if data_type.is_numeric() || *data_type == DataType::Boolean => text,
        Some(text) => format!("'{}'", text.replace('\'', "''")),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
