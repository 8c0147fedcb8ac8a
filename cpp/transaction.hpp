// Transactions in an attached catalog: DuckDB's begin, commit and rollback are forwarded to the server.
#pragma once

#include "vgi/src/bridge.rs.h"

#include "duckdb/catalog/catalog_entry.hpp"
#include "duckdb/common/mutex.hpp"
#include "duckdb/common/reference_map.hpp"
#include "duckdb/transaction/transaction.hpp"
#include "duckdb/transaction/transaction_manager.hpp"

#include <set>

namespace vgi {

//! What one listing of a server was made into.
using CatalogEntries = duckdb::identifier_tree_t<duckdb::unique_ptr<duckdb::CatalogEntry>>;

class VgiTransaction final : public duckdb::Transaction {
public:
    VgiTransaction(duckdb::TransactionManager &manager, duckdb::ClientContext &context);

    //! Keeps catalog entries that a statement looks at, whatever the server lists meanwhile.
    void Hold(duckdb::shared_ptr<CatalogEntries> entries);

    //! Rolled back when it goes without a commit.
    rust::Box<CatalogTransaction> state;

private:
    duckdb::mutex lock;
    std::set<duckdb::shared_ptr<CatalogEntries>> held;
};

//! DuckDB wants a transaction of every catalog that a query touches. The server hears of those in which a function is
//! called.
class VgiTransactionManager final : public duckdb::TransactionManager {
public:
    explicit VgiTransactionManager(duckdb::AttachedDatabase &db);

    duckdb::Transaction &StartTransaction(duckdb::ClientContext &context) override;
    duckdb::ErrorData CommitTransaction(duckdb::ClientContext &context, duckdb::Transaction &transaction) override;
    void RollbackTransaction(duckdb::Transaction &transaction) override;
    void Checkpoint(duckdb::ClientContext &, bool) override {}

private:
    duckdb::mutex lock;
    duckdb::reference_map_t<duckdb::Transaction, duckdb::unique_ptr<VgiTransaction>> transactions;
};

} // namespace vgi
