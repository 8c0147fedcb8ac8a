// `vgi_call(url, catalog, function, (query), args := …, named := …, schema := …)`: how a call enters a plan.
#pragma once

#include "vgi/src/bridge.rs.h"

#include "duckdb/function/table_function.hpp"

namespace vgi {

//! Bind data of a call: owns one bound call of the Rust side, which is immutable, so a copy shares it.
class CallData final : public duckdb::FunctionData {
public:
    explicit CallData(rust::Box<BoundCall> call);

    duckdb::unique_ptr<duckdb::FunctionData> Copy() const override;
    //! Never equal: merging two calls would run one execution where the user wrote two.
    bool Equals(const duckdb::FunctionData &other) const override;

    rust::Box<BoundCall> call;
};

//! The table function as it is registered.
duckdb::TableFunction CallFunction();

class VgiCatalog;

//! A function of an attached catalog, as its entry holds it.
duckdb::TableFunction AttachedFunction(VgiCatalog &catalog, const std::string &schema, const FunctionList &functions,
                                       std::size_t index);

//! A function that a catalog publishes for use without its name.
duckdb::TableFunction PublishedFunction(VgiCatalog &catalog, const FunctionList &functions, std::size_t index);

//! Whether it is a published function whose catalog is gone.
bool IsOrphan(duckdb::ClientContext &context, const duckdb::TableFunction &function);

//! Whether a bound function is ours.
bool IsCall(const duckdb::BoundTableFunction &function);

} // namespace vgi
