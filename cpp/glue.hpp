// What Rust may call in C++, and the C++ names of DuckDB's types that cross the bridge. The other direction, what C++ calls in
// Rust, is declared by src/bridge.rs alone. Nothing here decides anything: see docs/ARCHITECTURE.md.
#pragma once

#include "duckdb.hpp"
#include "duckdb/planner/expression.hpp"

#include "rust/cxx.h"

#include <memory>

namespace vgi {

using duckdb::ClientContext;
using duckdb::DataChunk;
using duckdb::LogicalType;
using duckdb::Value;

//! Whether the user asked to stop the query. Safe from any thread that DuckDB runs for the query.
bool is_interrupted(const ClientContext &context) noexcept;

//! A setting's value as an unsigned integer; throws when the setting is unknown or not a number.
std::uint64_t setting_u64(const ClientContext &context, rust::Str name);

//! `value` cast to `type` by DuckDB's own rules; throws DuckDB's conversion error.
std::unique_ptr<Value> cast_value(ClientContext &context, const Value &value, const LogicalType &type);

//! Makes every vector of the chunk flat, nested children included: what the export of vectors to Arrow leans on.
void flatten(DataChunk &chunk);

} // namespace vgi
