//! Legacy of managers before this one: LIDs, settings of nodes, and hosts that do not know this manager yet.

use std::collections::BTreeSet;

use weft_machine::Time;
use weft_routing::files::LidRange;
use weft_wire::{Guid, Lid, PortInfo, capability};

use crate::knowledge::{Held, PortAt, Subnet};
use crate::lids::{Arrival, Ledger, Quarantine};
use crate::sweep::{adopt_late_lids, adopt_lids, give_lids};
use crate::{Event, GuidToLid, Options, VmLids};

/// LIDs on file, and what is taken over from another manager.
#[derive(Debug, Default)]
pub(super) struct Succession {
    pub(super) guid2lid: GuidToLid,
    /// LIDs of virtual functions that are gone.
    quarantine: Quarantine,
    /// Another manager was in charge before: LIDs are as the ports have them, whatever is on file.
    pub(super) adopts: bool,
    /// GUIDs on file that were not there when LIDs were taken over: what is on file for them may be old.
    unseen: BTreeSet<Guid>,
    /// Since when it is in charge; `None` while it is not.
    pub(super) arrival: Option<Arrival>,
    /// Nodes were configured before, and whether congestion control was on then is not known yet.
    pub(super) inherits: bool,
    /// Ports whose hosts know that they are to subscribe with this manager.
    pub(super) reregistered: BTreeSet<Guid>,
    /// Ports that are suspended while levels of theirs become others: they ask for their paths when they are asked to register.
    pub(super) relevelled: BTreeSet<Guid>,
}

impl Succession {
    /// `guid2lid` has the LIDs of earlier runs.
    pub(super) fn new(guid2lid: GuidToLid) -> Self {
        Self { guid2lid, ..Self::default() }
    }

    /// Gives a GUID a LID before it is in the subnet; others have it on file no more, or both would be given it. Returns what is to be
    /// kept on file if that has changed.
    pub(super) fn give(&mut self, guid: Guid, lid: Lid) -> Option<GuidToLid> {
        let range = LidRange { min: lid, max: lid };
        let has = |range: LidRange| (range.min..=range.max).contains(&lid);
        let others = self.guid2lid.iter().filter(|(other, range)| *other != guid && has(*range));
        let others: Vec<Guid> = others.map(|(other, _)| other).collect();
        if others.is_empty() && self.guid2lid.range(guid) == Some(range) {
            return None;
        }
        others.into_iter().for_each(|other| self.guid2lid.remove(other));
        self.guid2lid.insert(guid, range);
        Some(self.guid2lid.clone())
    }

    /// Another manager is in charge, or was until now.
    pub(super) fn yield_lids(&mut self) {
        (self.adopts, self.arrival) = (true, None);
    }

    /// It is in charge. `found` is what its own port had: where that names another manager, the LIDs on file are older than those of the
    /// ports.
    pub(super) fn arrive(&mut self, now: Time, own: Guid, found: Option<PortInfo>, options: &Options) {
        if self.arrival.is_some() {
            return;
        }
        let others = |info: PortInfo| {
            info.lid.is_unicast() && info.master_sm_lid.is_unicast() && info.master_sm_lid != info.lid
        };
        self.adopts |= found.is_some_and(others);
        self.arrival = Some(Arrival::new(now, own, self.adopts, options));
    }

    /// The number of its mastership; 0 while it is not in charge.
    pub(super) fn mastership(&self) -> u32 {
        self.arrival.as_ref().map_or(0, |arrival| arrival.mastership)
    }

    /// The VM manager has repeated all addresses to this mastership. Whether it is this mastership,
    /// and whether ports have waited for it.
    pub(super) fn heard_all(&mut self, mastership: u32) -> (bool, bool) {
        let Some(arrival) = &mut self.arrival else { return (false, false) };
        let is_news = arrival.mastership == mastership && !arrival.is_told;
        if is_news {
            arrival.is_told = true;
        }
        (arrival.mastership == mastership, is_news && arrival.waiting > 0)
    }

    /// How many ports wait for the VM manager's word, and until when.
    pub(super) fn awaited(&self) -> Option<(u32, Time)> {
        self.arrival.as_ref().and_then(Arrival::awaited)
    }

    /// The VM manager says whose LID it is. Returns what is to be kept on file if that has changed.
    pub(super) fn confirm(&mut self, guid: Guid, lid: Lid) -> Option<GuidToLid> {
        self.arrival.iter_mut().for_each(|arrival| _ = arrival.confirmed.insert(guid));
        self.unseen.remove(&guid);
        self.give(guid, lid)
    }

