//! The door between C++ and Rust: every function that either side calls in the other is declared here.
//!
//! A panic must not reach C++, so everything that does work runs inside `contain`. `unsafe` stands here and in `convert`, where Arrow
//! structures change hands. DuckDB's objects come in as references that C++ guarantees for the duration of a call.
#![allow(
    missing_docs,
    reason = "the docs of bridged functions stand at their C++ declarations and on the types behind them"
)]
#![allow(clippy::unnecessary_box_returns, reason = "C++ holds Rust values in boxes")]

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cxx::{CxxString, UniquePtr};
use vgi_wire::methods::SecretTypeSpec;

use crate::buffering::{CallPlan, Execution, SinkThread, SourceThread};
use crate::call::{BoundCall, CallRequest, FilterBuilder};
use crate::calls;
use crate::catalog::{self, AttachStatement, AttachedCatalog, CatalogTransaction, FunctionList};
use crate::error::{Error, ExceptionClass};
use crate::logging::CallLog;
use crate::settings;

#[allow(
    unused_qualifications,
    let_underscore_drop,
    clippy::panic,
    clippy::missing_safety_doc,
    clippy::unnecessary_box_returns,
    reason = "the code that the bridge generates, and boxes, which are how it hands Rust values to C++"
)]
#[cxx::bridge(namespace = "vgi")]
pub mod ffi {
    /// A setting to register.
    struct Setting {
        name: String,
        description: String,
        type_name: String,
        default_value: String,
    }

    /// A row of `vgi_calls()`. Counts and times are in the order of their names.
    struct CallRow {
        call_id: u64,
        started_micros: i64,
        function_name: String,
        server: String,
        execution_id: String,
        state: String,
        error: String,
        milliseconds: f64,
        counts: Vec<u64>,
        times: Vec<f64>,
    }

    /// What a secret of type `vgi` holds.
    struct SecretValues {
        found: bool,
        token: String,
        header_names: Vec<String>,
        header_values: Vec<String>,
        ca_cert_file: String,
    }

    /// A type of secrets that a catalog declares.
    struct DeclaredSecretType {
        name: String,
        parameters: Vec<String>,
        /// Whether the parameter's value must not be shown.
        hidden: Vec<bool>,
    }

    /// A schema of a catalog; each stands after what it is in.
    struct SchemaEntry {
        path: String,
        parent: String,
        name: String,
        comment: String,
    }

    /// A view or macro, as the statement that makes it.
    struct SqlEntry {
        name: String,
        statement: String,
        comment: String,
    }

    /// Where the rows of a vector stand.
    struct VectorView {
        /// The values, of the vector's physical type.
        values: *const u8,
        /// The place of each row's value; null where it is the row's number.
        selection: *const u32,
        /// A bit for each place, set where there is a value; null where there is one everywhere.
        validity: *const u64,
    }

    /// A row of text.
    struct TextRow {
        cells: Vec<String>,
    }

    /// A line of EXPLAIN.
    struct Entry {
        key: String,
        value: String,
    }

