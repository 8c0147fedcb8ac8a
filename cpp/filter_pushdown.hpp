// Filters of a query, on their way to the server.
#pragma once

#include "duckdb/function/table_function.hpp"

namespace vgi {

//! DuckDB offers the filters above a call; those that the server is sure to apply are taken out of the list.
void PushFilters(duckdb::ClientContext &context, duckdb::LogicalGet &get, duckdb::FunctionData *bind_data,
                 duckdb::vector<duckdb::unique_ptr<duckdb::Expression>> &filters);

} // namespace vgi
