//! `ATTACH 'catalog' AS name (TYPE vgi, …)`: its options, and the attach that follows.

use std::pin::Pin;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};
use cxx::UniquePtr;
use vgi_transport::{ErrorKind, Location, Options, attach_with, catalogs};
use vgi_wire::methods::{AttachRequest, SettingSpec};

use super::attached::AttachedCatalog;
use super::credentials::{Credentials, of_location};
use crate::bridge::{QueryInterrupt, ffi};
use crate::convert;
use crate::error::{Error, ExceptionClass};
use crate::logging::CallLog;
use crate::settings;

/// Options that are read here; every other one is the catalog's own.
const KNOWN: [&str; 8] = [
    "location",
    "path",
    "secret",
    "bearer_token",
    "cache",
    "global_functions",
    "data_version_spec",
    "implementation_version",
];

/// Options of the protocol's C++ client that are about worker processes which it starts; over HTTP there are none, so they mean nothing.
const MEANINGLESS: [&str; 6] =
    ["pool", "pool_max", "pool_timeout", "worker_debug", "launcher_idle_timeout", "launcher_state_dir"];

/// The statement's parts, collected one by one.
pub struct AttachStatement {
    catalog: String,
    options: Vec<(String, UniquePtr<ffi::Value>)>,
    log: Arc<CallLog>,
}

impl AttachStatement {
    /// A statement without options.
    pub fn new(catalog: String) -> Self {
        Self { catalog, options: Vec::new(), log: Arc::default() }
    }

    /// Lines for DuckDB's log.
    pub fn log(&self) -> &CallLog {
        &self.log
    }

    /// Adds an option.
    pub fn push_option(&mut self, name: &str, value: UniquePtr<ffi::Value>) {
        self.options.push((name.to_ascii_lowercase(), value));
    }

    fn text(&self, name: &str) -> Option<String> {
        let (_, value) = self.options.iter().find(|(option, _)| option == name)?;
        value.as_ref().map(ffi::value_text).filter(|text| !text.is_empty())
    }

    fn refuse(&self, text: &str) -> Error {
        Error::new(ExceptionClass::Binder, format!("ATTACH '{}': {text}", self.catalog))
    }

    /// Asks the server.
    pub fn attach_catalog(&self, mut context: Pin<&mut ffi::ClientContext>) -> Result<AttachedCatalog, Error> {
        let location = self.text("location").or_else(|| self.text("path")).ok_or_else(|| {
            self.refuse(
                "the option LOCATION is missing; it is the server's URL, as in LOCATION 'http://127.0.0.1:9000'",
            )
        })?;
        let location = Location::parse(&location)?;
        self.log.listen(&context);
        let options = Options { events: Some(Arc::clone(&self.log) as _), ..settings::transport_options(&context)? };
        let options = self.credentials(&context, &location)?.apply(options);
        let request = AttachRequest {
            name: self.catalog.clone(),
            options: self.catalog_options(context.as_mut(), &location, &options)?,
            data_version_spec: self.text("data_version_spec"),
            implementation_version: self.text("implementation_version"),
        };
        let interrupt = QueryInterrupt(&context);
        let attachment = attach_with(&location, &request, &options, &interrupt).map_err(|error| {
            let missing = (error.kind() == ErrorKind::Remote)
                .then(|| self.missing_option(&self.declared(&location, &options, &interrupt).unwrap_or_default()));
            missing.flatten().unwrap_or_else(|| error.into())
        })?;
        let companions = &attachment.reply().required_companions;
        if !companions.is_empty() {
            let text = format!(
                "the catalog requires that {} be attached with it, which this version of vgi cannot do yet",
                companions.iter().map(|alias| format!("'{alias}'")).collect::<Vec<_>>().join(", ")
            );
            return Err(self.refuse(&text));
        }
        let (caching, publishing) = (self.switch("cache")?, self.switch("global_functions")?);
        Ok(AttachedCatalog::new(attachment, caching, publishing))
    }

    fn credentials(&self, context: &ffi::ClientContext, location: &Location) -> Result<Credentials, Error> {
        match (self.text("bearer_token"), self.text("secret")) {
            (Some(_), Some(_)) => {
                Err(self.refuse("bearer_token and SECRET are two ways to authenticate; give one of them"))
            }
            (Some(token), None) => Ok(Credentials::token(token)),
            (None, Some(name)) => Credentials::of_secret(context, &name),
            (None, None) => of_location(context, location),
        }
    }

