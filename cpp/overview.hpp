// Table functions about servers and catalogs: `vgi_catalogs`, `vgi_catalog_contents`, `vgi_clear_cache`.
#pragma once

#include "duckdb/main/extension/extension_loader.hpp"

namespace vgi {

void RegisterOverviews(duckdb::ExtensionLoader &loader);

} // namespace vgi
