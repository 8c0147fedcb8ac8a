// Secrets of type `vgi`: how a user shows a server who they are.
#pragma once

#include "duckdb/main/extension/extension_loader.hpp"

namespace vgi {

void RegisterSecretType(duckdb::ExtensionLoader &loader);

} // namespace vgi
