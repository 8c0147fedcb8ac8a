//! Large values as files beside a database, one folder per execution: a database that holds them would never shrink again, and every
//! write of another execution would wait for them. What only one process reads it [holds](Held) instead, as far as there is room.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::ids::ExecutionId;
use crate::storage::StorageError;
use crate::storage::held::Held;
use crate::tokens::random_id;

/// The folder of all executions' files.
pub(super) struct Spill {
    folder: PathBuf,
    held: Option<Held>,
}

fn failed(path: &Path) -> impl Fn(io::Error) -> StorageError {
    move |error| StorageError::Backend(format!("{}: {error}", path.display()))
}

/// What is gone already needs no removal.
fn unless_gone(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

impl Spill {
    /// Files in this folder, and what is held.
    pub(super) fn new(folder: PathBuf, held: Option<Held>) -> Result<Self, StorageError> {
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        Ok(Self { folder, held })
    }

    #[cfg(test)]
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    fn folder_of(&self, execution: &ExecutionId) -> PathBuf {
        // an id without bytes must not name the folder of all executions
        self.folder.join(format!("x{execution}"))
    }

    pub(super) fn begin(&self, execution: &ExecutionId) -> Result<(), StorageError> {
        let folder = self.folder_of(execution);
        fs::create_dir_all(&folder).map_err(failed(&folder))
    }

    /// Holds a value, if there is room, and returns its name.
    pub(super) fn hold(&self, execution: &ExecutionId, value: &Bytes) -> Option<String> {
        // most values are small, or nothing is held: no name is made for these
        let held = self.held.as_ref().filter(|_| Held::takes(value))?;
        let name = new_name();
        held.keep(&execution.to_string(), &name, value).then_some(name)
    }

    /// Writes a new file and returns its name.
    pub(super) fn write(&self, execution: &ExecutionId, value: &[u8]) -> Result<String, StorageError> {
        let name = new_name();
        let path = self.folder_of(execution).join(&name);
        let written = fs::File::create_new(&path).and_then(|mut file| file.write_all(value));
        match written {
            Ok(()) => Ok(name),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(StorageError::UnknownExecution(execution.clone())),
            Err(error) => {
                // half a file is no use
                fs::remove_file(&path).ok();
                Err(failed(&path)(error))
            }
        }
    }

    /// The value of this name; `None` when it is gone.
    pub(super) fn read(&self, execution: &ExecutionId, name: &str, length: u64) -> Result<Option<Bytes>, StorageError> {
        if let Some(value) = self.held.as_ref().and_then(|held| held.get(&execution.to_string(), name)) {
            return Ok(Some(value));
        }
        let path = self.folder_of(execution).join(name);
        match fs::read(&path) {
            Ok(content) if u64::try_from(content.len()) == Ok(length) => Ok(Some(Bytes::from(content))),
            Ok(content) => {
                let message = format!("{} has {} bytes instead of {length}", path.display(), content.len());
                Err(StorageError::Backend(message))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&path)(error)),
        }
    }

    pub(super) fn remove(&self, execution: &ExecutionId, name: &str) -> Result<(), StorageError> {
        if self.held.as_ref().is_some_and(|held| held.remove(&execution.to_string(), name)) {
            return Ok(());
        }
        let path = self.folder_of(execution).join(name);
        unless_gone(fs::remove_file(&path)).map_err(failed(&path))
    }

    /// Removes all values of an execution. What a request that is being answered writes meanwhile is removed by the next sweep.
    pub(super) fn end(&self, execution: &ExecutionId) -> Result<(), StorageError> {
        self.let_go(&execution.to_string());
        let folder = self.folder_of(execution);
        let removed = unless_gone(fs::remove_dir_all(&folder));
        removed.or_else(
            |error| {
                if error.kind() == ErrorKind::DirectoryNotEmpty { Ok(()) } else { Err(failed(&folder)(error)) }
            },
        )
    }

    /// The names of the executions that have a folder.
    pub(super) fn executions(&self) -> Result<Vec<String>, StorageError> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed(&self.folder))? {
            let name = entry.map_err(failed(&self.folder))?.file_name();
            names.extend(name.to_str().and_then(|name| name.strip_prefix('x')).map(str::to_owned));
        }
        Ok(names)
    }

    fn let_go(&self, execution: &str) {
        if let Some(held) = &self.held {
            held.end(execution);
        }
    }

    /// Removes what is left of an execution, by its name.
    pub(super) fn sweep(&self, name: &str) -> Result<(), StorageError> {
        self.let_go(name);
        let folder = self.folder.join(format!("x{name}"));
        unless_gone(fs::remove_dir_all(&folder)).map_err(failed(&folder))
    }
}

fn new_name() -> String {
    ExecutionId::from(random_id().to_vec()).to_string()
}
