//! The functions that the `vgi-worker` binary serves in its catalog `example`.

mod buffer_input;
mod kmeans;
mod numeric;
mod pages;
mod quantiles;
mod sort_rows;
mod sum_all_columns;
mod testing;

#[cfg(test)]
pub(crate) mod harness;

pub use buffer_input::BufferInput;
pub use kmeans::Kmeans;
pub use quantiles::Quantiles;
pub use sort_rows::SortRows;
pub use sum_all_columns::SumAllColumns;

use crate::catalog::Catalog;
use crate::error::Result;

/// The catalog `example`, with the schema `main`. With `testing` it also has functions that only tests need, and the schema `alt`.
///
/// # Errors
/// When a declaration contradicts itself.
pub fn example_catalog(testing: bool) -> Result<Catalog> {
    let mut catalog = Catalog::new("example", "main");
    catalog.register("main", BufferInput::new())?;
    catalog.register("main", BufferInput::filtered())?;
    catalog.register("main", BufferInput::ordered())?;
    catalog.register("main", BufferInput::by_batch_index())?;
    catalog.register("main", SumAllColumns)?;
    catalog.register("main", Quantiles)?;
    catalog.register("main", Kmeans)?;
    catalog.register("main", SortRows)?;
    if testing {
        testing::register(&mut catalog)?;
    }
    Ok(catalog)
}