    extern "Rust" {
        type AttachStatement;
        type AttachedCatalog;
        type CatalogTransaction;
        type FunctionList;
        type CallRequest;
        type BoundCall;
        type CallPlan;
        type FilterBuilder;
        type Execution;
        type SinkThread;
        type SourceThread;

        fn settings() -> Vec<Setting>;
        fn check_setting(name: &str, value: &Value) -> Result<()>;
        fn database_opened();
        fn database_closed(database: usize);
        fn last_calls(database: usize) -> Vec<CallRow>;
        fn call_count_names() -> Vec<String>;
        fn call_time_names() -> Vec<String>;

        fn new_attach_statement(catalog: &CxxString) -> Box<AttachStatement>;
        fn add_option(self: &mut AttachStatement, name: &CxxString, value: &Value);
        fn attach(self: &AttachStatement, context: Pin<&mut ClientContext>) -> Result<Box<AttachedCatalog>>;
        fn catalog_name(self: &AttachedCatalog) -> String;
        fn server(self: &AttachedCatalog) -> String;
        fn default_schema_name(self: &AttachedCatalog) -> String;
        fn forget(self: &AttachedCatalog);
        fn listing_stamp(self: &AttachedCatalog, context: &ClientContext) -> Result<u64>;
        fn has_changed(self: &AttachedCatalog, context: &ClientContext) -> Result<bool>;
        fn schemas(self: &AttachedCatalog, context: &ClientContext) -> Result<Vec<SchemaEntry>>;
        fn functions(
            self: &AttachedCatalog,
            context: Pin<&mut ClientContext>,
            schema: &CxxString,
        ) -> Result<Box<FunctionList>>;
        fn views(self: &AttachedCatalog, context: &ClientContext, schema: &CxxString) -> Result<Vec<SqlEntry>>;
        fn macros(self: &AttachedCatalog, context: &ClientContext, schema: &CxxString) -> Result<Vec<SqlEntry>>;
        fn refusal(
            self: &AttachedCatalog,
            context: &ClientContext,
            schema: &CxxString,
            name: &CxxString,
            table: bool,
        ) -> Result<String>;
        fn catalog_contents(self: &AttachedCatalog, context: &ClientContext) -> Result<Vec<TextRow>>;
        fn offered_catalogs(context: &ClientContext, location: &CxxString) -> Result<Vec<TextRow>>;
        fn setting_count(self: &AttachedCatalog) -> usize;
        fn setting_name(self: &AttachedCatalog, setting: usize) -> String;
        fn setting_description(self: &AttachedCatalog, setting: usize) -> String;
        fn setting_default(self: &AttachedCatalog, setting: usize) -> String;
        fn setting_type(
            self: &AttachedCatalog,
            context: Pin<&mut ClientContext>,
            setting: usize,
        ) -> Result<UniquePtr<LogicalType>>;

        fn has_transactions(self: &AttachedCatalog) -> bool;
        fn new_transaction() -> Box<CatalogTransaction>;
        fn commit(self: &CatalogTransaction, context: &ClientContext) -> Result<()>;

        fn secret_types(self: &AttachedCatalog) -> Vec<DeclaredSecretType>;
        fn secret_parameter_types(
            self: &AttachedCatalog,
            context: Pin<&mut ClientContext>,
            secret_type: usize,
        ) -> Result<UniquePtr<TypeList>>;

        fn published_functions(self: &AttachedCatalog, context: Pin<&mut ClientContext>) -> Result<Box<FunctionList>>;

        fn count(self: &FunctionList) -> usize;
        fn schema(self: &FunctionList, function: usize) -> String;
        fn published_name(self: &FunctionList, function: usize) -> String;
        fn name(self: &FunctionList, function: usize) -> &str;
        fn description(self: &FunctionList, function: usize) -> &str;
        fn comment(self: &FunctionList, function: usize) -> String;
        fn examples(self: &FunctionList, function: usize) -> Vec<String>;
        fn categories(self: &FunctionList, function: usize) -> Vec<String>;
        fn is_overloaded(self: &FunctionList, function: usize) -> bool;
        fn parameter_count(self: &FunctionList, function: usize) -> usize;
        fn parameter_name(self: &FunctionList, function: usize, parameter: usize) -> &str;
        fn parameter_role(self: &FunctionList, function: usize, parameter: usize) -> u8;
        fn has_type(self: &FunctionList, function: usize, parameter: usize) -> bool;
        fn parameter_type(self: &FunctionList, function: usize, parameter: usize) -> Result<UniquePtr<LogicalType>>;
        fn has_default(self: &FunctionList, function: usize, parameter: usize) -> bool;
        fn parameter_default(self: &FunctionList, function: usize, parameter: usize) -> String;

        fn new_call_request(function: &CxxString, schema: &CxxString) -> Box<CallRequest>;
        fn add_input_column(self: &mut CallRequest, name: &CxxString, column_type: &LogicalType);
        fn set_call_parameter(self: &mut CallRequest, name: &CxxString, value: &Value) -> Result<()>;
        fn add_argument(self: &mut CallRequest, value: &Value);
        fn add_named_argument(self: &mut CallRequest, name: &CxxString, value: &Value);
        fn bind(
            self: &mut CallRequest,
            context: Pin<&mut ClientContext>,
            url: &CxxString,
            catalog: &CxxString,
        ) -> Result<Box<BoundCall>>;
        fn bind_attached(
            self: &mut CallRequest,
            context: Pin<&mut ClientContext>,
            catalog: &AttachedCatalog,
            transaction: &CatalogTransaction,
        ) -> Result<Box<BoundCall>>;

        fn share(self: &BoundCall) -> Box<BoundCall>;
        fn function_name(self: &BoundCall) -> &str;
        fn column_count(self: &BoundCall) -> usize;
        fn column_name(self: &BoundCall, column: usize) -> &str;
        fn column_type(self: &BoundCall, column: usize) -> Result<UniquePtr<LogicalType>>;
        fn input_count(self: &BoundCall) -> usize;
        fn input_type(self: &BoundCall, column: usize) -> Result<UniquePtr<LogicalType>>;
        fn plan(
            self: &BoundCall,
            context: &ClientContext,
            columns: Vec<usize>,
            source_has_batch_index: bool,
            expected_rows: u64,
        ) -> Result<Box<CallPlan>>;

        fn takes_filters(self: &BoundCall) -> bool;
        fn filter_builder(self: &BoundCall) -> Box<FilterBuilder>;
        fn exact(self: &FilterBuilder) -> bool;
        fn column(self: &mut FilterBuilder, index: usize) -> bool;
        fn add_constant(self: &mut FilterBuilder, context: Pin<&mut ClientContext>, value: &Value) -> bool;
        fn comparison(self: &mut FilterBuilder, op: &str) -> bool;
        fn conjunction(self: &mut FilterBuilder, all: bool, count: usize) -> bool;
        fn negation(self: &mut FilterBuilder) -> bool;
        fn null_test(self: &mut FilterBuilder, negated: bool) -> bool;
        fn among(self: &mut FilterBuilder, count: usize, negated: bool) -> bool;
        fn text_test(self: &mut FilterBuilder, function: &str) -> bool;
        fn finish_predicate(self: &mut FilterBuilder, written: bool, text: &str) -> bool;
        fn fits(self: &FilterBuilder) -> bool;
        fn filtered(self: &FilterBuilder) -> Box<BoundCall>;

        fn describe(self: &CallPlan) -> Vec<Entry>;
        fn parallel_sink(self: &CallPlan) -> bool;
        fn input_order_matters(self: &CallPlan) -> bool;
        fn wants_batch_index(self: &CallPlan) -> bool;
        fn output_order_matters(self: &CallPlan) -> bool;
        fn new_execution(self: &CallPlan, context: &ClientContext) -> Result<Box<Execution>>;

        fn new_sink_thread(self: &Execution, context: Pin<&mut ClientContext>) -> Result<Box<SinkThread>>;
        fn combine(self: &Execution, context: &ClientContext) -> Result<()>;
        fn max_source_threads(self: &Execution) -> usize;
        fn stream_count(self: &Execution) -> usize;
        fn finished_streams(self: &Execution) -> usize;
        fn report(self: &Execution) -> Vec<Entry>;
        fn accepted_share(self: &Execution) -> f64;
        fn new_source_thread(self: &Execution, context: Pin<&mut ClientContext>) -> Result<Box<SourceThread>>;

        fn can_sink(self: &mut SinkThread, chunk: &DataChunk, task: &InterruptState) -> Result<bool>;
        fn can_finish(self: &mut SinkThread, context: &ClientContext, task: &InterruptState) -> Result<bool>;
        fn can_read(self: &mut SourceThread, task: &InterruptState) -> Result<bool>;
        fn sink(self: &mut SinkThread, context: &ClientContext, chunk: &DataChunk, batch_index: i64) -> Result<()>;
        fn finish(self: &mut SinkThread, context: &ClientContext) -> Result<()>;
        fn next(self: &mut SourceThread, context: Pin<&mut ClientContext>, chunk: Pin<&mut DataChunk>) -> Result<bool>;
    }

