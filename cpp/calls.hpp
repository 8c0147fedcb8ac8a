// `vgi_calls()`: the last calls of this database.
#pragma once

#include "duckdb/function/table_function.hpp"

namespace vgi {

//! The table function as it is registered.
duckdb::TableFunction CallsFunction();

} // namespace vgi
