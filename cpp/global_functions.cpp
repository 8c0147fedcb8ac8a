#include "global_functions.hpp"

#include "exception.hpp"
#include "schema.hpp"
#include "table_function.hpp"

#include "duckdb/catalog/catalog_entry/table_function_catalog_entry.hpp"
#include "duckdb/catalog/catalog_transaction.hpp"
#include "duckdb/catalog/entry_lookup_info.hpp"
#include "duckdb/parser/parsed_data/create_table_function_info.hpp"

namespace vgi {

using duckdb::Catalog;
using duckdb::CatalogType;
using duckdb::Identifier;

//! Whether the name is free, or is that of a function whose catalog is gone.
static bool IsFree(duckdb::ClientContext &context, duckdb::CatalogTransaction transaction, const Identifier &name) {
    auto &schema = Catalog::GetSystemCatalog(context).GetSchema(transaction, Identifier(DEFAULT_SCHEMA));
    const duckdb::EntryLookupInfo lookup(CatalogType::TABLE_FUNCTION_ENTRY, duckdb::QualifiedName(name));
    auto entry = schema.LookupEntry(transaction, lookup);
    if (!entry) {
        return true;
    }
    if (entry->type != CatalogType::TABLE_FUNCTION_ENTRY) {
        return false;
    }
    auto &functions = entry->Cast<duckdb::TableFunctionCatalogEntry>().functions;
    return functions.Size() == 1 && IsOrphan(context, *functions.GetFunctionByOffset(0));
}

void PublishFunctions(duckdb::ClientContext &context, VgiCatalog &catalog) {
    const auto functions = Forward([&] { return catalog.attached->published_functions(context); });
    auto transaction = duckdb::CatalogTransaction::GetSystemTransaction(*context.db);
    for (std::size_t i = 0; i < functions->count(); i++) {
        duckdb::CreateTableFunctionInfo info(PublishedFunction(catalog, *functions, i));
        if (!IsFree(context, transaction, info.GetFunctionName())) {
            continue;
        }
        info.on_conflict = duckdb::OnCreateConflict::REPLACE_ON_CONFLICT;
        info.descriptions.push_back(Describe(*functions, i));
        Catalog::GetSystemCatalog(context).CreateFunction(transaction, info);
    }
}

} // namespace vgi
