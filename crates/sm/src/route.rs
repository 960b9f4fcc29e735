//! From LIDs and cabling to forwarding tables. A pure function: the same fabric gets the same tables again, but for those
//! that stand and are as good.

use std::collections::BTreeMap;
use std::sync::Arc;

use weft_routing::files::{GuidToLid, LidRange};
use weft_routing::{EngineOptions, LaneRow, Lids, Refusal, Routes, Routing, ServiceLevels};
use weft_topology::{Fabric, NodeIndex, PortRef};

use crate::assign::{Claim, adopt, assign};
use crate::held::Held;
use crate::key::PortAt;
use crate::options::MANAGEMENT_LEVEL;
use crate::routed::{Mappings, Routed};
use crate::settings::Lanes;
use crate::subnet::{Subnet, graph_port, own_lid};
use crate::{Event, Options};
use weft_wire::{Guid, Lid, PortNum};

/// Gives every end port its LIDs, and says which are new.
pub(crate) fn give_lids(subnet: &mut Subnet, known: &mut GuidToLid, options: &Options) -> Vec<Event> {
    let mut ends = claims(subnet, options);
    let mut events = Vec::new();
    ends.dedup_by(|(later, at), (first, _)| {
        let twice = later.guid == first.guid;
        if twice {
            let path = subnet.path(*at).unwrap_or_default();
            events.push(Event::DuplicateGuid { guid: first.guid, first: path, second: path });
        }
        twice
    });
    let claims: Vec<Claim> = ends.iter().map(|(claim, _)| *claim).collect();
    let given = assign(&claims, known);
    for ((claim, at), lids) in ends.iter().zip(given) {
        if let Some(port) = subnet.port_mut(*at) {
            port.lid = lids;
        }
        match lids {
            None => events.push(Event::LidsExhausted { port_guid: claim.guid }),
            Some(LidRange { min, .. }) if min != claim.present => {
                events.push(Event::LidAssigned { port_guid: claim.guid, lid: min, before: claim.present });
            }
            Some(_) => {}
        }
    }
    events
}

/// What every port that needs LIDs has now, in order of GUIDs.
fn claims(subnet: &Subnet, options: &Options) -> Vec<(Claim, PortAt)> {
    let mut ends: Vec<_> = subnet
        .end_ports()
        .map(|(at, port)| {
            let lmc = if at.port == PortNum::ZERO { 0 } else { options.lmc.min(7) };
            (Claim { guid: subnet.end_guid(at), present: own_lid(port).unwrap_or(Lid(0)), lmc }, at)
        })
        .collect();
    ends.sort_by_key(|(claim, at)| (claim.guid, *at));
    ends
}

/// Takes the LIDs that another manager has given for those on file.
pub(crate) fn adopt_lids(subnet: &Subnet, known: &mut GuidToLid, options: &Options) {
    let claims: Vec<Claim> = claims(subnet, options).into_iter().map(|(claim, _)| claim).collect();
    adopt(&claims, known);
}

/// What the first engine that serves a subnet has computed.
#[derive(Debug)]
pub(crate) struct Computed {
    pub(crate) lids: Lids,
    pub(crate) routing: Routing,
    /// The options that the engine was given.
    given: EngineOptions,
}

impl Computed {
    /// Puts the tables that stand in the place of the engine's own, if they are as good; says whether it did.
    pub(crate) fn keep(&mut self, fabric: &Fabric, standing: Routes) -> bool {
        if standing == self.routing.routes {
            return true;
        }
        let kept = weft_routing::keeps(fabric, &self.lids, &self.routing, standing, &self.given);
        let keeps = kept.is_some();
        if let Some(kept) = kept {
            self.routing = kept;
            self.routing.report.notes.push(KEPT.to_owned());
        }
        keeps
    }

    /// Rows stay that switches hold for LIDs of those who are away, and are no one's now.
    pub(crate) fn keep_rows(&mut self, away: &[Lid], subnet: &Subnet, held: &[Held]) {
        let lids: Vec<Lid> = away.iter().copied().filter(|lid| self.lids.owner(*lid).is_none()).collect();
        for (node, _) in subnet.switches() {
            let tables = &mut self.routing.routes.tables;
            let Some((table, held)) = tables.get_mut(node as usize).zip(held.get(node as usize)) else {
                continue;
            };
            for lid in &lids {
                let row = held.lft_block(lid.block()).map(|block| block[lid.offset()]);
                row.into_iter().filter(|port| *port != PortNum::NONE).for_each(|port| table.set(*lid, port));
            }
        }
    }

