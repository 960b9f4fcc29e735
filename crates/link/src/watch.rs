//! Descriptors that the runtime watches.

use std::io;
use std::os::fd::AsRawFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Watches a socket or another descriptor that its type owns and keeps open, as those of std do.
pub(crate) fn watch<T: AsRawFd>(owned: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    // That it might be closed meanwhile is what the deprecation is about; the replacement is `unsafe`, which weft does
    // not use.
    #[expect(deprecated, reason = "see above")]
    AsyncFd::with_interest(owned, interest)
}
