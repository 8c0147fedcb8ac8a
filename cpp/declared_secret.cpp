#include "declared_secret.hpp"

#include "exception.hpp"
#include "glue.hpp"

#include "duckdb/catalog/catalog_transaction.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/main/secret/secret.hpp"
#include "duckdb/main/secret/secret_manager.hpp"

namespace vgi {

using duckdb::Identifier;
using duckdb::SecretManager;

static constexpr const char *EXTENSION = "vgi";
static constexpr const char *PROVIDER = "config";
//! The type that holds what a client shows to servers; no server is given one.
static constexpr const char *CREDENTIALS = "vgi";

namespace {

//! Which values are shown nowhere. DuckDB's function that makes a secret has no state of its own.
struct Hidden {
    duckdb::mutex lock;
    duckdb::identifier_map_t<duckdb::identifier_set_t> keys;
};

Hidden &HiddenKeys() {
    static Hidden hidden;
    return hidden;
}

duckdb::unique_ptr<duckdb::BaseSecret> CreateDeclared(ClientContext &, duckdb::CreateSecretInput &input) {
    if (input.persist_type == duckdb::SecretPersistType::PERSISTENT ||
        input.storage_type == Identifier(SecretManager::LOCAL_FILE_STORAGE_NAME)) {
        // a later session would read it before the type is known, and could then read no secret at all
        throw duckdb::InvalidInputException(
            "a secret of type '%s' cannot be persistent, because the type is known only "
            "while a catalog that declares it is attached",
            input.type.GetIdentifierName());
    }
    auto secret = duckdb::make_uniq<duckdb::KeyValueSecret>(input.scope, input.type, input.provider, input.name);
    for (auto &option : input.options) {
        secret->secret_map[Identifier(option.first)] = option.second;
    }
    auto &hidden = HiddenKeys();
    duckdb::lock_guard<duckdb::mutex> guard(hidden.lock);
    secret->redact_keys = hidden.keys[input.type];
    return std::move(secret);
}

//! Who made a type.
enum class Owner : uint8_t { NOBODY, CATALOG, OTHER };

Owner OwnerOf(SecretManager &manager, const Identifier &type) {
    for (auto &known : manager.AllSecretTypes()) {
        if (known.name == type) {
            return known.extension == EXTENSION && type != Identifier(CREDENTIALS) ? Owner::CATALOG : Owner::OTHER;
        }
    }
    return Owner::NOBODY;
}

void RegisterDeclared(SecretManager &manager, const DeclaredSecretType &declared, const TypeList &types) {
    const Identifier name{duckdb::StringUtil::Lower(std::string(declared.name))};
    auto &hidden = HiddenKeys();
    // also so that two statements do not register one type at once
    duckdb::lock_guard<duckdb::mutex> guard(hidden.lock);
    const auto owner = OwnerOf(manager, name);
    if (owner == Owner::OTHER) {
        return;
    }
    if (owner == Owner::NOBODY) {
        duckdb::SecretType type;
        type.name = name;
        type.deserializer = duckdb::KeyValueSecret::Deserialize<duckdb::KeyValueSecret>;
        type.default_provider = PROVIDER;
        type.extension = EXTENSION;
        manager.RegisterSecretType(type);
    }
    duckdb::CreateSecretFunction function;
    function.secret_type = name.GetIdentifierName();
    function.provider = PROVIDER;
    function.function = CreateDeclared;
    for (std::size_t i = 0; i < declared.parameters.size() && i < types.types.size(); i++) {
        const Identifier parameter{std::string(declared.parameters[i])};
        function.named_parameters[parameter] = types.types[i];
        if (declared.hidden[i]) {
            hidden.keys[name].insert(parameter);
        }
    }
    manager.RegisterSecretFunction(std::move(function), duckdb::OnCreateConflict::REPLACE_ON_CONFLICT);
}

Value AsStruct(const duckdb::KeyValueSecret &secret) {
    duckdb::child_list_t<Value> fields;
    auto add = [&](const char *name, const std::string &text) { fields.emplace_back(Identifier(name), Value(text)); };
    add("type", secret.GetType().GetIdentifierName());
    add("provider", secret.GetProvider().GetIdentifierName());
    add("name", secret.GetName().GetIdentifierName());
    add("scope", duckdb::StringUtil::Join(secret.GetScope(), "\n"));
    const auto own = fields.size();
    for (auto &entry : secret.secret_map) {
        const auto taken = std::any_of(fields.begin(), fields.begin() + static_cast<std::ptrdiff_t>(own),
                                       [&](auto &field) { return field.first == entry.first; });
        if (!taken) {
            fields.emplace_back(entry.first, entry.second);
        }
    }
    return Value::STRUCT(std::move(fields));
}

} // namespace

void RegisterDeclaredSecretTypes(ClientContext &context, const AttachedCatalog &attached) {
    auto &manager = SecretManager::Get(context);
    const auto declared = attached.secret_types();
    for (std::size_t i = 0; i < declared.size(); i++) {
        const auto types = Forward([&] { return attached.secret_parameter_types(context, i); });
        RegisterDeclared(manager, declared[i], *types);
    }
}

std::unique_ptr<Value> find_declared_secret(const ClientContext &context, rust::Str type, rust::Str scope,
                                            rust::Str name) {
    // reading secrets changes nothing of the query, but DuckDB's interface does not say so
    auto &mutable_context = const_cast<ClientContext &>(context);
    auto &manager = SecretManager::Get(mutable_context);
    const Identifier wanted{duckdb::StringUtil::Lower(std::string(type))};
    if (OwnerOf(manager, wanted) != Owner::CATALOG) {
        return nullptr;
    }
    auto transaction = duckdb::CatalogTransaction::GetSystemCatalogTransaction(mutable_context);
    duckdb::unique_ptr<duckdb::SecretEntry> entry;
    if (!name.empty()) {
        entry = manager.GetSecretByName(transaction, std::string(name));
    } else {
        entry = manager.LookupSecret(transaction, std::string(scope), wanted.GetIdentifierName()).secret_entry;
    }
    if (!entry || !(entry->secret->GetType() == wanted)) {
        return nullptr;
    }
    return std::make_unique<Value>(AsStruct(entry->secret->Cast<duckdb::KeyValueSecret>()));
}

rust::String secret_name(const Value &secret) {
    return rust::String::lossy(duckdb::StructValue::GetChildren(secret).at(2).ToString());
}

} // namespace vgi
