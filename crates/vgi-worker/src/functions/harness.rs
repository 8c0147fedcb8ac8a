//! Runs a function as the server does, on a storage in memory, for the tests of the functions.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use vgi_wire::arguments::Values;
use vgi_wire::ipc;

use crate::catalog::{Catalog, Registered};
use crate::context::Scope;
use crate::error::Result;
use crate::function::BufferingFunction;
use crate::given::Given;
use crate::ids::{ExecutionId, FinalizeId, StateId};
use crate::log::Logger;
use crate::storage::{MemoryStorage, Storage, Store};

pub(crate) struct Call {
    function: Arc<dyn Registered>,
    values: Values,
    input: Option<SchemaRef>,
    store: Store,
    logger: Logger,
}

impl Call {
    pub(crate) fn new<F: BufferingFunction>(function: F) -> Self {
        let name = function.spec().name;
        let mut catalog = Catalog::new("example", "main");
        catalog.register("main", function).unwrap();
        let storage = Arc::new(MemoryStorage::new());
        let execution = ExecutionId::new("test");
        storage.begin(&execution).unwrap();
        Self {
            function: catalog.function(&[], &name).unwrap(),
            values: Values::default(),
            input: None,
            store: Store::new(storage, execution),
            logger: Logger::default(),
        }
    }

    pub(crate) fn positional(mut self, value: ArrayRef) -> Self {
        self.values.positional.push(value);
        self
    }

    pub(crate) fn named(mut self, name: &str, value: ArrayRef) -> Self {
        self.values.named.push((name.to_owned(), value));
        self
    }

    pub(crate) fn input(mut self, schema: SchemaRef) -> Self {
        self.input = Some(schema);
        self
    }

    pub(crate) fn logs(&self) -> Vec<String> {
        self.logger.take().into_iter().map(|record| record.message).collect()
    }

    fn scope(&self, schema: &SchemaRef, batch_index: Option<i64>, input_blob: Bytes) -> Result<Scope> {
        Ok(Scope {
            store: self.store.clone(),
            input_schema: Arc::clone(schema),
            output_schema: self
                .function
                .bind(self.values.clone(), schema, &Given::default(), &self.logger)?
                .output_schema,
            projection: None,
            filters: Vec::new(),
            batch_index,
            input_blob,
            given: Given::default(),
            logger: self.logger.clone(),
        })
    }

    pub(crate) fn process_one(&self, batch: &RecordBatch, batch_index: Option<i64>) -> Result<StateId> {
        let blob = ipc::encode_stream(batch, &[]).unwrap().to_bytes();
        self.store.put("test schema", ipc::encode_schema(&batch.schema()).unwrap()).unwrap();
        self.function.process(self.values.clone(), batch.clone(), &self.scope(&batch.schema(), batch_index, blob)?)
    }

    pub(crate) fn process(&self, batches: &[RecordBatch]) -> Result<Vec<StateId>> {
        (0..).zip(batches).map(|(index, batch)| self.process_one(batch, Some(index))).collect()
    }

    /// Combine and all streams, one after the other.
    pub(crate) fn rest(&self, ids: Vec<StateId>) -> Result<Vec<RecordBatch>> {
        let schema = match &self.input {
            Some(schema) => Arc::clone(schema),
            None => ipc::decode_schema(&self.store.get("test schema")?.unwrap())?,
        };
        let scope = self.scope(&schema, None, Bytes::new())?;
        let streams = self.function.combine(self.values.clone(), ids, &scope)?;
        let mut output = Vec::new();
        for id in streams {
            output.extend(self.stream(&id, &scope)?);
        }
        Ok(output)
    }

    fn stream(&self, id: &FinalizeId, scope: &Scope) -> Result<Vec<RecordBatch>> {
        let mut output = Vec::new();
        let mut position = None;
        loop {
            let tick = self.function.finalize(self.values.clone(), id, position.clone(), scope)?;
            if let Some(batch) = tick.batch {
                assert_eq!(batch.schema(), scope.output_schema);
                output.push(batch);
            }
            if tick.next.is_none() {
                return Ok(output);
            }
            position = tick.next;
        }
    }

    pub(crate) fn run(&self, batches: &[RecordBatch]) -> Result<Vec<RecordBatch>> {
        let ids = self.process(batches)?;
        self.rest(ids)
    }
}

/// A batch of named, nullable columns.
pub(crate) fn batch_of(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<_> = columns
        .iter()
        .map(|(name, column)| arrow_schema::Field::new(*name, column.data_type().clone(), true))
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.into_iter().map(|(_, column)| column).collect())
        .unwrap()
}
