//! Looking again for a moment before going to sleep.
//!
//! On an idle machine waking a sleeping core costs 40 µs and more, several times what an answer from a neighbour
//! or from a packed fabric takes. So while answers keep coming sooner than that, the manager looks for the next one
//! instead of sleeping; as soon as one takes longer, it sleeps for a while of answers as everybody does.

use std::time::{Duration, Instant};

use rustix::event::PollFd;
use weft_process::poll_for;

/// How long to look: about what a wake-up costs.
const LOOK: Duration = Duration::from_micros(50);

/// How many waits go straight to sleep after a look that found nothing.
const REST: u32 = 64;

/// Whether looking has been worth it.
#[derive(Debug, Default)]
pub(crate) struct Eagerness {
    rest: u32,
}

impl Eagerness {
    /// poll(2), preceded by a look when the last ones paid. `conversing`: an answer is likely to be under way.
    pub(crate) fn poll(
        &mut self,
        fds: &mut [PollFd<'_>],
        timeout: Option<Duration>,
        conversing: bool,
    ) -> anyhow::Result<()> {
        if conversing && self.rest == 0 {
            let began = Instant::now();
            while began.elapsed() < LOOK {
                poll_for(fds, Some(Duration::ZERO))?;
                if fds.iter().any(|fd| !fd.revents().is_empty()) {
                    return Ok(());
                }
            }
            self.rest = REST;
        }
        self.rest = self.rest.saturating_sub(1);
        Ok(poll_for(fds, timeout)?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use rustix::event::PollFlags;

    use super::*;

    #[test]
    fn an_eager_poll_finds_input_and_otherwise_sleeps() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let mut eagerness = Eagerness::default();
        let mut fds = [PollFd::new(&far, PollFlags::IN)];
        eagerness.poll(&mut fds, Some(Duration::ZERO), true).unwrap();
        assert!(fds[0].revents().is_empty());
        assert_eq!(eagerness.rest, REST - 1, "the look did not pay, so the next waits sleep");
        near.write_all(b"x").unwrap();
        eagerness.poll(&mut fds, None, true).unwrap();
        assert_eq!(fds[0].revents(), PollFlags::IN);
        assert_eq!(eagerness.rest, REST - 2);
    }
}
