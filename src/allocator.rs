//! Where the extension's Rust code has its memory from; C++ keeps that of the process.
//!
//! A call fills and frees many buffers of a few hundred kilobytes, in threads that take turns. The C library gives such memory back to
//! the system and gets it again page by page, each cleared first, which costs more than to fill it. `.cargo/config.toml` says how this
//! allocator works.

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;
