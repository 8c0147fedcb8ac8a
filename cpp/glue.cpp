#include "glue.hpp"

#include "duckdb/main/client_context.hpp"

namespace vgi {

bool is_interrupted(const ClientContext &context) noexcept {
    return context.IsInterrupted();
}

std::uint64_t setting_u64(const ClientContext &context, rust::Str name) {
    Value value;
    if (!context.TryGetCurrentSetting(duckdb::Identifier(std::string(name)), value) || value.IsNull()) {
        throw duckdb::InvalidInputException("setting '%s' has no value", std::string(name));
    }
    return value.GetValue<uint64_t>();
}

std::unique_ptr<Value> cast_value(ClientContext &context, const Value &value, const LogicalType &type) {
    return std::make_unique<Value>(value.CastAs(context, type));
}

void flatten(DataChunk &chunk) {
    chunk.Flatten();
}

} // namespace vgi
