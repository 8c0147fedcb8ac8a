#include "logical_call.hpp"

#include "exception.hpp"
#include "physical_call.hpp"
#include "table_function.hpp"

#include "duckdb/execution/operator/projection/physical_projection.hpp"
#include "duckdb/execution/physical_plan_generator.hpp"
#include "duckdb/planner/expression/bound_cast_expression.hpp"
#include "duckdb/planner/expression/bound_columnref_expression.hpp"
#include "duckdb/planner/expression/bound_reference_expression.hpp"
#include "duckdb/planner/operator/logical_order.hpp"

namespace vgi {

using duckdb::idx_t;

LogicalCall::LogicalCall(rust::Box<BoundCall> call_p, duckdb::TableIndex table_index_p)
    : call(std::move(call_p)), table_index(table_index_p) {}

duckdb::unique_ptr<LogicalCall> LogicalCall::FromGet(duckdb::LogicalGet &get) {
    if (!get.projected_input.empty()) {
        throw duckdb::NotImplementedException("a correlated LATERAL call of '%s' is not supported, because "
                                              "the function needs its whole input at once",
                                              std::string(get.bind_data->Cast<CallData>().call->function_name()));
    }
    auto result = duckdb::make_uniq<LogicalCall>(get.bind_data->Cast<CallData>().call->share(), get.table_index);
    auto &column_ids = get.GetColumnIds();
    auto add = [&](const duckdb::ColumnIndex &column) {
        result->output_columns.push_back(column.GetPrimaryIndex());
        result->output_types.push_back(get.GetColumnType(column));
    };
    // projection_ids, when there are any, choose among column_ids (DuckDB: LogicalGet::GetColumnBindings)
    if (get.projection_ids.empty()) {
        for (auto &column : column_ids) {
            add(column);
        }
    } else {
        for (auto &projection : get.projection_ids) {
            add(column_ids[projection]);
        }
    }
    result->children.push_back(std::move(get.children[0]));
    result->estimated_cardinality = get.estimated_cardinality;
    result->has_estimated_cardinality = get.has_estimated_cardinality;
    result->ResolveOperatorTypes();
    return result;
}

duckdb::unique_ptr<LogicalCall> LogicalCall::Unoptimized(rust::Box<BoundCall> call, duckdb::TableIndex table_index,
                                                         duckdb::vector<duckdb::LogicalType> output_types,
                                                         duckdb::unique_ptr<duckdb::LogicalOperator> child) {
    auto result = duckdb::make_uniq<LogicalCall>(std::move(call), table_index);
    for (idx_t i = 0; i < output_types.size(); i++) {
        result->output_columns.push_back(i);
    }
    result->output_types = std::move(output_types);
    // Without a reference to each of the child's columns, column pruning drops those that nobody above names, and the
    // sink gets narrower chunks than it was bound for.
    child->ResolveOperatorTypes();
    auto bindings = child->GetColumnBindings();
    for (idx_t i = 0; i < bindings.size(); i++) {
        result->expressions.push_back(
            duckdb::make_uniq<duckdb::BoundColumnRefExpression>(child->types[i], bindings[i]));
    }
    result->children.push_back(std::move(child));
    result->ResolveOperatorTypes();
    return result;
}

duckdb::vector<duckdb::ColumnBinding> LogicalCall::GetColumnBindings() {
    return GenerateColumnBindings(table_index, output_types.size());
}

duckdb::vector<duckdb::TableIndex> LogicalCall::GetTableIndex() const {
    return {table_index};
}

std::string LogicalCall::GetName() const {
    return "VGI_TABLE_BUFFERING";
}

std::string LogicalCall::GetExtensionName() const {
    return "vgi";
}

bool LogicalCall::SupportSerialization() const {
    return false;
}

void LogicalCall::ResolveTypes() {
    types = output_types;
}

//! The types that the call was bound with are what the server was told; the optimizer may have narrowed the child's
//! since.
static duckdb::PhysicalOperator &CastToBoundTypes(duckdb::ClientContext &context,
                                                  duckdb::PhysicalPlanGenerator &planner,
                                                  duckdb::PhysicalOperator &child, const BoundCall &call) {
    const auto count = call.input_count();
    if (child.types.size() != count) {
        throw duckdb::InternalException("vgi_call: '%s' was bound to %llu input columns, but its input has %llu",
                                        std::string(call.function_name()), static_cast<idx_t>(count),
                                        static_cast<idx_t>(child.types.size()));
    }
    bool same = true;
    duckdb::vector<duckdb::LogicalType> types;
    duckdb::vector<duckdb::unique_ptr<duckdb::Expression>> expressions;
    for (idx_t i = 0; i < count; i++) {
        const auto type = *Forward([&] { return call.input_type(i); });
        same = same && child.types[i] == type;
        auto reference = duckdb::make_uniq<duckdb::BoundReferenceExpression>(child.types[i], i);
        expressions.push_back(duckdb::BoundCastExpression::AddCastToType(context, std::move(reference), type));
        types.push_back(type);
    }
    if (same) {
        return child;
    }
    auto &projection =
        planner.Make<duckdb::PhysicalProjection>(std::move(types), std::move(expressions), child.estimated_cardinality);
    projection.children.push_back(child);
    return projection;
}

duckdb::PhysicalOperator &LogicalCall::CreatePlan(duckdb::ClientContext &context,
                                                  duckdb::PhysicalPlanGenerator &planner) {
    auto &child = CastToBoundTypes(context, planner, planner.CreatePlan(*children[0]), *call);
    rust::Vec<std::size_t> columns;
    for (auto column : output_columns) {
        columns.push_back(column);
    }
    auto plan = Forward([&] {
        return call->plan(context, std::move(columns), child.AllSourcesSupportBatchIndex(),
                          child.estimated_cardinality);
    });
    auto &result = planner.Make<PhysicalCall>(types, std::move(plan), estimated_cardinality);
    result.children.push_back(child);
    return result;
}

//! Whether the optimizer cannot find out that an operator gives no rows: reading and computing, without conditions.
static bool IsUnconditional(const duckdb::LogicalOperator &op) {
    switch (op.type) {
    case duckdb::LogicalOperatorType::LOGICAL_GET:
    case duckdb::LogicalOperatorType::LOGICAL_PROJECTION:
    case duckdb::LogicalOperatorType::LOGICAL_DUMMY_SCAN:
    case duckdb::LogicalOperatorType::LOGICAL_EXPRESSION_GET:
    case duckdb::LogicalOperatorType::LOGICAL_UNNEST:
    case duckdb::LogicalOperatorType::LOGICAL_UNION:
        break;
    default:
        return false;
    }
    for (auto &child : op.children) {
        if (!IsUnconditional(*child)) {
            return false;
        }
    }
    return true;
}

void GuardInputs(duckdb::unique_ptr<duckdb::LogicalOperator> &plan) {
    for (auto &child : plan->children) {
        GuardInputs(child);
    }
    if (plan->type != duckdb::LogicalOperatorType::LOGICAL_GET || plan->children.empty()) {
        return;
    }
    auto &get = plan->Cast<duckdb::LogicalGet>();
    if (!IsCall(get.function) || !get.projected_input.empty() || IsUnconditional(*get.children[0])) {
        return;
    }
    auto guard = duckdb::make_uniq<duckdb::LogicalOrder>(duckdb::vector<duckdb::BoundOrderByNode>());
    guard->children.push_back(std::move(get.children[0]));
    guard->ResolveOperatorTypes();
    get.children[0] = std::move(guard);
}

static bool IsGuard(const duckdb::LogicalOperator &op) {
    return op.type == duckdb::LogicalOperatorType::LOGICAL_ORDER_BY && op.Cast<duckdb::LogicalOrder>().orders.empty();
}

void ReplaceCalls(duckdb::unique_ptr<duckdb::LogicalOperator> &plan) {
    while (IsGuard(*plan)) {
        plan = std::move(plan->children[0]);
    }
    for (auto &child : plan->children) {
        ReplaceCalls(child);
    }
    if (plan->type != duckdb::LogicalOperatorType::LOGICAL_GET || plan->children.empty()) {
        return;
    }
    auto &get = plan->Cast<duckdb::LogicalGet>();
    if (IsCall(get.function)) {
        plan = LogicalCall::FromGet(get);
    }
}

} // namespace vgi
