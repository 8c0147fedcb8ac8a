//! Attached catalogs: what ATTACH agrees with a server, and what the catalog then shows to DuckDB.

mod attached;
mod credentials;
mod listing;
mod options;
mod overview;
mod transaction;

pub use attached::{AttachedCatalog, SchemaEntry, SqlObject};
pub use credentials::{Credentials, of_location};
pub use listing::{FunctionList, Parameter, Role};
pub use options::AttachStatement;
pub use overview::{contents, offered};
pub use transaction::CatalogTransaction;
