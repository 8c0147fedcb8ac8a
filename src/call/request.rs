//! What the statement says, and the bind that follows.

use std::pin::Pin;
use std::sync::Arc;

use arrow_schema::{Field, Schema};
use cxx::UniquePtr;
use vgi_transport::{Attachment, Location, Options, attach};
use vgi_wire::methods::{BindRequest, FunctionInfo, FunctionType};

use super::arguments;
use super::bound::BoundCall;
use crate::bridge::{QueryInterrupt, SharedType, ffi};
use crate::convert;
use crate::error::{Error, ExceptionClass};
use crate::logging::CallLog;
use crate::settings;

/// The parameters of `vgi_call`, collected one by one.
pub struct CallRequest {
    url: String,
    catalog: String,
    function: String,
    inputs: Vec<(String, SharedType)>,
    args: Option<UniquePtr<ffi::Value>>,
    named: Option<UniquePtr<ffi::Value>>,
    schema: Option<UniquePtr<ffi::Value>>,
    log: Arc<CallLog>,
}

impl CallRequest {
    /// A call without input and arguments.
    pub fn new(url: String, catalog: String, function: String) -> Self {
        Self { url, catalog, function, inputs: Vec::new(), args: None, named: None, schema: None, log: Arc::default() }
    }

    /// Lines that the server's code logs while it binds.
    pub fn log(&self) -> &CallLog {
        &self.log
    }

    /// Adds a column of the input.
    pub fn push_input(&mut self, name: String, column_type: SharedType) {
        self.inputs.push((name, column_type));
    }

    /// Sets `args`, `named` or `schema`; DuckDB has refused every other name before.
    pub fn set_parameter(&mut self, name: &str, value: UniquePtr<ffi::Value>) {
        match name.to_ascii_lowercase().as_str() {
            "args" => self.args = Some(value),
            "named" => self.named = Some(value),
            "schema" => self.schema = Some(value),
            _ => {}
        }
    }

    /// Attaches, looks the function up, encodes the arguments and binds.
    pub fn bind_call(&mut self, mut context: Pin<&mut ffi::ClientContext>) -> Result<BoundCall, Error> {
        if self.inputs.is_empty() {
            let text = format!("function '{}' needs a table: give a subquery with at least one column", self.function);
            return Err(Error::new(ExceptionClass::Binder, text));
        }
        if settings::number_of(&context, settings::TABLE_BUFFERING)? == 0 {
            let text =
                format!("function '{}' cannot run, because the setting vgi_table_buffering is off", self.function);
            return Err(Error::new(ExceptionClass::Binder, text));
        }
        let fields = convert::exported_fields(context.as_mut(), &self.inputs)?;
        let location = Location::parse(&self.url)?;
        self.log.listen(&context);
        let options = Options { events: Some(Arc::clone(&self.log) as _), ..settings::transport_options(&context)? };
        let attachment = attach(&location, &self.catalog, &options, &QueryInterrupt(&context))?;
        let function = self.find_function(&attachment, &context)?;
        let arguments =
            arguments::encode(context.as_mut(), &function, value(self.args.as_ref()), value(self.named.as_ref()))?;
        let input_schema = Arc::new(Schema::new(fields));
        let request = BindRequest {
            function_name: function.name.clone(),
            schema_path: function.schema_path.clone(),
            arguments,
            input_schema: Arc::clone(&input_schema),
            settings: None,
            secrets: None,
            attach_opaque_data: Some(attachment.opaque_data()),
            transaction_opaque_data: None,
            resolved_secrets_provided: false,
        };
        let bound = attachment.bind(&request, &QueryInterrupt(&context))?;
        let inputs = std::mem::take(&mut self.inputs);
        let candidates: Vec<(Field, &SharedType)> = input_schema
            .fields()
            .iter()
            .zip(&inputs)
            .map(|(field, (_, column_type))| (field.as_ref().clone(), column_type))
            .collect();
        let output = convert::duckdb_types(context, &bound.reply.output_schema, &candidates)?;
        if output.is_empty() {
            let text = format!("function '{}' gives no columns, which a query cannot use", function.name);
            return Err(Error::new(ExceptionClass::NotImplemented, text));
        }
        Ok(BoundCall::new(function, bound, inputs, input_schema, output, Arc::clone(&self.log)))
    }

    fn find_function(&self, attachment: &Arc<Attachment>, context: &ffi::ClientContext) -> Result<FunctionInfo, Error> {
        let schema =
            self.schema.as_ref().and_then(UniquePtr::as_ref).map(ffi::value_text).filter(|name| !name.is_empty());
        let functions = attachment.functions(schema.as_deref(), &self.function, &QueryInterrupt(context))?;
        let refuse = |class, text: &str| {
            Error::new(class, format!("function '{}' at {} {text}", self.function, attachment.location().as_str()))
        };
        let mut buffering =
            functions.into_iter().filter(|function| function.function_type == FunctionType::TableBuffering);
        match (buffering.next(), buffering.next()) {
            (Some(function), None) => Ok(function),
            (Some(_), Some(_)) => Err(refuse(
                ExceptionClass::NotImplemented,
                "has several forms, and which one is meant cannot be said yet",
            )),
            (None, _) => Err(refuse(
                ExceptionClass::NotImplemented,
                "is not a buffering function; calling functions of other kinds is not supported yet",
            )),
        }
    }
}

fn value(value: Option<&UniquePtr<ffi::Value>>) -> Option<&ffi::Value> {
    value.and_then(UniquePtr::as_ref)
}
