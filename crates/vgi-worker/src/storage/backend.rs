//! Which storage a server uses, as an operator writes it.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use crate::storage::{MemoryStorage, PostgresStorage, RedisStorage, ServerUrl, SqliteStorage, Storage, StorageError};

/// What can be written.
const FORMS: &str = "memory, sqlite:PATH, redis://HOST:PORT, postgres://USER@HOST:PORT/DATABASE";

/// A storage by its URL. Neither `Debug` nor an error shows the credentials of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// SQLite in a [folder](crate::storage::Scratch) of the server's own, which is removed at its end.
    #[default]
    Private,
    /// SQLite for this process alone, with large values in a folder as far as they do not fit in 1 GiB of memory.
    Exclusive(PathBuf),
    /// `memory`: this process alone.
    Memory,
    /// `sqlite:PATH`: all processes of this machine that name the same file.
    Sqlite(PathBuf),
    /// `redis://USER:PASSWORD@HOST:PORT/NUMBER`: all processes of all machines that name the same server.
    Redis(ServerUrl),
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`: all processes of all machines that name the same database.
    Postgres(ServerUrl),
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "memory" => Ok(Self::Memory),
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(PathBuf::from(path))),
            Some(("redis" | "redis+unix", _)) => ServerUrl::redis(text).map(Self::Redis),
            Some(("rediss", _)) => {
                Err("this worker does not encrypt its connection to Redis; write redis://, and use a network \
                                        that you trust or a tunnel"
                    .to_owned())
            }
            Some(("postgres" | "postgresql", _)) => ServerUrl::postgres(text).map(Self::Postgres),
            // a URL of another kind may hold a password as well
            Some((scheme, _)) => Err(format!("'{scheme}:' is no storage (there are: {FORMS})")),
            None => Err(format!("'{text}' is no storage (there are: {FORMS})")),
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
            Self::Private => Arc::new(SqliteStorage::private()?),
            Self::Exclusive(path) => Arc::new(SqliteStorage::exclusive(path)?),
            Self::Memory => Arc::new(MemoryStorage::new()),
            Self::Sqlite(path) => Arc::new(SqliteStorage::open(path)?),
            Self::Redis(url) => Arc::new(RedisStorage::open(url)?),
            Self::Postgres(url) => Arc::new(PostgresStorage::open(url)?),
        })
    }

    /// Whether several processes that open it have the same.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        !matches!(self, Self::Private | Self::Exclusive(_) | Self::Memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storages_are_named_by_urls() {
        assert_eq!("memory".parse(), Ok(Backend::Memory));
        assert_eq!("sqlite:/a:b".parse(), Ok(Backend::Sqlite("/a:b".into())));
        assert!(matches!("redis://127.0.0.1:6379".parse(), Ok(Backend::Redis(_))));
        assert!(matches!("postgresql://a@127.0.0.1/b".parse(), Ok(Backend::Postgres(_))));
        for wrong in ["", "sqlite", "sqlite:", "memory:", "mysql:x"] {
            assert!(
                wrong.parse::<Backend>().unwrap_err().contains("(there are: memory, sqlite:PATH, redis"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn credentials_are_not_shown() {
        for url in ["redis://ann:s3same@host:1/2", "postgres://ann:s3same@host:1/state"] {
            let shown = format!("{:?}", url.parse::<Backend>().unwrap());
            assert!(shown.contains("host:1") && !shown.contains("s3same") && !shown.contains("ann"), "{shown}");
        }
        for wrong in ["mysql://ann:s3same@host", "rediss://ann:s3same@host", "postgres://ann:s3same@host:x"] {
            let error = wrong.parse::<Backend>().unwrap_err();
            assert!(!error.contains("s3same"), "{error}");
        }
    }
}
