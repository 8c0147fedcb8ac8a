//! Where memory comes from.
//!
//! An execution fills hundreds of megabytes in buffers of a few hundred kilobytes, and the next one the same. The C library gives such
//! memory back to the system in between and gets it again page by page, each cleared first, which costs more than to fill it.
//! `.cargo/config.toml` says how this allocator works.

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;
