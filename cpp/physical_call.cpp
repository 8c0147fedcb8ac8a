#include "physical_call.hpp"

#include "exception.hpp"

#include "duckdb/parallel/thread_context.hpp"

namespace vgi {

namespace {

//! One execution of the call, shared by all sink and source threads.
class SinkState final : public duckdb::GlobalSinkState {
public:
    explicit SinkState(rust::Box<Execution> execution_p) : execution(std::move(execution_p)) {}
    rust::Box<Execution> execution;
};

class SinkThreadState final : public duckdb::LocalSinkState {
public:
    explicit SinkThreadState(rust::Box<SinkThread> thread_p) : thread(std::move(thread_p)) {}
    rust::Box<SinkThread> thread;
};

class SourceState final : public duckdb::GlobalSourceState {
public:
    explicit SourceState(duckdb::idx_t max_threads_p) : max_threads(max_threads_p) {}
    duckdb::idx_t MaxThreads() override { return max_threads; }
    duckdb::idx_t max_threads;
};

class SourceThreadState final : public duckdb::LocalSourceState {
public:
    explicit SourceThreadState(rust::Box<SourceThread> thread_p) : thread(std::move(thread_p)) {}
    rust::Box<SourceThread> thread;
};

} // namespace

PhysicalCall::PhysicalCall(duckdb::PhysicalPlan &physical_plan, duckdb::vector<duckdb::LogicalType> types,
                           rust::Box<CallPlan> plan_p, duckdb::idx_t estimated_cardinality)
    : PhysicalOperator(physical_plan, TYPE, std::move(types), estimated_cardinality), plan(std::move(plan_p)) {}

std::string PhysicalCall::GetName() const {
    return "VGI_TABLE_BUFFERING";
}

duckdb::InsertionOrderPreservingMap<std::string> PhysicalCall::ParamsToString() const {
    duckdb::InsertionOrderPreservingMap<std::string> result;
    for (auto &entry : plan->describe()) {
        result[std::string(entry.key)] = std::string(entry.value);
    }
    if (sink_state) { // EXPLAIN ANALYZE, which calls every operator of an extension EXTENSION
        result["Operator"] = GetName();
        for (auto &entry : sink_state->Cast<SinkState>().execution->report()) {
            result[std::string(entry.key)] = std::string(entry.value);
        }
    }
    SetEstimatedCardinality(result, estimated_cardinality);
    return result;
}

// Sink interface

duckdb::unique_ptr<duckdb::GlobalSinkState> PhysicalCall::GetGlobalSinkState(duckdb::ClientContext &context) const {
    return duckdb::make_uniq<SinkState>(Forward([&] { return plan->new_execution(context); }));
}

duckdb::unique_ptr<duckdb::LocalSinkState> PhysicalCall::GetLocalSinkState(duckdb::ExecutionContext &context) const {
    auto &global = sink_state->Cast<SinkState>();
    return duckdb::make_uniq<SinkThreadState>(
        Forward([&] { return global.execution->new_sink_thread(context.client); }));
}

duckdb::SinkResultType PhysicalCall::Sink(duckdb::ExecutionContext &context, duckdb::DataChunk &chunk,
                                          duckdb::OperatorSinkInput &input) const {
    auto &local = input.local_state.Cast<SinkThreadState>();
    // DuckDB sets the index only for a sink that requires it; -1 says that there is none
    const auto &index = local.partition_info.batch_index;
    const auto batch_index = index.IsValid() ? static_cast<std::int64_t>(index.GetIndex()) : -1;
    if (input.interrupt_state.CanCallback() &&
        !Forward([&] { return local.thread->can_sink(chunk, input.interrupt_state); })) {
        return duckdb::SinkResultType::BLOCKED;
    }
    Forward([&] { local.thread->sink(context.client, chunk, batch_index); });
    return duckdb::SinkResultType::NEED_MORE_INPUT;
}

duckdb::SinkCombineResultType PhysicalCall::Combine(duckdb::ExecutionContext &context,
                                                    duckdb::OperatorSinkCombineInput &input) const {
    auto &local = input.local_state.Cast<SinkThreadState>();
    if (input.interrupt_state.CanCallback() &&
        !Forward([&] { return local.thread->can_finish(context.client, input.interrupt_state); })) {
        return duckdb::SinkCombineResultType::BLOCKED;
    }
    Forward([&] { local.thread->finish(context.client); });
    return duckdb::SinkCombineResultType::FINISHED;
}

duckdb::SinkFinalizeType PhysicalCall::Finalize(duckdb::Pipeline &, duckdb::Event &, duckdb::ClientContext &context,
                                                duckdb::OperatorSinkFinalizeInput &input) const {
    auto &global = input.global_state.Cast<SinkState>();
    Forward([&] { global.execution->combine(context); });
    return duckdb::SinkFinalizeType::READY;
}

bool PhysicalCall::IsSink() const {
    return true;
}

bool PhysicalCall::ParallelSink() const {
    return plan->parallel_sink();
}

bool PhysicalCall::SinkOrderDependent() const {
    return plan->input_order_matters();
}

duckdb::OperatorPartitionInfo PhysicalCall::RequiredPartitionInfo() const {
    return plan->wants_batch_index() ? duckdb::OperatorPartitionInfo::BatchIndex()
                                     : duckdb::OperatorPartitionInfo::NoPartitionInfo();
}

duckdb::ProgressData PhysicalCall::GetSinkProgress(duckdb::ClientContext &, duckdb::GlobalSinkState &gstate,
                                                   const duckdb::ProgressData source_progress) const {
    // what the source gave is not done before the server has accepted it
    auto result = source_progress;
    result.done *= gstate.Cast<SinkState>().execution->accepted_share();
    return result;
}

// Source interface

duckdb::unique_ptr<duckdb::GlobalSourceState> PhysicalCall::GetGlobalSourceState(duckdb::ClientContext &) const {
    auto &global = sink_state->Cast<SinkState>();
    return duckdb::make_uniq<SourceState>(global.execution->max_source_threads());
}

duckdb::unique_ptr<duckdb::LocalSourceState> PhysicalCall::GetLocalSourceState(duckdb::ExecutionContext &context,
                                                                               duckdb::GlobalSourceState &) const {
    auto &global = sink_state->Cast<SinkState>();
    return duckdb::make_uniq<SourceThreadState>(
        Forward([&] { return global.execution->new_source_thread(context.client); }));
}

bool PhysicalCall::IsSource() const {
    return true;
}

bool PhysicalCall::ParallelSource() const {
    return !plan->output_order_matters();
}

duckdb::OrderPreservationType PhysicalCall::SourceOrder() const {
    return plan->output_order_matters() ? duckdb::OrderPreservationType::INSERTION_ORDER
                                        : duckdb::OrderPreservationType::NO_ORDER;
}

duckdb::ProgressData PhysicalCall::GetProgress(duckdb::ClientContext &, duckdb::GlobalSourceState &) const {
    const auto &execution = *sink_state->Cast<SinkState>().execution;
    duckdb::ProgressData result;
    result.done = static_cast<double>(execution.finished_streams());
    result.total = static_cast<double>(execution.stream_count());
    result.invalid = result.total == 0;
    return result;
}

duckdb::SourceResultType PhysicalCall::GetDataInternal(duckdb::ExecutionContext &context, duckdb::DataChunk &chunk,
                                                       duckdb::OperatorSourceInput &input) const {
    auto &local = input.local_state.Cast<SourceThreadState>();
    if (input.interrupt_state.CanCallback() &&
        !Forward([&] { return local.thread->can_read(input.interrupt_state); })) {
        return duckdb::SourceResultType::BLOCKED;
    }
    const bool more = Forward([&] { return local.thread->next(context.client, chunk); });
    // DuckDB asks for the parameters when the operator starts; the counters are worth reading when it ends
    if (context.thread.profiler.OperatorMetricsIsInitialized(*this)) {
        context.thread.profiler.GetOperatorMetrics(*this).SetExtraInfo(ParamsToString());
    }
    return more ? duckdb::SourceResultType::HAVE_MORE_OUTPUT : duckdb::SourceResultType::FINISHED;
}

} // namespace vgi
