//! Secrets that a bind carries: those that the function requires, and those that the server asks for in its first answer.
//!
//! A server gets only secrets of types that its own catalog declares. A type that another extension made is refused, or any server could
//! ask for the keys of a user's object store.

use std::pin::Pin;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Field;
use vgi_transport::Attachment;
use vgi_wire::methods::{FunctionInfo, SecretLookup, secrets_batch};

use crate::bridge::ffi;
use crate::convert;
use crate::error::{Error, ExceptionClass};

/// The secrets of one bind, each once.
pub(super) struct Secrets<'a> {
    attachment: &'a Attachment,
    found: Vec<(Field, ArrayRef)>,
}

impl<'a> Secrets<'a> {
    pub(super) fn new(attachment: &'a Attachment) -> Self {
        Self { attachment, found: Vec::new() }
    }

    /// Adds those of the wanted secrets that there are; what a missing one means is for the server to say.
    pub(super) fn add(
        &mut self,
        mut context: Pin<&mut ffi::ClientContext>,
        function: &FunctionInfo,
        wanted: &[SecretLookup],
    ) -> Result<(), Error> {
        let refuse = |text: &str| Error::new(ExceptionClass::Binder, format!("function '{}' {text}", function.name));
        for lookup in wanted {
            let declared = &self.attachment.reply().secret_types;
            if !declared.iter().any(|known| known.name.eq_ignore_ascii_case(&lookup.secret_type)) {
                let text =
                    format!("asks for a secret of type '{}', which its catalog does not declare", lookup.secret_type);
                return Err(refuse(&text));
            }
            let secret = ffi::find_declared_secret(&context, &lookup.secret_type, &lookup.scope, &lookup.name)
                .map_err(|error| refuse(&convert::exception_text(&error)))?;
            let Some(secret) = secret.as_ref() else { continue };
            let name = ffi::secret_name(secret);
            if self.found.iter().any(|(field, _)| *field.name() == name) {
                continue;
            }
            // the cause may hold the value
            let column = convert::value_array(context.as_mut(), &name, secret).map_err(|_| {
                refuse(&format!("cannot be given the secret '{name}', which has a value without a form in Arrow"))
            })?;
            self.found.push(column);
        }
        Ok(())
    }

    /// The value for the request.
    pub(super) fn batch(&self) -> Result<Option<RecordBatch>, Error> {
        Ok(secrets_batch(self.found.clone())?)
    }
}
