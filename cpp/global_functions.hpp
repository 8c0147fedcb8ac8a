// Functions that a catalog publishes: callable without its name.
#pragma once

#include "catalog.hpp"

namespace vgi {

//! Makes them known. A name that is taken stays what it is: the first catalog wins, and nothing of DuckDB's is
//! replaced.
void PublishFunctions(duckdb::ClientContext &context, VgiCatalog &catalog);

} // namespace vgi
