// Errors that cross the bridge.
#pragma once

#include "duckdb/common/exception.hpp"

#include "rust/cxx.h"

namespace vgi {

//! Throws the DuckDB exception that an error of the Rust side stands for. The bridge gives a message whose first
//! character names the class (see `ExceptionClass` in src/error.rs), since a `rust::Error` carries nothing but text.
[[noreturn]] void Rethrow(const rust::Error &error);

//! Runs a call into Rust and lets its error surface as a DuckDB exception.
template <class F>
auto Forward(F &&call) -> decltype(call()) {
    try {
        return call();
    } catch (const rust::Error &error) {
        Rethrow(error);
    }
}

} // namespace vgi
