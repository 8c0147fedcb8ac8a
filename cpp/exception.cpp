#include "exception.hpp"

#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/common/exception/conversion_exception.hpp"

namespace vgi {

void Rethrow(const rust::Error &error) {
    const std::string text = error.what();
    const char kind = text.empty() ? '?' : text[0];
    const std::string message = text.empty() ? text : text.substr(1);
    switch (kind) {
    case 'B':
        throw duckdb::BinderException(message);
    case 'C':
        throw duckdb::ConversionException(message);
    case 'I':
        throw duckdb::InvalidInputException(message);
    case 'M':
        throw duckdb::OutOfMemoryException(message);
    case 'N':
        throw duckdb::NotImplementedException(message);
    case 'X':
        throw duckdb::InterruptException();
    case 'O':
        throw duckdb::IOException(message);
    default:
        throw duckdb::IOException("vgi: %s", text);
    }
}

} // namespace vgi
