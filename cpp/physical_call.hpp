// The physical operator of a buffered call: a parallel sink and a parallel source around one execution on the server.
#pragma once

#include "vgi/src/bridge.rs.h"

#include "duckdb/execution/physical_operator.hpp"

namespace vgi {

class PhysicalCall final : public duckdb::PhysicalOperator {
public:
    static constexpr const duckdb::PhysicalOperatorType TYPE = duckdb::PhysicalOperatorType::EXTENSION;

    PhysicalCall(duckdb::PhysicalPlan &physical_plan, duckdb::vector<duckdb::LogicalType> types,
                 rust::Box<CallPlan> plan, duckdb::idx_t estimated_cardinality);

    std::string GetName() const override;
    duckdb::InsertionOrderPreservingMap<std::string> ParamsToString() const override;

    // Sink interface
    duckdb::unique_ptr<duckdb::GlobalSinkState> GetGlobalSinkState(duckdb::ClientContext &context) const override;
    duckdb::unique_ptr<duckdb::LocalSinkState> GetLocalSinkState(duckdb::ExecutionContext &context) const override;
    duckdb::SinkResultType Sink(duckdb::ExecutionContext &context, duckdb::DataChunk &chunk,
                                duckdb::OperatorSinkInput &input) const override;
    duckdb::SinkCombineResultType Combine(duckdb::ExecutionContext &context,
                                          duckdb::OperatorSinkCombineInput &input) const override;
    duckdb::SinkFinalizeType Finalize(duckdb::Pipeline &pipeline, duckdb::Event &event, duckdb::ClientContext &context,
                                      duckdb::OperatorSinkFinalizeInput &input) const override;
    bool IsSink() const override;
    bool ParallelSink() const override;
    bool SinkOrderDependent() const override;
    duckdb::OperatorPartitionInfo RequiredPartitionInfo() const override;
    duckdb::ProgressData GetSinkProgress(duckdb::ClientContext &context, duckdb::GlobalSinkState &gstate,
                                         const duckdb::ProgressData source_progress) const override;

    // Source interface
    duckdb::unique_ptr<duckdb::GlobalSourceState> GetGlobalSourceState(duckdb::ClientContext &context) const override;
    duckdb::unique_ptr<duckdb::LocalSourceState> GetLocalSourceState(duckdb::ExecutionContext &context,
                                                                     duckdb::GlobalSourceState &gstate) const override;
    bool IsSource() const override;
    bool ParallelSource() const override;
    duckdb::OrderPreservationType SourceOrder() const override;
    duckdb::ProgressData GetProgress(duckdb::ClientContext &context, duckdb::GlobalSourceState &gstate) const override;

protected:
    duckdb::SourceResultType GetDataInternal(duckdb::ExecutionContext &context, duckdb::DataChunk &chunk,
                                             duckdb::OperatorSourceInput &input) const override;

private:
    rust::Box<CallPlan> plan;
};

} // namespace vgi