    unsafe extern "C++" {
        include!("glue.hpp");

        #[namespace = "duckdb"]
        type ClientContext;
        #[namespace = "duckdb"]
        type DataChunk;
        #[namespace = "duckdb"]
        type LogicalType;
        #[namespace = "duckdb"]
        type Value;
        #[namespace = "duckdb"]
        type Vector;
        #[namespace = "duckdb"]
        type InterruptState;
        type ArrowArray;
        type ArrowSchema;

        fn is_interrupted(context: &ClientContext) -> bool;
        fn write_log(context: &ClientContext, level: &str, message: &str);
        fn logs_steps(context: &ClientContext) -> bool;
        fn database_of(context: &ClientContext) -> usize;
        fn statement_of(context: &ClientContext) -> u64;
        fn setting_u64(context: &ClientContext, name: &str) -> Result<u64>;
        fn setting_text(context: &ClientContext, name: &str) -> Result<String>;
        fn setting_value(context: &ClientContext, name: &str) -> Result<UniquePtr<Value>>;
        fn find_secret(context: &ClientContext, name: &str, location: &str) -> Result<SecretValues>;
        fn find_declared_secret(
            context: &ClientContext,
            secret_type: &str,
            scope: &str,
            name: &str,
        ) -> Result<UniquePtr<Value>>;
        fn secret_name(secret: &Value) -> String;
        fn cast_value(
            context: Pin<&mut ClientContext>,
            value: &Value,
            target: &LogicalType,
        ) -> Result<UniquePtr<Value>>;
        fn value_parts(value: &Value) -> Result<UniquePtr<CxxVector<Value>>>;
        fn part_names(value: &Value) -> Result<Vec<String>>;
        fn value_text(value: &Value) -> String;
        fn copy_value(value: &Value) -> UniquePtr<Value>;
        fn value_type(value: &Value) -> &LogicalType;
        fn same_type(left: &LogicalType, right: &LogicalType) -> bool;
        fn type_name(column_type: &LogicalType) -> Result<String>;
        fn copy_type(column_type: &LogicalType) -> UniquePtr<LogicalType>;

        type MemoryClaim;
        fn new_memory_claim(context: Pin<&mut ClientContext>) -> Result<UniquePtr<MemoryClaim>>;
        fn resize(self: Pin<&mut MemoryClaim>, bytes: usize) -> Result<()>;

        fn copy_task(task: &InterruptState) -> UniquePtr<InterruptState>;
        fn wake_task(task: &InterruptState);

        type TypeList;
        fn new_type_list() -> UniquePtr<TypeList>;
        fn push(self: Pin<&mut TypeList>, column_type: &LogicalType);

        fn chunk_column(chunk: &DataChunk, column: usize) -> Result<&Vector>;
        fn chunk_rows(chunk: &DataChunk) -> usize;
        fn list_elements(lists: &Vector) -> Result<&Vector>;
        fn array_elements(arrays: &Vector) -> Result<&Vector>;
        fn struct_field(structs: &Vector, field: usize) -> Result<&Vector>;

        type VectorReader;
        fn new_vector_reader() -> UniquePtr<VectorReader>;
        fn look(self: Pin<&mut VectorReader>, vector: &Vector) -> Result<VectorView>;

        type ArrowWriter;
        fn new_arrow_writer(
            context: Pin<&mut ClientContext>,
            column_type: &LogicalType,
        ) -> Result<UniquePtr<ArrowWriter>>;
        fn append(self: Pin<&mut ArrowWriter>, rows: &Vector, first: usize, count: usize) -> Result<()>;
        fn append_value(self: Pin<&mut ArrowWriter>, value: &Value) -> Result<()>;
        fn bytes(self: &ArrowWriter) -> usize;
        unsafe fn take(self: Pin<&mut ArrowWriter>, array: *mut ArrowArray, schema: *mut ArrowSchema) -> Result<()>;

        type ArrowReader;
        unsafe fn new_arrow_reader(
            context: Pin<&mut ClientContext>,
            schema: *mut ArrowSchema,
        ) -> Result<UniquePtr<ArrowReader>>;
        fn column_count(self: &ArrowReader) -> usize;
        fn column_type(self: &ArrowReader, column: usize) -> Result<&LogicalType>;
        unsafe fn set_batch(self: Pin<&mut ArrowReader>, batch: *mut ArrowArray);
        fn read(
            self: Pin<&mut ArrowReader>,
            context: Pin<&mut ClientContext>,
            offset: usize,
            rows: usize,
            columns: &[usize],
            chunk: Pin<&mut DataChunk>,
        ) -> Result<()>;
    }
}

