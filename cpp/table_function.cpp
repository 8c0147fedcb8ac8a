#include "table_function.hpp"

#include "catalog.hpp"
#include "exception.hpp"
#include "filter_pushdown.hpp"
#include "logical_call.hpp"
#include "transaction.hpp"

#include "duckdb/main/attached_database.hpp"
#include "duckdb/main/database_manager.hpp"
#include "duckdb/main/query_result.hpp"
#include "duckdb/optimizer/optimizer.hpp"
#include "duckdb/planner/binder.hpp"
#include "duckdb/planner/operator/logical_get.hpp"

namespace vgi {

using duckdb::ClientContext;
using duckdb::Identifier;
using duckdb::LogicalType;
using duckdb::TableFunctionBindInput;

CallData::CallData(rust::Box<BoundCall> call_p) : call(std::move(call_p)) {}

duckdb::unique_ptr<duckdb::FunctionData> CallData::Copy() const {
    return duckdb::make_uniq<CallData>(call->share());
}

bool CallData::Equals(const duckdb::FunctionData &other) const {
    return this == &other;
}

static std::string TextArgument(const duckdb::Value &value) {
    return value.IsNull() ? std::string() : value.ToString();
}

//! Where an attached function is, and what its positional parameters are.
class AttachedFunctionInfo final : public duckdb::TableFunctionInfo {
public:
    //! Null for a published function, which lives longer than its catalog.
    VgiCatalog *catalog = nullptr;
    //! Under which name the catalog is attached.
    Identifier database;
    std::string schema;
    std::string name;
    //! Which of the positional parameters is the table; its value says nothing.
    duckdb::idx_t table = 0;
    //! The default of each positional parameter; null where there is none.
    duckdb::vector<duckdb::unique_ptr<duckdb::Value>> defaults;
};

static bool IsAttached(ClientContext &context, const Identifier &database) {
    auto found = duckdb::DatabaseManager::Get(context).GetDatabase(context, database);
    return found && found->GetCatalog().GetCatalogType() == VgiCatalog::TYPE;
}

static VgiCatalog &CatalogOf(ClientContext &context, const AttachedFunctionInfo &info) {
    if (info.catalog) {
        return *info.catalog;
    }
    if (!IsAttached(context, info.database)) {
        throw duckdb::BinderException("function '%s' was published by the catalog '%s', which is not attached any more",
                                      info.name, info.database.GetIdentifierName());
    }
    return VgiCatalog::Find(context, info.database.GetIdentifierName());
}

static void AddColumns(CallRequest &request, const TableFunctionBindInput &input) {
    for (duckdb::idx_t i = 0; i < input.input_table_types.size(); i++) {
        request.add_input_column(input.input_table_names[i].GetIdentifierName(), input.input_table_types[i]);
    }
}

//! DuckDB fills in defaults, but a server is to be told only what the statement says: trailing values that equal their
//! defaults are left out, which means the same.
static duckdb::idx_t GivenArguments(const AttachedFunctionInfo &info, const duckdb::vector<duckdb::Value> &inputs) {
    auto count = inputs.size();
    while (count > 0 && count <= info.defaults.size() && info.defaults[count - 1] &&
           duckdb::Value::NotDistinctFrom(inputs[count - 1], *info.defaults[count - 1])) {
        count--;
    }
    return count;
}

static rust::Box<BoundCall> BindAttached(ClientContext &context, TableFunctionBindInput &input,
                                         const AttachedFunctionInfo &info) {
    return Forward([&] {
        auto request = new_call_request(info.name, info.schema);
        AddColumns(*request, input);
        const auto given = GivenArguments(info, input.inputs);
        for (duckdb::idx_t i = 0; i < given; i++) {
            if (i != info.table) {
                request->add_argument(input.inputs[i]);
            }
        }
        for (auto &parameter : input.named_parameters) {
            request->add_named_argument(parameter.first.GetIdentifierName(), parameter.second);
        }
        auto &catalog = CatalogOf(context, info);
        auto &attached = *catalog.attached;
        if (attached.has_transactions() && input.binder) {
            // a prepared statement must not carry the transaction of its PREPARE into that of an EXECUTE
            input.binder->SetAlwaysRequireRebind();
        }
        auto &transaction = duckdb::Transaction::Get(context, catalog).Cast<VgiTransaction>();
        return request->bind_attached(context, attached, *transaction.state);
    });
}

//! Hands the call's parameters to Rust and gets the bound call back: one `bind` request to the server.
static rust::Box<BoundCall> BindCall(ClientContext &context, TableFunctionBindInput &input) {
    if (input.info) {
        return BindAttached(context, input, input.info->Cast<AttachedFunctionInfo>());
    }
    return Forward([&] {
        auto request = new_call_request(TextArgument(input.inputs[2]), std::string());
        AddColumns(*request, input);
        for (auto &parameter : input.named_parameters) {
            request->set_call_parameter(parameter.first.GetIdentifierName(), parameter.second);
        }
        return request->bind(context, TextArgument(input.inputs[0]), TextArgument(input.inputs[1]));
    });
}

static void AddColumns(const BoundCall &call, duckdb::vector<LogicalType> &types, duckdb::vector<Identifier> &names) {
    Forward([&] {
        for (size_t i = 0; i < call.column_count(); i++) {
            types.push_back(*call.column_type(i));
            names.emplace_back(std::string(call.column_name(i)));
        }
    });
    // a server may name two columns alike, which a FROM clause may not
    duckdb::QueryResult::DeduplicateColumns(names);
}

static duckdb::unique_ptr<duckdb::FunctionData> Bind(ClientContext &context, TableFunctionBindInput &input,
                                                     duckdb::vector<LogicalType> &types,
                                                     duckdb::vector<Identifier> &names) {
    auto data = duckdb::make_uniq<CallData>(BindCall(context, input));
    AddColumns(*data->call, types, names);
    return std::move(data);
}

//! Called before `Bind`. Where the optimizer extension will not run, the plan must hold the operator from the start;
//! everywhere else a LogicalGet goes through the optimizer, since only that one gets projections pushed into it, and is
//! replaced at its end.
static duckdb::unique_ptr<duckdb::LogicalOperator> BindOperator(ClientContext &context, TableFunctionBindInput &input,
                                                                duckdb::TableIndex bind_index,
                                                                duckdb::vector<Identifier> &names) {
    if (!input.input_plan || !*input.input_plan ||
        !duckdb::Optimizer::OptimizerDisabled(context, duckdb::OptimizerType::EXTENSION)) {
        return nullptr;
    }
    duckdb::vector<LogicalType> types;
    auto call = BindCall(context, input);
    AddColumns(*call, types, names);
    return LogicalCall::Unoptimized(std::move(call), bind_index, std::move(types), std::move(*input.input_plan));
}

//! A LogicalGet that takes a subquery must have an in-out function. This one runs only if the plan escaped the
//! replacement.
static duckdb::OperatorResultType NeverReplaced(duckdb::ExecutionContext &, duckdb::TableFunctionInput &,
                                                duckdb::DataChunk &, duckdb::DataChunk &) {
    throw duckdb::NotImplementedException(
        "vgi_call: this plan was not rewritten into the buffering operator, because DuckDB's "
        "optimizer extensions did not run on it");
}

static void SetCallbacks(duckdb::TableFunction &function) {
    function.in_out_function = NeverReplaced;
    function.bind_operator = BindOperator;
    function.projection_pushdown = true;
    function.pushdown_complex_filter = PushFilters;
    function.verify_serialization = false;
}

duckdb::TableFunction CallFunction() {
    duckdb::TableFunction function(
        "vgi_call", {LogicalType::VARCHAR, LogicalType::VARCHAR, LogicalType::VARCHAR, LogicalType::TABLE}, nullptr,
        Bind);
    function.GetSignature().WithTypedKwargs("options", [](duckdb::TypedKwargs &options) {
        options.Add("args", LogicalType::ANY).Add("named", LogicalType::ANY).Add("schema", LogicalType::VARCHAR);
    });
    SetCallbacks(function);
    return function;
}

//! `FunctionList::parameter_role`.
enum class ParameterRole : uint8_t { TABLE = 0, POSITIONAL = 1, REPEATED = 2, NAMED = 3 };

//! Declares one form of a function as DuckDB's own functions are declared.
class SignatureWriter {
public:
    SignatureWriter(const FunctionList &functions_p, std::size_t index_p, AttachedFunctionInfo &info_p)
        : functions(functions_p), index(index_p), info(info_p) {}

