//! What several processes counted together, in a file that outlives each of them.
//!
//! A process adds what it counted since it did last, so the sums hold what processes did that have died, and never fall.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::server::stats::{COUNT, Counters, NAMES, PEAK};

/// So small a write is done whole or not at all when the process is killed.
const BYTES: usize = COUNT * size_of::<u64>();

/// The file, as one of the processes has it.
#[derive(Debug)]
pub(super) struct Tally {
    file: File,
    /// What is in the file of what this process counted.
    added: Mutex<[u64; COUNT]>,
}

/// The file is this process's alone for a moment.
struct Locked<'a>(&'a File);

impl<'a> Locked<'a> {
    fn new(file: &'a File) -> io::Result<Self> {
        file.lock()?;
        Ok(Self(file))
    }

    fn read(&self) -> io::Result<[u64; COUNT]> {
        let mut bytes = [0; BYTES];
        // one that was made just now is empty
        match self.0.metadata()?.len() {
            0 => {}
            length if usize::try_from(length) == Ok(BYTES) => self.0.read_exact_at(&mut bytes, 0)?,
            _ => return Err(io::Error::new(ErrorKind::InvalidData, "the file of the counters is of another version")),
        }
        let (numbers, _) = bytes.as_chunks();
        let mut sums = [0; COUNT];
        for (sum, number) in sums.iter_mut().zip(numbers) {
            *sum = u64::from_le_bytes(*number);
        }
        Ok(sums)
    }

    fn write(&self, sums: &[u64; COUNT]) -> io::Result<()> {
        self.0.write_all_at(sums.map(u64::to_le_bytes).as_flattened(), 0)
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // closing the file, at the latest, unlocks it
        self.0.unlock().ok();
    }
}

impl Tally {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let tally = Self { file, added: Mutex::new([0; COUNT]) };
        Locked::new(&tally.file)?.read()?;
        Ok(tally)
    }

    /// Adds what was counted since the last time, if it is anything.
    pub(super) fn add(&self, counters: &Counters) -> io::Result<()> {
        let unchanged = *self.added.lock().unwrap_or_else(PoisonError::into_inner) == counters.values();
        if unchanged { Ok(()) } else { self.sums(counters).map(drop) }
    }

    /// What all processes counted, with all that this one did.
    pub(super) fn sums(&self, counters: &Counters) -> io::Result<[u64; COUNT]> {
        // held so long that nobody adds the same twice
        let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = counters.values();
        let file = Locked::new(&self.file)?;
        let mut sums = file.read()?;
        for (((sum, counted), added), name) in sums.iter_mut().zip(counted).zip(*added).zip(NAMES) {
            *sum = if name == PEAK { counted.max(*sum) } else { sum.saturating_add(counted.saturating_sub(added)) };
        }
        file.write(&sums)?;
        *added = counted;
        Ok(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Stats;

    fn stats(sums: [u64; COUNT]) -> Stats {
        Stats::of(sums, 0)
    }

    #[test]
    fn sums_hold_what_each_counted_once_and_outlive_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counters");
        let (one, mine) = (Tally::open(&path).unwrap(), Counters::default());
        let (other, theirs) = (Tally::open(&path).unwrap(), Counters::default());
        mine.rows_in.add(5);
        mine.process_concurrency.raise_to(3);
        theirs.rows_in.add(70);
        theirs.process_concurrency.raise_to(2);
        for _ in 0..2 {
            one.add(&mine).unwrap();
            other.add(&theirs).unwrap();
        }
        let both = stats(one.sums(&mine).unwrap());
        assert_eq!((both.rows_in, both.process_concurrency, both.errors), (75, 3, 0));
        drop((other, theirs));
        let (next, anew) = (Tally::open(&path).unwrap(), Counters::default());
        anew.rows_in.add(600);
        assert_eq!(stats(next.sums(&anew).unwrap()).rows_in, 675);
        assert_eq!(stats(one.sums(&mine).unwrap()).rows_in, 675);
    }

    #[test]
    fn nothing_is_lost_or_counted_twice_at_the_same_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counters");
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let path = &path;
                scope.spawn(move || {
                    let (tally, counters) = (Tally::open(path).unwrap(), Counters::default());
                    std::thread::scope(|scope| {
                        for _ in 0..4 {
                            scope.spawn(|| {
                                let mut before = 0;
                                for _ in 0..200 {
                                    counters.turns.add(1);
                                    tally.add(&counters).unwrap();
                                    let now = stats(tally.sums(&counters).unwrap()).turns;
                                    assert!(now >= before);
                                    before = now;
                                }
                            });
                        }
                    });
                });
            }
        });
        let whole = Tally::open(&path).unwrap().sums(&Counters::default()).unwrap();
        assert_eq!(stats(whole).turns, 2 * 4 * 200);
    }

    #[test]
    fn another_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counters");
        std::fs::write(&path, b"something else").unwrap();
        assert_eq!(Tally::open(&path).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
