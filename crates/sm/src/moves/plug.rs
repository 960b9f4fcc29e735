//! Looks whether those who have moved are at their new places.
//!
//! ```text
//! PortInfo of the place ─▶ a link? ─▶ NodeInfo behind it ─▶ the GUID that is expected? ─▶ PortInfo of its port
//!                            └─ not yet                       └─ a stranger: a heavy sweep
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_mgmt::SmpRoute;
use weft_wire::{Guid, Mad, NodeInfo, PortInfo, status};

use crate::knowledge::{Key, PortAt, Subnet, is_up};
use crate::requests::{Ask, Step};
use crate::requests::{Get, SmpRequest};

/// A look at places.
#[derive(Debug)]
pub(crate) struct Plug {
    pub(crate) subnet: Subnet,
    todo: VecDeque<Key>,
    /// By place: who is to be there.
    expected: BTreeMap<PortAt, Guid>,
    /// Those who are on their way: one of them at a place may have to leave it yet.
    away: BTreeSet<Guid>,
    /// What ports say.
    pub(crate) infos: BTreeMap<PortAt, PortInfo>,
    /// Places where those are who are to be there, with their ends.
    pub(crate) there: BTreeMap<PortAt, PortAt>,
    /// A switch where something is that was not expected, or that does not answer.
    pub(crate) odd: Option<Guid>,
}

impl Plug {
    /// Looks at places where someone is to be, and at others where no one is to be.
    pub(crate) fn new(
        subnet: Subnet,
        expected: BTreeMap<PortAt, Guid>,
        empty: &[PortAt],
        away: BTreeSet<Guid>,
    ) -> Self {
        let places = expected.keys().chain(empty);
        let todo = places.map(|at| Key::PortInfo(*at)).collect();
        let (infos, there) = (BTreeMap::new(), BTreeMap::new());
        Self { subnet, todo, expected, away, infos, there, odd: None }
    }

    fn is_odd(&mut self, place: PortAt) {
        self.odd = Some(self.subnet.guid(place.node));
    }

    /// A place of a switch says how it is.
    fn looked_at_place(&mut self, place: PortAt, info: PortInfo) {
        self.infos.insert(place, info);
        match (is_up(&info), self.expected.contains_key(&place)) {
            (true, true) => self.todo.push_back(Key::NodeInfo(Some(place))),
            (true, false) => self.is_odd(place),
            (false, _) => {}
        }
    }

    fn looked_behind(&mut self, place: PortAt, info: &NodeInfo) {
        let end = self.subnet.port(place).and_then(|port| port.peer);
        let is_expected = self.expected.get(&place) == Some(&info.port_guid);
        match end.filter(|end| is_expected && end.port == info.local_port_num) {
            Some(end) => {
                self.there.insert(place, end);
                self.todo.push_back(Key::PortInfo(end));
            }
            None if self.away.contains(&info.port_guid) && !is_expected => {}
            None => self.is_odd(place),
        }
    }

    /// The place that a request is about.
    fn place(&self, key: Key) -> Option<PortAt> {
        match key {
            Key::NodeInfo(place) => place,
            Key::PortInfo(at) => {
                let of_end = self.there.iter().find(|(_, end)| **end == at).map(|(place, _)| *place);
                Some(of_end.unwrap_or(at))
            }
            _ => None,
        }
    }
}

impl Step for Plug {
    fn next(&mut self) -> Option<Ask> {
        while let Some(key) = self.todo.pop_front() {
            let (path, request) = match key {
                Key::PortInfo(at) => {
                    (self.subnet.path(at), SmpRequest::get(Get::PortInfo, u32::from(at.port.0)))
                }
                Key::NodeInfo(Some(place)) => {
                    let path = self.subnet.path(place).and_then(|path| path.then(place.port));
                    (path, SmpRequest::get(Get::NodeInfo, 0))
                }
                _ => continue,
            };
            match path {
                Some(path) => return Some(Ask { key, route: SmpRoute::Directed(path), request }),
                None => self.place(key).into_iter().for_each(|place| self.is_odd(place)),
            }
        }
        None
    }

    fn answered(&mut self, key: Key, answer: &Mad) {
        if answer.status() != status::OK {
            return self.failed(key);
        }
        match key {
            Key::PortInfo(at) => {
                let info = PortInfo::decode(answer.smp_attribute());
                if self.there.values().any(|end| *end == at) {
                    self.infos.insert(at, info);
                } else {
                    self.looked_at_place(at, info);
                }
            }
            Key::NodeInfo(Some(place)) => {
                self.looked_behind(place, &NodeInfo::decode(answer.smp_attribute()));
            }
            _ => {}
        }
    }

    fn failed(&mut self, key: Key) {
        self.place(key).into_iter().for_each(|place| self.is_odd(place));
    }

    fn is_over(&self) -> bool {
        self.odd.is_some()
    }
}
