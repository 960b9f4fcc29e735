//! Interrupts as something to poll for, not as something that interrupts.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use weft_bundle::failure::Interrupted;

pub use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};

/// A descriptor that becomes readable when one of the chosen signals arrives.
#[derive(Debug)]
pub struct Signals {
    read: UnixStream,
    /// The other end, where no signal holds it.
    _write: Option<UnixStream>,
}

impl Signals {
    /// Takes the signals over from their default effect.
    pub fn watch(signals: &[i32]) -> anyhow::Result<Self> {
        let (read, write) = UnixStream::pair().context("cannot make a pair of sockets")?;
        read.set_nonblocking(true)?;
        for signal in signals {
            signal_hook::low_level::pipe::register(*signal, write.try_clone()?)
                .with_context(|| format!("cannot watch signal {signal}"))?;
        }
        Ok(Self { read, _write: None })
    }

    /// Of no signal: for work that goes on until its process ends.
    pub fn none() -> anyhow::Result<Self> {
        let (read, write) = UnixStream::pair().context("cannot make a pair of sockets")?;
        Ok(Self { read, _write: Some(write) })
    }

    /// A descriptor that holds a place.
    pub fn spare(&self) -> anyhow::Result<OwnedFd> {
        Ok(self.read.try_clone().context("too few files can be open")?.into())
    }

    /// Whether one came since last asked.
    pub fn arrived(&mut self) -> bool {
        use std::io::Read as _;
        let mut bytes = [0; 64];
        self.read.read(&mut bytes).is_ok_and(|count| count > 0)
    }
}

/// A flag that is raised when one of the chosen signals arrives, for loops that have no descriptors to wait for.
#[derive(Debug)]
pub struct Interruption(Arc<AtomicBool>);

impl Interruption {
    /// Takes the signals over from their default effect.
    pub fn watch(signals: &[i32]) -> anyhow::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in signals {
            signal_hook::flag::register(*signal, flag.clone())
                .with_context(|| format!("cannot watch signal {signal}"))?;
        }
        Ok(Self(flag))
    }

    /// An error once one has arrived.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Interrupted::NO_RESULT.into());
        }
        Ok(())
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}