/// What a bridged function fails with; cxx hands its text to C++.
struct Crossing(Error);

impl fmt::Display for Crossing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.encode())
    }
}

/// Runs the body of a bridged function; a panic in it becomes an error.
fn contain<T>(body: impl FnOnce() -> Result<T, Error>) -> Result<T, Crossing> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result.map_err(Crossing),
        Err(payload) => Err(Crossing(Error::new(
            ExceptionClass::Io,
            format!("a defect of the vgi extension stopped the query: {}", panic_text(payload.as_ref())),
        ))),
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a message")
}

/// Writes what the server logged while a bridged function ran, whether it went well or not.
fn logged<T>(log: &CallLog, context: &ffi::ClientContext, result: Result<T, Crossing>) -> Result<T, Crossing> {
    log.flush(context);
    result
}

/// A query, as the transport sees it.
pub struct QueryInterrupt<'a>(pub &'a ffi::ClientContext);

impl vgi_transport::Interrupt for QueryInterrupt<'_> {
    fn interrupted(&self) -> bool {
        ffi::is_interrupted(self.0)
    }
}

/// A task of DuckDB's that said it is blocked, or is about to.
pub struct Waker(UniquePtr<ffi::InterruptState>);

// SAFETY: the state refers to its task weakly, and DuckDB means it to be called back by any thread; the pointer is owned.
unsafe impl Send for Waker {}

impl Waker {
    pub fn new(task: &ffi::InterruptState) -> Self {
        Self(ffi::copy_task(task))
    }

    /// Lets the task go on. Must not be called by the thread that runs it: DuckDB waits until that has returned.
    pub fn wake(self) {
        if let Some(task) = self.0.as_ref() {
            ffi::wake_task(task);
        }
    }
}

