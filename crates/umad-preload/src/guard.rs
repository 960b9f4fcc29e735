//! No panic crosses into C, and what goes wrong can be asked for.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI32, Ordering};

use libc::c_int;

use crate::abi::{set_errno, uncancelled};

/// The last level that `umad_debug` has set.
static LEVEL: AtomicI32 = AtomicI32::new(0);

/// Does some work; a panic, which would be a fault of this library, becomes `otherwise`.
///
/// The thread is not cancelled meanwhile: unwinding by `pthread_cancel` must not come by here.
pub(crate) fn guard<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    uncancelled(|| catch_unwind(AssertUnwindSafe(work))).unwrap_or(otherwise)
}

/// The number of an error, EIO for one without.
pub(crate) fn number(error: &io::Error) -> c_int {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// `-error`, and `errno` says so too.
pub(crate) fn failed(error: c_int) -> c_int {
    set_errno(error);
    -error
}

/// Tells what went wrong, to whoever raised the debug level.
pub(crate) fn tell(what: &str, error: &dyn std::fmt::Display) {
    if LEVEL.load(Ordering::Relaxed) > 0 {
        eprintln!("weft: {what}: {error}");
    }
}

/// Sets the debug level, unless negative; the level that holds.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn umad_debug(level: c_int) -> c_int {
    if level >= 0 {
        LEVEL.store(level, Ordering::Relaxed);
    }
    LEVEL.load(Ordering::Relaxed)
}
