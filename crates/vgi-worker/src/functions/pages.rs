//! Output that is a list of stored batches: `combine` writes the list once and splits it into streams, `finalize` walks along it.

use crate::error::{Error, Result};
use crate::function::Tick;
use crate::ids::FinalizeId;
use crate::storage::Store;

/// Streams that a client may read at once.
const STREAMS: usize = 4;

const PLAN: &str = "plan";

/// Writes the list of log positions and answers the ids of streams that together walk along it. Read one after the other, the streams
/// keep the order of the list.
pub(crate) fn plan(store: &Store, positions: &[u64]) -> Result<Vec<FinalizeId>> {
    store.put(PLAN, positions.iter().flat_map(|position| position.to_le_bytes()).collect::<Vec<u8>>())?;
    let size = positions.len().div_ceil(STREAMS).max(1);
    let range = |start: usize| {
        let end = positions.len().min(start + size);
        Ok(FinalizeId::of_numbers(&[number(start)?, number(end)?]))
    };
    (0..positions.len()).step_by(size).map(range).collect()
}

/// The log position of a stream's next batch, and where the stream goes on after it.
pub(crate) struct Page {
    pub(crate) entry: u64,
    pub(crate) next: Option<u64>,
}

/// The batch that a stream stands at. A stream's own position counts from the start of its range.
pub(crate) fn page(store: &Store, id: &FinalizeId, position: u64) -> Result<Option<Page>> {
    let [start, end] = id.numbers()?;
    let index = start.saturating_add(position);
    if index >= end {
        return Ok(None);
    }
    let plan = store.require(PLAN)?;
    let (entries, _) = plan.as_chunks::<8>();
    let entry = usize::try_from(index).ok().and_then(|index| entries.get(index));
    let entry = entry
        .ok_or_else(|| Error::Protocol(format!("the stream {id} goes beyond the plan of {}", store.execution())))?;
    let next = (index + 1 < end).then_some(position.saturating_add(1));
    Ok(Some(Page { entry: u64::from_le_bytes(*entry), next }))
}

/// One turn of a stream along batches of this log.
pub(crate) fn tick(store: &Store, log: &str, id: &FinalizeId, position: u64) -> Result<Tick<u64>> {
    let Some(page) = page(store, id, position)? else { return Ok(Tick::end()) };
    let batch = store.batch(log, page.entry)?;
    Ok(match page.next {
        Some(next) => Tick::more(batch, next),
        None => Tick::last(batch),
    })
}

fn number(index: usize) -> Result<u64> {
    u64::try_from(index).map_err(|error| Error::Failed(error.to_string()))
}