/// A DuckDB type that many threads may read.
pub struct SharedType(UniquePtr<ffi::LogicalType>);

// SAFETY: a LogicalType is not changed after it was made, and DuckDB itself reads types from many threads; the pointer is owned.
unsafe impl Send for SharedType {}
// SAFETY: as above.
unsafe impl Sync for SharedType {}

impl SharedType {
    pub fn copy(column_type: &ffi::LogicalType) -> Self {
        Self(ffi::copy_type(column_type))
    }

    /// # Errors
    /// When C++ could not copy the type.
    pub fn get(&self) -> Result<&ffi::LogicalType, Error> {
        self.0.as_ref().ok_or_else(|| Error::new(ExceptionClass::Io, "a column has no type"))
    }
}

unsafe extern "C-unwind" {
    /// Registers everything; throws C++ exceptions, which pass through the entry point to DuckDB.
    fn vgi_register(loader: *mut c_void);
}

/// What DuckDB calls at LOAD; the name is the file's base name and `_duckdb_cpp_init`.
///
/// # Safety
/// `loader` is DuckDB's `ExtensionLoader`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn vgi_duckdb_cpp_init(loader: *mut c_void) {
    // SAFETY: DuckDB calls this with its loader.
    unsafe { vgi_register(loader) }
}

fn settings() -> Vec<ffi::Setting> {
    let convert = |setting: &settings::Setting| ffi::Setting {
        name: setting.name.to_owned(),
        description: setting.description.to_owned(),
        type_name: setting.kind.type_name().to_owned(),
        default_value: setting.kind.default_text(),
    };
    settings::ALL.iter().map(convert).collect()
}

fn check_setting(name: &str, value: &ffi::Value) -> Result<(), Crossing> {
    contain(|| settings::check(name, &ffi::value_text(value)))
}

/// Databases of this process that have the extension loaded.
static DATABASES: AtomicUsize = AtomicUsize::new(0);

fn database_opened() {
    DATABASES.fetch_add(1, Ordering::SeqCst);
}

/// The last moment at which destructors of this database's executions may still be waited for; with the last database the
/// transport's threads end too.
fn database_closed(database: usize) {
    const PATIENCE: Duration = Duration::from_secs(2);
    contain(|| {
        calls::forget(database);
        if DATABASES.fetch_sub(1, Ordering::SeqCst) == 1 {
            vgi_transport::shutdown(PATIENCE);
        } else {
            vgi_transport::drain_background(PATIENCE);
        }
        Ok(())
    })
    .ok();
}

fn last_calls(database: usize) -> Vec<ffi::CallRow> {
    calls::last(database).into_iter().map(call_row).collect()
}

fn call_row(call: calls::Call) -> ffi::CallRow {
    ffi::CallRow {
        call_id: call.id,
        started_micros: call.started_micros,
        function_name: call.function_name,
        server: call.server,
        execution_id: call.execution_id,
        state: call.state.to_owned(),
        error: call.error,
        milliseconds: call.milliseconds,
        counts: call.counts,
        times: call.times,
    }
}

fn call_count_names() -> Vec<String> {
    calls::COUNTS.iter().map(|&name| name.to_owned()).collect()
}

fn call_time_names() -> Vec<String> {
    calls::TIMES.iter().map(|&name| name.to_owned()).collect()
}

fn text(value: &CxxString) -> String {
    value.to_string_lossy().into_owned()
}

fn new_attach_statement(catalog: &CxxString) -> Box<AttachStatement> {
    Box::new(AttachStatement::new(text(catalog)))
}

impl AttachStatement {
    fn add_option(&mut self, name: &CxxString, value: &ffi::Value) {
        self.push_option(&name.to_string_lossy(), ffi::copy_value(value));
    }

    fn attach(&self, mut context: Pin<&mut ffi::ClientContext>) -> Result<Box<AttachedCatalog>, Crossing> {
        let result = contain(|| self.attach_catalog(context.as_mut()).map(Box::new));
        logged(self.log(), &context, result)
    }
}

impl AttachedCatalog {
    fn listing_stamp(&self, context: &ffi::ClientContext) -> Result<u64, Crossing> {
        logged(self.log(), context, contain(|| self.stamp(context)))
    }

    fn has_changed(&self, context: &ffi::ClientContext) -> Result<bool, Crossing> {
        logged(self.log(), context, contain(|| self.changed(context)))
    }

    fn schemas(&self, context: &ffi::ClientContext) -> Result<Vec<ffi::SchemaEntry>, Crossing> {
        let entry = |schema: catalog::SchemaEntry| ffi::SchemaEntry {
            path: schema.path,
            parent: schema.parent,
            name: schema.name,
            comment: schema.comment,
        };
        let result = contain(|| Ok(self.list_schemas(context)?.into_iter().map(entry).collect()));
        logged(self.log(), context, result)
    }

