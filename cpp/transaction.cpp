#include "transaction.hpp"

#include "exception.hpp"

namespace vgi {

VgiTransaction::VgiTransaction(duckdb::TransactionManager &manager, duckdb::ClientContext &context)
    : Transaction(manager, context), state(new_transaction()) {}

void VgiTransaction::Hold(duckdb::shared_ptr<CatalogEntries> entries) {
    duckdb::lock_guard<duckdb::mutex> guard(lock);
    held.insert(std::move(entries));
}

VgiTransactionManager::VgiTransactionManager(duckdb::AttachedDatabase &db) : TransactionManager(db) {}

duckdb::Transaction &VgiTransactionManager::StartTransaction(duckdb::ClientContext &context) {
    auto transaction = duckdb::make_uniq<VgiTransaction>(*this, context);
    auto &result = *transaction;
    duckdb::lock_guard<duckdb::mutex> guard(lock);
    transactions[result] = std::move(transaction);
    return result;
}

duckdb::ErrorData VgiTransactionManager::CommitTransaction(duckdb::ClientContext &context,
                                                           duckdb::Transaction &transaction) {
    duckdb::ErrorData error;
    try {
        // not under the lock: the server is asked
        Forward([&] { transaction.Cast<VgiTransaction>().state->commit(context); });
    } catch (const std::exception &failure) {
        error = duckdb::ErrorData(failure);
    }
    RollbackTransaction(transaction);
    return error;
}

void VgiTransactionManager::RollbackTransaction(duckdb::Transaction &transaction) {
    duckdb::lock_guard<duckdb::mutex> guard(lock);
    transactions.erase(transaction);
}

} // namespace vgi
