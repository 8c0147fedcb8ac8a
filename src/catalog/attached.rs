//! One attached catalog.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::Array;
use arrow_cast::display::array_value_to_string;
use arrow_schema::Schema;
use vgi_transport::{Attachment, FunctionKind, Options};
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
    /// Whether listings are kept.
    caching: bool,
    log: Arc<CallLog>,
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
    pub(super) fn new(attachment: Arc<Attachment>, caching: bool) -> Self {
        Self { attachment: Mutex::new(attachment), caching, log: Arc::default() }
    }

    /// Lines for DuckDB's log.
    pub fn log(&self) -> &CallLog {
        &self.log
    }

    /// Whether listings are kept.
    pub fn caching(&self) -> bool {
        self.caching
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
        *self.attachment.lock().unwrap_or_else(PoisonError::into_inner) = quiet;
        Ok(attachment)
    }

    fn for_listing(&self, context: &ffi::ClientContext) -> Result<Arc<Attachment>, Error> {
        if !self.caching {
            self.forget();
        }
        self.attachment(context, &self.log)
    }

    /// Forgets what the server listed.
    pub fn forget(&self) {
        self.current().forget_listings();
    }

    /// Names of the schemas, dotted when nested, with their comments.
    pub fn list_schemas(&self, context: &ffi::ClientContext) -> Result<Vec<(String, String)>, Error> {
        let schemas = self.for_listing(context)?.schemas(&QueryInterrupt(context))?;
        let mut names: Vec<_> =
            schemas.iter().map(|info| (info.path.join("."), info.comment.clone().unwrap_or_default())).collect();
        let default = self.default_schema_name();
        if !names.iter().any(|(name, _)| *name == default) {
            names.push((default, String::new()));
        }
        Ok(names)
    }

    /// The functions of a schema that can be called.
    pub fn list_callable(
        &self,
        mut context: Pin<&mut ffi::ClientContext>,
        schema: &str,
    ) -> Result<FunctionList, Error> {
        let functions = self.of_kind(&context, schema, FunctionKind::Table)?;
        let callable = functions.into_iter().filter(|function| function.function_type == FunctionType::TableBuffering);
        Ok(FunctionList::new(context.as_mut(), callable.collect()))
    }

    /// The functions that the catalog publishes for use without its name, and that can be called.
    pub fn list_published(&self, context: Pin<&mut ffi::ClientContext>) -> FunctionList {
        let attachment = self.current();
        let reply = attachment.reply();
        let functions = reply.global_functions.iter().filter_map(|blob| FunctionInfo::from_blob(blob.clone()).ok());
        let callable = functions.filter(|function| function.function_type == FunctionType::TableBuffering);
        FunctionList::published(context, callable.collect(), reply.global_function_prefix.clone())
    }

    fn of_kind(
        &self,
        context: &ffi::ClientContext,
        schema: &str,
        kind: FunctionKind,
    ) -> Result<Vec<FunctionInfo>, Error> {
        let attachment = self.for_listing(context)?;
        Ok(attachment.list_functions(&path(schema), kind, &QueryInterrupt(context))?)
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
        if table {
            let tables = self.attachment(context, &self.log)?.list_tables(&path(schema), &QueryInterrupt(context))?;
            let found = tables.iter().any(|(table, _)| table.eq_ignore_ascii_case(name));
            return Ok(if found { sentence("a table") } else { String::new() });
        }
        for (kind, text) in [
            (FunctionKind::Table, "a table function that is not buffering"),
            (FunctionKind::Scalar, "a scalar function"),
            (FunctionKind::Aggregate, "an aggregate function"),
        ] {
            let functions = self.of_kind(context, schema, kind)?;
            let unsupported = |function: &&FunctionInfo| {
                function.name.eq_ignore_ascii_case(name) && function.function_type != FunctionType::TableBuffering
            };
            if functions.iter().any(|function| unsupported(&function)) {
                return Ok(sentence(text));
            }
        }
        Ok(String::new())
    }

    /// The views of a schema.
    pub fn list_views(&self, context: &ffi::ClientContext, schema: &str) -> Result<Vec<SqlObject>, Error> {
        let views = self.for_listing(context)?.list_views(&path(schema), &QueryInterrupt(context))?;
        Ok(views
            .into_iter()
            .map(|view| object(format!("CREATE VIEW {} AS {}", quoted(&view.name), view.definition), view))
            .collect())
    }

    /// The macros of a schema.
    pub fn list_macros(&self, context: &ffi::ClientContext, schema: &str) -> Result<Vec<SqlObject>, Error> {
        let macros = self.for_listing(context)?.list_macros(&path(schema), &QueryInterrupt(context))?;
        let statement = |info: &SqlInfo| {
            let parameters: Vec<_> = info.parameters.iter().map(|name| quoted(name)).collect();
            let table = if info.table { "TABLE " } else { "" };
            format!("CREATE MACRO {}({}) AS {table}{}", quoted(&info.name), parameters.join(", "), info.definition)
        };
        Ok(macros.into_iter().map(|info| object(statement(&info), info)).collect())
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

fn object(statement: String, info: SqlInfo) -> SqlObject {
    SqlObject { name: info.name, statement, comment: info.comment.unwrap_or_default() }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The path of a dotted name.
pub(super) fn path(schema: &str) -> Vec<String> {
    schema.split('.').map(str::to_owned).collect()
}
