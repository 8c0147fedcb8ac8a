//! Compiles the C++ glue against DuckDB's headers.

use std::env;

fn main() {
    let Ok(include) = env::var("DEP_DUCKDB_INCLUDE") else {
        println!("cargo::error=libduckdb-sys did not say where DuckDB's headers are");
        return;
    };
    let sources = [
        "arrow",
        "calls",
        "catalog",
        "declared_secret",
        "entry",
        "exception",
        "filter_pushdown",
        "global_functions",
        "glue",
        "logical_call",
        "overview",
        "physical_call",
        "schema",
        "secret",
        "table_function",
        "transaction",
    ];
    let mut build = cxx_build::bridge("src/bridge.rs");
    build
        .std("c++17")
        .include("cpp")
        // DuckDB's headers are not ours to warn about
        .flag("-isystem")
        .flag(&include)
        // some of them include a library that DuckDB carries
        .flag("-isystem")
        .flag(format!("{include}/../../third_party/fmt/include"))
        .flags(["-Wall", "-Wextra", "-Werror", "-fvisibility=hidden"])
        // as DuckDB itself is compiled: parts of its classes depend on it
        .define("NDEBUG", None);
    for flag in sanitizers() {
        build.flag(flag);
    }
    for source in sources {
        build.file(format!("cpp/{source}.cpp"));
    }
    build.compile("vgi_glue");
    link_without_static_extensions();
    println!("cargo:rerun-if-changed=cpp");
    println!("cargo:rerun-if-changed=src/bridge.rs");
}

/// `make sanitize` compiles the glue with sanitizers (`VGI_SANITIZE=address,undefined`); DuckDB and Rust stay as they are.
fn sanitizers() -> Vec<String> {
    println!("cargo:rerun-if-env-changed=VGI_SANITIZE");
    println!("cargo:rustc-check-cfg=cfg(sanitized)");
    let Some(names) = env::var("VGI_SANITIZE").ok().filter(|names| !names.is_empty()) else { return Vec::new() };
    // a sanitizer has to see every allocation
    println!("cargo:rustc-cfg=sanitized");
    // rustc links without the compiler's default libraries
    for library in ["asan", "ubsan"] {
        println!("cargo:rustc-link-arg=-l{library}");
    }
    let flags =
        [format!("-fsanitize={names}"), "-fno-sanitize-recover=undefined".into(), "-fno-omit-frame-pointer".into()];
    flags.into()
}

/// The loadable library alone gets the empty registration of static extensions: tests that host DuckDB need the real one.
fn link_without_static_extensions() {
    let objects = cc::Build::new().cpp(true).std("c++17").file("cpp/no_static_extensions.cpp").compile_intermediates();
    for object in objects {
        println!("cargo:rustc-cdylib-link-arg={}", object.display());
    }
    println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap=duckdb_register_static_extensions");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--gc-sections");
    // LOAD resolves every symbol at once, so a missing one must fail here rather than there
    println!("cargo:rustc-cdylib-link-arg=-Wl,--no-undefined");
}