    fn functions(
        &self,
        mut context: Pin<&mut ffi::ClientContext>,
        schema: &CxxString,
    ) -> Result<Box<FunctionList>, Crossing> {
        let result = contain(|| self.list_callable(context.as_mut(), &schema.to_string_lossy()).map(Box::new));
        logged(self.log(), &context, result)
    }

    fn views(&self, context: &ffi::ClientContext, schema: &CxxString) -> Result<Vec<ffi::SqlEntry>, Crossing> {
        let result = contain(|| Ok(sql_entries(self.list_views(context, &schema.to_string_lossy())?)));
        logged(self.log(), context, result)
    }

    fn macros(&self, context: &ffi::ClientContext, schema: &CxxString) -> Result<Vec<ffi::SqlEntry>, Crossing> {
        let result = contain(|| Ok(sql_entries(self.list_macros(context, &schema.to_string_lossy())?)));
        logged(self.log(), context, result)
    }

    fn refusal(
        &self,
        context: &ffi::ClientContext,
        schema: &CxxString,
        name: &CxxString,
        table: bool,
    ) -> Result<String, Crossing> {
        let result = contain(|| self.why_not(context, &schema.to_string_lossy(), &name.to_string_lossy(), table));
        logged(self.log(), context, result)
    }

    fn catalog_contents(&self, context: &ffi::ClientContext) -> Result<Vec<ffi::TextRow>, Crossing> {
        logged(self.log(), context, contain(|| Ok(text_rows(catalog::contents(context, self)?))))
    }

    fn setting_type(
        &self,
        context: Pin<&mut ffi::ClientContext>,
        setting: usize,
    ) -> Result<UniquePtr<ffi::LogicalType>, Crossing> {
        contain(|| self.type_of_setting(context, setting)?.get().map(ffi::copy_type))
    }

    fn published_functions(&self, context: Pin<&mut ffi::ClientContext>) -> Result<Box<FunctionList>, Crossing> {
        contain(|| Ok(Box::new(self.list_published(context))))
    }

    fn secret_types(&self) -> Vec<ffi::DeclaredSecretType> {
        let hides = |field: &arrow_schema::FieldRef| SecretTypeSpec::hides(field);
        let entry = |spec: SecretTypeSpec| ffi::DeclaredSecretType {
            parameters: spec.parameters.fields().iter().map(|field| field.name().clone()).collect(),
            hidden: spec.parameters.fields().iter().map(hides).collect(),
            name: spec.name,
        };
        self.declared_secret_types().into_iter().map(entry).collect()
    }

    fn secret_parameter_types(
        &self,
        context: Pin<&mut ffi::ClientContext>,
        secret_type: usize,
    ) -> Result<UniquePtr<ffi::TypeList>, Crossing> {
        contain(|| {
            let mut types = ffi::new_type_list();
            for parameter in self.types_of_secret(context, secret_type)? {
                types.pin_mut().push(parameter.get()?);
            }
            Ok(types)
        })
    }
}

fn new_transaction() -> Box<CatalogTransaction> {
    Box::default()
}

impl CatalogTransaction {
    fn commit(&self, context: &ffi::ClientContext) -> Result<(), Crossing> {
        contain(|| self.commit_begun(context))
    }
}

fn sql_entries(objects: Vec<catalog::SqlObject>) -> Vec<ffi::SqlEntry> {
    let entry = |object: catalog::SqlObject| ffi::SqlEntry {
        name: object.name,
        statement: object.statement,
        comment: object.comment,
    };
    objects.into_iter().map(entry).collect()
}

fn text_rows<const CELLS: usize>(rows: Vec<[String; CELLS]>) -> Vec<ffi::TextRow> {
    rows.into_iter().map(|cells| ffi::TextRow { cells: cells.into() }).collect()
}

fn offered_catalogs(context: &ffi::ClientContext, location: &CxxString) -> Result<Vec<ffi::TextRow>, Crossing> {
    contain(|| Ok(text_rows(catalog::offered(context, &location.to_string_lossy())?)))
}

/// What DuckDB is shown of the functions of a schema. C++ asks within the bounds that `count` and `parameter_count` give.
impl FunctionList {
    fn schema(&self, function: usize) -> String {
        self.entry(function).map(|entry| entry.info.schema_path.join(".")).unwrap_or_default()
    }

    fn published_name(&self, function: usize) -> String {
        self.published_name_of(function)
    }

    fn name(&self, function: usize) -> &str {
        self.entry(function).map(|entry| entry.info.name.as_str()).unwrap_or_default()
    }

