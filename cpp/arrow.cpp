#include "arrow.hpp"

#include "duckdb/common/arrow/arrow_converter.hpp"
#include "duckdb/common/type_visitor.hpp"
#include "duckdb/common/vector_operations/vector_operations.hpp"
#include "duckdb/function/table/arrow.hpp"
#include "duckdb/main/client_properties.hpp"

namespace vgi {

using duckdb::ArrowToDuckDBConversion;
using duckdb::LogicalType;
using duckdb::LogicalTypeId;

//! Types whose plain Arrow form would come back as another type; only these travel in DuckDB's lossless forms, so that
//! servers see ordinary booleans and the like.
static bool NeedsLosslessForm(const LogicalType &type) {
    return duckdb::TypeVisitor::Contains(type, [](const LogicalType &part) {
        switch (part.id()) {
        case LogicalTypeId::HUGEINT:
        case LogicalTypeId::UHUGEINT:
        case LogicalTypeId::UUID:
        case LogicalTypeId::BIT:
        case LogicalTypeId::TIME_TZ:
            return true;
        default:
            return part.IsJSONType();
        }
    });
}

ArrowWriter::ArrowWriter(duckdb::ClientContext &context_p, duckdb::vector<LogicalType> types_p)
    : context(context_p), types(std::move(types_p)), appenders(types.size()) {}

duckdb::ClientProperties ArrowWriter::Properties(const LogicalType &type) const {
    return duckdb::ClientProperties("UTC", duckdb::ArrowOffsetSize::REGULAR, false, false, NeedsLosslessForm(type),
                                    duckdb::ArrowFormatVersion::V1_0, &context);
}

duckdb::ArrowAppender &ArrowWriter::Appender(std::size_t column) {
    if (!appenders[column]) {
        const duckdb::vector<LogicalType> type{types[column]};
        appenders[column] =
            std::make_unique<duckdb::ArrowAppender>(type, STANDARD_VECTOR_SIZE, Properties(types[column]),
                                                    duckdb::ArrowTypeExtensionData::GetExtensionTypes(context, type));
    }
    return *appenders[column];
}

void ArrowWriter::append(duckdb::DataChunk &chunk) {
    for (std::size_t column = 0; column < types.size(); column++) {
        duckdb::DataChunk single;
        single.InitializeEmpty({types[column]});
        single.ReferenceColumns(chunk, {column});
        Appender(column).Append(single, 0, chunk.size(), chunk.size());
    }
    row_count += chunk.size();
}

void ArrowWriter::append_value(const duckdb::Value &value) {
    duckdb::DataChunk single;
    single.InitializeEmpty(types);
    single.data[0].Reference(value, duckdb::count_t(1));
    single.SetChildCardinality(1);
    append(single);
}

std::size_t ArrowWriter::rows() const {
    return row_count;
}

std::size_t ArrowWriter::bytes() const {
    std::size_t result = 0;
    for (auto &appender : appenders) {
        result += appender ? appender->ByteSize() : 0;
    }
    return result;
}

void ArrowWriter::take(std::size_t column, ArrowArray *array, ArrowSchema *schema) {
    auto properties = Properties(types[column]);
    duckdb::ArrowConverter::ToArrowSchema(schema, {types[column]}, {"column"}, properties);
    *array = Appender(column).Finalize();
    appenders[column].reset();
    if (column + 1 == types.size()) {
        row_count = 0;
    }
}

void TypeList::push(const LogicalType &type) {
    types.push_back(type);
}

std::unique_ptr<TypeList> new_type_list() {
    return std::make_unique<TypeList>();
}

std::unique_ptr<ArrowWriter> new_arrow_writer(duckdb::ClientContext &context, const TypeList &types) {
    return std::make_unique<ArrowWriter>(context, types.types);
}

ArrowReader::ArrowReader(duckdb::ClientContext &context, ArrowSchema *schema_p) {
    duckdb::ArrowSchemaWrapper schema;
    schema.arrow_schema = *schema_p;
    schema_p->release = nullptr;
    duckdb::ArrowTableFunction::PopulateArrowTableSchema(context, table, schema.arrow_schema);
    types = table.GetTypes();
}

std::size_t ArrowReader::column_count() const {
    return types.size();
}

const LogicalType &ArrowReader::column_type(std::size_t column) const {
    return types.at(column);
}

void ArrowReader::set_batch(ArrowArray *batch_p) {
    batch = duckdb::make_shared_ptr<duckdb::ArrowArrayWrapper>();
    batch->arrow_array = *batch_p;
    batch_p->release = nullptr;
}

void ArrowReader::read(duckdb::ClientContext &context, std::size_t offset, std::size_t rows,
                       rust::Slice<const std::size_t> columns, duckdb::DataChunk &chunk) {
    for (std::size_t i = 0; i < columns.size(); i++) {
        ReadColumn(context, columns[i], offset, rows, chunk.data[i]);
    }
    chunk.SetChildCardinality(rows);
}

void ArrowReader::ReadColumn(duckdb::ClientContext &context, std::size_t column, std::size_t offset, std::size_t rows,
                             duckdb::Vector &out) {
    const auto &type = *table.GetColumns().at(column);
    auto &parent = batch->arrow_array;
    auto &array = *parent.children[column];
    duckdb::ArrowArrayScanState state(context);
    state.owned_data = batch;
    duckdb::Vector vector(types[column], STANDARD_VECTOR_SIZE);
    switch (type.GetPhysicalType()) {
    case duckdb::ArrowArrayPhysicalType::DICTIONARY_ENCODED:
        ArrowToDuckDBConversion::ColumnArrowToDuckDBDictionary(vector, array, offset, state, rows, type);
        break;
    case duckdb::ArrowArrayPhysicalType::RUN_END_ENCODED:
        ArrowToDuckDBConversion::ColumnArrowToDuckDBRunEndEncoded(vector, array, offset, state, rows, type);
        break;
    default:
        ArrowToDuckDBConversion::SetValidityMask(vector, array, offset, rows, parent.offset, -1);
        ArrowToDuckDBConversion::ColumnArrowToDuckDB(vector, array, offset, state, rows, type);
    }
    if (vector.GetType() == out.GetType()) {
        out.Reference(vector);
    } else {
        duckdb::VectorOperations::Cast(context, vector, out, rows);
    }
}

std::unique_ptr<ArrowReader> new_arrow_reader(duckdb::ClientContext &context, ArrowSchema *schema) {
    return std::make_unique<ArrowReader>(context, schema);
}

} // namespace vgi
