//! What the statement says, and the bind that follows.

use std::pin::Pin;
use std::sync::Arc;

use arrow_schema::{Field, Schema};
use cxx::UniquePtr;
use vgi_transport::{Attachment, Location, Options, attach};
use vgi_wire::methods::{BindRequest, FunctionInfo, FunctionType};

use super::arguments;
use super::bound::BoundCall;
use super::secrets::Secrets;
use crate::bridge::{QueryInterrupt, SharedType, ffi};
use crate::catalog::{AttachedCatalog, CatalogTransaction, of_location};
use crate::convert;
use crate::error::{Error, ExceptionClass};
use crate::logging::CallLog;
use crate::settings;

/// A call as the statement has it, collected part by part.
pub struct CallRequest {
    function: String,
    schema: Option<String>,
    inputs: Vec<(String, SharedType)>,
    args: Vec<UniquePtr<ffi::Value>>,
    named: Vec<(String, UniquePtr<ffi::Value>)>,
    log: Arc<CallLog>,
}

impl CallRequest {
    /// A call without input and arguments; without a schema the catalog's default one is meant.
    pub fn new(function: String, schema: Option<String>) -> Self {
        Self { function, schema, inputs: Vec::new(), args: Vec::new(), named: Vec::new(), log: Arc::default() }
    }

    /// Lines that the server's code logs while it binds.
    pub fn log(&self) -> &CallLog {
        &self.log
    }

    /// Adds a column of the input.
    pub fn push_input(&mut self, name: String, column_type: SharedType) {
        self.inputs.push((name, column_type));
    }

    /// Adds a positional argument.
    pub fn push_argument(&mut self, value: UniquePtr<ffi::Value>) {
        self.args.push(value);
    }

    /// Adds a named argument.
    pub fn push_named(&mut self, name: String, value: UniquePtr<ffi::Value>) {
        self.named.push((name, value));
    }

    /// Sets `args`, `named` or `schema` of `vgi_call`; DuckDB has refused every other name before.
    pub fn set_parameter(&mut self, name: &str, value: &ffi::Value) -> Result<(), Error> {
        match name.to_ascii_lowercase().as_str() {
            "args" => self.args = parts(value)?,
            "named" => self.named = named_parts(&self.function, value)?,
            "schema" => self.schema = Some(ffi::value_text(value)).filter(|name| !name.is_empty()),
            _ => {}
        }
        Ok(())
    }

    /// Attaches the catalog of a server and binds in it.
    pub fn bind_at(
        &mut self,
        context: Pin<&mut ffi::ClientContext>,
        url: &str,
        catalog: &str,
    ) -> Result<BoundCall, Error> {
        self.check(&context)?;
        let location = Location::parse(url)?;
        self.log.listen(&context);
        let options = Options { events: Some(Arc::clone(&self.log) as _), ..settings::transport_options(&context)? };
        let options = of_location(&context, &location)?.apply(options);
        let attachment = attach(&location, catalog, &options, &QueryInterrupt(&context))?;
        self.bind_renewing(context, &attachment, None)
    }

    /// Binds in an attached catalog.
    pub fn bind_in(
        &mut self,
        context: Pin<&mut ffi::ClientContext>,
        catalog: &AttachedCatalog,
        transaction: &CatalogTransaction,
    ) -> Result<BoundCall, Error> {
        self.check(&context)?;
        let attachment = catalog.attachment(&context, &self.log)?;
        self.bind_renewing(context, &attachment, Some(transaction))
    }

    /// Binds; at a server that has lost the attachment, attaches anew and does everything again, once: it may have other functions now.
    fn bind_renewing(
        &mut self,
        mut context: Pin<&mut ffi::ClientContext>,
        attachment: &Arc<Attachment>,
        transaction: Option<&CatalogTransaction>,
    ) -> Result<BoundCall, Error> {
        let had_begun = transaction.is_some_and(CatalogTransaction::has_begun);
        match self.bind_with(context.as_mut(), attachment, transaction) {
            Err(error) if error.is_outdated() && had_begun => {
                Err(error.and(&"the server has lost the transaction; roll it back"))
            }
            Err(error) if error.is_outdated() => {
                if let Some(transaction) = transaction {
                    transaction.forget();
                }
                let renewed = attachment.renewed(&QueryInterrupt(&context))?;
                self.bind_with(context, &renewed, transaction)
            }
            other => other,
        }
    }

    fn check(&self, context: &ffi::ClientContext) -> Result<(), Error> {
        if self.inputs.is_empty() {
            let text = format!("function '{}' needs a table: give a subquery with at least one column", self.function);
            return Err(Error::new(ExceptionClass::Binder, text));
        }
        if settings::number_of(context, settings::TABLE_BUFFERING)? == 0 {
            let text =
                format!("function '{}' cannot run, because the setting vgi_table_buffering is off", self.function);
            return Err(Error::new(ExceptionClass::Binder, text));
        }
        Ok(())
    }

