// What LOAD does: registers the table function, the optimizer extension that puts the operator into plans, and the
// settings.
#include "calls.hpp"
#include "catalog.hpp"
#include "exception.hpp"
#include "logical_call.hpp"
#include "overview.hpp"
#include "secret.hpp"
#include "table_function.hpp"

#include "duckdb/common/types.hpp"
#include "duckdb/logging/log_manager.hpp"
#include "duckdb/main/config.hpp"
#include "duckdb/main/database.hpp"
#include "duckdb/main/extension/extension_loader.hpp"
#include "duckdb/optimizer/optimizer_extension.hpp"

namespace vgi {

namespace {

//! Owned by the database instance: its end is the last moment at which background requests may still be awaited.
class Lifetime final : public duckdb::OptimizerExtensionInfo {
public:
    explicit Lifetime(const duckdb::DatabaseInstance &database) : number(reinterpret_cast<std::size_t>(&database)) {
        database_opened();
    }
    ~Lifetime() override { database_closed(number); }

private:
    //! What `database_of` gives for its connections.
    std::size_t number;
};

void Optimize(duckdb::OptimizerExtensionInput &, duckdb::unique_ptr<duckdb::LogicalOperator> &plan) {
    ReplaceCalls(plan);
}

void PreOptimize(duckdb::OptimizerExtensionInput &, duckdb::unique_ptr<duckdb::LogicalOperator> &plan) {
    GuardInputs(plan);
}

//! DuckDB's callback for a changed setting does not say which one it is, so each has a callback of its own, made at
//! compile time.
constexpr std::size_t MOST_SETTINGS = 32;

//! DuckDB calls this before a new value is stored, so a value that is not allowed never takes effect.
template <std::size_t INDEX>
void CheckSetting(duckdb::ClientContext &, duckdb::SetScope, duckdb::Value &value) {
    Forward([&] { check_setting(settings()[INDEX].name, value); });
}

void RegisterSetting(duckdb::DBConfig &config, const Setting &setting, duckdb::set_option_callback_t check) {
    const duckdb::LogicalType type(duckdb::TransformStringToLogicalTypeId(std::string(setting.type_name)));
    const auto value = duckdb::Value(std::string(setting.default_value)).DefaultCastAs(type);
    config.AddExtensionOption(duckdb::Identifier(std::string(setting.name)), std::string(setting.description), type,
                              value, check);
}

template <std::size_t... INDEX>
void RegisterSettings(duckdb::DBConfig &config, std::index_sequence<INDEX...>) {
    const auto all = settings();
    if (all.size() > MOST_SETTINGS) {
        throw duckdb::InternalException("vgi: %llu settings, but %llu callbacks",
                                        static_cast<duckdb::idx_t>(all.size()),
                                        static_cast<duckdb::idx_t>(MOST_SETTINGS));
    }
    const duckdb::set_option_callback_t checks[] = {CheckSetting<INDEX>...};
    for (std::size_t i = 0; i < all.size(); i++) {
        RegisterSetting(config, all[i], checks[i]);
    }
}

} // namespace

} // namespace vgi

extern "C" void vgi_register(void *loader_pointer) {
    auto &loader = *static_cast<duckdb::ExtensionLoader *>(loader_pointer);
    loader.SetDescription("Runs a query's table through functions on a remote VGI server");
    loader.RegisterFunction(vgi::CallFunction());
    loader.RegisterFunction(vgi::CallsFunction());
    vgi::RegisterOverviews(loader);
    vgi::RegisterSecretType(loader);
    auto &database = loader.GetDatabaseInstance();
    database.GetLogManager().RegisterLogType(duckdb::make_uniq<duckdb::LogType>("VGI", duckdb::LogLevel::LOG_DEBUG));
    auto &config = duckdb::DBConfig::GetConfig(database);
    vgi::RegisterSettings(config, std::make_index_sequence<vgi::MOST_SETTINGS>());
    duckdb::StorageExtension::Register(config, vgi::VgiCatalog::TYPE, vgi::CatalogExtension());
    duckdb::OptimizerExtension optimizer;
    optimizer.pre_optimize_function = vgi::PreOptimize;
    optimizer.optimize_function = vgi::Optimize;
    optimizer.optimizer_info = duckdb::make_shared_ptr<vgi::Lifetime>(database);
    duckdb::OptimizerExtension::Register(config, std::move(optimizer));
}
