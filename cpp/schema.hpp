// A schema of an attached catalog: functions, macros and views that the server lists, made into entries of DuckDB.
#pragma once

#include "catalog.hpp"
#include "transaction.hpp"

#include "duckdb/catalog/catalog_entry/schema_catalog_entry.hpp"

namespace vgi {

class VgiSchema final : public duckdb::SchemaCatalogEntry {
public:
    //! `key` is the name that the Rust side knows the schema by: the whole path.
    VgiSchema(VgiCatalog &catalog, duckdb::CreateSchemaInfo &info, duckdb::optional_ptr<SchemaCatalogEntry> parent,
              std::string key);

    //! When the server last listed it.
    std::uint64_t listed = 0;

    void Scan(duckdb::ClientContext &context, duckdb::CatalogType type,
              const std::function<void(duckdb::CatalogEntry &)> &callback) override;
    void Scan(duckdb::CatalogType type, const std::function<void(duckdb::CatalogEntry &)> &callback) override;
    duckdb::optional_ptr<duckdb::CatalogEntry> LookupEntry(duckdb::CatalogTransaction transaction,
                                                           const duckdb::EntryLookupInfo &lookup) override;

    duckdb::optional_ptr<duckdb::CatalogEntry> CreateIndex(duckdb::CatalogTransaction, duckdb::CreateIndexInfo &,
                                                           duckdb::TableCatalogEntry &) override;
    duckdb::optional_ptr<duckdb::CatalogEntry> CreateFunction(duckdb::CatalogTransaction,
                                                              duckdb::CreateFunctionInfo &) override;
    duckdb::optional_ptr<duckdb::CatalogEntry> CreateTable(duckdb::CatalogTransaction,
                                                           duckdb::BoundCreateTableInfo &) override;
    duckdb::optional_ptr<duckdb::CatalogEntry> CreateView(duckdb::CatalogTransaction,
                                                          duckdb::CreateViewInfo &) override;
    duckdb::optional_ptr<duckdb::CatalogEntry> CreateSequence(duckdb::CatalogTransaction,
                                                              duckdb::CreateSequenceInfo &) override;
    duckdb::optional_ptr<duckdb::CatalogEntry> CreateType(duckdb::CatalogTransaction,
                                                          duckdb::CreateTypeInfo &) override;
    void DropEntry(duckdb::ClientContext &, duckdb::DropInfo &) override;
    void Alter(duckdb::CatalogTransaction, duckdb::AlterInfo &) override;

private:
    //! Entries that one listing of the server gives.
    enum class Listing : uint8_t { FUNCTIONS, MACROS, VIEWS };
    struct Loaded {
        std::uint64_t stamp = 0;
        duckdb::shared_ptr<CatalogEntries> entries;
    };

    //! The listings in which an entry of a type can stand.
    static duckdb::vector<Listing> ListingsOf(duckdb::CatalogType type);
    //! Entries of a listing; the transaction keeps them alive, whatever the server lists next.
    CatalogEntries &Load(duckdb::ClientContext &context, Listing listing);
    duckdb::shared_ptr<CatalogEntries> Make(duckdb::ClientContext &context, Listing listing);
    void AddFunctions(duckdb::ClientContext &context, CatalogEntries &entries);
    void AddSql(duckdb::ClientContext &context, const rust::Vec<SqlEntry> &items, CatalogEntries &entries);
    duckdb::unique_ptr<duckdb::CatalogEntry> MakeSql(duckdb::CreateInfo &info);
    duckdb::optional_ptr<duckdb::CatalogEntry> Find(duckdb::ClientContext &context,
                                                    const duckdb::EntryLookupInfo &lookup);
    [[noreturn]] void RefuseChange() const;

    VgiCatalog &owner;
    const std::string key;
    duckdb::mutex lock;
    std::map<Listing, Loaded> listings;
};

//! What the server says of a function.
duckdb::FunctionDescription Describe(const FunctionList &functions, std::size_t index);

} // namespace vgi
