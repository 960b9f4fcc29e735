//! Places for clients: a limited number for each kind, and of these a few for one identity.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::revocation::Serial;

/// How many places each identity has taken, by what they are places for.
type Taken<K> = BTreeMap<K, BTreeMap<Option<Serial>, usize>>;

/// Places by what they are for, such as a role. Clones share them.
#[derive(Clone, Debug)]
pub struct Places<K> {
    max: usize,
    max_of_one: usize,
    taken: Rc<RefCell<Taken<K>>>,
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub struct Place<K: Clone + Ord> {
    of: (K, Option<Serial>),
    taken: Rc<RefCell<Taken<K>>>,
}

impl<K: Clone + Ord> Places<K> {
    /// `max` places for each kind, of which one identity takes up to `max_of_one`.
    pub fn new(max: usize, max_of_one: usize) -> Self {
        Self { max, max_of_one, taken: Rc::default() }
    }

    /// Takes a place for an identity, if there is one left for it.
    pub fn take(&self, kind: K, identity: Option<&Serial>) -> Option<Place<K>> {
        let of = (kind, identity.cloned());
        let mut taken = self.taken.borrow_mut();
        let by_identity = taken.entry(of.0.clone()).or_default();
        let all: usize = by_identity.values().sum();
        if all >= self.max || by_identity.get(&of.1).is_some_and(|own| *own >= self.max_of_one) {
            return None;
        }
        *by_identity.entry(of.1.clone()).or_default() += 1;
        Some(Place { of, taken: self.taken.clone() })
    }
}

impl<K: Clone + Ord> Drop for Place<K> {
    fn drop(&mut self) {
        let mut taken = self.taken.borrow_mut();
        let Some(by_identity) = taken.get_mut(&self.of.0) else { return };
        if let Some(own) = by_identity.get_mut(&self.of.1) {
            *own -= 1;
        }
        // Nothing is kept of identities without a place, nor of kinds.
        by_identity.retain(|_, own| *own > 0);
        if by_identity.is_empty() {
            taken.remove(&self.of.0);
        }
    }
}

/// The role in the certificate of a laboratory's hub.
const HUB: &str = "hub";
/// Connections of hubs at the same time: one for each conversation that they pass on, and those that a killed one leaves for a while.
const HUBS_MAX: usize = 256;

/// Places at a door. Hubs have their own, since they pass on what their own clients say: no crowd keeps one out.
#[derive(Clone, Debug)]
pub struct Room<K> {
    hubs: Places<()>,
    others: Places<K>,
}

/// A place in a room until this is dropped.
#[derive(Debug)]
pub enum Seat<K: Clone + Ord> {
    /// One of the hubs'.
    Hub(Place<()>),
    /// Another one.
    Other(Place<K>),
}

impl<K: Clone + Ord> Room<K> {
    /// `max` places for each kind of those that are no hubs, of which one identity takes up to `max_of_one`.
    pub fn new(max: usize, max_of_one: usize) -> Self {
        Self { hubs: Places::new(HUBS_MAX, HUBS_MAX), others: Places::new(max, max_of_one) }
    }

    /// Takes a place for whoever comes with this role in its certificate, if there is one left.
    pub fn take(&self, kind: K, role: Option<&str>, identity: Option<&Serial>) -> Option<Seat<K>> {
        if role == Some(HUB) {
            return self.hubs.take((), identity).map(Seat::Hub);
        }
        self.others.take(kind, identity).map(Seat::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_and_kinds_cannot_take_each_others_places() {
        let places = Places::new(5, 3);
        let identities: Vec<Serial> = ["01", "02"].iter().map(|serial| serial.parse().unwrap()).collect();
        let take = |kind: &'static str, identity: usize, count: usize| {
            (0..count).filter_map(|_| places.take(kind, identities.get(identity))).collect::<Vec<_>>()
        };
        let greedy = take("viewer", 0, 9);
        let other = take("viewer", 1, 9);
        assert_eq!((greedy.len(), other.len()), (3, 2));
        assert_eq!(take("operator", 0, 9).len(), 3);
        drop(greedy);
        assert_eq!(take("viewer", 1, 9).len(), 1, "the third of its own");
        drop(other);
        assert!(places.taken.borrow().is_empty());
    }

    #[test]
    fn hubs_and_other_clients_cannot_crowd_each_other_out() {
        let room = Room::new(4, 4);
        let take = |role: &str, count: usize| {
            (0..count).filter_map(|_| room.take("operator", Some(role), None)).collect::<Vec<_>>()
        };
        let crowd = take("operator", 9);
        let hubs = take(HUB, 2 * HUBS_MAX);
        assert_eq!((crowd.len(), hubs.len()), (4, HUBS_MAX));
        assert!(hubs.iter().all(|seat| matches!(seat, Seat::Hub(_))));
        drop(crowd);
        assert_eq!(take("viewer", 9).len(), 4);
    }
}