    fn description(&self, function: usize) -> &str {
        self.entry(function).map(|entry| entry.info.description.as_str()).unwrap_or_default()
    }

    fn comment(&self, function: usize) -> String {
        self.entry(function).and_then(|entry| entry.info.comment.clone()).unwrap_or_default()
    }

    fn examples(&self, function: usize) -> Vec<String> {
        let examples = self.entry(function).map(|entry| entry.info.examples.as_slice()).unwrap_or_default();
        examples.iter().map(|example| example.sql.clone()).collect()
    }

    fn categories(&self, function: usize) -> Vec<String> {
        self.entry(function).map(|entry| entry.info.categories.clone()).unwrap_or_default()
    }

    fn is_overloaded(&self, function: usize) -> bool {
        self.entry(function).is_some_and(|entry| entry.forms > 1)
    }

    fn parameter_count(&self, function: usize) -> usize {
        self.entry(function).map_or(0, |entry| entry.parameters.len())
    }

    fn parameter(&self, function: usize, parameter: usize) -> Option<&catalog::Parameter> {
        self.entry(function)?.parameters.get(parameter)
    }

    fn parameter_name(&self, function: usize, parameter: usize) -> &str {
        self.parameter(function, parameter).map(|parameter| parameter.name.as_str()).unwrap_or_default()
    }

    /// 0 is the table, 1 by position, 2 the repeated one, 3 by name: `ParameterRole` in cpp/schema.cpp.
    fn parameter_role(&self, function: usize, parameter: usize) -> u8 {
        match self.parameter(function, parameter).map(|parameter| parameter.role) {
            Some(catalog::Role::Table) => 0,
            None | Some(catalog::Role::Positional) => 1,
            Some(catalog::Role::Varargs) => 2,
            Some(catalog::Role::Named) => 3,
        }
    }

    fn has_type(&self, function: usize, parameter: usize) -> bool {
        self.parameter(function, parameter).is_some_and(|parameter| parameter.column_type.is_some())
    }

    fn parameter_type(&self, function: usize, parameter: usize) -> Result<UniquePtr<ffi::LogicalType>, Crossing> {
        contain(|| {
            let known = self.parameter(function, parameter).and_then(|parameter| parameter.column_type.as_ref());
            known.ok_or_else(|| Error::new(ExceptionClass::Io, "a parameter has no type"))?.get().map(ffi::copy_type)
        })
    }

    fn has_default(&self, function: usize, parameter: usize) -> bool {
        self.parameter(function, parameter).is_some_and(|parameter| parameter.default.is_some())
    }

    fn parameter_default(&self, function: usize, parameter: usize) -> String {
        self.parameter(function, parameter).and_then(|parameter| parameter.default.clone()).unwrap_or_default()
    }
}

fn new_call_request(function: &CxxString, schema: &CxxString) -> Box<CallRequest> {
    Box::new(CallRequest::new(text(function), Some(text(schema)).filter(|schema| !schema.is_empty())))
}

impl CallRequest {
    fn add_input_column(&mut self, name: &CxxString, column_type: &ffi::LogicalType) {
        self.push_input(text(name), SharedType::copy(column_type));
    }

    fn set_call_parameter(&mut self, name: &CxxString, value: &ffi::Value) -> Result<(), Crossing> {
        contain(|| self.set_parameter(&name.to_string_lossy(), value))
    }

    fn add_argument(&mut self, value: &ffi::Value) {
        self.push_argument(ffi::copy_value(value));
    }

    fn add_named_argument(&mut self, name: &CxxString, value: &ffi::Value) {
        self.push_named(text(name), ffi::copy_value(value));
    }

    fn bind(
        &mut self,
        mut context: Pin<&mut ffi::ClientContext>,
        url: &CxxString,
        catalog: &CxxString,
    ) -> Result<Box<BoundCall>, Crossing> {
        let result = contain(|| self.bind_at(context.as_mut(), &text(url), &text(catalog)).map(Box::new));
        logged(self.log(), &context, result)
    }

    fn bind_attached(
        &mut self,
        mut context: Pin<&mut ffi::ClientContext>,
        catalog: &AttachedCatalog,
        transaction: &CatalogTransaction,
    ) -> Result<Box<BoundCall>, Crossing> {
        let result = contain(|| self.bind_in(context.as_mut(), catalog, transaction).map(Box::new));
        logged(self.log(), &context, result)
    }
}

impl BoundCall {
    fn share(&self) -> Box<Self> {
        Box::new(self.clone())
    }

    fn column_count(&self) -> usize {
        self.output().len()
    }

    fn column_name(&self, column: usize) -> &str {
        self.output().get(column).map(|(name, _)| name.as_str()).unwrap_or_default()
    }

