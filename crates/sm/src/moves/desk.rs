//! Requests to move LIDs that wait for their turn, what became of the last ones, and which GUIDs are away.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_machine::Time;
use weft_routing::VSwitch;
use weft_routing::moves::Kept;
use weft_wire::{AddressedMad, Guid, Lid, PortNum, VmMove, VmMoveKind, VmMoveResult};

use super::answer::not_at;
use super::late::Late;
use super::turns::Turns;

/// The most requests that are carried out together.
const TOGETHER_MAX: usize = 16;
/// The most GUIDs whose last answer is kept; with more, the lowest are forgotten.
const LAST_MAX: usize = 1 << 16;
/// The most GUIDs that may be away at the same time.
const AWAY_MAX: usize = 1 << 12;
/// How long a GUID may be away where the request does not say.
const AWAY_DEFAULT: Time = Time::from_secs(60);

/// What is to be done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// The move.
    Carry,
    /// A plan, of which the answer has the counts.
    Plan,
    /// The writes of a plan.
    List,
}

/// A request that subnet administration has let in.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) request: AddressedMad,
    pub(crate) ask: VmMove,
    pub(crate) want: Want,
    /// When it came.
    pub(crate) since: Time,
}

/// A GUID that is on its way from one place to another, or waits for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Away {
    pub(crate) lid: Lid,
    /// The vSwitches whose traps wait until it has come.
    pub(crate) switches: [Guid; 2],
    /// Where it is to be seen; `None` before its LID has moved.
    pub(crate) expected: Option<(Guid, PortNum)>,
    /// Until when it may be away.
    pub(crate) until: Time,
}

/// What the manager remembers of moves between requests.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// Subnet administration bounds how many there are.
    waiting: VecDeque<Asked>,
    /// The last request by GUID and its answer, for requests that are repeated.
    last: BTreeMap<Guid, (VmMove, VmMove)>,
    away: BTreeMap<Guid, Away>,
    /// vSwitches that have sent traps meanwhile.
    trapped: BTreeSet<Guid>,
    /// What was kept of the tables in force, and the vSwitches there.
    kept: Option<(Kept, Vec<VSwitch>)>,
    /// When all packets that were under way when the last move ended have arrived or are dropped.
    pub(crate) drained: Option<Time>,
    /// Until when packets of moves that were not proved may be anywhere.
    unknown: Time,
    pub(crate) turns: Turns,
    pub(crate) late: Late,
}

impl Desk {
    pub(crate) fn push(&mut self, asked: Asked) {
        self.waiting.push_back(asked);
    }

    pub(crate) fn pop(&mut self) -> Option<Asked> {
        self.waiting.pop_front()
    }

    pub(crate) fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The requests at the front that may be carried out together with one: by the same method and order, and for other
    /// GUIDs and places.
    pub(crate) fn pop_like(&mut self, first: &VmMove) -> Vec<Asked> {
        let mut taken = vec![*first];
        let mut batch = Vec::new();
        while let Some(next) = self.waiting.front() {
            let fits = taken.len() < TOGETHER_MAX
                && next.want == Want::Carry
                && moves_lids(next.ask.kind)
                && taken.iter().all(|other| may_join(other, &next.ask));
            let Some(next) = self.waiting.pop_front_if(|_| fits) else { break };
            taken.push(next.ask);
            batch.push(next);
        }
        batch
    }

    /// Puts requests back that could not be joined, in front and in their order.
    pub(crate) fn put_back(&mut self, asked: Vec<Asked>) {
        asked.into_iter().rev().for_each(|asked| self.waiting.push_front(asked));
    }

    /// What is to be answered to a request by its epoch alone: a repeated one gets the same answer, an old one is refused.
    pub(crate) fn by_epoch(&self, ask: &VmMove) -> Option<VmMove> {
        let (last, answer) = self.last.get(&ask.guid)?;
        if ask.epoch < last.epoch {
            let text = format!("epoch {} of GUID {} is old: {} was seen", ask.epoch, ask.guid, last.epoch);
            return Some(VmMove { epoch: last.epoch, ..not_at(ask, VmMoveResult::OldEpoch, &text) });
        }
        if ask.epoch > last.epoch || !moves_lids(ask.kind) {
            return None;
        }
        Some(match last.asks_as(ask) {
            true => *answer,
            false => {
                let text = format!("epoch {} of GUID {} was another request", ask.epoch, ask.guid);
                not_at(ask, VmMoveResult::Invalid, &text)
            }
        })
    }

    /// Keeps the answer to a request.
    pub(crate) fn answered(&mut self, asked: VmMove, answer: VmMove) {
        if self.last.len() >= LAST_MAX && !self.last.contains_key(&asked.guid) {
            self.last.pop_first();
        }
        self.last.insert(asked.guid, (asked, answer));
    }

    /// A GUID may be away from now on. False: too many are.
    pub(crate) fn hold(&mut self, now: Time, guid: Guid, away: Away, seconds: u16) -> bool {
        if self.away.len() >= AWAY_MAX && !self.away.contains_key(&guid) {
            return false;
        }
        self.turns.forget(guid);
        self.away.insert(guid, Away { until: now + away_for(seconds), ..away });
        true
    }

