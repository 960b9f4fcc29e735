//! The number of users of GUIDs and of machines looked at: for tests of how that grows.

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    static LOOKED_AT: Cell<u64> = const { Cell::new(0) };
}

/// One more was looked at.
pub(crate) fn count() {
    #[cfg(test)]
    LOOKED_AT.set(LOOKED_AT.get() + 1);
}

/// How many were since the last question.
#[cfg(test)]
pub(crate) fn taken() -> u64 {
    LOOKED_AT.take()
}
