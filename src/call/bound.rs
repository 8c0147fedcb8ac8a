//! A bound call: what the server agreed to. Immutable, shared by all copies of a plan.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use vgi_transport::Bound;
use vgi_wire::methods::FunctionInfo;

use super::filters::Filters;
use crate::bridge::SharedType;
use crate::buffering::OrderFlags;
use crate::logging::CallLog;

/// A bound call.
#[derive(Clone)]
pub struct BoundCall {
    inner: Arc<Inner>,
    filters: Arc<Filters>,
}

struct Inner {
    function: FunctionInfo,
    bound: Arc<Bound>,
    inputs: Vec<(String, SharedType)>,
    input_schema: SchemaRef,
    output: Vec<(String, SharedType)>,
    log: Arc<CallLog>,
}

impl BoundCall {
    pub(super) fn new(
        function: FunctionInfo,
        bound: Bound,
        inputs: Vec<(String, SharedType)>,
        input_schema: SchemaRef,
        output: Vec<(String, SharedType)>,
        log: Arc<CallLog>,
    ) -> Self {
        let inner = Inner { function, bound: Arc::new(bound), inputs, input_schema, output, log };
        Self { inner: Arc::new(inner), filters: Arc::default() }
    }

    /// The same call with these filters on its output.
    pub(super) fn with_filters(&self, filters: Arc<Filters>) -> Self {
        Self { inner: Arc::clone(&self.inner), filters }
    }

    /// Filters that the server is sent.
    pub fn filters(&self) -> &Filters {
        &self.filters
    }

    /// The function's name, for messages.
    pub fn function_name(&self) -> &str {
        &self.inner.function.name
    }

    /// What the server declares about the function.
    pub fn function(&self) -> &FunctionInfo {
        &self.inner.function
    }

    /// What later requests repeat.
    pub fn bound(&self) -> &Arc<Bound> {
        &self.inner.bound
    }

    /// Names and types of the input's columns.
    pub fn inputs(&self) -> &[(String, SharedType)] {
        &self.inner.inputs
    }

    /// The input as the server knows it.
    pub fn input_schema(&self) -> &SchemaRef {
        &self.inner.input_schema
    }

    /// Names and types of all columns of the result.
    pub fn output(&self) -> &[(String, SharedType)] {
        &self.inner.output
    }

    /// The result as the server announced it.
    pub fn output_schema(&self) -> &SchemaRef {
        &self.inner.bound.reply.output_schema
    }

    /// Lines that the server's code logged during this call.
    pub fn log(&self) -> &CallLog {
        &self.inner.log
    }

    /// What the function demands of order.
    pub fn order(&self) -> OrderFlags {
        OrderFlags {
            sink_order_dependent: self.inner.function.sink_order_dependent,
            requires_input_batch_index: self.inner.function.requires_input_batch_index,
            source_order_dependent: self.inner.function.source_order_dependent,
        }
    }
}
