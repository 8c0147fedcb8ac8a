#include "secret.hpp"

#include "glue.hpp"
#include "vgi/src/bridge.rs.h"

#include "duckdb/catalog/catalog_transaction.hpp"
#include "duckdb/main/secret/secret.hpp"
#include "duckdb/main/secret/secret_manager.hpp"

namespace vgi {

static constexpr const char *TYPE = "vgi";

static duckdb::unique_ptr<duckdb::BaseSecret> CreateFromConfig(ClientContext &, duckdb::CreateSecretInput &input) {
    auto secret = duckdb::make_uniq<duckdb::KeyValueSecret>(input.scope, input.type, input.provider, input.name);
    secret->TrySetValue("token", input);
    secret->TrySetValue("extra_http_headers", input);
    secret->TrySetValue("ca_cert_file", input);
    // headers are credentials as often as not
    secret->redact_keys = {"token", "extra_http_headers"};
    return std::move(secret);
}

void RegisterSecretType(duckdb::ExtensionLoader &loader) {
    duckdb::SecretType type;
    type.name = TYPE;
    type.deserializer = duckdb::KeyValueSecret::Deserialize<duckdb::KeyValueSecret>;
    type.default_provider = "config";
    type.extension = "vgi";
    loader.RegisterSecretType(type);

    duckdb::CreateSecretFunction function;
    function.secret_type = TYPE;
    function.provider = "config";
    function.function = CreateFromConfig;
    function.named_parameters["token"] = LogicalType::VARCHAR;
    function.named_parameters["extra_http_headers"] = LogicalType::MAP(LogicalType::VARCHAR, LogicalType::VARCHAR);
    function.named_parameters["ca_cert_file"] = LogicalType::VARCHAR;
    loader.RegisterFunction(function);
}

static SecretValues ReadSecret(const duckdb::BaseSecret &secret) {
    SecretValues result{};
    result.found = true;
    auto &values = secret.Cast<duckdb::KeyValueSecret>();
    Value value;
    if (values.TryGetValue("token", value) && !value.IsNull()) {
        result.token = rust::String::lossy(value.ToString());
    }
    if (values.TryGetValue("ca_cert_file", value) && !value.IsNull()) {
        result.ca_cert_file = rust::String::lossy(value.ToString());
    }
    if (values.TryGetValue("extra_http_headers", value) && !value.IsNull()) {
        for (auto &entry : duckdb::MapValue::GetChildren(value)) {
            auto &pair = duckdb::StructValue::GetChildren(entry);
            result.header_names.push_back(rust::String::lossy(pair[0].ToString()));
            result.header_values.push_back(rust::String::lossy(pair[1].ToString()));
        }
    }
    return result;
}

SecretValues find_secret(const ClientContext &context, rust::Str name, rust::Str location) {
    // reading secrets changes nothing of the query, but DuckDB's interface does not say so
    auto &mutable_context = const_cast<ClientContext &>(context);
    auto &manager = duckdb::SecretManager::Get(mutable_context);
    auto transaction = duckdb::CatalogTransaction::GetSystemCatalogTransaction(mutable_context);
    if (!name.empty()) {
        const auto entry = manager.GetSecretByName(transaction, std::string(name));
        return entry && entry->secret->GetType() == TYPE ? ReadSecret(*entry->secret) : SecretValues{};
    }
    auto match = manager.LookupSecret(transaction, std::string(location), TYPE);
    return match.HasMatch() ? ReadSecret(match.GetSecret()) : SecretValues{};
}

} // namespace vgi
