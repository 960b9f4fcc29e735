//! What managers before this one have left: LIDs, settings of nodes, and hosts that do not know this manager yet.

use std::collections::BTreeSet;

use weft_machine::Time;
use weft_routing::files::LidRange;
use weft_wire::{Guid, Lid, PortInfo, capability};

use crate::held::Held;
use crate::key::PortAt;
use crate::quarantine::Quarantine;
use crate::route::{adopt_lids, give_lids};
use crate::subnet::Subnet;
use crate::{Event, GuidToLid, Options, VmLids};

/// LIDs on file, and what is taken over from another manager.
#[derive(Debug)]
pub(super) struct Succession {
    guid2lid: GuidToLid,
    /// LIDs of virtual functions that are gone.
    quarantine: Quarantine,
    /// Another manager was in charge before: LIDs are as the ports have them, whatever is on file.
    adopts: bool,
    /// Nodes were configured before, and whether congestion control was on then is not known yet.
    inherits: bool,
    /// Ports whose hosts know that they are to subscribe with this manager.
    reregistered: BTreeSet<Guid>,
}

impl Succession {
    /// `guid2lid` has the LIDs of earlier runs.
    pub(super) fn new(guid2lid: GuidToLid) -> Self {
        Self {
            guid2lid,
            quarantine: Quarantine::default(),
            adopts: false,
            inherits: false,
            reregistered: BTreeSet::new(),
        }
    }

    /// The LIDs on file.
    pub(super) fn on_file(&self) -> &GuidToLid {
        &self.guid2lid
    }

    /// Gives a GUID a LID before it is in the subnet. Returns what is to be kept on file if that has changed.
    pub(super) fn give(&mut self, guid: Guid, lid: Lid) -> Option<GuidToLid> {
        let range = LidRange { min: lid, max: lid };
        if self.guid2lid.range(guid) == Some(range) {
            return None;
        }
        self.guid2lid.insert(guid, range);
        Some(self.guid2lid.clone())
    }

    /// Another manager is in charge, or was until now.
    pub(super) fn yield_lids(&mut self) {
        self.adopts = true;
    }

    /// Whether another manager has been in charge since this one gave LIDs.
    pub(super) fn adopts(&self) -> bool {
        self.adopts
    }

    /// No host knows this manager any more.
    pub(super) fn forget_hosts(&mut self) {
        self.reregistered.clear();
    }

    /// A port is gone: who has its GUID next does not know this manager.
    pub(super) fn forget_host(&mut self, guid: Guid) {
        self.reregistered.remove(&guid);
    }

    /// Nodes hold tables that this manager has not written.
    pub(super) fn found_tables(&mut self) {
        self.inherits = true;
    }

    /// Whether it is yet to be looked who holds settings of congestion control.
    pub(super) fn take_inherits(&mut self) -> bool {
        std::mem::take(&mut self.inherits)
    }

    /// Gives LIDs; says which are new and how many virtual functions have one, and returns those to be kept on file if they
    /// have changed. LIDs of machines that are on their way (`away`) are given to no one else.
    pub(super) fn give_lids(
        &mut self,
        now: Time,
        (subnet, held): (&mut Subnet, &[Held]),
        away: BTreeSet<Lid>,
        options: &Options,
    ) -> (Vec<Event>, VmLids, Option<GuidToLid>) {
        let before = self.guid2lid.clone();
        if std::mem::take(&mut self.adopts) {
            adopt_lids(subnet, &mut self.guid2lid, options);
        }
        let (known, quarantine) = (&mut self.guid2lid, &mut self.quarantine);
        let (events, counts) = give_lids(now, (subnet, held), away, known, quarantine, options);
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

    /// Notes which hosts have been told to subscribe, and forgets those that are gone. Returns how many are new.
    pub(super) fn note_registration(&mut self, subnet: &Subnet) -> u32 {
        let told = registering(subnet).filter(|at| subnet.port(*at).is_some_and(|port| !port.reregister));
        let now: BTreeSet<Guid> = told.map(|at| subnet.end_guid(at)).collect();
        let ports = now.difference(&self.reregistered).count() as u32;
        self.reregistered = now;
        ports
    }
}

/// The ports of hosts that can be told to subscribe again.
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
