#include "table_function.hpp"

#include "exception.hpp"
#include "filter_pushdown.hpp"
#include "logical_call.hpp"

#include "duckdb/main/query_result.hpp"
#include "duckdb/optimizer/optimizer.hpp"
#include "duckdb/planner/operator/logical_get.hpp"

namespace vgi {

using duckdb::ClientContext;
using duckdb::Identifier;
using duckdb::LogicalType;
using duckdb::TableFunctionBindInput;

CallData::CallData(rust::Box<BoundCall> call_p) : call(std::move(call_p)) {}

duckdb::unique_ptr<duckdb::FunctionData> CallData::Copy() const {
    return duckdb::make_uniq<CallData>(call->share());
}

bool CallData::Equals(const duckdb::FunctionData &other) const {
    return this == &other;
}

static std::string TextArgument(const duckdb::Value &value) {
    return value.IsNull() ? std::string() : value.ToString();
}

//! Hands the call's parameters to Rust and gets the bound call back: one `bind` request to the server.
static rust::Box<BoundCall> BindCall(ClientContext &context, TableFunctionBindInput &input) {
    return Forward([&] {
        auto request = new_call_request(TextArgument(input.inputs[0]), TextArgument(input.inputs[1]),
                                        TextArgument(input.inputs[2]));
        for (duckdb::idx_t i = 0; i < input.input_table_types.size(); i++) {
            request->add_input_column(input.input_table_names[i].GetIdentifierName(), input.input_table_types[i]);
        }
        for (auto &parameter : input.named_parameters) {
            request->set_named_parameter(parameter.first.GetIdentifierName(), parameter.second);
        }
        return request->bind(context);
    });
}

static void AddColumns(const BoundCall &call, duckdb::vector<LogicalType> &types, duckdb::vector<Identifier> &names) {
    Forward([&] {
        for (size_t i = 0; i < call.column_count(); i++) {
            types.push_back(*call.column_type(i));
            names.emplace_back(std::string(call.column_name(i)));
        }
    });
    // a server may name two columns alike, which a FROM clause may not
    duckdb::QueryResult::DeduplicateColumns(names);
}

static duckdb::unique_ptr<duckdb::FunctionData> Bind(ClientContext &context, TableFunctionBindInput &input,
                                                     duckdb::vector<LogicalType> &types,
                                                     duckdb::vector<Identifier> &names) {
    auto data = duckdb::make_uniq<CallData>(BindCall(context, input));
    AddColumns(*data->call, types, names);
    return std::move(data);
}

//! Called before `Bind`. Where the optimizer extension will not run, the plan must hold the operator from the start;
//! everywhere else a LogicalGet goes through the optimizer, since only that one gets projections pushed into it, and is
//! replaced at its end.
static duckdb::unique_ptr<duckdb::LogicalOperator> BindOperator(ClientContext &context, TableFunctionBindInput &input,
                                                                duckdb::TableIndex bind_index,
                                                                duckdb::vector<Identifier> &names) {
    if (!input.input_plan || !*input.input_plan ||
        !duckdb::Optimizer::OptimizerDisabled(context, duckdb::OptimizerType::EXTENSION)) {
        return nullptr;
    }
    duckdb::vector<LogicalType> types;
    auto call = BindCall(context, input);
    AddColumns(*call, types, names);
    return LogicalCall::Unoptimized(std::move(call), bind_index, std::move(types), std::move(*input.input_plan));
}

//! A LogicalGet that takes a subquery must have an in-out function. This one runs only if the plan escaped the
//! replacement.
static duckdb::OperatorResultType NeverReplaced(duckdb::ExecutionContext &, duckdb::TableFunctionInput &,
                                                duckdb::DataChunk &, duckdb::DataChunk &) {
    throw duckdb::NotImplementedException(
        "vgi_call: this plan was not rewritten into the buffering operator, because DuckDB's "
        "optimizer extensions did not run on it");
}

duckdb::TableFunction CallFunction() {
    duckdb::TableFunction function(
        "vgi_call", {LogicalType::VARCHAR, LogicalType::VARCHAR, LogicalType::VARCHAR, LogicalType::TABLE}, nullptr,
        Bind);
    function.GetSignature().WithTypedKwargs("options", [](duckdb::TypedKwargs &options) {
        options.Add("args", LogicalType::ANY).Add("named", LogicalType::ANY).Add("schema", LogicalType::VARCHAR);
    });
    function.in_out_function = NeverReplaced;
    function.bind_operator = BindOperator;
    function.projection_pushdown = true;
    function.pushdown_complex_filter = PushFilters;
    function.verify_serialization = false;
    return function;
}

bool IsCall(const duckdb::BoundTableFunction &function) {
    return function.in_out_function == NeverReplaced;
}

} // namespace vgi
