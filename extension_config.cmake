# Lets DuckDB's own build and its test runner pick this extension up, as they do with every extension.
# DuckDB compiles no Rust: build the packaged file with `make build` first; the tests are read from test/sql.

duckdb_extension_load(vgi
    DONT_BUILD
    SOURCE_DIR ${CMAKE_CURRENT_LIST_DIR}
    LOAD_TESTS
    TEST_DIR ${CMAKE_CURRENT_LIST_DIR}/test/sql
)
