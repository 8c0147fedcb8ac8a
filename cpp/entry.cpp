// What LOAD does: registers the table function, the optimizer extension that puts the operator into plans, and the
// settings.
#include "exception.hpp"
#include "logical_call.hpp"
#include "table_function.hpp"

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
    Lifetime() { database_opened(); }
    ~Lifetime() override { database_closed(); }
};

void Optimize(duckdb::OptimizerExtensionInput &, duckdb::unique_ptr<duckdb::LogicalOperator> &plan) {
    ReplaceCalls(plan);
}

//! DuckDB's callback for a changed setting does not say which one it is, so each has a callback of its own, made at
//! compile time.
constexpr std::size_t SETTING_COUNT = 3;

//! DuckDB calls this before a new value is stored, so a value out of range never takes effect.
void CheckSetting(duckdb::ClientContext &, duckdb::SetScope, duckdb::Value &value, const char *name) {
    const std::uint64_t number = value.IsNull() ? 0 : value.GetValue<uint64_t>();
    Forward([&] { check_setting(name, number); });
}

template <std::size_t INDEX>
void CheckSettingAt(duckdb::ClientContext &context, duckdb::SetScope scope, duckdb::Value &value) {
    CheckSetting(context, scope, value, std::string(settings()[INDEX].name).c_str());
}

template <std::size_t... INDEX>
void RegisterSettings(duckdb::DBConfig &config, std::index_sequence<INDEX...>) {
    const auto all = settings();
    if (all.size() != SETTING_COUNT) {
        throw duckdb::InternalException("vgi: %llu settings, but %llu callbacks",
                                        static_cast<duckdb::idx_t>(all.size()),
                                        static_cast<duckdb::idx_t>(SETTING_COUNT));
    }
    (config.AddExtensionOption(duckdb::Identifier(std::string(all[INDEX].name)), std::string(all[INDEX].description),
                               duckdb::LogicalType::UBIGINT, duckdb::Value::UBIGINT(all[INDEX].default_value),
                               CheckSettingAt<INDEX>),
     ...);
}

} // namespace

} // namespace vgi

extern "C" void vgi_register(void *loader_pointer) {
    auto &loader = *static_cast<duckdb::ExtensionLoader *>(loader_pointer);
    loader.SetDescription("Runs a query's table through functions on a remote VGI server");
    loader.RegisterFunction(vgi::CallFunction());
    auto &database = loader.GetDatabaseInstance();
    database.GetLogManager().RegisterLogType(duckdb::make_uniq<duckdb::LogType>("VGI", duckdb::LogLevel::LOG_INFO));
    auto &config = duckdb::DBConfig::GetConfig(database);
    vgi::RegisterSettings(config, std::make_index_sequence<vgi::SETTING_COUNT>());
    duckdb::OptimizerExtension optimizer;
    optimizer.optimize_function = vgi::Optimize;
    optimizer.optimizer_info = duckdb::make_shared_ptr<vgi::Lifetime>();
    duckdb::OptimizerExtension::Register(config, std::move(optimizer));
}
