#include "overview.hpp"

#include "catalog.hpp"
#include "exception.hpp"

#include "vgi/src/bridge.rs.h"

#include "duckdb/function/table_function.hpp"
#include "duckdb/main/attached_database.hpp"

namespace vgi {

using duckdb::ClientContext;
using duckdb::Identifier;
using duckdb::LogicalType;

namespace {

//! The argument of the call.
class Subject final : public duckdb::TableFunctionData {
public:
    explicit Subject(std::string text_p) : text(std::move(text_p)) {}
    std::string text;
};

//! A snapshot, taken once: the scan may be resumed.
class Rows final : public duckdb::GlobalTableFunctionState {
public:
    explicit Rows(rust::Vec<TextRow> rows_p) : rows(std::move(rows_p)) {}
    rust::Vec<TextRow> rows;
    std::size_t next = 0;
};

using Columns = std::initializer_list<const char *>;
constexpr Columns CATALOGS{"catalog", "implementation_version", "data_version_spec", "attach_options"};
constexpr Columns CONTENTS{"schema_name", "name", "kind", "description"};
constexpr Columns CLEARED{"catalog"};

template <const Columns &COLUMNS>
duckdb::unique_ptr<duckdb::FunctionData> Bind(ClientContext &, duckdb::TableFunctionBindInput &input,
                                              duckdb::vector<LogicalType> &types, duckdb::vector<Identifier> &names) {
    for (auto column : COLUMNS) {
        names.emplace_back(column);
        types.push_back(LogicalType::VARCHAR);
    }
    return duckdb::make_uniq<Subject>(input.inputs.empty() ? std::string() : input.inputs[0].ToString());
}

void Scan(ClientContext &, duckdb::TableFunctionInput &input, duckdb::DataChunk &chunk) {
    auto &state = input.global_state->Cast<Rows>();
    duckdb::idx_t count = 0;
    for (; state.next < state.rows.size() && count < STANDARD_VECTOR_SIZE; state.next++, count++) {
        auto &cells = state.rows[state.next].cells;
        for (duckdb::idx_t column = 0; column < cells.size(); column++) {
            const auto &cell = cells[column];
            chunk.data[column].SetValue(count, cell.empty() ? duckdb::Value(LogicalType::VARCHAR)
                                                            : duckdb::Value(std::string(cell)));
        }
    }
    chunk.SetChildCardinality(count);
}

const std::string &TextOf(duckdb::TableFunctionInitInput &input) {
    return input.bind_data->Cast<Subject>().text;
}

duckdb::unique_ptr<duckdb::GlobalTableFunctionState> InitCatalogs(ClientContext &context,
                                                                  duckdb::TableFunctionInitInput &input) {
    return duckdb::make_uniq<Rows>(Forward([&] { return offered_catalogs(context, TextOf(input)); }));
}

duckdb::unique_ptr<duckdb::GlobalTableFunctionState> InitContents(ClientContext &context,
                                                                  duckdb::TableFunctionInitInput &input) {
    auto &catalog = VgiCatalog::Find(context, TextOf(input));
    return duckdb::make_uniq<Rows>(Forward([&] { return catalog.attached->catalog_contents(context); }));
}

duckdb::unique_ptr<duckdb::GlobalTableFunctionState> InitClear(ClientContext &context,
                                                               duckdb::TableFunctionInitInput &) {
    rust::Vec<TextRow> rows;
    for (auto &database : VgiCatalog::All(context)) {
        database->GetCatalog().Cast<VgiCatalog>().attached->forget();
        TextRow row;
        row.cells.push_back(rust::String::lossy(database->GetName().GetIdentifierName()));
        rows.push_back(std::move(row));
    }
    return duckdb::make_uniq<Rows>(std::move(rows));
}

} // namespace

void RegisterOverviews(duckdb::ExtensionLoader &loader) {
    loader.RegisterFunction(
        duckdb::TableFunction("vgi_catalogs", {LogicalType::VARCHAR}, Scan, Bind<CATALOGS>, InitCatalogs));
    loader.RegisterFunction(
        duckdb::TableFunction("vgi_catalog_contents", {LogicalType::VARCHAR}, Scan, Bind<CONTENTS>, InitContents));
    loader.RegisterFunction(duckdb::TableFunction("vgi_clear_cache", {}, Scan, Bind<CLEARED>, InitClear));
}

} // namespace vgi
