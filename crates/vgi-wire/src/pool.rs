//! Memory of bodies that is used again.
//!
//! Fresh memory of some size comes from the kernel page by page, each of them cleared first, which costs more than to fill it. So the
//! buffer of a body that nobody refers to any more serves the next one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// Smaller buffers come from memory that the allocator has at hand.
const SMALLEST: usize = 32 << 10;
/// A buffer of this size or more is given back to the system: its like may not come again.
const LARGEST: usize = 8 << 20;
/// How much an idle pool holds at most, in bytes.
const CAPACITY: usize = 32 << 20;

/// Buffers without a use. Clones are the same pool.
#[derive(Clone, Debug, Default)]
pub struct Pool(Arc<Mutex<Vec<Vec<u8>>>>);

impl Pool {
    /// An empty pool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty buffer with at least this capacity, used before if there is one.
    #[must_use]
    pub fn buffer(&self, capacity: usize) -> Vec<u8> {
        if capacity >= SMALLEST {
            let mut free = self.lock();
            // the last one that came back is most likely in the processor's cache
            let fits = |buffer: &Vec<u8>| (capacity..=capacity.saturating_mul(2)).contains(&buffer.capacity());
            if let Some(place) = free.iter().rposition(fits) {
                return free.swap_remove(place);
            }
        }
        Vec::with_capacity(capacity)
    }

    /// The buffer's bytes. When the last reference to them is gone, the buffer comes back. The bytes may be kept for long, so room that
    /// was reserved in vain is given back.
    #[must_use]
    pub fn freeze(&self, mut buffer: Vec<u8>) -> Bytes {
        if buffer.len() < buffer.capacity() / 2 {
            buffer.shrink_to_fit();
        }
        if !(SMALLEST..LARGEST).contains(&buffer.capacity()) {
            return buffer.into();
        }
        Bytes::from_owner(Lent { buffer, pool: self.clone() })
    }

    fn put_back(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut free = self.lock();
        let held: usize = free.iter().map(Vec::capacity).sum();
        if held + buffer.capacity() <= CAPACITY {
            free.push(buffer);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer that is in use.
struct Lent {
    buffer: Vec<u8>,
    pool: Pool,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.pool.put_back(std::mem::take(&mut self.buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_with_its_last_reference() {
        let pool = Pool::new();
        let mut buffer = pool.buffer(100_000);
        buffer.resize(60_000, 7);
        let address = buffer.as_ptr();
        let bytes = pool.freeze(buffer);
        let part = bytes.slice(59_999..);
        drop(bytes);
        assert_eq!((part.as_ref(), pool.lock().len()), ([7].as_slice(), 0));
        drop(part);
        assert_eq!(
            (pool.buffer(10).capacity(), pool.buffer(40_000).capacity()),
            (10, 40_000),
            "it is too large for these"
        );
        let again = pool.buffer(90_000);
        assert!(again.is_empty() && again.capacity() >= 100_000);
        assert_eq!(again.as_ptr(), address);
    }

    #[test]
    fn what_a_pool_holds_is_bounded() {
        let pool = Pool::new();
        let lent: Vec<_> = (0..100).map(|_| pool.freeze(vec![0; 1 << 20])).collect();
        drop(lent);
        assert_eq!(pool.lock().len(), 32);
        drop(pool.freeze(vec![0; LARGEST]));
        drop(pool.freeze(pool.buffer(1 << 21)));
        drop(pool.freeze(Vec::with_capacity(10)));
        assert_eq!(pool.lock().len(), 32);
    }
}
