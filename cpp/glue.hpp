// What Rust may call in C++, and the C++ names of DuckDB's types that cross the bridge. The other direction, what C++
// calls in Rust, is declared by src/bridge.rs alone. Nothing here decides anything: see docs/ARCHITECTURE.md.
#pragma once

#include "arrow.hpp"

#include "duckdb.hpp"
#include "duckdb/parallel/interrupt.hpp"
#include "duckdb/planner/expression.hpp"
#include "duckdb/storage/buffer_manager.hpp"

#include "rust/cxx.h"

#include <memory>

namespace vgi {

using duckdb::ClientContext;
using duckdb::DataChunk;
using duckdb::InterruptState;
using duckdb::LogicalType;
using duckdb::Value;

//! Whether the user asked to stop the query. Safe from any thread that DuckDB runs for the query.
bool is_interrupted(const ClientContext &context) noexcept;

//! A line for DuckDB's log, as type `VGI`; `level` is the word that the protocol uses.
void write_log(const ClientContext &context, rust::Str level, rust::Str message) noexcept;

//! Whether the steps of a call are worth writing: the log takes lines of type `VGI` at level DEBUG.
bool logs_steps(const ClientContext &context) noexcept;

//! A number for the database instance, the same for all of its connections.
std::size_t database_of(const ClientContext &context) noexcept;

//! Tells the statement from others, as long as the database is open.
std::uint64_t statement_of(const ClientContext &context) noexcept;

//! A setting's value as an unsigned integer; throws when the setting is unknown or not a number.
std::uint64_t setting_u64(const ClientContext &context, rust::Str name);

//! A setting's value as text; throws when the setting is unknown.
rust::String setting_text(const ClientContext &context, rust::Str name);

//! A setting's value; null when there is no such setting or it has none.
std::unique_ptr<Value> setting_value(const ClientContext &context, rust::Str name);

struct SecretValues;
//! The secret of type `vgi` with this name, or, without a name, the one whose scope fits the location best.
SecretValues find_secret(const ClientContext &context, rust::Str name, rust::Str location);

//! A secret of a type that a catalog declared, as a struct: type, provider, name and scope, and what it holds. Found by
//! name, or, without a name, by the scope that fits best. Null when there is none.
std::unique_ptr<Value> find_declared_secret(const ClientContext &context, rust::Str type, rust::Str scope,
                                            rust::Str name);

//! The name of such a secret.
rust::String secret_name(const Value &secret);

//! Memory that the extension holds, counted by DuckDB's buffer manager. Owned by the state of one thread of a query.
class MemoryClaim {
public:
    explicit MemoryClaim(ClientContext &context);
    ~MemoryClaim();
    MemoryClaim(const MemoryClaim &) = delete;
    MemoryClaim &operator=(const MemoryClaim &) = delete;

    //! Throws DuckDB's out-of-memory error, and holds what it held before, when the limit allows no more.
    void resize(std::size_t bytes);

private:
    duckdb::BufferManager &manager;
    std::size_t held = 0;
};

std::unique_ptr<MemoryClaim> new_memory_claim(ClientContext &context);

//! What wakes the task that the operator runs in, to be kept until then.
std::unique_ptr<InterruptState> copy_task(const InterruptState &task);

//! Lets a task go on that returned BLOCKED. Not by the thread that runs the task: it waits until that has returned.
void wake_task(const InterruptState &task) noexcept;

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
