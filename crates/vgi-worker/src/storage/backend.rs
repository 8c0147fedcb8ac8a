//! Which storage a server uses, as an operator writes it.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use crate::storage::{MemoryStorage, SqliteStorage, Storage, StorageError};

/// A storage by its URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// `memory`: this process alone.
    #[default]
    Memory,
    /// `sqlite:PATH`: all processes of this machine that name the same file.
    Sqlite(PathBuf),
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "memory" => Ok(Self::Memory),
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(PathBuf::from(path))),
            _ => Err(format!("'{text}' is no storage (there are: memory, sqlite:PATH)")),
        }
    }
}

impl Backend {
    /// Opens the storage.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub fn open(&self) -> Result<Arc<dyn Storage>, StorageError> {
        Ok(match self {
            Self::Memory => Arc::new(MemoryStorage::new()),
            Self::Sqlite(path) => Arc::new(SqliteStorage::open(path)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storages_are_named_by_urls() {
        assert_eq!("memory".parse(), Ok(Backend::Memory));
        assert_eq!("sqlite:/a:b".parse(), Ok(Backend::Sqlite("/a:b".into())));
        for wrong in ["", "sqlite", "sqlite:", "memory:", "mysql:x"] {
            assert!(wrong.parse::<Backend>().unwrap_err().contains("(there are: memory, sqlite:PATH)"), "{wrong}");
        }
    }
}