    /// Looks the function up, encodes the arguments and binds.
    fn bind_with(
        &mut self,
        mut context: Pin<&mut ffi::ClientContext>,
        attachment: &Arc<Attachment>,
        transaction: Option<&CatalogTransaction>,
    ) -> Result<BoundCall, Error> {
        let transaction = transaction.map(|transaction| transaction.handle(&context, attachment)).transpose()?;
        let fields = convert::exported_fields(context.as_mut(), &self.inputs)?;
        let function = self.find_function(attachment, &context)?;
        let arguments = arguments::encode(context.as_mut(), &function, &self.args, &self.named)?;
        let settings = arguments::required_settings(context.as_mut(), &function, &attachment.reply().settings)?;
        let mut secrets = Secrets::new(attachment);
        secrets.add(context.as_mut(), &function, &function.required_secrets)?;
        let input_schema = Arc::new(Schema::new(fields));
        let mut request = BindRequest {
            function_name: function.name.clone(),
            schema_path: function.schema_path.clone(),
            arguments,
            input_schema: Arc::clone(&input_schema),
            settings,
            secrets: secrets.batch()?,
            attach_opaque_data: Some(attachment.opaque_data()),
            transaction_opaque_data: transaction.flatten(),
            resolved_secrets_provided: false,
        };
        let mut bound = attachment.bind(&request, &QueryInterrupt(&context))?;
        if !bound.reply.secret_lookups.is_empty() {
            secrets.add(context.as_mut(), &function, &bound.reply.secret_lookups)?;
            request.secrets = secrets.batch()?;
            request.resolved_secrets_provided = true;
            bound = bound.attachment.bind(&request, &QueryInterrupt(&context))?;
            if !bound.reply.secret_lookups.is_empty() {
                let text = format!(
                    "function '{}' asks for secrets a second time, which is against the protocol",
                    function.name
                );
                return Err(Error::new(ExceptionClass::Io, text));
            }
        }
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
        let functions = attachment.functions(self.schema.as_deref(), &self.function, &QueryInterrupt(context))?;
        let buffering: Vec<_> =
            functions.into_iter().filter(|function| function.function_type == FunctionType::TableBuffering).collect();
        let refuse = |class, text: &str| {
            Error::new(class, format!("function '{}' at {} {text}", self.function, attachment.location().as_str()))
        };
        if buffering.is_empty() {
            let text = "is not a buffering function; calling functions of other kinds is not supported yet";
            return Err(refuse(ExceptionClass::NotImplemented, text));
        }
        if let [only] = buffering.as_slice() {
            return Ok(only.clone());
        }
        let fits = buffering.iter().filter_map(|form| Some((arguments::fit(form, &self.args, &self.named)?, form)));
        let fits: Vec<_> = fits.collect();
        let best: Vec<_> = fits.iter().filter(|(fit, _)| fits.iter().all(|(other, _)| fit <= other)).collect();
        match best.as_slice() {
            [(_, form)] => Ok((*form).clone()),
            [] => {
                let forms: Vec<_> = buffering.iter().map(arguments::form).collect();
                let text = format!("has several forms, but none that takes these arguments: {}", forms.join(", "));
                Err(refuse(ExceptionClass::Binder, &text))
            }
            several => {
                let forms: Vec<_> = several.iter().map(|(_, form)| arguments::form(form)).collect();
                let text = format!(
                    "has several forms that take these arguments: {}; cast an argument to the type that is meant",
                    forms.join(", ")
                );
                Err(refuse(ExceptionClass::Binder, &text))
            }
        }
    }
}

/// The elements of a list, the members of a struct, or the one value.
fn parts(value: &ffi::Value) -> Result<Vec<UniquePtr<ffi::Value>>, Error> {
    let parts = ffi::value_parts(value).map_err(|error| Error::new(ExceptionClass::Binder, error.what()))?;
    Ok(parts.as_ref().into_iter().flatten().map(ffi::copy_value).collect())
}

fn named_parts(function: &str, value: &ffi::Value) -> Result<Vec<(String, UniquePtr<ffi::Value>)>, Error> {
    let refuse = |text: &str| Error::new(ExceptionClass::Binder, format!("function '{function}' {text}"));
    let names = ffi::part_names(value).map_err(|error| refuse(error.what()))?;
    let values = parts(value)?;
    if names.is_empty() && !values.is_empty() {
        return Err(refuse("wants its named arguments as a struct, such as named := {'name': value}"));
    }
    Ok(names.into_iter().zip(values).collect())
}
