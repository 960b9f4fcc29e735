//! Paths in a tree that go up after they went down.

use serde::Serialize;
use weft_topology::PortRef;
use weft_wire::{Lid, PortNum};

use crate::trace::{Path, trace};

use super::ground::{End, is_channel};
use super::order::{NEVER, Order};
use super::pass::Pass;

/// Paths in a tree that go up after they went down. Of two switches of one rank the one with the lower GUID is above
/// the other; switches without a rank are below all others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Turns {
    /// Whether the routing has ranks; without them nothing is known.
    pub ranked: bool,
    /// How many pairs of a switch with hosts and a host's LID.
    pub hosts: u64,
    /// How many pairs of which one end is a switch and the other is or has hosts: only management packets go there.
    pub management: u64,
    /// The first of the hosts' pairs, or of the others if there is none.
    pub example: Option<Turn>,
}

/// A path that goes up after it went down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Turn {
    /// The LID that it leads to.
    pub to: Lid,
    /// The id of the switch where it turns up.
    pub at: String,
    /// All of it, from the first switch on.
    pub path: Path,
    #[serde(skip)]
    of_hosts: bool,
}

impl Turns {
    /// Whether no traffic between hosts goes up after it went down.
    pub fn is_legal(&self) -> bool {
        self.ranked && self.hosts == 0
    }

    /// Adds what was found for later LIDs.
    pub(super) fn append(&mut self, later: Self) {
        self.hosts += later.hosts;
        self.management += later.management;
        self.show(later.example);
    }

    fn show(&mut self, turn: Option<Turn>) {
        if let Some(turn) = turn
            && self.example.as_ref().is_none_or(|known| turn.of_hosts && !known.of_hosts)
        {
            self.example = Some(turn);
        }
    }
}

/// Looks for them, one LID at a time.
#[derive(Debug, Default)]
pub(super) struct Up {
    /// By switch: where the path from there first turns up; [`NEVER`] where it does not.
    turns_at: Vec<u32>,
}

impl Up {
    pub(super) fn find(
        &mut self,
        pass: &Pass<'_>,
        ups: &[bool],
        order: &Order,
        exits: &[u32],
        end: &End,
        turns: &mut Turns,
    ) {
        let ground = pass.ground;
        self.turns_at.clear();
        self.turns_at.resize(exits.len(), NEVER);
        for switch in order.switches.iter().rev().map(|switch| *switch as usize) {
            if order.hops[switch] == NEVER || !is_channel(exits[switch]) {
                continue;
            }
            let next = ground.to[exits[switch] as usize];
            let then = exits[next as usize];
            let turns_here = !ups[exits[switch] as usize] && is_channel(then) && ups[then as usize];
            self.turns_at[switch] = if turns_here { next } else { self.turns_at[next as usize] };
        }
        let turning = (0..).zip(&self.turns_at).filter(|(_, at)| **at != NEVER);
        for (switch, at) in turning {
            let of_hosts = ground.has_hosts[switch] && end.host;
            match (of_hosts, ground.has_hosts[switch] || end.host) {
                (true, _) => turns.hosts += 1,
                (false, true) => turns.management += 1,
                (false, false) => continue,
            }
            if turns.example.as_ref().is_none_or(|known| of_hosts && !known.of_hosts) {
                let from = PortRef::new(ground.graph.nodes[switch], PortNum::ZERO);
                let path = trace(ground.fabric, ground.lids, pass.routes, from, end.lid);
                let at = ground.fabric.node(ground.graph.nodes[*at as usize]).id.clone();
                turns.show(path.ok().map(|path| Turn { to: end.lid, at, path, of_hosts }));
            }
        }
    }
}
