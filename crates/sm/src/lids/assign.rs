//! Gives LIDs: a pure function of who is there, of what they have, and of what is on file.

use std::collections::BTreeSet;

use weft_routing::files::{GuidToLid, LidRange};
use weft_wire::{Guid, Lid};

/// A port that needs LIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Of the port, or of its place: that under which LIDs are on file.
    pub(crate) guid: Guid,
    /// What it has now; 0 is none.
    pub(crate) present: Lid,
    pub(crate) lmc: u8,
    /// Whether it is a virtual function's.
    pub(crate) is_function: bool,
    /// Whether it is one that gets its LID when a machine boots: after all others, and from what is left.
    pub(crate) is_vm: bool,
}

/// What virtual functions get LIDs from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room {
    /// LIDs that rest, which only those get that have them on file or at their port, until there are no others.
    pub(crate) resting: BTreeSet<Lid>,
    /// Those of them whose machines are on their way, and which no other port gets even then.
    pub(crate) away: BTreeSet<Lid>,
    /// Whether they are in quarantine: no other port gets them even then.
    pub(crate) is_firm: bool,
    /// Ports of virtual functions that get none yet, because one of those that rest may be theirs.
    pub(crate) waiting: BTreeSet<Guid>,
    /// The most LIDs of virtual functions, those that rest included.
    pub(crate) vms_max: usize,
}

impl Room {
    /// Whether the LID of somebody who is away may be given to others where there is none else.
    fn gives_up(&self, lid: Lid) -> bool {
        !(self.away.contains(&lid) || self.is_firm && self.resting.contains(&lid))
    }
}

/// Gives every claim its LIDs; `None` where none are left. Claims come in order of GUIDs, each GUID once.
///
/// The file goes first, then the LID that a port has already, then the lowest free one; of two ports with one LID the
/// first keeps it. With an LMC that has changed, a port keeps the base LID that it has on file, as long as its new
/// range is free. LIDs on file for ports that are not there, or that wait, stay theirs until there are no others, and
/// those in quarantine even then. Afterwards no two GUIDs share a LID, and none on file either.
pub(crate) fn assign(claims: &[Claim], known: &mut GuidToLid, room: &Room) -> Vec<Option<LidRange>> {
    let mut space = Space::new();
    let waits = |claim: &Claim| room.waiting.contains(&claim.guid);
    let mut given: Vec<Option<LidRange>> = Vec::with_capacity(claims.len());
    for claim in claims {
        let lids = on_file(claim, known).filter(|lids| !waits(claim) && space.is_free(*lids));
        lids.iter().for_each(|lids| space.take(*lids));
        given.push(lids);
    }
    let mut absent: Vec<(Guid, LidRange)> = known
        .iter()
        .filter(|(guid, _)| claims.binary_search_by_key(guid, |claim| claim.guid).is_err())
        .collect();
    absent.iter().for_each(|(_, lids)| space.take(*lids));
    for from_file in [true, false] {
        for (claim, lids) in claims.iter().zip(&mut given).filter(|(_, lids)| lids.is_none()) {
            let base = match from_file {
                true => known.range(claim.guid).filter(|_| !waits(claim)).map(|lids| lids.min),
                false => Some(claim.present),
            };
            let range = base.and_then(|base| LidRange::aligned(base, claim.lmc));
            *lids = range.filter(|range| space.is_free(*range));
            lids.iter().for_each(|lids| space.take(*lids));
        }
    }
    for (claim, given) in claims.iter().zip(&given) {
        match known.range(claim.guid).filter(|_| waits(claim)) {
            // A port that waits may get what is on file for it later, so no other gets it now.
            Some(lids) if space.is_free(lids) => {
                space.take(lids);
                absent.push((claim.guid, lids));
            }
            None if waits(claim) || given.is_some() => {}
            // Somebody else has it, or it is still on file with another LMC: it is void.
            _ => known.remove(claim.guid),
        }
    }
    room.resting.iter().for_each(|lid| space.take(LidRange { min: *lid, max: *lid }));
    let mut absent = Some(absent);
    let mut vms = claims.iter().zip(&given).filter(|(claim, lids)| claim.is_vm && lids.is_some()).count();
    vms += room.resting.len();
    for is_vm in [false, true] {
        let without = |(claim, lids): &(&Claim, &mut Option<LidRange>)| {
            claim.is_vm == is_vm && lids.is_none() && !waits(claim)
        };
        for (claim, lids) in claims.iter().zip(&mut given).filter(without) {
            if is_vm && vms >= room.vms_max {
                continue;
            }
            *lids = space.lowest(claim.lmc);
            if lids.is_none()
                && let Some(absent) = absent.take()
            {
                for (guid, lids) in absent.into_iter().filter(|(_, lids)| room.gives_up(lids.min)) {
                    known.remove(guid);
                    space.release(lids);
                }
                let resting = room.resting.iter().filter(|lid| room.gives_up(**lid));
                resting.for_each(|lid| space.release(LidRange { min: *lid, max: *lid }));
                *lids = space.lowest(claim.lmc);
            }
            vms += usize::from(is_vm && lids.is_some());
            lids.iter().for_each(|lids| space.take(*lids));
        }
    }
    for (claim, lids) in claims.iter().zip(&given) {
        lids.iter().for_each(|lids| known.insert(claim.guid, *lids));
    }
    given
}

