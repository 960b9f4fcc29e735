//! Places for connections to a Unix socket: no process takes all of them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::rc::Rc;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;

/// Places, of which one process has no more than a number.
#[derive(Debug)]
pub struct Crowd {
    most: usize,
    of_one: usize,
    inside: Rc<RefCell<Inside>>,
}

/// How many places are taken, by process and in all.
#[derive(Debug, Default)]
struct Inside {
    by_process: BTreeMap<i32, usize>,
    all: usize,
}

/// A place, which is free again when this goes.
#[derive(Debug)]
pub struct Seat {
    process: i32,
    inside: Rc<RefCell<Inside>>,
}

/// A client, where a process bounds what one may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requester {
    /// A process of this machine; 0 for those of other PID namespaces.
    Process(i32),
    /// The holder of a certificate with this serial number.
    Identity(Option<String>),
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crowded {
    /// All are taken.
    Full,
    /// The process has as many as one may have.
    OfOne,
}

impl Crowd {
    /// `most` places, of which one process has `of_one` at most.
    pub fn new(most: usize, of_one: usize) -> Self {
        Self { most, of_one, inside: Rc::default() }
    }

    /// A place for the process at the other end. Processes of other PID namespaces, as in containers, count as one.
    ///
    /// # Errors
    /// [`Crowded`] when there is none.
    pub fn enter(&self, stream: impl AsFd) -> Result<Seat, Crowded> {
        // One that has left by now has no number any more, and no use for a place.
        self.take(getsockopt(&stream, PeerCredentials).map_or(0, |peer| peer.pid()))
    }

    fn take(&self, process: i32) -> Result<Seat, Crowded> {
        let mut inside = self.inside.borrow_mut();
        if inside.all >= self.most {
            return Err(Crowded::Full);
        }
        let own = inside.by_process.entry(process).or_default();
        if *own >= self.of_one {
            return Err(Crowded::OfOne);
        }
        *own += 1;
        inside.all += 1;
        Ok(Seat { process, inside: self.inside.clone() })
    }
}

impl Seat {
    /// Whose place it is.
    pub fn requester(&self) -> Requester {
        Requester::Process(self.process)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut inside = self.inside.borrow_mut();
        inside.all -= 1;
        if let Some(own) = inside.by_process.get_mut(&self.process) {
            *own -= 1;
            if *own == 0 {
                inside.by_process.remove(&self.process);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn one_process_leaves_places_for_others() {
        let crowd = Crowd::new(5, 3);
        let mut first: Vec<_> = (0..3).map(|_| crowd.take(7).expect("a place")).collect();
        assert_eq!(crowd.take(7).err(), Some(Crowded::OfOne));
        let second: Vec<_> = (0..2).map(|_| crowd.take(8).expect("a place")).collect();
        assert_eq!(crowd.take(9).err(), Some(Crowded::Full));
        drop(first.pop());
        assert!(crowd.take(9).is_ok());
        drop((first, second));
        assert_eq!((crowd.inside.borrow().all, crowd.inside.borrow().by_process.len()), (0, 0));
    }

    #[test]
    fn a_connection_counts_for_the_process_at_its_other_end() {
        let crowd = Crowd::new(5, 1);
        let (near, _far) = UnixStream::pair().expect("a pair");
        let seat = crowd.enter(&near).expect("a place");
        assert_eq!(seat.process, rustix::process::getpid().as_raw_nonzero().get());
        assert_eq!(crowd.enter(&near).err(), Some(Crowded::OfOne));
    }
}
