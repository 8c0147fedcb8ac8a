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

VgiSchema::VgiSchema(VgiCatalog &catalog_p, duckdb::CreateSchemaInfo &info)
    : SchemaCatalogEntry(catalog_p, info), owner(catalog_p) {
    comment = info.comment;
}

void VgiSchema::Forget() {
    constexpr std::size_t GENERATIONS = 8;
    duckdb::lock_guard<duckdb::mutex> guard(lock);
    for (auto &listing : listings) {
        retired.push_back(std::move(listing.second));
    }
    listings.clear();
    while (retired.size() > GENERATIONS) {
        retired.pop_front();
    }
}

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

void VgiSchema::Load(ClientContext &context, Listing listing) {
    {
        duckdb::lock_guard<duckdb::mutex> guard(lock);
        if (listings.find(listing) != listings.end() && owner.attached->caching()) {
            return;
        }
    }
    // not under the lock: the server is asked
    auto entries = Make(context, listing);
    duckdb::lock_guard<duckdb::mutex> guard(lock);
    auto &place = listings[listing];
    retired.push_back(std::move(place));
    place = std::move(entries);
    if (retired.size() > 8) {
        retired.pop_front();
    }
}

VgiSchema::Entries VgiSchema::Make(ClientContext &context, Listing listing) {
    switch (listing) {
    case Listing::FUNCTIONS:
        return MakeFunctions(context);
    case Listing::MACROS:
        return MakeMacros(context);
    default:
        return MakeViews(context);
    }
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

VgiSchema::Entries VgiSchema::MakeFunctions(ClientContext &context) {
    Entries result;
    const auto functions = Forward([&] { return owner.attached->functions(context, name.GetIdentifierName()); });
    for (std::size_t i = 0; i < functions->count(); i++) {
        duckdb::CreateTableFunctionInfo info(AttachedFunction(owner, name.GetIdentifierName(), *functions, i));
        info.SetQualifiedName(GetQualifiedName(info.GetFunctionName()));
        info.descriptions.push_back(Describe(*functions, i));
        info.comment = CommentOf(functions->comment(i));
        const Identifier key = info.GetFunctionName();
        result.emplace(key, duckdb::make_uniq<duckdb::TableFunctionCatalogEntry>(owner, *this, info));
    }
    return result;
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

VgiSchema::Entries VgiSchema::MakeMacros(ClientContext &context) {
    Entries result;
    for (auto &item : Forward([&] { return owner.attached->macros(context, name.GetIdentifierName()); })) {
        auto info = Parse(context, item.statement);
        if (!info || (info->type != CatalogType::MACRO_ENTRY && info->type != CatalogType::TABLE_MACRO_ENTRY)) {
            continue;
        }
        const Identifier key{std::string(item.name)};
        info->SetQualifiedName(GetQualifiedName(key));
        info->comment = CommentOf(item.comment);
        auto &macro = info->Cast<duckdb::CreateMacroInfo>();
        if (info->type == CatalogType::TABLE_MACRO_ENTRY) {
            result[key] = duckdb::make_uniq<duckdb::TableMacroCatalogEntry>(owner, *this, macro);
        } else {
            result[key] = duckdb::make_uniq<duckdb::ScalarMacroCatalogEntry>(owner, *this, macro);
        }
    }
    return result;
}

VgiSchema::Entries VgiSchema::MakeViews(ClientContext &context) {
    Entries result;
    for (auto &item : Forward([&] { return owner.attached->views(context, name.GetIdentifierName()); })) {
        auto info = Parse(context, item.statement);
        if (!info || info->type != CatalogType::VIEW_ENTRY) {
            continue;
        }
        const Identifier key{std::string(item.name)};
        info->SetQualifiedName(GetQualifiedName(key));
        info->comment = CommentOf(item.comment);
        result[key] = duckdb::make_uniq<duckdb::ViewCatalogEntry>(owner, *this, info->Cast<duckdb::CreateViewInfo>());
    }
    return result;
}

duckdb::optional_ptr<CatalogEntry> VgiSchema::Find(Listing listing, const duckdb::EntryLookupInfo &lookup) {
    duckdb::lock_guard<duckdb::mutex> guard(lock);
    const auto entries = listings.find(listing);
    if (entries == listings.end()) {
        return nullptr;
    }
    const auto entry = entries->second.find(lookup.GetEntryIdentifier());
    if (entry == entries->second.end() || !Fits(*entry->second, lookup.GetCatalogType())) {
        return nullptr;
    }
    return entry->second.get();
}

duckdb::optional_ptr<CatalogEntry> VgiSchema::LookupEntry(duckdb::CatalogTransaction transaction,
                                                          const duckdb::EntryLookupInfo &lookup) {
    const auto candidates = ListingsOf(lookup.GetCatalogType());
    if (candidates.empty() || !transaction.context) {
        return nullptr;
    }
    for (const auto listing : candidates) {
        Load(*transaction.context, listing);
        if (auto entry = Find(listing, lookup)) {
            return entry;
        }
    }
    RefuseUnsupported(*transaction.context, lookup);
    return nullptr;
}

void VgiSchema::RefuseUnsupported(ClientContext &context, const duckdb::EntryLookupInfo &lookup) {
    const bool table =
        lookup.GetCatalogType() == CatalogType::TABLE_ENTRY || lookup.GetCatalogType() == CatalogType::VIEW_ENTRY;
    if (!table) {
        // a function of DuckDB's own of that name is meant, when the catalog is only on the search path
        auto &system = duckdb::Catalog::GetSystemCatalog(context);
        const duckdb::EntryLookupInfo own(
            lookup.GetCatalogType(),
            duckdb::QualifiedName(system.GetName(), Identifier::DefaultSchema(), lookup.GetEntryIdentifier()));
        if (system.GetEntry(context, own, duckdb::OnEntryNotFound::RETURN_NULL)) {
            return;
        }
    }
    const auto why = Forward(
        [&] { return owner.attached->refusal(context, name.GetIdentifierName(), lookup.GetEntryName(), table); });
    if (!why.empty()) {
        throw duckdb::NotImplementedException("%s", std::string(why));
    }
}

void VgiSchema::Scan(ClientContext &context, CatalogType type, const std::function<void(CatalogEntry &)> &callback) {
    for (const auto listing : ListingsOf(type)) {
        Load(context, listing);
    }
    Scan(type, callback);
}

void VgiSchema::Scan(CatalogType type, const std::function<void(CatalogEntry &)> &callback) {
    duckdb::vector<duckdb::reference<CatalogEntry>> found;
    {
        duckdb::lock_guard<duckdb::mutex> guard(lock);
        for (const auto listing : ListingsOf(type)) {
            for (auto &entry : listings[listing]) {
                if (Fits(*entry.second, type)) {
                    found.push_back(*entry.second);
                }
            }
        }
    }
    for (auto &entry : found) {
        callback(entry.get());
    }
}

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
