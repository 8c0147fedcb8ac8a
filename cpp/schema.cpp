#include "schema.hpp"

#include "exception.hpp"
#include "table_function.hpp"

#include "duckdb/catalog/catalog_entry/scalar_macro_catalog_entry.hpp"
#include "duckdb/catalog/catalog_entry/table_function_catalog_entry.hpp"
#include "duckdb/catalog/catalog_entry/table_macro_catalog_entry.hpp"
#include "duckdb/catalog/catalog_entry/view_catalog_entry.hpp"
#include "duckdb/parser/parsed_data/create_macro_info.hpp"
#include "duckdb/parser/parsed_data/create_schema_info.hpp"
#include "duckdb/parser/parsed_data/create_table_function_info.hpp"
#include "duckdb/parser/parsed_data/create_view_info.hpp"
#include "duckdb/parser/parser.hpp"
#include "duckdb/parser/statement/create_statement.hpp"

namespace vgi {

using duckdb::CatalogEntry;
using duckdb::CatalogType;
using duckdb::ClientContext;
using duckdb::Identifier;

VgiSchema::VgiSchema(VgiCatalog &catalog_p, duckdb::CreateSchemaInfo &info,
                     duckdb::optional_ptr<SchemaCatalogEntry> parent, std::string key_p)
    : SchemaCatalogEntry(catalog_p, info, parent), owner(catalog_p), key(std::move(key_p)) {}

duckdb::vector<VgiSchema::Listing> VgiSchema::ListingsOf(CatalogType type) {
    switch (type) {
    case CatalogType::TABLE_FUNCTION_ENTRY:
        return {Listing::FUNCTIONS, Listing::MACROS};
    case CatalogType::TABLE_MACRO_ENTRY:
    case CatalogType::MACRO_ENTRY:
    case CatalogType::SCALAR_FUNCTION_ENTRY:
    case CatalogType::AGGREGATE_FUNCTION_ENTRY:
        return {Listing::MACROS};
    case CatalogType::TABLE_ENTRY:
    case CatalogType::VIEW_ENTRY:
        return {Listing::VIEWS};
    default:
        return {};
    }
}

//! Whether an entry is found under a type: macros stand among the functions of the kind that they can be called as.
static bool Fits(const CatalogEntry &entry, CatalogType type) {
    switch (entry.type) {
    case CatalogType::TABLE_FUNCTION_ENTRY:
        return type == CatalogType::TABLE_FUNCTION_ENTRY;
    case CatalogType::TABLE_MACRO_ENTRY:
        return type == CatalogType::TABLE_FUNCTION_ENTRY || type == CatalogType::TABLE_MACRO_ENTRY;
    case CatalogType::MACRO_ENTRY:
        return type != CatalogType::TABLE_FUNCTION_ENTRY && type != CatalogType::TABLE_MACRO_ENTRY;
    default:
        return true;
    }
}

CatalogEntries &VgiSchema::Load(ClientContext &context, Listing listing) {
    const auto stamp = Forward([&] { return owner.attached->listing_stamp(context); });
    auto &transaction = duckdb::Transaction::Get(context, owner).Cast<VgiTransaction>();
    {
        duckdb::lock_guard<duckdb::mutex> guard(lock);
        auto &loaded = listings[listing];
        if (loaded.entries && loaded.stamp == stamp) {
            transaction.Hold(loaded.entries);
            return *loaded.entries;
        }
    }
    // not under the lock: the server is asked
    auto entries = Make(context, listing);
    transaction.Hold(entries);
    duckdb::lock_guard<duckdb::mutex> guard(lock);
    listings[listing] = {stamp, entries};
    return *entries;
}

duckdb::shared_ptr<CatalogEntries> VgiSchema::Make(ClientContext &context, Listing listing) {
    auto result = duckdb::make_shared_ptr<CatalogEntries>();
    Forward([&] {
        switch (listing) {
        case Listing::FUNCTIONS:
            return AddFunctions(context, *result);
        case Listing::MACROS:
            return AddSql(context, owner.attached->macros(context, key), *result);
        case Listing::VIEWS:
            return AddSql(context, owner.attached->views(context, key), *result);
        }
    });
    return result;
}

static duckdb::Value CommentOf(const rust::String &comment) {
    return comment.empty() ? duckdb::Value() : duckdb::Value(std::string(comment));
}

duckdb::FunctionDescription Describe(const FunctionList &functions, std::size_t index) {
    duckdb::FunctionDescription result;
    const auto description = functions.description(index);
    result.description = std::string(description.data(), description.size());
    for (auto &example : functions.examples(index)) {
        result.examples.emplace_back(std::string(example));
    }
    for (auto &category : functions.categories(index)) {
        result.categories.emplace_back(std::string(category));
    }
    return result;
}

void VgiSchema::AddFunctions(ClientContext &context, CatalogEntries &entries) {
    const auto functions = owner.attached->functions(context, key);
    for (std::size_t i = 0; i < functions->count(); i++) {
        duckdb::CreateTableFunctionInfo info(AttachedFunction(owner, key, *functions, i));
        info.SetQualifiedName(GetQualifiedName(info.GetFunctionName()));
        info.descriptions.push_back(Describe(*functions, i));
        info.comment = CommentOf(functions->comment(i));
        const Identifier name = info.GetFunctionName();
        entries.emplace(name, duckdb::make_uniq<duckdb::TableFunctionCatalogEntry>(owner, *this, info));
    }
}

//! The parsed form of the only statement in a text; null when it is not SQL that DuckDB knows.
static duckdb::unique_ptr<duckdb::CreateInfo> Parse(ClientContext &context, const rust::String &statement) {
    try {
        duckdb::Parser parser(context);
        parser.ParseQuery(std::string(statement));
        if (parser.statements.size() == 1 && parser.statements[0]->type == duckdb::StatementType::CREATE_STATEMENT) {
            return std::move(parser.statements[0]->Cast<duckdb::CreateStatement>().info);
        }
    } catch (const std::exception &) {
        // text in another dialect is no reason to hide the rest of the schema
    }
    return nullptr;
}

duckdb::unique_ptr<CatalogEntry> VgiSchema::MakeSql(duckdb::CreateInfo &info) {
    switch (info.type) {
    case CatalogType::TABLE_MACRO_ENTRY:
        return duckdb::make_uniq<duckdb::TableMacroCatalogEntry>(owner, *this, info.Cast<duckdb::CreateMacroInfo>());
    case CatalogType::MACRO_ENTRY:
        return duckdb::make_uniq<duckdb::ScalarMacroCatalogEntry>(owner, *this, info.Cast<duckdb::CreateMacroInfo>());
    case CatalogType::VIEW_ENTRY:
        return duckdb::make_uniq<duckdb::ViewCatalogEntry>(owner, *this, info.Cast<duckdb::CreateViewInfo>());
    default:
        return nullptr;
    }
}

void VgiSchema::AddSql(ClientContext &context, const rust::Vec<SqlEntry> &items, CatalogEntries &entries) {
    for (auto &item : items) {
        if (auto info = Parse(context, item.statement)) {
            const Identifier name{std::string(item.name)};
            info->SetQualifiedName(GetQualifiedName(name));
            info->comment = CommentOf(item.comment);
            if (auto entry = MakeSql(*info)) {
                entries[name] = std::move(entry);
            }
        }
    }
}

duckdb::optional_ptr<CatalogEntry> VgiSchema::Find(ClientContext &context, const duckdb::EntryLookupInfo &lookup) {
    for (const auto listing : ListingsOf(lookup.GetCatalogType())) {
        auto &entries = Load(context, listing);
        const auto entry = entries.find(lookup.GetEntryIdentifier());
        if (entry != entries.end() && Fits(*entry->second, lookup.GetCatalogType())) {
            return entry->second.get();
        }
    }
    return nullptr;
}

static bool IsTable(const duckdb::EntryLookupInfo &lookup) {
    return lookup.GetCatalogType() == CatalogType::TABLE_ENTRY || lookup.GetCatalogType() == CatalogType::VIEW_ENTRY;
}

//! Whether DuckDB has a function of that name, which is meant when the catalog is only on the search path.
static bool IsBuiltIn(ClientContext &context, const duckdb::EntryLookupInfo &lookup) {
    if (IsTable(lookup)) {
        return false;
    }
    auto &system = duckdb::Catalog::GetSystemCatalog(context);
    const duckdb::QualifiedName name(system.GetName(), Identifier::DefaultSchema(), lookup.GetEntryIdentifier());
    return system.GetEntry(context, duckdb::EntryLookupInfo(lookup.GetCatalogType(), name),
                           duckdb::OnEntryNotFound::RETURN_NULL) != nullptr;
}

duckdb::optional_ptr<CatalogEntry> VgiSchema::LookupEntry(duckdb::CatalogTransaction transaction,
                                                          const duckdb::EntryLookupInfo &lookup) {
    if (!transaction.context) {
        return nullptr;
    }
    auto &context = *transaction.context;
    if (lookup.GetCatalogType() == CatalogType::SCHEMA_ENTRY) {
        return owner.FindSchema(context, Identifier(key + "." + lookup.GetEntryName())).get();
    }
    if (auto entry = Find(context, lookup)) {
        return entry;
    }
    if (ListingsOf(lookup.GetCatalogType()).empty() || IsBuiltIn(context, lookup)) {
        return nullptr;
    }
    if (Forward([&] { return owner.attached->has_changed(context); })) {
        if (auto entry = Find(context, lookup)) {
            return entry;
        }
    }
    const auto why =
        Forward([&] { return owner.attached->refusal(context, key, lookup.GetEntryName(), IsTable(lookup)); });
    if (!why.empty()) {
        throw duckdb::NotImplementedException("%s", std::string(why));
    }
    return nullptr;
}

void VgiSchema::Scan(ClientContext &context, CatalogType type, const std::function<void(CatalogEntry &)> &callback) {
    if (type == CatalogType::SCHEMA_ENTRY) {
        owner.ScanChildren(context, this, callback);
    }
    for (const auto listing : ListingsOf(type)) {
        for (auto &entry : Load(context, listing)) {
            if (Fits(*entry.second, type)) {
                callback(*entry.second);
            }
        }
    }
}

//! What is committed here is what the server has, and without a context it cannot be asked.
void VgiSchema::Scan(CatalogType, const std::function<void(CatalogEntry &)> &) {}

void VgiSchema::RefuseChange() const {
    throw duckdb::PermissionException("schema '%s' is that of a VGI server, which is read-only",
                                      name.GetIdentifierName());
}

duckdb::optional_ptr<CatalogEntry> VgiSchema::CreateIndex(duckdb::CatalogTransaction, duckdb::CreateIndexInfo &,
                                                          duckdb::TableCatalogEntry &) {
    RefuseChange();
}

duckdb::optional_ptr<CatalogEntry> VgiSchema::CreateFunction(duckdb::CatalogTransaction, duckdb::CreateFunctionInfo &) {
    RefuseChange();
}

duckdb::optional_ptr<CatalogEntry> VgiSchema::CreateTable(duckdb::CatalogTransaction, duckdb::BoundCreateTableInfo &) {
    RefuseChange();
}

duckdb::optional_ptr<CatalogEntry> VgiSchema::CreateView(duckdb::CatalogTransaction, duckdb::CreateViewInfo &) {
    RefuseChange();
}

duckdb::optional_ptr<CatalogEntry> VgiSchema::CreateSequence(duckdb::CatalogTransaction, duckdb::CreateSequenceInfo &) {
    RefuseChange();
}

duckdb::optional_ptr<CatalogEntry> VgiSchema::CreateType(duckdb::CatalogTransaction, duckdb::CreateTypeInfo &) {
    RefuseChange();
}

void VgiSchema::DropEntry(ClientContext &, duckdb::DropInfo &) {
    RefuseChange();
}

void VgiSchema::Alter(duckdb::CatalogTransaction, duckdb::AlterInfo &) {
    RefuseChange();
}

} // namespace vgi
