#include "glue.hpp"

#include "duckdb/logging/logger.hpp"
#include "duckdb/main/client_context.hpp"
#include "duckdb/transaction/meta_transaction.hpp"

#include <unordered_map>

namespace vgi {

bool is_interrupted(const ClientContext &context) noexcept {
    return context.IsInterrupted();
}

static duckdb::LogLevel Level(const std::string &word) {
    static const std::unordered_map<std::string, duckdb::LogLevel> levels{{"TRACE", duckdb::LogLevel::LOG_TRACE},
                                                                          {"DEBUG", duckdb::LogLevel::LOG_DEBUG},
                                                                          {"WARN", duckdb::LogLevel::LOG_WARNING},
                                                                          {"ERROR", duckdb::LogLevel::LOG_ERROR}};
    const auto entry = levels.find(word);
    return entry == levels.end() ? duckdb::LogLevel::LOG_INFO : entry->second;
}

void write_log(const ClientContext &context, rust::Str level_word, rust::Str message) noexcept {
    try {
        auto &logger = duckdb::Logger::Get(context);
        const auto level = Level(std::string(level_word));
        if (logger.ShouldLog("VGI", level)) {
            logger.WriteLog("VGI", level, std::string(message));
        }
    } catch (...) {
        // a query must not fail because of a line in a log
    }
}

bool logs_steps(const ClientContext &context) noexcept {
    try {
        return duckdb::Logger::Get(context).ShouldLog("VGI", duckdb::LogLevel::LOG_DEBUG);
    } catch (...) {
        return false;
    }
}

std::size_t database_of(const ClientContext &context) noexcept {
    return reinterpret_cast<std::size_t>(context.db.get());
}

std::uint64_t statement_of(const ClientContext &context) noexcept {
    try {
        // a statement that is only prepared has no number of its own, but a transaction
        auto &transaction = const_cast<ClientContext &>(context).transaction.ActiveTransaction();
        return duckdb::CombineHash(duckdb::Hash(transaction.global_transaction_id),
                                   duckdb::Hash(transaction.GetActiveQuery()));
    } catch (...) {
        return 0;
    }
}

static Value SettingValue(const ClientContext &context, rust::Str name) {
    Value value;
    if (!context.TryGetCurrentSetting(duckdb::Identifier(std::string(name)), value) || value.IsNull()) {
        throw duckdb::InvalidInputException("setting '%s' has no value", std::string(name));
    }
    return value;
}

std::uint64_t setting_u64(const ClientContext &context, rust::Str name) {
    return SettingValue(context, name).GetValue<uint64_t>();
}

rust::String setting_text(const ClientContext &context, rust::Str name) {
    return rust::String::lossy(SettingValue(context, name).ToString());
}

std::unique_ptr<Value> setting_value(const ClientContext &context, rust::Str name) {
    Value value;
    if (!context.TryGetCurrentSetting(duckdb::Identifier(std::string(name)), value) || value.IsNull()) {
        return nullptr;
    }
    return std::make_unique<Value>(std::move(value));
}

MemoryClaim::MemoryClaim(ClientContext &context) : manager(duckdb::BufferManager::GetBufferManager(context)) {}

MemoryClaim::~MemoryClaim() {
    manager.FreeReservedMemory(held);
}

void MemoryClaim::resize(std::size_t bytes) {
    if (bytes > held) {
        manager.ReserveMemory(bytes - held);
    } else {
        manager.FreeReservedMemory(held - bytes);
    }
    held = bytes;
}

std::unique_ptr<MemoryClaim> new_memory_claim(ClientContext &context) {
    return std::make_unique<MemoryClaim>(context);
}

std::unique_ptr<InterruptState> copy_task(const InterruptState &task) {
    return std::make_unique<InterruptState>(task);
}

void wake_task(const InterruptState &task) noexcept {
    try {
        task.Callback();
    } catch (...) { // the query has ended, or ends with an error of its own
    }
}

std::unique_ptr<Value> cast_value(ClientContext &context, const Value &value, const LogicalType &type) {
    return std::make_unique<Value>(value.CastAs(context, type));
}

std::unique_ptr<std::vector<Value>> value_parts(const Value &value) {
    auto parts = std::make_unique<std::vector<Value>>();
    if (value.IsNull()) {
        return parts;
    }
    auto add = [&](const duckdb::vector<Value> &children) { parts->assign(children.begin(), children.end()); };
    switch (value.type().id()) {
    case duckdb::LogicalTypeId::LIST:
        add(duckdb::ListValue::GetChildren(value));
        break;
    case duckdb::LogicalTypeId::ARRAY:
        add(duckdb::ArrayValue::GetChildren(value));
        break;
    case duckdb::LogicalTypeId::STRUCT:
    case duckdb::LogicalTypeId::TUPLE:
        add(duckdb::StructValue::GetChildren(value));
        break;
    default:
        parts->push_back(value);
    }
    return parts;
}

rust::Vec<rust::String> part_names(const Value &value) {
    rust::Vec<rust::String> names;
    if (value.type().id() == duckdb::LogicalTypeId::STRUCT) {
        for (auto &child : duckdb::StructType::GetChildTypes(value.type())) {
            names.push_back(child.first.GetIdentifierName());
        }
    }
    return names;
}

rust::String value_text(const Value &value) noexcept {
    return value.IsNull() ? rust::String() : rust::String::lossy(value.ToString());
}

std::unique_ptr<Value> copy_value(const Value &value) {
    return std::make_unique<Value>(value);
}

const LogicalType &value_type(const Value &value) {
    return value.type();
}

bool same_type(const LogicalType &left, const LogicalType &right) {
    return left == right;
}

rust::String type_name(const LogicalType &type) {
    return type.ToString();
}

std::unique_ptr<LogicalType> copy_type(const LogicalType &type) {
    return std::make_unique<LogicalType>(type);
}

} // namespace vgi
