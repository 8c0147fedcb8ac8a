// DuckDB vectors to Arrow arrays and back, by DuckDB's own converters. All of DuckDB's Arrow options are set here: the
// session's must not change what goes over the wire.
#pragma once

#include "duckdb.hpp"
#include "duckdb/common/arrow/arrow_appender.hpp"
#include "duckdb/common/arrow/arrow_wrapper.hpp"
#include "duckdb/function/table/arrow/arrow_duck_schema.hpp"

#include "rust/cxx.h"

#include <memory>
#include <vector>

namespace vgi {

using ArrowArray = ::ArrowArray;
using ArrowSchema = ::ArrowSchema;
using duckdb::Vector;

//! Collects the rows of one column until they are taken as an Arrow array.
class ArrowWriter {
public:
    ArrowWriter(duckdb::ClientContext &context, const duckdb::LogicalType &type);

    //! Appends rows [first, first + count) of a vector.
    void append(const Vector &rows, std::size_t first, std::size_t count);
    void append_value(const duckdb::Value &value);
    std::size_t bytes() const;
    //! Fills in the schema and the rows, each as a struct with one child. The rows are gone afterwards.
    void take(ArrowArray *array, ArrowSchema *schema);

private:
    duckdb::ArrowAppender &Appender();

    duckdb::ClientContext &context;
    duckdb::vector<duckdb::LogicalType> type;
    duckdb::ClientProperties properties;
    std::unique_ptr<duckdb::ArrowAppender> appender;
};

std::unique_ptr<ArrowWriter> new_arrow_writer(duckdb::ClientContext &context, const duckdb::LogicalType &type);

struct VectorView;

//! Looks at the rows of vectors of any form. What it finds is valid until it looks again, and while the vector is.
class VectorReader {
public:
    VectorView look(const Vector &vector);

private:
    duckdb::UnifiedVectorFormat format;
};

std::unique_ptr<VectorReader> new_vector_reader();

const Vector &chunk_column(const duckdb::DataChunk &chunk, std::size_t column);
std::size_t chunk_rows(const duckdb::DataChunk &chunk) noexcept;
//! All elements of a vector of lists or maps.
const Vector &list_elements(const Vector &lists);
const Vector &array_elements(const Vector &arrays);
const Vector &struct_field(const Vector &structs, std::size_t field);

//! A list of types, filled by Rust.
class TypeList {
public:
    void push(const duckdb::LogicalType &type);
    duckdb::vector<duckdb::LogicalType> types;
};

std::unique_ptr<TypeList> new_type_list();

//! Reads batches of one Arrow schema into chunks.
class ArrowReader {
public:
    //! Takes ownership of the schema (a struct of the batch's columns).
    ArrowReader(duckdb::ClientContext &context, ArrowSchema *schema);

    std::size_t column_count() const;
    //! The DuckDB type that a column has by itself.
    const duckdb::LogicalType &column_type(std::size_t column) const;
    //! Takes ownership of a batch (a struct array) and makes it the current one.
    void set_batch(ArrowArray *batch);
    //! Gives rows [offset, offset + rows) of the current batch: vector i is column `columns[i]`, cast to the vector's
    //! type.
    void read(duckdb::ClientContext &context, std::size_t offset, std::size_t rows,
              rust::Slice<const std::size_t> columns, duckdb::DataChunk &chunk);

private:
    void ReadColumn(duckdb::ClientContext &context, std::size_t column, std::size_t offset, std::size_t rows,
                    duckdb::Vector &out);

    void ReadTexts(const ArrowArray &array, std::size_t offset, std::size_t rows, duckdb::Vector &vector);

    duckdb::ArrowTableSchema table;
    duckdb::vector<duckdb::LogicalType> types;
    duckdb::shared_ptr<duckdb::ArrowArrayWrapper> batch;
};

std::unique_ptr<ArrowReader> new_arrow_reader(duckdb::ClientContext &context, ArrowSchema *schema);

} // namespace vgi
