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

//! Collects chunks of one list of types, column by column, until they are taken as Arrow arrays.
class ArrowWriter {
public:
    ArrowWriter(duckdb::ClientContext &context, duckdb::vector<duckdb::LogicalType> types);

    //! Appends all rows of a chunk.
    void append(duckdb::DataChunk &chunk);
    //! Appends one row to a writer of one column.
    void append_value(const duckdb::Value &value);
    std::size_t rows() const;
    std::size_t bytes() const;
    //! Fills in the schema and the rows of a column, each as a struct with one child. The rows are gone afterwards.
    void take(std::size_t column, ArrowArray *array, ArrowSchema *schema);

private:
    duckdb::ClientProperties Properties(const duckdb::LogicalType &type) const;
    duckdb::ArrowAppender &Appender(std::size_t column);

    duckdb::ClientContext &context;
    duckdb::vector<duckdb::LogicalType> types;
    std::vector<std::unique_ptr<duckdb::ArrowAppender>> appenders;
    std::size_t row_count = 0;
};

//! A list of types, filled by Rust.
class TypeList {
public:
    void push(const duckdb::LogicalType &type);
    duckdb::vector<duckdb::LogicalType> types;
};

std::unique_ptr<TypeList> new_type_list();
std::unique_ptr<ArrowWriter> new_arrow_writer(duckdb::ClientContext &context, const TypeList &types);

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

    duckdb::ArrowTableSchema table;
    duckdb::vector<duckdb::LogicalType> types;
    duckdb::shared_ptr<duckdb::ArrowArrayWrapper> batch;
};

std::unique_ptr<ArrowReader> new_arrow_reader(duckdb::ClientContext &context, ArrowSchema *schema);

} // namespace vgi
