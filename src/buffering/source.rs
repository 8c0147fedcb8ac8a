//! One thread of the source: drains finalize streams and pages their batches into vectors.

use std::pin::Pin;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use vgi_transport::FinalizeStream;

use super::execution::Shared;
use super::memory::{Memory, batch_bytes};
use crate::bridge::{QueryInterrupt, Waker, ffi};
use crate::convert::Importer;
use crate::error::{Error, ExceptionClass};
use crate::logging::CallLog;

/// Rows of a DuckDB vector.
const VECTOR_SIZE: usize = 2048;

/// State of one source thread.
pub struct SourceThread {
    shared: Arc<Shared>,
    memory: Memory,
    stream: Option<FinalizeStream>,
    importer: Option<(SchemaRef, Importer)>,
    page: Page,
}

/// The rest of the current batch.
#[derive(Default)]
struct Page {
    offset: usize,
    rows: usize,
}

impl SourceThread {
    /// Lines for DuckDB's log.
    pub fn log(&self) -> &CallLog {
        self.shared.plan.call.log()
    }

    pub(super) fn new(shared: Arc<Shared>, memory: Memory) -> Self {
        Self { shared, memory, stream: None, importer: None, page: Page::default() }
    }

    /// Fills the chunk with the next rows; false when there are none left for this thread.
    pub fn pull(
        &mut self,
        mut context: Pin<&mut ffi::ClientContext>,
        chunk: Pin<&mut ffi::DataChunk>,
    ) -> Result<bool, Error> {
        let result = self.advance(context.as_mut());
        match result.map_err(|error| self.shared.fail(error)) {
            Ok(true) => {
                let shared = Arc::clone(&self.shared);
                shared.observer.counters.decoding.time(|| self.fill(context, chunk)).map(|()| true)
            }
            other => other,
        }
    }

    /// Whether [`pull`](Self::pull) would not have to wait for the server. If it would, DuckDB is woken when it may be asked again.
    pub fn can_pull(&mut self, task: &ffi::InterruptState) -> Result<bool, Error> {
        if !self.shared.plan.releases_threads || self.page.offset < self.page.rows || self.shared.failure().is_some() {
            return Ok(true);
        }
        let next = self.next_stream().map_err(|error| self.shared.fail(error))?;
        self.stream = next.map(|(stream, _)| stream);
        let Some(stream) = &self.stream else { return Ok(true) };
        let waker = Waker::new(task);
        Ok(stream.ready_or_wake(|| waker.wake())?)
    }

    /// Makes sure that there are rows in the page.
    fn advance(&mut self, mut context: Pin<&mut ffi::ClientContext>) -> Result<bool, Error> {
        while self.page.offset >= self.page.rows {
            if let Some(failure) = self.shared.failure() {
                return Err(failure);
            }
            let Some((mut stream, is_new)) = self.next_stream()? else { return Ok(false) };
            let waiting = &self.shared.observer.counters.waiting;
            if let Some(batch) = waiting.time(|| stream.next(&QueryInterrupt(&context)))? {
                if is_new {
                    // all batches of the reply, once: there may be thousands
                    self.memory.hold(batch_bytes(&batch) + stream.rest().map(batch_bytes).sum::<usize>())?;
                }
                self.stream = Some(stream);
                let shared = Arc::clone(&self.shared);
                shared.observer.counters.decoding.time(|| self.take_batch(context.as_mut(), batch))?;
            } else {
                drop(stream);
                self.shared.stream_ended();
            }
        }
        Ok(true)
    }

    /// The stream to read from, and whether its next batch is the first of a reply. A reply is read to its end, so that a thread holds one
    /// only.
    fn next_stream(&mut self) -> Result<Option<(FinalizeStream, bool)>, Error> {
        match self.stream.take() {
            Some(stream) if stream.rest().next().is_some() => Ok(Some((stream, false))),
            stream => Ok(self.shared.next_stream(stream)?.map(|stream| (stream, true))),
        }
    }

    fn take_batch(&mut self, context: Pin<&mut ffi::ClientContext>, batch: RecordBatch) -> Result<(), Error> {
        if !self.importer.as_ref().is_some_and(|(schema, _)| schema == batch.schema_ref()) {
            self.check_schema(batch.schema_ref())?;
            let importer = Importer::new(context, batch.schema_ref())?;
            self.importer = Some((batch.schema(), importer));
        }
        self.shared.observer.counters.received.add(batch.num_rows());
        self.page = Page { offset: 0, rows: batch.num_rows() };
        if let Some((_, importer)) = &mut self.importer {
            importer.set_batch(&batch)?;
        }
        Ok(())
    }

    /// A batch must be what bind announced: read by position, a different one would give wrong rows.
    fn check_schema(&self, found: &Schema) -> Result<(), Error> {
        let plan = &self.shared.plan;
        let announced = plan.call.output_schema();
        let expected: Vec<_> = if plan.projected {
            plan.columns.iter().filter_map(|&column| announced.fields().get(column)).collect()
        } else {
            announced.fields().iter().collect()
        };
        let same = expected.len() == found.fields().len()
            && expected.iter().zip(found.fields()).all(|(expected, found)| {
                expected.name() == found.name() && expected.data_type().equals_datatype(found.data_type())
            });
        if same {
            return Ok(());
        }
        let text = format!(
            "finalize of '{}' sent columns ({}), but bind announced ({})",
            plan.call.function_name(),
            columns(found.fields().iter()),
            columns(expected.into_iter())
        );
        Err(Error::new(ExceptionClass::InvalidInput, text))
    }

    fn fill(&mut self, context: Pin<&mut ffi::ClientContext>, chunk: Pin<&mut ffi::DataChunk>) -> Result<(), Error> {
        let rows = (self.page.rows - self.page.offset).min(VECTOR_SIZE);
        let Some((_, importer)) = &mut self.importer else { return Ok(()) };
        let plan = &self.shared.plan;
        // a projected batch holds the wanted columns and nothing else
        let projected: Vec<usize>;
        let columns = if plan.projected {
            projected = (0..plan.columns.len()).collect();
            &projected
        } else {
            &plan.columns
        };
        self.shared.observer.counters.delivered.add(rows);
        let offset = self.page.offset;
        self.page.offset += rows;
        importer.read(context, offset, rows, columns, chunk).map_err(|error| self.shared.fail(error))
    }
}

fn columns<'a>(fields: impl Iterator<Item = &'a arrow_schema::FieldRef>) -> String {
    fields.map(|field| format!("{} {}", field.name(), field.data_type())).collect::<Vec<_>>().join(", ")
}