    fn column_type(&self, column: usize) -> Result<UniquePtr<ffi::LogicalType>, Crossing> {
        contain(|| type_at(self.output(), column))
    }

    fn input_count(&self) -> usize {
        self.inputs().len()
    }

    fn input_type(&self, column: usize) -> Result<UniquePtr<ffi::LogicalType>, Crossing> {
        contain(|| type_at(self.inputs(), column))
    }

    fn plan(
        &self,
        context: &ffi::ClientContext,
        columns: Vec<usize>,
        source_has_batch_index: bool,
        expected_rows: u64,
    ) -> Result<Box<CallPlan>, Crossing> {
        let plan = || CallPlan::new(self.clone(), context, columns, source_has_batch_index, expected_rows);
        contain(|| plan().map(Box::new))
    }
}

impl BoundCall {
    fn takes_filters(&self) -> bool {
        self.function().takes_filters()
    }

    fn filter_builder(&self) -> Box<FilterBuilder> {
        Box::new(FilterBuilder::new(self.clone()))
    }
}

impl FilterBuilder {
    /// A value that cannot be converted is not pushed; DuckDB's own filter meets it where it would have.
    fn add_constant(&mut self, context: Pin<&mut ffi::ClientContext>, value: &ffi::Value) -> bool {
        contain(|| self.constant(context, value)).is_ok()
    }

    fn filtered(&self) -> Box<BoundCall> {
        Box::new(self.finish())
    }
}

fn type_at(columns: &[(String, SharedType)], column: usize) -> Result<UniquePtr<ffi::LogicalType>, Error> {
    let missing = || Error::new(ExceptionClass::Io, format!("there is no column {column}"));
    columns.get(column).ok_or_else(missing)?.1.get().map(ffi::copy_type)
}

impl CallPlan {
    fn describe(&self) -> Vec<ffi::Entry> {
        self.explain().into_iter().map(|(key, value)| ffi::Entry { key: key.to_owned(), value }).collect()
    }

    fn new_execution(&self, context: &ffi::ClientContext) -> Result<Box<Execution>, Crossing> {
        contain(|| {
            let execution = Execution::new(self);
            execution.log().listen(context);
            calls::note(ffi::database_of(context), execution.observer());
            Ok(Box::new(execution))
        })
    }
}

impl Execution {
    fn new_sink_thread(&self, context: Pin<&mut ffi::ClientContext>) -> Result<Box<SinkThread>, Crossing> {
        contain(|| self.sink_thread(context).map(Box::new))
    }

    fn combine(&self, context: &ffi::ClientContext) -> Result<(), Crossing> {
        let result = contain(|| self.end_of_input(&QueryInterrupt(context)));
        logged(self.log(), context, result)
    }

    fn report(&self) -> Vec<ffi::Entry> {
        self.counted().into_iter().map(|(key, value)| ffi::Entry { key: key.to_owned(), value }).collect()
    }

    fn new_source_thread(&self, context: Pin<&mut ffi::ClientContext>) -> Result<Box<SourceThread>, Crossing> {
        contain(|| self.source_thread(context).map(Box::new))
    }
}

impl SinkThread {
    fn can_sink(&mut self, chunk: &ffi::DataChunk, task: &ffi::InterruptState) -> Result<bool, Crossing> {
        contain(|| self.can_push(chunk, task))
    }

    fn can_finish(&mut self, context: &ffi::ClientContext, task: &ffi::InterruptState) -> Result<bool, Crossing> {
        let result = contain(|| self.can_end(&QueryInterrupt(context), task));
        logged(self.log(), context, result)
    }

    fn sink(&mut self, context: &ffi::ClientContext, chunk: &ffi::DataChunk, batch_index: i64) -> Result<(), Crossing> {
        let result = contain(|| self.push(chunk, u64::try_from(batch_index).ok(), &QueryInterrupt(context)));
        logged(self.log(), context, result)
    }

    fn finish(&mut self, context: &ffi::ClientContext) -> Result<(), Crossing> {
        let result = contain(|| self.end(&QueryInterrupt(context)));
        logged(self.log(), context, result)
    }
}

impl SourceThread {
    fn can_read(&mut self, task: &ffi::InterruptState) -> Result<bool, Crossing> {
        contain(|| self.can_pull(task))
    }

    fn next(
        &mut self,
        mut context: Pin<&mut ffi::ClientContext>,
        chunk: Pin<&mut ffi::DataChunk>,
    ) -> Result<bool, Crossing> {
        let result = contain(|| self.pull(context.as_mut(), chunk));
        logged(self.log(), &context, result)
    }
}