    /// An option that is on unless it is switched off.
    fn switch(&self, name: &str) -> Result<bool, Error> {
        match self.text(name).map(|text| text.to_ascii_lowercase()).as_deref() {
            None | Some("true" | "1") => Ok(true),
            Some("false" | "0") => Ok(false),
            Some(other) => Err(self.refuse(&format!("the option {name} must be true or false, not '{other}'"))),
        }
    }

    /// The options that the catalog declares, when the statement has any of them.
    fn catalog_options(
        &self,
        mut context: Pin<&mut ffi::ClientContext>,
        location: &Location,
        options: &Options,
    ) -> Result<Option<RecordBatch>, Error> {
        let given: Vec<_> = self.options.iter().filter(|(name, _)| !KNOWN.contains(&name.as_str())).collect();
        if given.is_empty() {
            return Ok(None);
        }
        let declared = self.declared(location, options, &QueryInterrupt(&context))?;
        if let Some(missing) = self.missing_option(&declared) {
            return Err(missing);
        }
        let mut columns: Vec<(Field, ArrayRef)> = Vec::with_capacity(given.len());
        for (name, value) in given {
            let spec = declared.iter().find(|spec| spec.name.eq_ignore_ascii_case(name));
            let Some(spec) = spec else {
                if MEANINGLESS.contains(&name.as_str()) {
                    continue;
                }
                return Err(self.unknown_option(name, &declared));
            };
            let value = value.as_ref().ok_or_else(|| self.refuse("an option has no value"))?;
            columns.push(self.option_value(context.as_mut(), spec, value)?);
        }
        if columns.is_empty() {
            return Ok(None);
        }
        let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
        batch.map(Some).map_err(|error| self.refuse(&error.to_string()))
    }

    fn option_value(
        &self,
        mut context: Pin<&mut ffi::ClientContext>,
        spec: &SettingSpec,
        value: &ffi::Value,
    ) -> Result<(Field, ArrayRef), Error> {
        // the text of a value that must not be shown stands in DuckDB's message too
        let fail = |error: &dyn std::fmt::Display| {
            let detail = if spec.secret { String::new() } else { format!(": {error}") };
            self.refuse(&format!("the value of the option '{}' does not fit its type{detail}", spec.name))
        };
        let schema = Schema::new(vec![spec.field.clone()]);
        let types = convert::duckdb_types(context.as_mut(), &schema, &[])?;
        let (_, target) = types.first().ok_or_else(|| self.refuse("an option has no type"))?;
        let cast = ffi::cast_value(context.as_mut(), value, target.get()?)
            .map_err(|error| fail(&convert::exception_text(&error)))?;
        let cast = cast.as_ref().ok_or_else(|| fail(&"DuckDB gave no value"))?;
        convert::value_array(context, &spec.name, cast).map_err(|error| fail(&error))
    }

    fn declared(
        &self,
        location: &Location,
        options: &Options,
        interrupt: &QueryInterrupt<'_>,
    ) -> Result<Vec<SettingSpec>, Error> {
        let offered = catalogs(location, options, interrupt)?;
        // a server's only catalog may have no name and accept any
        let catalog = offered.into_iter().find(|info| info.name == self.catalog || info.name.is_empty());
        Ok(catalog.map(|info| info.attach_options).unwrap_or_default())
    }

    fn missing_option(&self, declared: &[SettingSpec]) -> Option<Error> {
        let given = |spec: &SettingSpec| self.options.iter().any(|(name, _)| spec.name.eq_ignore_ascii_case(name));
        let missing: Vec<_> = declared
            .iter()
            .filter(|spec| spec.required && spec.default.is_none() && !given(spec))
            .map(|spec| format!("'{}' ({})", spec.name, spec.description))
            .collect();
        (!missing.is_empty()).then(|| self.refuse(&format!("the catalog requires the options {}", missing.join(", "))))
    }

    fn unknown_option(&self, name: &str, declared: &[SettingSpec]) -> Error {
        let known = KNOWN.iter().map(|name| (*name).to_owned()).chain(declared.iter().map(|spec| spec.name.clone()));
        self.refuse(&format!(
            "neither this extension nor the catalog has an option '{name}'; known are {}",
            known.collect::<Vec<_>>().join(", ")
        ))
    }
}
