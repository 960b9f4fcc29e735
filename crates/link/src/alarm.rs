//! A timer that costs one system call to set and wakes exactly one task.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::watch::watch;

/// One timerfd. It keeps microseconds where the runtime's own timers keep milliseconds, and setting it does not
/// wake the runtime.
#[derive(Debug)]
pub struct Alarm {
    timer: AsyncFd<OwnedFd>,
}

impl Alarm {
    /// An alarm that is not set.
    pub fn new() -> std::io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { timer: watch(timer, Interest::READABLE)? })
    }

    /// Rings once after `delay`, and not at any moment set before.
    pub fn set(&self, delay: Duration) {
        // All zero would mean never.
        let delay = delay.max(Duration::from_nanos(1));
        let value = Timespec {
            tv_sec: i64::try_from(delay.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: delay.subsec_nanos().into(),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        let set = timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &once);
        debug_assert!(set.is_ok(), "a time below 2^63 s is a time: {set:?}");
    }

    /// Waits until it rings. One task at a time may wait.
    pub async fn ring(&self) -> std::io::Result<()> {
        loop {
            let mut ready = self.timer.readable().await?;
            let mut count = [0; 8];
            match rustix::io::read(self.timer.get_ref(), &mut count) {
                Ok(_) => {
                    ready.clear_ready();
                    return Ok(());
                }
                Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