    void Write(duckdb::FunctionSignature &signature) {
        for (std::size_t i = 0; i < functions.parameter_count(index); i++) {
            switch (Role(i)) {
            case ParameterRole::TABLE:
                info.table = info.defaults.size();
                AddPositional(signature, i, LogicalType::TABLE);
                break;
            case ParameterRole::POSITIONAL:
                AddPositional(signature, i, Type(i));
                break;
            case ParameterRole::REPEATED:
                signature.AddArgs(Name(i), Type(i));
                break;
            case ParameterRole::NAMED:
                named.Add(Name(i), Type(i));
                break;
            }
        }
        if (!named.GetOptions().empty()) {
            signature.AddTypedKwargs("options", std::move(named));
        }
    }

    //! Several forms have one entry, which takes what any of them takes.
    void WriteAny(duckdb::FunctionSignature &signature) {
        for (std::size_t i = 0; i < functions.parameter_count(index); i++) {
            const bool table = Role(i) == ParameterRole::TABLE;
            signature.AddParameter(Name(i), table ? LogicalType::TABLE : LogicalType(LogicalType::ANY), {},
                                   duckdb::FunctionParameterKind::POSITIONAL_ONLY);
            info.defaults.push_back(nullptr);
            if (table) {
                info.table = i;
                break;
            }
        }
        signature.AddArgs("args", LogicalType::ANY);
        signature.AddKwargs("options", LogicalType::ANY);
    }

private:
    ParameterRole Role(std::size_t parameter) const {
        return static_cast<ParameterRole>(functions.parameter_role(index, parameter));
    }

