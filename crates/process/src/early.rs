//! SIGTERM before a process is ready for it. The first process of a container has no default for signals: one that comes before
//! there is a handler is lost, and the container is killed when its time is over.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::SIGTERM;

/// Whether nothing has begun that would have to be ended in order.
static IS_EARLY: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// SIGTERM ends this process from now on, with exit code 0, until it is [`ready`] for signals. To be called first of all.
///
/// # Errors
/// When the system refuses the handler.
pub fn end_when_told() -> io::Result<()> {
    IS_EARLY.store(true, Ordering::SeqCst);
    signal_hook::flag::register_conditional_shutdown(SIGTERM, 0, IS_EARLY.clone()).map(drop)
}

/// Handlers are there that end it in order.
pub fn ready() {
    IS_EARLY.store(false, Ordering::SeqCst);
}
