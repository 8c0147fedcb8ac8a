// The logical operator of a buffered call.
#pragma once

#include "vgi/src/bridge.rs.h"

#include "duckdb/planner/operator/logical_extension_operator.hpp"
#include "duckdb/planner/operator/logical_get.hpp"

namespace vgi {

class LogicalCall final : public duckdb::LogicalExtensionOperator {
public:
    //! The operator for a LogicalGet of ours after the optimizer pushed a projection into it.
    static duckdb::unique_ptr<LogicalCall> FromGet(duckdb::LogicalGet &get);
    //! The operator for a plan that no optimizer extension will see; every output column is kept.
    static duckdb::unique_ptr<LogicalCall> Unoptimized(rust::Box<BoundCall> call, duckdb::TableIndex table_index,
                                                       duckdb::vector<duckdb::LogicalType> output_types,
                                                       duckdb::unique_ptr<duckdb::LogicalOperator> child);

    LogicalCall(rust::Box<BoundCall> call, duckdb::TableIndex table_index);

    duckdb::vector<duckdb::ColumnBinding> GetColumnBindings() override;
    duckdb::vector<duckdb::TableIndex> GetTableIndex() const override;
    std::string GetName() const override;
    std::string GetExtensionName() const override;
    bool SupportSerialization() const override;
    duckdb::PhysicalOperator &CreatePlan(duckdb::ClientContext &context,
                                         duckdb::PhysicalPlanGenerator &planner) override;

protected:
    void ResolveTypes() override;

private:
    rust::Box<BoundCall> call;
    duckdb::TableIndex table_index;
    //! Types of the columns that leave the operator.
    duckdb::vector<duckdb::LogicalType> output_types;
    //! For each of them its position in the bound output schema.
    duckdb::vector<duckdb::idx_t> output_columns;
};

//! DuckDB drops an operator whose input it knows to be empty, but a function may give a row for no rows. A sort by
//! nothing between the two keeps it from looking; `ReplaceCalls` takes it out again.
void GuardInputs(duckdb::unique_ptr<duckdb::LogicalOperator> &plan);

//! Replaces every LogicalGet of ours in the plan.
void ReplaceCalls(duckdb::unique_ptr<duckdb::LogicalOperator> &plan);

} // namespace vgi
