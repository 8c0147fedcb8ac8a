// DuckDB's static library has a constructor that registers the statically linked extensions (Parquet, JSON, core
// functions) and so keeps them and all that they reach. A loadable extension uses its host's. The linker's --wrap puts
// this empty function in the place of the registration, in the loadable library only, and can then drop what nothing
// else needs.
#include <cstdint>

extern "C" int32_t __wrap_duckdb_register_static_extensions(void) {
    return 0;
}