    /// The routing in force from now on.
    pub(crate) fn into_routed(self, subnet: &Subnet) -> Routed {
        let (levels, everywhere, of_ports) = (self.levels(), self.sl2vl(), self.sl2vl_of_ports(subnet));
        let Self { lids, routing, given } = self;
        Routed::new(lids, levels, Mappings { everywhere, of_ports }, (routing, given))
    }

    /// The service level of every pair; `None` where one lane does, so that every level is as good as another.
    fn levels(&self) -> Option<Arc<ServiceLevels>> {
        (self.routing.report.lanes > 1).then(|| Arc::new(self.routing.levels.clone()))
    }

    /// The mapping of service levels that the routing needs; `None` where any will do.
    fn sl2vl(&self) -> Option<[u8; 16]> {
        (self.routing.report.lanes > 1).then(|| self.routing.lanes.everywhere.map(|lane| lane.0))
    }

    /// The mappings that the routing wants of single ports. Packets take one lane out of a port, whichever way they came
    /// in: no engine asks for more.
    fn sl2vl_of_ports(&self, subnet: &Subnet) -> BTreeMap<(Guid, PortNum), [u8; 16]> {
        let rows = self.routing.lanes.exceptions.iter().filter_map(|((node, _, exit), row)| {
            let guid = subnet.node(node.0)?.guid();
            Some(((guid, *exit), row.map(|lane| lane.0)))
        });
        rows.collect()
    }
}

/// Computes the tables of all switches by the first engine that serves the subnet. An error says, in a sentence for
/// each, why none does.
pub(crate) fn route(subnet: &Subnet, options: &Options) -> Result<Computed, String> {
    let mut ends: Vec<_> =
        subnet.end_ports().filter_map(|(at, port)| Some((port.lid?, graph_port(at)))).collect();
    ends.sort_by_key(|(lids, _)| *lids);
    let mut lids = Lids::new();
    for (range, port) in ends {
        lids.insert(port, range.min, range.lmc()).map_err(|error| error.to_string())?;
    }
    let lanes = subnet.management.unwrap_or_else(|| lanes(subnet, options));
    let given = options.given(lanes);
    let routing = options.route(&subnet.fabric, &lids, lanes)?;
    if subnet.management.is_some() && routing.levels.highest() == MANAGEMENT_LEVEL {
        let engine = &routing.report.engine;
        return Err(format!("{engine} uses service level {MANAGEMENT_LEVEL}, which is kept for management"));
    }
    if let Some((node, exit)) = differs_by_entry(&routing) {
        let engine = &routing.report.engine;
        let port = subnet.fabric.port_name(PortRef::new(node, exit));
        return Err(format!("{engine}: lanes out of {port} differ by input port, and no port is told that"));
    }
    Ok(Computed { lids, routing, given })
}

/// A port out of which packets of one level take several lanes, depending on where they came in.
fn differs_by_entry(routing: &Routing) -> Option<(NodeIndex, PortNum)> {
    let lanes = &routing.lanes;
    let mut first: BTreeMap<(NodeIndex, PortNum), &LaneRow> = BTreeMap::new();
    let by_exit = lanes.exceptions.iter().map(|((node, _, exit), row)| ((*node, *exit), row));
    by_exit.into_iter().find(|(exit, row)| **first.entry(*exit).or_insert(row) != **row).map(|(exit, _)| exit)
}

/// What a routing's report says of tables that were not replaced.
const KEPT: &str = "the tables that stand are as good and were kept";

impl Options {
    /// The options of engines where links have this number of data lanes besides management's.
    fn given(&self, lanes: u8) -> EngineOptions {
        EngineOptions { lanes: self.routing.lanes.min(lanes), ..self.routing.clone() }
    }

    /// The routing of a fabric whose links all have so many data lanes besides management's: by the first engine that
    /// serves it. An error says, in a sentence for each, why none does.
    pub fn route(&self, fabric: &Fabric, lids: &Lids, lanes: u8) -> Result<Routing, String> {
        let engines = self.given(lanes);
        let said =
            |refusals: Vec<Refusal>| refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        self.engines.route(fabric, lids, &engines).map_err(said)
    }
}

/// The lane that is management's alone: the highest that every link has, where there is another.
pub(crate) fn management_lane(subnet: &Subnet, options: &Options) -> Option<u8> {
    let highest = || lanes(subnet, options).saturating_sub(1);
    options.management_lane.then(highest).filter(|lane| *lane > 0)
}

/// How many data lanes every cabled port has and maps service levels to.
fn lanes(subnet: &Subnet, options: &Options) -> u8 {
    let of_port = |at| {
        let lanes = Lanes::of(subnet, at, options);
        if lanes.maps { lanes.operational.lanes() } else { 1 }
    };
    subnet.cabled_ports().map(|(at, ..)| of_port(at)).min().unwrap_or(1)
}
