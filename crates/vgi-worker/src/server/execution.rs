//! The life of an execution: bind, init, process, combine, destructor.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use vgi_wire::arguments::{Values, decode_values};
use vgi_wire::filter::{self, Predicate};
use vgi_wire::ipc::{self, Segments};
use vgi_wire::methods::{
    BindReply, BindRequest, CombineReply, CombineRequest, ExecutionRef, InitRequest, Phase, ProcessReply,
    ProcessRequest,
};
use vgi_wire::server::{Call, acknowledgement};

use crate::args::sql_type;
use crate::catalog::Registered;
use crate::context::Scope;
use crate::error::{Error, Result};
use crate::function::Filters;
use crate::given::Given;
use crate::ids::{ExecutionId, FinalizeId, StateId};
use crate::log::Logger;
use crate::server::Exchange;
use crate::server::answer::Answer;
use crate::server::fault::Fault;
use crate::storage::{StorageError, Store};
use crate::tokens::random_id;

/// Where the storage keeps what later requests need of the init request.
const INIT: &str = "\0init";

/// Where the storage keeps whose execution it is.
const OWNER: &str = "\0owner";

/// An execution as a later request finds it in the storage.
pub(super) struct Execution {
    pub(super) function: Arc<dyn Registered>,
    pub(super) values: Values,
    pub(super) scope: Scope,
}

/// What an init request says of its execution.
#[derive(Clone)]
pub(super) struct Blueprint {
    function: Arc<dyn Registered>,
    values: Values,
    input_schema: SchemaRef,
    output_schema: SchemaRef,
    projection: Option<Vec<usize>>,
    filters: Vec<Predicate>,
    given: Given,
}

/// Runs a function's code. A panic is an error of the function; the worker goes on.
pub(super) fn guarded<T>(code: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(code)).unwrap_or_else(|payload| {
        let text =
            payload.downcast_ref::<String>().map(String::as_str).or_else(|| payload.downcast_ref::<&str>().copied());
        Err(Error::Panicked(text.unwrap_or("without a message").to_owned()))
    })
}

