//! Sorting more rows than fit into memory: every piece of the input becomes a sorted run of pages in the storage, and runs are merged,
//! a few at a time, until one is left. One page of each run that takes part is in memory.

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_row::Rows;
use arrow_select::interleave::interleave_record_batch;

use crate::error::{Error, Result};
use crate::function::Tick;
use crate::functions::ordering::{Ordering, take_rows};
use crate::ids::{FinalizeId, StateId};
use crate::storage::Store;

/// Rows of one page.
pub(crate) const PAGE: usize = 16_384;

/// Runs that are merged at once.
const WIDTH: usize = 16;

/// Streams that a client may read at once.
const STREAMS: u64 = 4;

/// A log that only numbers the runs.
const RUNS: &str = "runs";

/// A sorted run: its number and how many pages it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    number: u64,
    pages: u64,
}

impl Run {
    fn begin(store: &Store) -> Result<Self> {
        Ok(Self { number: store.append(RUNS, Vec::new())?, pages: 0 })
    }

    fn push(&mut self, store: &Store, page: &RecordBatch) -> Result<()> {
        store.put_batch(&self.key(self.pages), page)?;
        self.pages += 1;
        Ok(())
    }

    fn key(self, page: u64) -> String {
        format!("run {} page {page}", self.number)
    }

    pub(crate) fn pages(self) -> Range<u64> {
        0..self.pages
    }

    /// The output streams that together deliver the run, in order.
    pub(crate) fn streams(self) -> Vec<FinalizeId> {
        let size = self.pages.div_ceil(STREAMS).max(1);
        let starts = (0..STREAMS).map(|stream| stream * size).take_while(|start| *start < self.pages);
        starts.map(|start| FinalizeId::of_numbers(&[self.number, start, self.pages.min(start + size)])).collect()
    }

    /// One turn of such a stream; its position counts from its first page.
    pub(crate) fn tick(store: &Store, id: &FinalizeId, position: u64) -> Result<Tick<u64>> {
        let [number, start, end] = id.numbers()?;
        let page = start.saturating_add(position);
        if page >= end {
            return Ok(Tick::end());
        }
        let batch = Self { number, pages: end }.page(store, page)?;
        Ok(if page + 1 < end { Tick::more(batch, position + 1) } else { Tick::last(batch) })
    }

    pub(crate) fn page(self, store: &Store, page: u64) -> Result<RecordBatch> {
        store.require_batch(&self.key(page))
    }

    pub(crate) fn delete(self, store: &Store, page: u64) -> Result<()> {
        store.delete(&self.key(page)).map(drop)
    }

    /// Sorts one piece of the input into a run.
    pub(crate) fn of_batch(store: &Store, ordering: &Ordering, batch: &RecordBatch) -> Result<Self> {
        let mut run = Self::begin(store)?;
        for places in ordering.sorted_places(batch)?.chunks(PAGE) {
            run.push(store, &take_rows(batch, places)?)?;
        }
        Ok(run)
    }

    pub(crate) fn id(self) -> StateId {
        StateId::of_numbers(&[self.number, self.pages])
    }

    pub(crate) fn of_id(id: &StateId) -> Result<Self> {
        let [number, pages] = id.numbers()?;
        Ok(Self { number, pages })
    }
}

/// Merges runs into one; their pages are gone afterwards. Of equal rows those of an earlier run come first.
pub(crate) fn merge(store: &Store, ordering: &Ordering, mut runs: Vec<Run>) -> Result<Run> {
    loop {
        match runs.as_slice() {
            [] => return Run::begin(store),
            [run] => return Ok(*run),
            _ => runs = runs.chunks(WIDTH).map(|some| merge_some(store, ordering, some)).collect::<Result<_>>()?,
        }
    }
}

fn merge_some(store: &Store, ordering: &Ordering, runs: &[Run]) -> Result<Run> {
    if let [run] = runs {
        return Ok(*run);
    }
    let mut output = Output { run: Run::begin(store)?, batches: Vec::new(), rows: Vec::new() };
    let mut cursors = Vec::with_capacity(runs.len());
    for run in runs {
        cursors.extend(Cursor::open(store, ordering, *run, &mut output)?);
    }
    while !cursors.is_empty() {
        let first = first(&cursors);
        let Some(cursor) = cursors.get_mut(first) else { break };
        output.rows.push((cursor.batch, cursor.row));
        cursor.row += 1;
        let ended = cursor.row == cursor.keys.num_rows() && !cursor.turn(store, ordering, &mut output)?;
        if ended {
            cursors.remove(first);
        }
        if output.rows.len() >= PAGE || output.batches.len() > 2 * WIDTH {
            output.flush(store)?;
            output.keep_only(&mut cursors)?;
        }
    }
    output.flush(store)?;
    Ok(output.run)
}

/// The place of the cursor with the smallest row.
fn first(cursors: &[Cursor]) -> usize {
    let key = |place: &usize| cursors.get(*place).map(|cursor| cursor.keys.row(cursor.row));
    // of equal ones `min_by` gives the first
    (0..cursors.len()).min_by(|a, b| key(a).cmp(&key(b))).unwrap_or_default()
}

/// Where the merge stands in one run.
struct Cursor {
    run: Run,
    page: u64,
    keys: Rows,
    row: usize,
    /// The page's place in [`Output::batches`].
    batch: usize,
}

impl Cursor {
    fn open(store: &Store, ordering: &Ordering, run: Run, output: &mut Output) -> Result<Option<Self>> {
        if run.pages == 0 {
            return Ok(None);
        }
        let (keys, batch) = load(store, ordering, run, 0, output)?;
        Ok(Some(Self { run, page: 0, keys, row: 0, batch }))
    }

    /// Goes on to the next page; false at the end.
    fn turn(&mut self, store: &Store, ordering: &Ordering, output: &mut Output) -> Result<bool> {
        self.run.delete(store, self.page)?;
        self.page += 1;
        if self.page == self.run.pages {
            return Ok(false);
        }
        (self.keys, self.batch) = load(store, ordering, self.run, self.page, output)?;
        self.row = 0;
        Ok(true)
    }
}

fn load(store: &Store, ordering: &Ordering, run: Run, page: u64, output: &mut Output) -> Result<(Rows, usize)> {
    let batch = run.page(store, page)?;
    let keys = ordering.keys(&batch)?;
    if keys.num_rows() == 0 {
        return Err(Error::Failed(format!("page {page} of run {} has no rows", run.number)));
    }
    output.batches.push(batch);
    Ok((keys, output.batches.len() - 1))
}

/// Merged rows that are not written yet, and the pages that they stand in.
struct Output {
    run: Run,
    batches: Vec<RecordBatch>,
    rows: Vec<(usize, usize)>,
}

impl Output {
    fn flush(&mut self, store: &Store) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let batches: Vec<&RecordBatch> = self.batches.iter().collect();
        let page = interleave_record_batch(&batches, &self.rows)?;
        self.rows.clear();
        self.run.push(store, &page)
    }

    /// Forgets the pages that no cursor stands in.
    fn keep_only(&mut self, cursors: &mut [Cursor]) -> Result<()> {
        let mut kept = Vec::with_capacity(cursors.len());
        for cursor in cursors {
            let batch = self.batches.get(cursor.batch).cloned();
            kept.push(batch.ok_or_else(|| Error::Failed("a page of a merge is lost".to_owned()))?);
            cursor.batch = kept.len() - 1;
        }
        self.batches = kept;
        Ok(())
    }
}