    /// Whether a LID has moved as a request says, and its port is yet to come: it may be away for longer.
    pub(crate) fn prolong(&mut self, now: Time, ask: &VmMove) -> bool {
        let to = (ask.to_switch, ask.to_port);
        let has_moved = self.away.get(&ask.guid).is_some_and(|away| away.expected == Some(to));
        for guid in [ask.guid, ask.partner].into_iter().filter(|_| has_moved) {
            if let Some(away) = self.away.get_mut(&guid) {
                away.until = now + away_for(ask.hold_s);
            }
        }
        has_moved
    }

    /// A GUID is where it belongs, or is not waited for any more.
    pub(crate) fn release(&mut self, guid: Guid) {
        self.turns.forget(guid);
        self.away.remove(&guid);
    }

    /// The GUIDs that are away.
    pub(crate) fn away(&self) -> impl Iterator<Item = (Guid, &Away)> {
        self.away.iter().map(|(guid, away)| (*guid, away))
    }

    pub(crate) fn is_anyone_away(&self) -> bool {
        !self.away.is_empty()
    }

    /// Takes out those that have been away too long.
    pub(crate) fn expire(&mut self, now: Time) -> Vec<(Guid, Away)> {
        let late: Vec<_> = self.away.extract_if(.., |_, away| away.until <= now).collect();
        late.iter().for_each(|(guid, _)| self.turns.forget(*guid));
        late
    }

    /// When the first of them will have been.
    pub(crate) fn until(&self) -> Option<Time> {
        self.away.values().map(|away| away.until).min()
    }

    /// A switch has sent a trap: whether that waits, because someone is away there.
    pub(crate) fn keeps_trap(&mut self, switch: Guid) -> bool {
        let waits = self.away.values().any(|away| away.switches.contains(&switch));
        if waits {
            self.trapped.insert(switch);
        }
        waits
    }

    /// Whether someone is expected at a switch.
    pub(crate) fn expects_at(&self, switch: Guid) -> bool {
        self.away.values().any(|away| away.expected.is_some_and(|(at, _)| at == switch))
    }

    /// The switches with traps that wait for no one any more.
    pub(crate) fn take_trapped(&mut self) -> Vec<Guid> {
        let away = &self.away;
        let is_free = |guid: &Guid| !away.values().any(|away| away.switches.contains(guid));
        self.trapped.extract_if(.., |guid| is_free(guid)).collect()
    }

    pub(crate) fn kept(&self) -> Option<&(Kept, Vec<VSwitch>)> {
        self.kept.as_ref()
    }

    pub(crate) fn kept_mut(&mut self) -> Option<&mut Kept> {
        self.kept.as_mut().map(|(kept, _)| kept)
    }

    pub(crate) fn keep(&mut self, kept: Kept, vswitches: Vec<VSwitch>) {
        self.kept = Some((kept, vswitches));
    }

    /// Tables or cabling are others from now on. By which ways packets of the last move go is then not known any more, so that the
    /// next one waits until they are gone.
    pub(crate) fn forget_tables(&mut self) {
        self.kept = None;
        self.unknown = self.drained.map_or(self.unknown, |drained| self.unknown.max(drained));
    }

    /// Forgets packets that have arrived or are dropped by now.
    pub(crate) fn settle(&mut self, now: Time) {
        if self.drained.is_some_and(|drained| drained <= now) {
            self.drained = None;
            self.kept_mut().into_iter().for_each(Kept::settle);
        }
    }

    /// A move has ended, and packets to where it was may be under way for so long; by one that was not proved, they may be anywhere.
    pub(crate) fn ended(&mut self, now: Time, packets_gone: Time, was_unproved: bool) {
        let until = now + packets_gone;
        self.drained = Some(self.drained.map_or(until, |before| before.max(until)));
        if was_unproved {
            self.forget_tables();
        }
    }

    /// For how long packets are under way of which nothing is known.
    pub(crate) fn unknown(&self, now: Time) -> Option<Time> {
        Some(self.unknown.saturating_sub(now)).filter(|rest| *rest > Time::ZERO)
    }

    /// The manager is not in charge any more, or has no port.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// How long a GUID may be away that is held for `seconds` seconds.
fn away_for(seconds: u16) -> Time {
    if seconds == 0 { AWAY_DEFAULT } else { Time::from_secs(u64::from(seconds)) }
}

/// Whether this kind changes rows of tables.
pub(crate) fn moves_lids(kind: VmMoveKind) -> bool {
    matches!(kind, VmMoveKind::Copy | VmMoveKind::Swap | VmMoveKind::Boot | VmMoveKind::Clear)
}

fn may_join(a: &VmMove, b: &VmMove) -> bool {
    let guids = |ask: &VmMove| [ask.guid, ask.partner].into_iter().filter(|guid| *guid != Guid(0));
    let places = |ask: &VmMove| {
        let all = [(ask.from_switch, ask.from_port), (ask.to_switch, ask.to_port)];
        all.into_iter().filter(|(switch, _)| *switch != Guid(0))
    };
    (a.method, a.order, a.policy) == (b.method, b.order, b.policy)
        && guids(a).all(|guid| guids(b).all(|other| other != guid))
        && places(a).all(|place| places(b).all(|other| other != place))
}

#[cfg(test)]
mod tests;
