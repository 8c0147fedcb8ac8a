#include "arrow.hpp"

#include "duckdb/common/arrow/arrow_converter.hpp"
#include "duckdb/common/type_visitor.hpp"
#include "duckdb/common/types/arrow_aux_data.hpp"
#include "duckdb/common/vector/array_vector.hpp"
#include "duckdb/common/vector/list_vector.hpp"
#include "duckdb/common/vector/struct_vector.hpp"
#include "duckdb/common/vector_operations/vector_operations.hpp"
#include "duckdb/function/table/arrow.hpp"
#include "duckdb/main/client_properties.hpp"

#include "vgi/src/bridge.rs.h"

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

static duckdb::ClientProperties Properties(duckdb::ClientContext &context, const LogicalType &type) {
    return duckdb::ClientProperties("UTC", duckdb::ArrowOffsetSize::REGULAR, false, false, NeedsLosslessForm(type),
                                    duckdb::ArrowFormatVersion::V1_0, &context);
}

ArrowWriter::ArrowWriter(duckdb::ClientContext &context_p, const LogicalType &type_p)
    : context(context_p), type{type_p}, properties(Properties(context_p, type_p)) {}

duckdb::ArrowAppender &ArrowWriter::Appender() {
    if (!appender) {
        appender = std::make_unique<duckdb::ArrowAppender>(
            type, STANDARD_VECTOR_SIZE, properties, duckdb::ArrowTypeExtensionData::GetExtensionTypes(context, type));
    }
    return *appender;
}

void ArrowWriter::append(const Vector &rows, std::size_t first, std::size_t count) {
    duckdb::DataChunk single;
    single.InitializeEmpty(type);
    single.data[0].Reference(rows);
    single.SetChildCardinality(first + count);
    Appender().Append(single, first, first + count, first + count);
}

void ArrowWriter::append_value(const duckdb::Value &value) {
    append(Vector(value, duckdb::count_t(1)), 0, 1);
}

std::size_t ArrowWriter::bytes() const {
    return appender ? appender->ByteSize() : 0;
}

void ArrowWriter::take(ArrowArray *array, ArrowSchema *schema) {
    duckdb::ArrowConverter::ToArrowSchema(schema, type, {"column"}, properties);
    *array = Appender().Finalize();
    appender.reset();
}

std::unique_ptr<ArrowWriter> new_arrow_writer(duckdb::ClientContext &context, const LogicalType &type) {
    return std::make_unique<ArrowWriter>(context, type);
}

VectorView VectorReader::look(const Vector &vector) {
    vector.ToUnifiedFormat(format);
    return {format.data, format.sel->data(), format.validity.GetData()};
}

std::unique_ptr<VectorReader> new_vector_reader() {
    return std::make_unique<VectorReader>();
}

const Vector &chunk_column(const duckdb::DataChunk &chunk, std::size_t column) {
    return chunk.data.at(column);
}

std::size_t chunk_rows(const duckdb::DataChunk &chunk) noexcept {
    return chunk.size();
}

const Vector &list_elements(const Vector &lists) {
    return duckdb::ListVector::GetChild(lists);
}

const Vector &array_elements(const Vector &arrays) {
    return duckdb::ArrayVector::GetChild(arrays);
}

const Vector &struct_field(const Vector &structs, std::size_t field) {
    return duckdb::StructVector::GetEntries(structs).at(field);
}

void TypeList::push(const LogicalType &type) {
    types.push_back(type);
}

std::unique_ptr<TypeList> new_type_list() {
    return std::make_unique<TypeList>();
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

//! Copies between one and two WORDs by copying the first and the last, which may overlap.
template <class WORD>
static void CopyEnds(char *to, const char *from, std::uint32_t length) {
    WORD first, last;
    memcpy(&first, from, sizeof(WORD));
    memcpy(&last, from + length - sizeof(WORD), sizeof(WORD));
    memcpy(to, &first, sizeof(WORD));
    memcpy(to + length - sizeof(WORD), &last, sizeof(WORD));
}

static void PlaceText(duckdb::string_t *place, const char *bytes, std::uint32_t length) {
    if (length > duckdb::string_t::INLINE_LENGTH) {
        new (place) duckdb::string_t(bytes, length);
        return;
    }
    auto to = (new (place) duckdb::string_t(length))->GetDataWriteable();
    if (length >= 8) {
        CopyEnds<std::uint64_t>(to, bytes, length);
    } else if (length >= 4) {
        CopyEnds<std::uint32_t>(to, bytes, length);
    } else {
        for (std::uint32_t i = 0; i < length; i++) {
            to[i] = bytes[i];
        }
    }
}

//! Whether the column's texts are read here: the plain kind with offsets of 32 bits.
static bool HasPlainTexts(const LogicalType &type, const duckdb::ArrowType &arrow_type) {
    if (type.id() != LogicalTypeId::VARCHAR || arrow_type.HasExtension()) {
        return false;
    }
    return arrow_type.GetTypeInfo<duckdb::ArrowStringInfo>().GetSizeType() == duckdb::ArrowVariableSizeType::NORMAL;
}

//! Fills a vector with texts that stay in the batch. DuckDB's own conversion makes each one beside the vector in pieces
//! and copies it as a whole, which the processor cannot forward: it takes four times as long.
void ArrowReader::ReadTexts(const ArrowArray &array, std::size_t offset, std::size_t rows, Vector &vector) {
    vector.BufferMutable().AddAuxiliaryData(duckdb::make_uniq<duckdb::ArrowAuxiliaryData>(batch));
    if (rows == 0) {
        return;
    }
    auto offsets = static_cast<const std::int32_t *>(array.buffers[1]) + array.offset + offset;
    auto bytes = static_cast<const char *>(array.buffers[2]);
    auto texts = duckdb::FlatVector::GetDataMutable<duckdb::string_t>(vector);
    auto &validity = duckdb::FlatVector::Validity(vector);
    for (std::size_t row = 0; row < rows; row++) {
        if (validity.RowIsValid(row)) {
            PlaceText(texts + row, bytes + offsets[row], static_cast<std::uint32_t>(offsets[row + 1] - offsets[row]));
        }
    }
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
        if (HasPlainTexts(types[column], type)) {
            ReadTexts(array, parent.offset + offset, rows, vector);
            break;
        }
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
