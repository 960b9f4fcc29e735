//! A subnet manager that keeps where addresses are, once for each epoch.

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::{Random, Time};
use weft_vm::{AddressMove, MoveCounts, MovePlan, Silent, Slot, SmAnswer, SmRequest, SmWish};
use weft_wire::Guid;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It moves addresses.
    Moves,
    /// It refuses one in three.
    Refuses,
    /// It has one hold in two wait.
    Later,
    /// It knows no moves, as OpenSM.
    Unknown,
}

#[derive(Clone, Debug)]
pub(crate) struct SubnetManager {
    pub(crate) kind: Kind,
    pub(crate) alive: bool,
    /// Where rows lead to, and since which epoch.
    pub(crate) rows: BTreeMap<Guid, (u64, Slot)>,
    /// The latest epoch of each address.
    heard: BTreeMap<Guid, u64>,
    /// Addresses that are about to be away.
    pub(crate) held: BTreeSet<Guid>,
    pub(crate) restarts: u64,
    pub(crate) done: u64,
    pub(crate) refused: u64,
    /// Holds that were turned away, to ask again.
    pub(crate) later: u64,
    /// For how long hosts at one switch are silent after a move.
    pub(crate) silence: Time,
    /// What it says of that switch, by the epoch of the move; it does not say it without.
    pub(crate) silent: Option<fn(u64) -> Silent>,
    /// The epoch of the last move that wrote rows.
    pub(crate) wrote: u64,
}

impl SubnetManager {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            alive: true,
            rows: BTreeMap::new(),
            heard: BTreeMap::new(),
            held: BTreeSet::new(),
            restarts: 0,
            done: 0,
            refused: 0,
            later: 0,
            silence: Time::ZERO,
            silent: None,
            wrote: 0,
        }
    }

    pub(crate) fn restart(&mut self) {
        (self.alive, self.restarts) = (true, self.restarts + 1);
        self.rows.clear();
        self.heard.clear();
        self.held.clear();
    }

    pub(crate) fn handle(&mut self, request: &SmRequest, random: &mut Random) -> SmAnswer {
        if self.kind == Kind::Unknown {
            return SmAnswer::Unknown;
        }
        match request.wish {
            SmWish::Plan => return SmAnswer::Plan(Box::default()),
            SmWish::Hold if self.kind == Kind::Later && random.below(2) == 0 => {
                self.later += 1;
                return SmAnswer::Later(Time::from_millis(random.below(3000).into()));
            }
            SmWish::Hold | SmWish::Release => {
                let known = request.moves.iter().filter_map(|one| self.heard.get(&one.port_guid)).max();
                if let Some(known) = known.filter(|known| **known > request.epoch) {
                    return SmAnswer::OldEpoch(*known);
                }
                for one in &request.moves {
                    self.heard.insert(one.port_guid, request.epoch);
                    match request.wish {
                        SmWish::Hold => drop(self.held.insert(one.port_guid)),
                        _ => drop(self.held.remove(&one.port_guid)),
                    }
                }
                return SmAnswer::Done(MoveCounts { silence: self.silence, ..MoveCounts::default() });
            }
            SmWish::Silent => {
                let silent: Vec<Silent> = self.silent.map(|of| of(request.epoch)).into_iter().collect();
                let plan = MovePlan { silent, ..MovePlan::default() };
                return if self.silent.is_some() {
                    SmAnswer::Plan(Box::new(plan))
                } else {
                    SmAnswer::Timeout
                };
            }
            SmWish::Address => return SmAnswer::Done(MoveCounts::default()),
            SmWish::Move => {}
        }
        for one in &request.moves {
            let known = self.heard.get(&one.port_guid).copied().unwrap_or(0);
            if request.epoch < known {
                return SmAnswer::OldEpoch(known);
            }
        }
        if self.kind == Kind::Refuses && random.below(3) == 0 {
            self.refused += 1;
            return SmAnswer::Refused("no order of updates is free of loops".to_owned());
        }
        let is_there =
            |one: &AddressMove| self.rows.get(&one.port_guid).is_some_and(|(_, slot)| *slot == one.to.slot);
        let is_old = request.moves.iter().all(is_there);
        for one in &request.moves {
            self.rows.insert(one.port_guid, (request.epoch, one.to.slot.clone()));
            self.heard.insert(one.port_guid, request.epoch);
            self.held.remove(&one.port_guid);
        }
        self.done += 1;
        if is_old {
            return SmAnswer::Done(MoveCounts::default());
        }
        self.wrote = request.epoch;
        let (method, silence) = ("ftreeminrc".to_owned(), self.silence);
        let silent = u32::from(silence > Time::ZERO);
        SmAnswer::Done(MoveCounts {
            method,
            switches: 3,
            rounds: 2,
            silence,
            silent,
            ..MoveCounts::default()
        })
    }
}
