//! How a blocked caller learns that it should stop waiting.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a wait may last before the interrupt is asked again.
pub(crate) const SLICE: Duration = Duration::from_millis(20);

/// Asked by every blocking wait, many times a second, on the waiting thread.
pub trait Interrupt {
    /// Whether to give up.
    fn interrupted(&self) -> bool;
}

/// Waits to the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct NeverInterrupted;

impl Interrupt for NeverInterrupted {
    fn interrupted(&self) -> bool {
        false
    }
}

impl Interrupt for AtomicBool {
    fn interrupted(&self) -> bool {
        self.load(Ordering::Relaxed)
    }
}
