// DuckDB's static library has a constructor that registers the statically linked extensions (Parquet, JSON, core functions) and so
// keeps them and all that they reach. A loadable extension uses its host's: this empty definition, linked into the loadable library
// only, lets the linker drop a fifth of the file.
#include <cstdint>

extern "C" int32_t duckdb_register_static_extensions(void) {
    return 0;
}
