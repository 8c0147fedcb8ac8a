#include "catalog.hpp"

#include "declared_secret.hpp"
#include "exception.hpp"
#include "global_functions.hpp"
#include "schema.hpp"
#include "transaction.hpp"

#include "duckdb/main/attached_database.hpp"
#include "duckdb/main/config.hpp"
#include "duckdb/main/database_manager.hpp"
#include "duckdb/parser/parsed_data/attach_info.hpp"
#include "duckdb/parser/parsed_data/create_schema_info.hpp"
#include "duckdb/storage/database_size.hpp"

namespace vgi {

using duckdb::ClientContext;
using duckdb::Identifier;

VgiCatalog::VgiCatalog(duckdb::AttachedDatabase &db, rust::Box<AttachedCatalog> attached_p)
    : Catalog(db), attached(std::move(attached_p)) {}

VgiCatalog::~VgiCatalog() = default;

VgiCatalog &VgiCatalog::Find(ClientContext &context, const std::string &name) {
    auto &catalog = Catalog::GetCatalog(context, Identifier(name));
    if (catalog.GetCatalogType() != TYPE) {
        throw duckdb::BinderException(
            "'%s' is not a catalog of a VGI server; ATTACH '…' AS %s (TYPE vgi, LOCATION '…')", name, name);
    }
    return catalog.Cast<VgiCatalog>();
}

duckdb::vector<duckdb::shared_ptr<duckdb::AttachedDatabase>> VgiCatalog::All(ClientContext &context) {
    duckdb::vector<duckdb::shared_ptr<duckdb::AttachedDatabase>> result;
    for (auto &database : duckdb::DatabaseManager::Get(context).GetDatabases(context)) {
        if (database->GetCatalog().GetCatalogType() == TYPE) {
            result.push_back(database);
        }
    }
    return result;
}

std::string VgiCatalog::GetCatalogType() {
    return TYPE;
}

duckdb::optional<Identifier> VgiCatalog::GetDefaultSchema() const {
    return Identifier(std::string(attached->default_schema_name()));
}

std::uint64_t VgiCatalog::LoadSchemas(ClientContext &context) {
    const auto stamp = Forward([&] { return attached->listing_stamp(context); });
    {
        duckdb::lock_guard<duckdb::mutex> guard(lock);
        if (loaded == stamp) {
            return stamp;
        }
    }
    // not under the lock: the server is asked
    const auto listed = Forward([&] { return attached->schemas(context); });
    duckdb::lock_guard<duckdb::mutex> guard(lock);
    for (auto &item : listed) {
        auto &schema = schemas[Identifier(std::string(item.path))];
        if (!schema) {
            duckdb::CreateSchemaInfo info;
            info.SetQualifiedName(duckdb::QualifiedName(GetName(), Identifier(std::string(item.name)), Identifier()));
            const auto parent = schemas.find(Identifier(std::string(item.parent)));
            schema = duckdb::make_uniq<VgiSchema>(*this, info, parent == schemas.end() ? nullptr : parent->second.get(),
                                                  std::string(item.path));
        }
        schema->comment = item.comment.empty() ? duckdb::Value() : duckdb::Value(std::string(item.comment));
        schema->listed = stamp;
    }
    loaded = stamp;
    return stamp;
}

duckdb::optional_ptr<duckdb::SchemaCatalogEntry> VgiCatalog::FindSchema(ClientContext &context,
                                                                        const Identifier &path) {
    const auto stamp = LoadSchemas(context);
    duckdb::lock_guard<duckdb::mutex> guard(lock);
    const auto entry = schemas.find(path);
    return entry == schemas.end() || entry->second->listed < stamp ? nullptr : entry->second.get();
}

duckdb::optional_ptr<duckdb::SchemaCatalogEntry> VgiCatalog::LookupSchema(duckdb::CatalogTransaction transaction,
                                                                          const duckdb::EntryLookupInfo &lookup,
                                                                          duckdb::OnEntryNotFound if_not_found) {
    const auto find = [&](const duckdb::EntryLookupInfo &root) -> duckdb::optional_ptr<duckdb::CatalogEntry> {
        return transaction.context ? FindSchema(*transaction.context, root.GetEntryIdentifier()).get() : nullptr;
    };
    auto schema = LookupSchemaPath(transaction, lookup, duckdb::OnEntryNotFound::RETURN_NULL, find);
    if (!schema && if_not_found == duckdb::OnEntryNotFound::THROW_EXCEPTION) {
        throw duckdb::BinderException(lookup.GetErrorContext(), "schema '%s' does not exist in catalog '%s' of %s",
                                      lookup.GetEntryName(), GetName().GetIdentifierName(),
                                      std::string(attached->server()));
    }
    return schema;
}

void VgiCatalog::ScanChildren(ClientContext &context, duckdb::optional_ptr<duckdb::SchemaCatalogEntry> parent,
                              const std::function<void(duckdb::CatalogEntry &)> &callback) {
    const auto stamp = LoadSchemas(context);
    duckdb::vector<duckdb::reference<VgiSchema>> found;
    {
        duckdb::lock_guard<duckdb::mutex> guard(lock);
        for (auto &schema : schemas) {
            if (schema.second->listed >= stamp && schema.second->GetParentSchema().get() == parent.get()) {
                found.push_back(*schema.second);
            }
        }
    }
    for (auto &schema : found) {
        callback(schema.get());
    }
}

void VgiCatalog::ScanSchemas(ClientContext &context, std::function<void(duckdb::SchemaCatalogEntry &)> callback) {
    const auto transaction = GetCatalogTransaction(context);
    ScanChildren(context, nullptr, [&](duckdb::CatalogEntry &entry) {
        entry.Cast<duckdb::SchemaCatalogEntry>().ScanSchemaTree(transaction, callback);
    });
}

void VgiCatalog::RefuseChange() const {
    throw duckdb::PermissionException("catalog '%s' is that of a VGI server, which is read-only",
                                      GetName().GetIdentifierName());
}

duckdb::optional_ptr<duckdb::CatalogEntry> VgiCatalog::CreateSchema(duckdb::CatalogTransaction,
                                                                    duckdb::CreateSchemaInfo &) {
    RefuseChange();
}

void VgiCatalog::DropSchema(ClientContext &, duckdb::DropInfo &) {
    RefuseChange();
}

duckdb::PhysicalOperator &VgiCatalog::PlanCreateTableAs(ClientContext &, duckdb::PhysicalPlanGenerator &,
                                                        duckdb::LogicalCreateTable &, duckdb::PhysicalOperator &) {
    RefuseChange();
}

duckdb::PhysicalOperator &VgiCatalog::PlanInsert(ClientContext &, duckdb::PhysicalPlanGenerator &,
                                                 duckdb::LogicalInsert &,
                                                 duckdb::optional_ptr<duckdb::PhysicalOperator>) {
    RefuseChange();
}

duckdb::PhysicalOperator &VgiCatalog::PlanDelete(ClientContext &, duckdb::PhysicalPlanGenerator &,
                                                 duckdb::LogicalDelete &, duckdb::PhysicalOperator &) {
    RefuseChange();
}

duckdb::PhysicalOperator &VgiCatalog::PlanUpdate(ClientContext &, duckdb::PhysicalPlanGenerator &,
                                                 duckdb::LogicalUpdate &, duckdb::PhysicalOperator &) {
    RefuseChange();
}

duckdb::DatabaseSize VgiCatalog::GetDatabaseSize(ClientContext &) {
    return duckdb::DatabaseSize();
}

std::string VgiCatalog::GetDBPath() {
    return std::string(attached->server());
}

namespace {

//! Settings that the catalog declares become settings of DuckDB; one that exists already stays as it is.
void RegisterSettings(ClientContext &context, const AttachedCatalog &attached) {
    auto &config = duckdb::DBConfig::GetConfig(context);
    for (std::size_t i = 0; i < attached.setting_count(); i++) {
        const Identifier name{std::string(attached.setting_name(i))};
        if (config.HasExtensionOption(name) || config.GetOptionByName(name)) {
            continue;
        }
        const auto type = Forward([&] { return attached.setting_type(context, i); });
        const std::string text(attached.setting_default(i));
        const auto value = text.empty() ? duckdb::Value(*type) : duckdb::Value(text).DefaultCastAs(*type);
        config.AddExtensionOption(name, std::string(attached.setting_description(i)), *type, value);
    }
}

duckdb::unique_ptr<duckdb::Catalog> Attach(duckdb::optional_ptr<duckdb::StorageExtensionInfo>, ClientContext &context,
                                           duckdb::AttachedDatabase &db, const std::string &, duckdb::AttachInfo &info,
                                           duckdb::AttachOptions &options) {
    auto statement = new_attach_statement(info.path);
    for (auto &option : options.options) {
        statement->add_option(option.first, option.second);
    }
    auto attached = Forward([&] { return statement->attach(context); });
    RegisterSettings(context, *attached);
    RegisterDeclaredSecretTypes(context, *attached);
    // so that DuckDB itself says that nothing can be created here, and that no token stands in what it lists
    options.access_mode = duckdb::AccessMode::READ_ONLY;
    options.options.clear();
    auto catalog = duckdb::make_uniq<VgiCatalog>(db, std::move(attached));
    PublishFunctions(context, *catalog);
    return std::move(catalog);
}

duckdb::unique_ptr<duckdb::TransactionManager>
CreateTransactionManager(duckdb::optional_ptr<duckdb::StorageExtensionInfo>, duckdb::AttachedDatabase &db,
                         duckdb::Catalog &) {
    return duckdb::make_uniq<VgiTransactionManager>(db);
}

} // namespace

duckdb::shared_ptr<duckdb::StorageExtension> CatalogExtension() {
    auto extension = duckdb::make_shared_ptr<duckdb::StorageExtension>();
    extension->attach = Attach;
    extension->create_transaction_manager = CreateTransactionManager;
    return extension;
}

} // namespace vgi
