// What Rust may call in C++, and the C++ names of DuckDB's types that cross the bridge. The other direction, what C++
// calls in Rust, is declared by src/bridge.rs alone. Nothing here decides anything: see docs/ARCHITECTURE.md.
#pragma once

#include "arrow.hpp"

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

//! A line for DuckDB's log, as type `VGI`; `level` is the word that the protocol uses.
void write_log(const ClientContext &context, rust::Str level, rust::Str message) noexcept;

//! A setting's value as an unsigned integer; throws when the setting is unknown or not a number.
std::uint64_t setting_u64(const ClientContext &context, rust::Str name);

//! `value` cast to `type` by DuckDB's own rules; throws DuckDB's conversion error.
std::unique_ptr<Value> cast_value(ClientContext &context, const Value &value, const LogicalType &type);

//! The elements of a list or array, the fields of a struct, or the value itself.
std::unique_ptr<std::vector<Value>> value_parts(const Value &value);

//! The names of a struct's fields; empty for everything else.
rust::Vec<rust::String> part_names(const Value &value);

//! The value as text; empty for NULL.
rust::String value_text(const Value &value) noexcept;

//! A copy that outlives the statement's own.
std::unique_ptr<Value> copy_value(const Value &value);

const LogicalType &value_type(const Value &value);

bool same_type(const LogicalType &left, const LogicalType &right);

//! The type as SQL writes it.
rust::String type_name(const LogicalType &type);

std::unique_ptr<LogicalType> copy_type(const LogicalType &type);

} // namespace vgi
