//! What a function is given besides its rows.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use bytes::Bytes;
use vgi_wire::filter::Predicate;

use crate::args::FromArgument;
use crate::error::Result;
use crate::given::Given;
use crate::ids::ExecutionId;
use crate::log::{LogLevel, Logger};
use crate::storage::Store;

/// What both contexts give of the client's session.
macro_rules! given_accessors {
    ($self:ident, $given:expr) => {
        /// A setting of the client's session, which the function [declares](crate::FunctionSpec::setting); `None` when the client has
        /// no value for it.
        ///
        /// # Errors
        /// When it is of another type.
        pub fn setting<T: FromArgument>(&$self, name: &str) -> Result<Option<T>> {
            $given.setting(name)
        }

        /// An option that ATTACH was given, or its default.
        ///
        /// # Errors
        /// When it is of another type.
        pub fn attach_option<T: FromArgument>(&$self, name: &str) -> Result<Option<T>> {
            $given.option(name)
        }

        /// The value of a key of a secret, found by its name or its type; `None` when the client has no such secret.
        ///
        /// # Errors
        /// When it cannot be written as text.
        pub fn secret(&$self, secret: &str, key: &str) -> Result<Option<String>> {
            $given.secret(secret, key)
        }

        /// What tells the client's attachment from others; `None` for a call without one.
        #[must_use]
        pub fn attachment(&$self) -> Option<&Bytes> {
            $given.attachment.as_ref()
        }

        /// The client's transaction, of a catalog that has them.
        #[must_use]
        pub fn transaction(&$self) -> Option<&Bytes> {
            $given.transaction.as_ref()
        }
    };
}

/// What `bind` is given.
pub struct BindContext<'a, A> {
    /// The arguments.
    pub args: &'a A,
    pub(crate) input_schema: &'a SchemaRef,
    pub(crate) given: &'a Given,
    pub(crate) logger: &'a Logger,
}

impl<A> BindContext<'_, A> {
    /// Schema of the input table.
    #[must_use]
    pub fn input_schema(&self) -> &SchemaRef {
        self.input_schema
    }

    /// Whether the client has looked for the secrets that [`Bound::lookup`](crate::Bound::lookup) asked for, with or without success.
    #[must_use]
    pub fn secrets_resolved(&self) -> bool {
        self.given.secrets_resolved
    }

    given_accessors!(self, self.given);

    /// Writes a log line that the client gets with the reply.
    pub fn log(&self, level: LogLevel, message: impl Into<String>) {
        self.logger.write(level, message);
    }
}

/// What the steps of an execution are given.
pub struct Context<'a, A> {
    /// The arguments.
    pub args: &'a A,
    pub(crate) scope: &'a Scope,
}

/// The part of a context that does not depend on the function.
pub(crate) struct Scope {
    pub(crate) store: Store,
    pub(crate) input_schema: SchemaRef,
    pub(crate) output_schema: SchemaRef,
    pub(crate) projection: Option<Vec<usize>>,
    pub(crate) filters: Vec<Predicate>,
    pub(crate) batch_index: Option<i64>,
    pub(crate) input_blob: Bytes,
    pub(crate) given: Given,
    pub(crate) logger: Logger,
}

impl Scope {
    /// The schema of what a stream delivers.
    pub(crate) fn projected_schema(&self) -> Result<SchemaRef> {
        Ok(match &self.projection {
            Some(columns) => Arc::new(self.output_schema.project(columns)?),
            None => Arc::clone(&self.output_schema),
        })
    }
}

impl<A> Context<'_, A> {
    /// The execution.
    #[must_use]
    pub fn execution(&self) -> &ExecutionId {
        self.scope.store.execution()
    }

    /// The execution's storage.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.scope.store
    }

    /// Schema of the input table.
    #[must_use]
    pub fn input_schema(&self) -> &SchemaRef {
        &self.scope.input_schema
    }

    /// The whole output schema, as `bind` gave it.
    #[must_use]
    pub fn output_schema(&self) -> &SchemaRef {
        &self.scope.output_schema
    }

    /// The output schema as the client will read it.
    ///
    /// # Errors
    /// Never in practice: a projection is checked when it comes.
    pub fn projected_schema(&self) -> Result<SchemaRef> {
        self.scope.projected_schema()
    }

    /// The output columns that the client will read; `None` is all. A function may emit these only, or all.
    #[must_use]
    pub fn projection(&self) -> Option<&[usize]> {
        self.scope.projection.as_deref()
    }

    /// What the client will drop of the output: a row that does not meet all of these conditions. Only given to a function that
    /// [takes filters](crate::Flags::filters).
    #[must_use]
    pub fn filters(&self) -> &[Predicate] {
        &self.scope.filters
    }

    /// Where the piece that `process` is given stands in the source; there if the function requires it.
    #[must_use]
    pub fn batch_index(&self) -> Option<i64> {
        self.scope.batch_index
    }

    /// The piece that `process` is given as it came: an IPC stream of one batch, which can be stored without encoding it again. Empty
    /// in the other steps.
    #[must_use]
    pub fn input_blob(&self) -> &Bytes {
        &self.scope.input_blob
    }

    given_accessors!(self, self.scope.given);

    /// Writes a log line that the client gets with the reply.
    pub fn log(&self, level: LogLevel, message: impl Into<String>) {
        self.scope.logger.write(level, message);
    }
}
