// Secrets of the types that a catalog declares: made by CREATE SECRET, sent to functions of catalogs that declare them.
#pragma once

#include "vgi/src/bridge.rs.h"

#include "duckdb/main/client_context.hpp"

namespace vgi {

//! Makes the catalog's types known to CREATE SECRET. A type that another extension made stays that one's.
void RegisterDeclaredSecretTypes(duckdb::ClientContext &context, const AttachedCatalog &attached);

} // namespace vgi
