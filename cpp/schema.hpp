// A schema of an attached catalog: functions, macros and views that the server lists, made into entries of DuckDB.
#pragma once

#include "catalog.hpp"

#include "duckdb/catalog/catalog_entry/schema_catalog_entry.hpp"

namespace vgi {

class VgiSchema final : public duckdb::SchemaCatalogEntry {
public:
    VgiSchema(VgiCatalog &catalog, duckdb::CreateSchemaInfo &info);

    //! Entries are made anew when they are next asked for.
    void Forget();

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
    using Entries = duckdb::identifier_tree_t<duckdb::unique_ptr<duckdb::CatalogEntry>>;

    //! The listings in which an entry of a type can stand.
    static duckdb::vector<Listing> ListingsOf(duckdb::CatalogType type);
    void Load(duckdb::ClientContext &context, Listing listing);
    Entries Make(duckdb::ClientContext &context, Listing listing);
    Entries MakeFunctions(duckdb::ClientContext &context);
    Entries MakeMacros(duckdb::ClientContext &context);
    Entries MakeViews(duckdb::ClientContext &context);
    duckdb::optional_ptr<duckdb::CatalogEntry> Find(Listing listing, const duckdb::EntryLookupInfo &lookup);
    //! Throws a sentence when the name is there, but of a kind that cannot be used.
    void RefuseUnsupported(duckdb::ClientContext &context, const duckdb::EntryLookupInfo &lookup);
    [[noreturn]] void RefuseChange() const;

    VgiCatalog &owner;
    duckdb::mutex lock;
    std::map<Listing, Entries> listings;
    //! Entries that a binder may still look at although the server was asked again.
    std::deque<Entries> retired;
};

//! What the server says of a function.
duckdb::FunctionDescription Describe(const FunctionList &functions, std::size_t index);

} // namespace vgi
