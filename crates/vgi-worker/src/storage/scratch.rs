//! A folder for what lasts no longer than a server: its database, and what its processes share.
//!
//! The owner holds a lock on a file in the folder. The kernel lets go of it however the owner ends, so a folder whose lock can be had is
//! one that nobody removed, and the next owner does. A process id in the name would not tell that: ids are used again, and processes in
//! different containers that share the folder for temporary files do not see each other.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::storage::{Backend, StorageError};

const PREFIX: &str = "vgi-worker-scratch-";
/// A folder without this file is somebody else's, whatever its name.
const LOCK: &str = "vgi-worker.lock";
/// Another process may take a folder that is not locked yet for a forgotten one, which can hardly happen twice.
const ATTEMPTS: usize = 8;

/// A folder in the one for temporary files (`TMPDIR`), which only this user may enter. It is removed when the value is dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    /// Held, not used.
    _lock: File,
}

impl Scratch {
    /// A new folder. Those that their owners left behind when they were killed are removed.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new() -> Result<Self, StorageError> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(parent: &Path) -> Result<Self, StorageError> {
        let made = Self::make(parent).map_err(|error| {
            StorageError::Backend(format!("no folder can be made in {}: {error}", parent.display()))
        })?;
        // what cannot be removed is no reason not to serve
        sweep(parent, made.path()).ok();
        Ok(made)
    }

    fn make(parent: &Path) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let folder = tempfile::Builder::new()
                .prefix(PREFIX)
                .permissions(Permissions::from_mode(0o700))
                .tempdir_in(parent)?;
            let path = folder.path().join(LOCK);
            let lock = File::create_new(&path)?;
            // where there are no locks, nobody gets one, and nothing is taken for forgotten
            lock.lock().ok();
            if path.exists() {
                return Ok(Self { folder, _lock: lock });
            }
        }
        Err(io::Error::other("every new folder is removed at once"))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Where large values are in it.
    pub(super) fn values(&self) -> PathBuf {
        self.path().join("values")
    }

    /// The database in it, for several processes.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.path().join("state.db")
    }

    /// The storage in it, for one process.
    #[must_use]
    pub fn backend(&self) -> Backend {
        Backend::Exclusive(self.values())
    }
}

/// Removes the folders of this user that nobody owns any more.
fn sweep(parent: &Path, own: &Path) -> io::Result<()> {
    let user = fs::metadata(own)?.uid();
    for entry in fs::read_dir(parent)?.flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        // of a link this is about the link
        let folder = entry.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == user);
        let path = entry.path();
        if !ours || !folder || path == own {
            continue;
        }
        let Ok(lock) = File::open(path.join(LOCK)) else { continue };
        if lock.try_lock().is_ok() {
            fs::remove_dir_all(&path).ok();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_private_and_goes_with_its_owner() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::new_in(parent.path()).unwrap();
        let path = scratch.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        fs::write(scratch.database(), b"rows").unwrap();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_owner_left_is_removed_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let living = Scratch::new_in(parent.path()).unwrap();
        let make = |name: &str| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let left = make("vgi-worker-scratch-left");
        fs::write(left.join(LOCK), b"").unwrap();
        fs::write(left.join("state.db"), b"rows").unwrap();
        let (foreign, other) = (make("vgi-worker-scratch-foreign"), make("other"));
        fs::write(other.join(LOCK), b"").unwrap();
        let target = make("target");
        fs::write(target.join(LOCK), b"").unwrap();
        std::os::unix::fs::symlink(&target, parent.path().join("vgi-worker-scratch-link")).unwrap();

        let next = Scratch::new_in(parent.path()).unwrap();
        assert!(!left.exists());
        assert!([living.path(), next.path(), &foreign, &other, &target].iter().all(|path| path.exists()));
    }

    #[test]
    fn many_at_once_do_not_disturb_each_other() {
        let parent = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let scratch = Scratch::new_in(parent.path()).unwrap();
                        assert!(scratch.path().join(LOCK).exists());
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error_that_names_it() {
        let message = Scratch::new_in(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(message.contains("/nowhere"), "{message}");
    }
}