impl Exchange<'_> {
    pub(super) fn bind(&self, call: &Call) -> Result<Segments, Fault> {
        self.server.counters.bind_calls.add(1);
        self.server.drain.admit()?;
        let request = BindRequest::from_blob(call.request_blob()?)?;
        self.check_attachment(request.attach_opaque_data.as_ref())?;
        let given = self.given(&request)?;
        let values = decode_values(&request.arguments)?;
        let function = self.server.catalog.function_for(&request.schema_path, &request.function_name, &values)?;
        let bound = guarded(|| function.bind(values, &request.input_schema, &given, self.logger))?;
        let reply =
            BindReply::new(bound.output_schema).map(|reply| BindReply { secret_lookups: bound.lookups, ..reply });
        self.result(reply.and_then(|reply| reply.to_blob()))
    }

    pub(super) fn given(&self, bind: &BindRequest) -> Result<Given, Fault> {
        let (attachment, options) = self.attachment_of(bind.attach_opaque_data.as_ref())?;
        let transaction = bind.transaction_opaque_data.as_ref().filter(|handle| !handle.is_empty());
        Ok(Given {
            settings: bind.settings.clone(),
            secrets: bind.secrets.clone(),
            secrets_resolved: bind.resolved_secrets_provided,
            options,
            attachment,
            transaction: transaction.map(|handle| self.transaction_of(handle)).transpose()?,
        })
    }

    /// `init`, which begins an execution or opens one of its streams.
    pub(super) fn open(&self, call: &Call) -> Result<Answer, Fault> {
        let blob = call.request_blob()?;
        let request = InitRequest::from_blob(blob.clone())?;
        match (request.phase, request.execution_id.clone()) {
            (Phase::TableBufferingFinalize, _) => self.open_stream(&request),
            (Phase::TableBuffering, None) => {
                let bind = BindRequest::from_blob(request.bind_call)?;
                self.check_attachment(bind.attach_opaque_data.as_ref())?;
                self.begin(blob)
            }
            (Phase::TableBuffering, Some(id)) => {
                // a secondary init: the execution is there for all requests already
                let execution = self.execution(ExecutionId::new(id), None, Bytes::new())?;
                self.opened(&execution)
            }
        }
    }

    fn begin(&self, blob: Bytes) -> Result<Answer, Fault> {
        self.server.sweep()?;
        let id = ExecutionId::from(random_id().to_vec());
        let execution = self.assemble(id.clone(), blob.clone(), None, Bytes::new())?;
        execution.check_lookups()?;
        let storage = &self.server.storage;
        storage.begin(&id).map_err(Error::from)?;
        let owner = Bytes::copy_from_slice(self.principal.as_bytes());
        let begun = storage.put(&id, OWNER, owner).and_then(|()| storage.put(&id, INIT, blob)).map_err(Error::from);
        let begun =
            begun.and_then(|()| guarded(|| execution.function.init(execution.values.clone(), &execution.scope)));
        if let Err(error) = begun {
            storage.end(&id).map_err(Error::from)?;
            return Err(error.into());
        }
        self.server.counters.executions.add(1);
        self.server.drain.serves(&id);
        self.opened(&execution)
    }

    pub(super) fn process(&self, call: &Call) -> Result<Segments, Fault> {
        let (_entered, concurrency) = self.server.processing.enter();
        self.server.counters.process_calls.add(1);
        self.server.counters.process_concurrency.raise_to(concurrency);
        let request = ProcessRequest::from_blob(call.request_blob()?)?;
        let blob = request.input_batch.to_bytes();
        let execution =
            self.execution(ExecutionId::new(request.execution.execution_id), request.batch_index, blob.clone())?;
        execution.check_name(&request.execution.function_name)?;
        let batch = ipc::decode_batch(blob)?;
        check_schema(&batch.schema(), &execution.scope.input_schema)?;
        let rows = batch.num_rows();
        let state_id = guarded(|| execution.function.process(execution.values, batch, &execution.scope))?;
        self.server.counters.batches_in.add(1);
        self.server.counters.rows_in.add(rows);
        self.result(ProcessReply { state_id: state_id.as_bytes().clone() }.to_blob())
    }

    pub(super) fn combine(&self, call: &Call) -> Result<Segments, Fault> {
        self.server.counters.combine_calls.add(1);
        let request = CombineRequest::from_blob(call.request_blob()?)?;
        let execution = self.execution(ExecutionId::new(request.execution.execution_id), None, Bytes::new())?;
        execution.check_name(&request.execution.function_name)?;
        let ids = request.state_ids.into_iter().map(StateId::new).collect();
        let streams = guarded(|| execution.function.combine(execution.values, ids, &execution.scope))?;
        let finalize_state_ids = streams.iter().map(FinalizeId::as_bytes).cloned().collect();
        self.result(CombineReply { finalize_state_ids }.to_blob())
    }

    /// Destroying what is not there is no error: a client may not know.
    pub(super) fn destroy(&self, call: &Call) -> Result<Segments, Fault> {
        self.server.counters.destructor_calls.add(1);
        let request = ExecutionRef::from_blob(call.request_blob()?)?;
        let id = ExecutionId::new(request.execution_id);
        match self.check_owner(&id) {
            Ok(()) => {
                self.server.recent.forget(&id);
                self.server.storage.end(&id).map_err(Error::from)?;
                self.server.drain.ended(&id);
            }
            Err(StorageError::UnknownExecution(_)) => {}
            Err(error) => return Err(Error::from(error).into()),
        }
        self.result(acknowledgement())
    }

    /// To all but its owner an execution does not exist.
    fn check_owner(&self, id: &ExecutionId) -> Result<(), StorageError> {
        let owner = self.server.storage.get(id, OWNER)?;
        if owner.is_some_and(|owner| owner == self.principal.as_bytes()) {
            return Ok(());
        }
        Err(StorageError::UnknownExecution(id.clone()))
    }

    /// The execution of a later request.
    pub(super) fn execution(
        &self,
        id: ExecutionId,
        batch_index: Option<i64>,
        input_blob: Bytes,
    ) -> Result<Execution, Fault> {
        self.check_owner(&id).map_err(Error::from)?;
        self.server.drain.serves(&id);
        let stored = self.server.storage.get(&id, INIT).map_err(Error::from)?;
        let stored = stored.ok_or_else(|| Error::from(StorageError::UnknownExecution(id.clone())))?;
        self.assemble(id, stored, batch_index, input_blob)
    }

    fn assemble(
        &self,
        id: ExecutionId,
        init_blob: Bytes,
        batch_index: Option<i64>,
        input_blob: Bytes,
    ) -> Result<Execution, Fault> {
        let read = self.server.recent.get_or_read(&id, &init_blob, || self.blueprint(init_blob.clone()))?;
        let Blueprint { function, values, input_schema, output_schema, projection, filters, given } =
            read.as_ref().clone();
        let store = Store::new(Arc::clone(&self.server.storage), id);
        let logger = self.logger.clone();
        let scope =
            Scope { store, input_schema, output_schema, projection, filters, batch_index, input_blob, given, logger };
        Ok(Execution { function, values, scope })
    }

    fn blueprint(&self, init_blob: Bytes) -> Result<Blueprint, Fault> {
        let init = InitRequest::from_blob(init_blob.clone())?;
        let bind = BindRequest::from_blob(init.bind_call.clone())?;
        let given = self.given(&bind)?;
        let values = decode_values(&bind.arguments)?;
        let function = self.server.catalog.function_for(&bind.schema_path, &bind.function_name, &values)?;
        let output_schema = ipc::decode_schema(&init.output_schema)?;
        Ok(Blueprint {
            projection: projection(init.projection_ids.as_deref(), function.as_ref(), &output_schema)?,
            filters: filters(&init, init_blob, function.as_ref(), &output_schema)?,
            values,
            input_schema: bind.input_schema,
            function,
            output_schema,
            given,
        })
    }
}

