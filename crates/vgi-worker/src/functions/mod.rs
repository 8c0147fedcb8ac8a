//! The functions that the `vgi-worker` binary serves in its catalog `example`.

mod buffer_input;
mod distinct_rows;
mod kmeans;
mod merge;
mod numeric;
mod ordering;
mod pages;
mod quantiles;
mod rank_all;
mod sessionize;
mod sort_rows;
mod sum_all_columns;
mod testing;
mod top_k;
mod train_linear;

#[cfg(test)]
pub(crate) mod harness;

pub use buffer_input::BufferInput;
pub use distinct_rows::DistinctRows;
pub use kmeans::Kmeans;
pub use quantiles::Quantiles;
pub use rank_all::RankAll;
pub use sessionize::Sessionize;
pub use sort_rows::SortRows;
pub use sum_all_columns::SumAllColumns;
pub use top_k::TopK;
pub use train_linear::TrainLinear;

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
    catalog.register("main", TopK)?;
    catalog.register("main", DistinctRows)?;
    catalog.register("main", RankAll)?;
    catalog.register("main", Sessionize)?;
    catalog.register("main", TrainLinear)?;
    if testing {
        testing::register(&mut catalog)?;
    }
    Ok(catalog)
}

/// Adds the schema `generated` with functions that do next to nothing, for tests of large catalogs.
///
/// # Errors
/// When the schema has such functions already.
pub fn generate(catalog: &mut Catalog, count: usize) -> Result<()> {
    testing::forms::generate(catalog, count)
}
