// The catalog of `ATTACH … (TYPE vgi)`: read-only, its entries are made when they are asked for.
#pragma once

#include "vgi/src/bridge.rs.h"

#include "duckdb/catalog/catalog.hpp"
#include "duckdb/common/mutex.hpp"
#include "duckdb/storage/storage_extension.hpp"

namespace vgi {

class VgiSchema;

class VgiCatalog final : public duckdb::Catalog {
public:
    VgiCatalog(duckdb::AttachedDatabase &db, rust::Box<AttachedCatalog> attached);
    ~VgiCatalog() override;

    static constexpr const char *TYPE = "vgi";

    //! The catalog that is attached under a name; throws when it is none of ours.
    static VgiCatalog &Find(duckdb::ClientContext &context, const std::string &name);
    //! All attached catalogs of ours.
    static duckdb::vector<duckdb::shared_ptr<duckdb::AttachedDatabase>> All(duckdb::ClientContext &context);

    //! The schema with this path, dotted when it is nested.
    duckdb::optional_ptr<duckdb::SchemaCatalogEntry> FindSchema(duckdb::ClientContext &context,
                                                                const duckdb::Identifier &path);
    //! The schemas inside of one; those at the top for null.
    void ScanChildren(duckdb::ClientContext &context, duckdb::optional_ptr<duckdb::SchemaCatalogEntry> parent,
                      const std::function<void(duckdb::CatalogEntry &)> &callback);

    void Initialize(bool) override {}
    std::string GetCatalogType() override;
    duckdb::optional<duckdb::Identifier> GetDefaultSchema() const override;

    bool SupportsNestedSchemas() const override { return true; }
    duckdb::optional_ptr<duckdb::SchemaCatalogEntry> LookupSchema(duckdb::CatalogTransaction transaction,
                                                                  const duckdb::EntryLookupInfo &lookup,
                                                                  duckdb::OnEntryNotFound if_not_found) override;
    void ScanSchemas(duckdb::ClientContext &context,
                     std::function<void(duckdb::SchemaCatalogEntry &)> callback) override;

    duckdb::optional_ptr<duckdb::CatalogEntry> CreateSchema(duckdb::CatalogTransaction transaction,
                                                            duckdb::CreateSchemaInfo &info) override;
    void DropSchema(duckdb::ClientContext &context, duckdb::DropInfo &info) override;
    duckdb::PhysicalOperator &PlanCreateTableAs(duckdb::ClientContext &context, duckdb::PhysicalPlanGenerator &planner,
                                                duckdb::LogicalCreateTable &op,
                                                duckdb::PhysicalOperator &plan) override;
    duckdb::PhysicalOperator &PlanInsert(duckdb::ClientContext &context, duckdb::PhysicalPlanGenerator &planner,
                                         duckdb::LogicalInsert &op,
                                         duckdb::optional_ptr<duckdb::PhysicalOperator> plan) override;
    duckdb::PhysicalOperator &PlanDelete(duckdb::ClientContext &context, duckdb::PhysicalPlanGenerator &planner,
                                         duckdb::LogicalDelete &op, duckdb::PhysicalOperator &plan) override;
    duckdb::PhysicalOperator &PlanUpdate(duckdb::ClientContext &context, duckdb::PhysicalPlanGenerator &planner,
                                         duckdb::LogicalUpdate &op, duckdb::PhysicalOperator &plan) override;
    duckdb::DatabaseSize GetDatabaseSize(duckdb::ClientContext &context) override;
    bool InMemory() override { return false; }
    std::string GetDBPath() override;

    rust::Box<AttachedCatalog> attached;

private:
    //! Makes what the server lists now; gives the stamp of that listing.
    std::uint64_t LoadSchemas(duckdb::ClientContext &context);
    [[noreturn]] void RefuseChange() const;

    duckdb::mutex lock;
    std::uint64_t loaded = 0;
    //! By path. One that the server does not list any more stays, since a statement may still look at it.
    duckdb::identifier_tree_t<duckdb::unique_ptr<VgiSchema>> schemas;
};

//! What makes `TYPE vgi` known to ATTACH.
duckdb::shared_ptr<duckdb::StorageExtension> CatalogExtension();

} // namespace vgi