impl Execution {
    /// Refuses to begin what was bound without the secrets that the function asked for, as a client does that does not know of them. The
    /// output of such a bind has no column, which hardly any other has, so that it is only then that the function is asked again.
    fn check_lookups(&self) -> Result<()> {
        let Self { function, values, scope } = self;
        if scope.given.secrets_resolved || !scope.output_schema.fields().is_empty() {
            return Ok(());
        }
        let again = guarded(|| function.bind(values.clone(), &scope.input_schema, &scope.given, &Logger::default()))?;
        if again.lookups.is_empty() {
            return Ok(());
        }
        let name = &function.spec().name;
        let message =
            format!("{name} asked for secrets when it was bound: the client must look for them and bind again");
        Err(Error::Protocol(message))
    }

    /// The columns that a stream shall deliver.
    pub(super) fn narrow_to(&mut self, projection_ids: Option<&[i64]>) -> Result<()> {
        self.scope.projection = projection(projection_ids, self.function.as_ref(), &self.scope.output_schema)?;
        Ok(())
    }

    fn check_name(&self, name: &str) -> Result<()> {
        let own = &self.function.spec().name;
        if own == name {
            return Ok(());
        }
        Err(Error::Protocol(format!("the execution is one of function '{own}', but the request names '{name}'")))
    }
}

/// The wanted columns, of a function that honours them; of any other all columns are sent, as the protocol has it.
fn projection(ids: Option<&[i64]>, function: &dyn Registered, schema: &Schema) -> Result<Option<Vec<usize>>> {
    let Some(ids) = ids.filter(|_| function.spec().flags.projection_pushdown) else { return Ok(None) };
    let count = schema.fields().len();
    let column = |id: &i64| {
        let index = usize::try_from(*id).ok().filter(|index| *index < count);
        index.ok_or_else(|| Error::Protocol(format!("projection_ids names the column {id} of {count}")))
    };
    ids.iter().map(column).collect::<Result<Vec<_>>>().map(Some)
}

/// The filters, of a function that takes them. Their sets may stand beside them in the record of init.
fn filters(
    init: &InitRequest,
    init_blob: Bytes,
    function: &dyn Registered,
    schema: &SchemaRef,
) -> Result<Vec<Predicate>> {
    let filters = init.pushdown_filters.clone().filter(|filters| !filters.is_empty());
    let Some(filters) = filters.filter(|_| function.spec().flags.filters != Filters::Unsupported) else {
        return Ok(Vec::new());
    };
    InitRequest::join_keys(init_blob)
        .and_then(|join_keys| filter::decode_with_join_keys(filters, &join_keys, schema))
        .map_err(|error| Error::Protocol(error.to_string()))
}

/// Clients must keep to the schema that they bound with; a function could only guess what else to do.
fn check_schema(batch: &SchemaRef, bound: &SchemaRef) -> Result<()> {
    let (given, wanted) = (batch.fields().len(), bound.fields().len());
    if given != wanted {
        return Err(Error::Protocol(format!("the batch has {given} columns, but bind declared {wanted}")));
    }
    for (given, wanted) in batch.fields().iter().zip(bound.fields()) {
        if given.name() != wanted.name() || !given.data_type().equals_datatype(wanted.data_type()) {
            let text = |field: &arrow_schema::Field| format!("'{}' {}", field.name(), sql_type(field.data_type()));
            return Err(Error::Protocol(format!(
                "the batch has the column {}, but bind declared {}",
                text(given),
                text(wanted)
            )));
        }
    }
    Ok(())
}
