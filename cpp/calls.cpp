#include "calls.hpp"

#include "exception.hpp"

#include "vgi/src/bridge.rs.h"

namespace vgi {

using duckdb::ClientContext;
using duckdb::Identifier;
using duckdb::LogicalType;
using duckdb::Value;

namespace {

//! A snapshot, taken once: the scan may be resumed.
class CallsState final : public duckdb::GlobalTableFunctionState {
public:
    explicit CallsState(rust::Vec<CallRow> rows_p) : rows(std::move(rows_p)) {}
    rust::Vec<CallRow> rows;
    std::size_t next = 0;
};

Value Text(const rust::String &text) {
    return text.empty() ? Value(LogicalType::VARCHAR) : Value(std::string(text));
}

duckdb::vector<Value> Values(const CallRow &row) {
    duckdb::vector<Value> values{Value::UBIGINT(row.call_id),
                                 Value::TIMESTAMPTZ(duckdb::timestamp_tz_t(row.started_micros)),
                                 Text(row.function_name),
                                 Text(row.server),
                                 Text(row.execution_id),
                                 Text(row.state),
                                 Text(row.error),
                                 Value::DOUBLE(row.milliseconds)};
    for (const auto count : row.counts) {
        values.push_back(Value::UBIGINT(count));
    }
    for (const auto time : row.times) {
        values.push_back(Value::DOUBLE(time));
    }
    return values;
}

duckdb::unique_ptr<duckdb::FunctionData> Bind(ClientContext &, duckdb::TableFunctionBindInput &,
                                              duckdb::vector<LogicalType> &types, duckdb::vector<Identifier> &names) {
    names = {"call_id", "started", "function_name", "server", "execution_id", "state", "error", "milliseconds"};
    types = {LogicalType::UBIGINT, LogicalType::TIMESTAMP_TZ, LogicalType::VARCHAR, LogicalType::VARCHAR,
             LogicalType::VARCHAR, LogicalType::VARCHAR,      LogicalType::VARCHAR, LogicalType::DOUBLE};
    for (auto &name : call_count_names()) {
        names.emplace_back(std::string(name));
        types.push_back(LogicalType::UBIGINT);
    }
    for (auto &name : call_time_names()) {
        names.emplace_back(std::string(name));
        types.push_back(LogicalType::DOUBLE);
    }
    return nullptr;
}

duckdb::unique_ptr<duckdb::GlobalTableFunctionState> Init(ClientContext &context, duckdb::TableFunctionInitInput &) {
    return duckdb::make_uniq<CallsState>(last_calls(database_of(context)));
}

void Scan(ClientContext &, duckdb::TableFunctionInput &input, duckdb::DataChunk &chunk) {
    auto &state = input.global_state->Cast<CallsState>();
    duckdb::idx_t count = 0;
    for (; state.next < state.rows.size() && count < STANDARD_VECTOR_SIZE; state.next++, count++) {
        const auto values = Values(state.rows[state.next]);
        for (duckdb::idx_t column = 0; column < values.size(); column++) {
            chunk.data[column].SetValue(count, values[column]);
        }
    }
    chunk.SetChildCardinality(count);
}

} // namespace

duckdb::TableFunction CallsFunction() {
    return duckdb::TableFunction("vgi_calls", {}, Scan, Bind, Init);
}

} // namespace vgi