/// Takes the LIDs that ports have for those on file, as another manager gave them that was in charge meanwhile, or is of
/// another part of the subnet. Of two ports with one LID the one keeps it that has it on file, or else the first; who is
/// away loses what somebody else has now.
pub(crate) fn adopt(claims: &[Claim], known: &mut GuidToLid) {
    let mut space = Space::new();
    let mut present = Vec::new();
    for on_file in [true, false] {
        for claim in claims {
            let lids = LidRange::aligned(claim.present, claim.lmc);
            let lids = lids.filter(|lids| (known.range(claim.guid) == Some(*lids)) == on_file);
            if let Some(lids) = lids.filter(|lids| space.is_free(*lids)) {
                space.take(lids);
                present.push((claim.guid, lids));
            }
        }
    }
    let overlapping: Vec<Guid> =
        known.iter().filter(|(_, lids)| !space.is_free(*lids)).map(|(guid, _)| guid).collect();
    overlapping.into_iter().for_each(|guid| known.remove(guid));
    present.into_iter().for_each(|(guid, lids)| known.insert(guid, lids));
}

/// The same for ports that were not there when LIDs were adopted (`unseen`): what is on file for them is older than what they have.
pub(crate) fn adopt_late(claims: &[Claim], known: &mut GuidToLid, unseen: &mut BTreeSet<Guid>) {
    for claim in claims.iter().filter(|claim| unseen.remove(&claim.guid)) {
        let Some(lids) = LidRange::aligned(claim.present, claim.lmc) else { continue };
        let shares = |other: &LidRange| other.min <= lids.max && lids.min <= other.max;
        let others = known.iter().filter(|(guid, other)| *guid != claim.guid && shares(other));
        let others: Vec<Guid> = others.map(|(guid, _)| guid).collect();
        let is_there = |guid: &Guid| claims.binary_search_by_key(guid, |claim| claim.guid).is_ok();
        if !others.iter().any(is_there) {
            others.into_iter().for_each(|guid| known.remove(guid));
            known.insert(claim.guid, lids);
        }
    }
}

fn on_file(claim: &Claim, known: &GuidToLid) -> Option<LidRange> {
    let lids = known.range(claim.guid)?;
    (LidRange::aligned(lids.min, claim.lmc) == Some(lids)).then_some(lids)
}

/// Which LIDs are taken.
struct Space {
    taken: Vec<bool>,
    /// By LMC: no range below this is free.
    from: [u16; 8],
}

impl Space {
    fn new() -> Self {
        let mut taken = vec![false; usize::from(Lid::UNICAST_MAX.0) + 1];
        taken[0] = true;
        Self { taken, from: [0; 8] }
    }

    fn slots(&mut self, lids: LidRange) -> &mut [bool] {
        self.taken.get_mut(usize::from(lids.min.0)..=usize::from(lids.max.0)).unwrap_or_default()
    }

    fn take(&mut self, lids: LidRange) {
        self.slots(lids).fill(true);
    }

    fn release(&mut self, lids: LidRange) {
        self.slots(lids).fill(false);
        self.from = [0; 8];
    }

    fn is_free(&mut self, lids: LidRange) -> bool {
        !self.slots(lids).contains(&true)
    }

    fn lowest(&mut self, lmc: u8) -> Option<LidRange> {
        let lmc = lmc.min(7);
        let step = 1usize << lmc;
        let mut base = self.from[usize::from(lmc)];
        // LID 0 is taken, so a range that begins there is never free, aligned or not.
        loop {
            let range = usize::from(base)..usize::from(base) + step;
            if !self.taken.get(range)?.contains(&true) {
                self.from[usize::from(lmc)] = base;
                return Some(LidRange { min: Lid(base), max: Lid(base + step as u16 - 1) });
            }
            base += step as u16;
        }
    }
}

#[cfg(test)]
mod tests;