    /// Gives LIDs; says which are new and how many virtual functions have one, and returns those to be kept on file if they
    /// have changed. LIDs of machines that are on their way (`away`) are given to no one else.
    pub(super) fn give_lids(
        &mut self,
        now: Time,
        subnet: &mut Subnet,
        held: &[Held],
        away: BTreeSet<Lid>,
        options: &Options,
    ) -> (Vec<Event>, VmLids, Option<GuidToLid>) {
        let before = self.guid2lid.clone();
        if std::mem::take(&mut self.adopts) {
            adopt_lids(subnet, &mut self.guid2lid, options);
            let there: BTreeSet<Guid> = subnet.end_ports().map(|(at, _)| subnet.end_guid(at)).collect();
            self.unseen =
                self.guid2lid.iter().map(|(guid, _)| guid).filter(|guid| !there.contains(guid)).collect();
        } else if !self.unseen.is_empty() {
            adopt_late_lids(subnet, &mut self.guid2lid, &mut self.unseen, options);
        }
        let (known, quarantine) = (&mut self.guid2lid, &mut self.quarantine);
        let ledger = Ledger { known, quarantine, away, arrival: self.arrival.as_mut() };
        let (events, counts) = give_lids(now, subnet, held, ledger, options);
        (events, counts, (self.guid2lid != before).then(|| self.guid2lid.clone()))
    }

    /// Hosts of which this manager has no subscriptions, since it has just begun or they have been away, are to subscribe
    /// (again): it sets their port's ClientReregister once.
    pub(super) fn demand_registration(&self, subnet: &mut Subnet) {
        let hosts: Vec<PortAt> = registering(subnet).collect();
        for at in hosts {
            let known = self.reregistered.contains(&subnet.end_guid(at));
            if let Some(port) = subnet.port_mut(at) {
                port.reregister = !known;
            }
        }
    }

    /// Notes which hosts were asked to subscribe, and forgets those gone. Returns how many are new.
    pub(super) fn note_registration(&mut self, subnet: &Subnet) -> u32 {
        let told = registering(subnet).filter(|at| subnet.port(*at).is_some_and(|port| !port.reregister));
        let now: BTreeSet<Guid> = told.map(|at| subnet.end_guid(at)).collect();
        let ports = now.difference(&self.reregistered).count() as u32;
        self.reregistered = now;
        ports
    }
}

/// The ports of hosts that can be asked to subscribe again.
fn registering(subnet: &Subnet) -> impl Iterator<Item = PortAt> {
    let can = |at: PortAt, info: &PortInfo| {
        let is_host = subnet.node(at.node).is_some_and(|node| !node.is_switch());
        is_host && info.capability_mask & capability::IS_CLIENT_REREGISTRATION_SUPPORTED != 0
    };
    subnet
        .end_ports()
        .filter(move |(at, port)| port.info.is_some_and(|info| can(*at, &info)))
        .map(|(at, _)| at)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use super::*;

    fn on_file(text: &str) -> Succession {
        Succession::new(GuidToLid::parse("guid2lid", text).unwrap())
    }

    /// Port 1 has LIDs 4 to 7, ports 2 and 3 one each.
    const FILE: &str = "0x1 0x4 0x7\n0x2 0x9 0x9\n0x3 0xa 0xa";

    fn ranges(file: &GuidToLid) -> Vec<(u64, u16, u16)> {
        file.iter().map(|(guid, lids)| (guid.0, lids.min.0, lids.max.0)).collect()
    }

    #[test]
    fn a_lid_that_is_given_is_on_file_for_no_other() {
        let mut succession = on_file(FILE);
        let kept = succession.give(Guid(5), Lid(9)).expect("the file has changed");
        assert_eq!(ranges(&kept), [(1, 4, 7), (3, 10, 10), (5, 9, 9)]);
        assert_eq!(succession.guid2lid, kept);
        // A LID within another port's range, and one that two others have: a file with a LID twice cannot be read.
        let kept = succession.give(Guid(5), Lid(6)).expect("the file has changed");
        assert_eq!(ranges(&kept), [(3, 10, 10), (5, 6, 6)]);
        succession.guid2lid.insert(Guid(8), LidRange { min: Lid(10), max: Lid(10) });
        let kept = succession.give(Guid(5), Lid(10)).expect("the file has changed");
        assert_eq!(ranges(&kept), [(5, 10, 10)]);
        assert_eq!(GuidToLid::parse("guid2lid", &kept.to_string()), Ok(kept));
    }

    #[test]
    fn a_file_that_says_so_already_is_not_kept_again() {
        let mut succession = on_file(FILE);
        assert_eq!(succession.give(Guid(2), Lid(9)), None);
        // As before for the port itself, but another has the LID too.
        succession.guid2lid.insert(Guid(8), LidRange { min: Lid(9), max: Lid(9) });
        let kept = succession.give(Guid(2), Lid(9)).expect("the file has changed");
        assert_eq!(ranges(&kept), [(1, 4, 7), (2, 9, 9), (3, 10, 10)]);
    }
}