    Identifier Name(std::size_t parameter) const {
        const auto name = functions.parameter_name(index, parameter);
        return Identifier(std::string(name.data(), name.size()));
    }

    LogicalType Type(std::size_t parameter) const {
        return functions.has_type(index, parameter) ? *functions.parameter_type(index, parameter)
                                                    : LogicalType(LogicalType::ANY);
    }

    void AddPositional(duckdb::FunctionSignature &signature, std::size_t parameter, const LogicalType &type) {
        duckdb::unique_ptr<duckdb::Value> value;
        if (functions.has_default(index, parameter)) {
            const duckdb::Value text(std::string(functions.parameter_default(index, parameter)));
            const auto typed = type.id() == duckdb::LogicalTypeId::ANY ? duckdb::optional<duckdb::Value>(text)
                                                                       : text.DefaultTryCastAs(type);
            // a default that DuckDB cannot read is left to the server
            value = duckdb::make_uniq<duckdb::Value>(typed ? *typed : duckdb::Value(type));
        }
        duckdb::optional<duckdb::Value> initial;
        if (value) {
            initial = *value;
        }
        signature.AddParameter(Name(parameter), type, std::move(initial));
        info.defaults.push_back(std::move(value));
    }

    const FunctionList &functions;
    std::size_t index;
    AttachedFunctionInfo &info;
    duckdb::TypedKwargs named;
};

duckdb::TableFunction AttachedFunction(VgiCatalog &catalog, const std::string &schema, const FunctionList &functions,
                                       std::size_t index) {
    const auto name = functions.name(index);
    auto info = duckdb::make_shared_ptr<AttachedFunctionInfo>();
    info->catalog = &catalog;
    info->database = catalog.GetName();
    info->schema = schema;
    info->name = std::string(name.data(), name.size());
    duckdb::TableFunction function(Identifier(info->name), duckdb::vector<LogicalType>(), nullptr, Bind);
    SignatureWriter writer(functions, index, *info);
    Forward([&] {
        if (functions.is_overloaded(index)) {
            writer.WriteAny(function.GetSignature());
        } else {
            writer.Write(function.GetSignature());
        }
    });
    SetCallbacks(function);
    function.function_info = std::move(info);
    return function;
}

duckdb::TableFunction PublishedFunction(VgiCatalog &catalog, const FunctionList &functions, std::size_t index) {
    auto function = AttachedFunction(catalog, std::string(functions.schema(index)), functions, index);
    function.function_info->Cast<AttachedFunctionInfo>().catalog = nullptr;
    function.SetName(Identifier(std::string(functions.published_name(index))));
    return function;
}

bool IsOrphan(ClientContext &context, const duckdb::TableFunction &function) {
    if (function.GetBindCallback() != Bind || !function.function_info) {
        return false;
    }
    auto &info = function.function_info->Cast<AttachedFunctionInfo>();
    return !info.catalog && !IsAttached(context, info.database);
}

bool IsCall(const duckdb::BoundTableFunction &function) {
    return function.in_out_function == NeverReplaced;
}

} // namespace vgi
