//! From LIDs and cabling to forwarding tables. A pure function: the same fabric gets the same tables again, but for those
//! that stand and are as good.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weft_machine::Time;
use weft_routing::files::{GuidToLid, LidRange};
use weft_routing::{
    BLOCK_ENTRIES, EngineOptions, ForwardingTable, Input, KeptPaths, KeptRows, LaneRow, Lids, PortLids,
    Refusal, Routes, Routing, ServiceLevels, VirtualRows, WEIGHT_OF_A_HOST,
};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Guid, Lid, PortNum};

use super::settings::Lanes;
use crate::knowledge::{Adapters, Held, Mappings, PortAt, Routed, Subnet, graph_port, own_lid};
use crate::lids::{Claim, Ledger, adopt, adopt_late, assign, has_own_lid};
use crate::options::MANAGEMENT_LEVEL;
use crate::{Event, Options, VmLids};

/// Gives every end port its LIDs; says which are new, and how many virtual functions have some.
pub(crate) fn give_lids(
    now: Time,
    subnet: &mut Subnet,
    held: &[Held],
    mut ledger: Ledger<'_>,
    options: &Options,
) -> (Vec<Event>, VmLids) {
    let mut ends = claims(subnet, options);
    let mut events = Vec::new();
    ends.dedup_by(|(later, at), (first, _)| {
        let twice = later.guid == first.guid;
        if twice {
            let path = subnet.path(*at).unwrap_or_default();
            events.push(Event::duplicate_guid(first.guid, path.ports(), path.ports()));
        }
        twice
    });
    let claims: Vec<Claim> = ends.iter().map(|(claim, _)| *claim).collect();
    let room = subnet.adapters.rest(now, &claims, held, &mut ledger, options);
    let waiting = room.waiting.clone();
    ledger.arrival.iter_mut().for_each(|arrival| arrival.waiting = waiting.len() as u32);
    let given = assign(&claims, ledger.known, &room);
    for ((_, at), lids) in ends.iter().zip(&given) {
        if let Some(port) = subnet.port_mut(*at) {
            port.lid = *lids;
        }
    }
    share_lids(subnet);
    let counts = Adapters::settle(subnet, room, options);
    for ((claim, at), lids) in ends.iter().zip(given) {
        let (port_guid, before) = (subnet.end_guid(*at), claim.present);
        match lids {
            None if waiting.contains(&claim.guid) => {}
            None if claim.is_vm => {
                let VmLids { in_use, quarantined, .. } = counts;
                events.push(Event::VmLidRefused { port_guid: port_guid.into(), in_use, quarantined });
            }
            None => events.push(Event::LidsExhausted { port_guid: port_guid.into() }),
            Some(LidRange { min: lid, .. }) if lid != before => {
                events.push(Event::LidAssigned { port_guid: port_guid.into(), lid, before });
            }
            Some(_) => {}
        }
    }
    if !waiting.is_empty() {
        events.push(Event::VmLidsWait { ports: waiting.len() as u32 });
    }
    (events, counts)
}

/// Gives vSwitches that have no LID of their own the first of the physical function's.
fn share_lids(subnet: &mut Subnet) {
    let zeros: Vec<PortAt> =
        subnet.switches().map(|(node, _)| PortAt { node, port: PortNum::ZERO }).collect();
    for zero in zeros {
        let Some(pf) = subnet.adapters.shared_with(zero) else { continue };
        let lid = subnet.port(pf).and_then(|port| port.lid).map(|lids| LidRange { max: lids.min, ..lids });
        if let Some(port) = subnet.port_mut(zero) {
            port.lid = lid;
        }
    }
}

/// What every port that needs LIDs of its own has now, in order of GUIDs.
fn claims(subnet: &Subnet, options: &Options) -> Vec<(Claim, PortAt)> {
    let mut ends: Vec<_> = subnet
        .end_ports()
        .filter(|(at, _)| has_own_lid(subnet, *at))
        .map(|(at, port)| {
            let is_function = subnet.adapters.is_function(at);
            let is_vm = options.is_dynamic() && is_function;
            let lmc = if at.port == PortNum::ZERO || is_vm { 0 } else { options.routing.lmc.min(7) };
            let place = subnet.place_guid(at).filter(|_| is_function && options.lids_stay());
            let guid = place.unwrap_or_else(|| subnet.end_guid(at));
            let present = own_lid(port).unwrap_or(Lid(0));
            (Claim { guid, present, lmc, is_function, is_vm }, at)
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

/// The same for ports that were not there then.
pub(crate) fn adopt_late_lids(
    subnet: &Subnet,
    known: &mut GuidToLid,
    unseen: &mut BTreeSet<Guid>,
    options: &Options,
) {
    let claims: Vec<Claim> = claims(subnet, options).into_iter().map(|(claim, _)| claim).collect();
    adopt_late(&claims, known, unseen);
}

/// What the first engine that serves a subnet has computed.
#[derive(Debug)]
pub(crate) struct Computed {
    pub(crate) lids: Lids,
    pub(crate) routing: Routing,
    /// The options that the engine was given.
    pub(super) given: EngineOptions,
}

impl Computed {
    /// Puts rows that stand in the place of the engine's own: those of virtual functions' LIDs that hold, LID by LID, and all
    /// others if they are as good. Says whether all are as they stand then.
    pub(crate) fn keep(&mut self, subnet: &Subnet, standing: Standing) -> bool {
        let Standing { routes, is_whole } = standing;
        let rows = VirtualRows {
            fabric: &subnet.fabric,
            vswitches: &subnet.adapters.vswitches,
            lids: &self.lids,
            options: &self.given,
        };
        rows.rest(&mut self.routing, &routes, &subnet.adapters.resting);
        if routes == self.routing.routes {
            return true;
        }
        let KeptRows { kept, replaced } = rows.keep(&mut self.routing, &routes);
        if kept + replaced > 0 {
            self.routing.report.notes.push(format!(
                "rows of virtual functions that differ from the engine's: {kept} LIDs keep theirs, {replaced} do not"
            ));
        }
        if !is_whole || routes == self.routing.routes {
            return is_whole;
        }
        let physical = rows.others(&self.routing, &routes);
        let kept = weft_routing::keeps(&subnet.fabric, &self.lids, &self.routing, physical, &self.given);
        if let Some(kept) = kept {
            self.routing = kept;
            self.routing.report.notes.push(KEPT.to_owned());
        }
        routes == self.routing.routes
    }

    /// Rows stay that switches hold for LIDs of those who are away, and are no one's now.
    pub(crate) fn keep_rows(&mut self, away: &[Lid], subnet: &Subnet, held: &[Held]) {
        for (node, lid, port) in self.rows_away(away, subnet, held) {
            let table = self.routing.routes.tables.get_mut(node.index());
            table.into_iter().for_each(|table| table.set(lid, port));
        }
    }

    /// The rows that switches hold for those LIDs.
    pub(crate) fn rows_away(
        &self,
        away: &[Lid],
        subnet: &Subnet,
        held: &[Held],
    ) -> Vec<(NodeIndex, Lid, PortNum)> {
        let lids: Vec<Lid> = away.iter().copied().filter(|lid| self.lids.owner(*lid).is_none()).collect();
        let mut rows = Vec::new();
        for (node, _) in subnet.switches() {
            let Some(held) = held.get(node as usize) else { continue };
            let row = |lid: &Lid| Some((NodeIndex(node), *lid, held.lft_block(lid.block())?[lid.offset()]));
            rows.extend(lids.iter().filter_map(row).filter(|(.., port)| *port != PortNum::NONE));
        }
        rows
    }

    /// The routing in force from now on.
    pub(crate) fn into_routed(self, subnet: &Subnet) -> Routed {
        let (levels, everywhere, of_ports) = (self.levels(), self.sl2vl(), self.sl2vl_of_ports(subnet));
        let Self { lids, routing, given } = self;
        Routed::new(lids, levels, Mappings { everywhere, of_ports }, routing, given)
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
pub(crate) fn route(
    subnet: &Subnet,
    options: &Options,
    kept: Option<&mut KeptPaths>,
) -> Result<Computed, String> {
    let lids = lids_of(subnet, |_| true)?;
    let lanes = subnet.management.unwrap_or_else(|| lanes(subnet, options));
    let mut given = options.given(lanes);
    subnet.learned.put_into(&mut given);
    let routing = if options.is_dynamic() {
        route_dynamic(subnet, &lids, &given, options, kept)?
    } else {
        given.vm_weights.extend(vm_weights(subnet, options));
        options.route_as(&subnet.fabric, &lids, &given, kept).map_err(|error| error.to_string())?
    };
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

/// The engine routes the physical LIDs, and those of virtual functions follow their hosts'.
fn route_dynamic(
    subnet: &Subnet,
    lids: &Lids,
    given: &EngineOptions,
    options: &Options,
    kept: Option<&mut KeptPaths>,
) -> Result<Routing, String> {
    let adapters = &subnet.adapters;
    let physical = lids_of(subnet, |at| !adapters.is_function(at))?;
    let mut routing =
        options.route_as(&subnet.fabric, &physical, given, kept).map_err(|error| error.to_string())?;
    let rows = VirtualRows { fabric: &subnet.fabric, vswitches: &adapters.vswitches, lids, options: given };
    rows.copy(&mut routing, adapters.space);
    rows.prove(&routing).map_err(|error| format!("a path to a virtual function does not hold: {error}"))?;
    Ok(routing)
}

/// Who has which LIDs, of the ports that are wanted. A LID that two ports share is the host's.
fn lids_of(subnet: &Subnet, wanted: impl Fn(PortAt) -> bool) -> Result<Lids, String> {
    let ends = subnet.end_ports().filter(|(at, _)| wanted(*at) && has_own_lid(subnet, *at));
    let mut ends: Vec<_> = ends.filter_map(|(at, port)| Some((port.lid?, graph_port(at)))).collect();
    ends.sort_by_key(|(lids, _)| *lids);
    let mut lids = Lids::new();
    for (range, port) in ends {
        lids.insert(port, range.min, range.lmc()).map_err(|error| error.to_string())?;
    }
    Ok(lids)
}

/// The weights of virtual machines by their LIDs; those of functions that are not there are left out.
fn vm_weights(subnet: &Subnet, options: &Options) -> Vec<(Lid, u32)> {
    if options.vm_lids.vm_weights.is_empty() {
        return Vec::new();
    }
    let functions = subnet.end_ports().filter(|(at, _)| subnet.adapters.is_function(*at));
    let weight = |at: PortAt| {
        let node = subnet.guid(at.node);
        let given = &options.vm_lids.vm_weights;
        given.get(&subnet.end_guid(at)).or_else(|| given.get(&node)).copied()
    };
    let given = functions.filter_map(|(at, port)| Some((port.peer?.node, port.lid?.min, weight(at)?)));
    fitting(given.collect())
}

/// Weights by host and LID, so that those of one host are together no more than a host's. Machines that have moved to one host may weigh
/// more: they keep their proportions, since engines would refuse.
fn fitting(given: Vec<(u32, Lid, u32)>) -> Vec<(Lid, u32)> {
    let most = u64::from(WEIGHT_OF_A_HOST);
    let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (host, _, weight) in &given {
        let (sum, count) = sums.entry(*host).or_default();
        (*sum, *count) = (*sum + u64::from(*weight), *count + 1);
    }
    let fits = |(host, lid, weight): (u32, Lid, u32)| match sums[&host] {
        (sum, count) if sum > most => {
            // Each keeps 1 at least.
            (lid, (u64::from(weight) * most.saturating_sub(count) / sum) as u32 + 1)
        }
        _ => (lid, weight),
    };
    given.into_iter().map(fits).collect()
}

/// The tables that stand.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) routes: Routes,
    /// Whether all rows are known.
    pub(crate) is_whole: bool,
}

impl Standing {
    /// What switches hold, as far as that is known: for the LIDs that there are, since others have no route.
    pub(crate) fn new(subnet: &Subnet, held: &[Held], computed: &Computed) -> Self {
        let Adapters { vswitches, resting, space, .. } = &subnet.adapters;
        let top = computed.lids.top().max(*space).max(resting.last().copied().unwrap_or_default());
        let mut standing = Self {
            routes: Routes { tables: vec![ForwardingTable::default(); subnet.nodes.len()] },
            is_whole: true,
        };
        let mut lids: Vec<Lid> = computed.lids.iter().flat_map(PortLids::iter).collect();
        lids.extend(resting);
        let inner: Vec<u32> = vswitches.iter().map(|vswitch| vswitch.node.0).collect();
        for (node, _) in subnet.switches() {
            let table = &mut standing.routes.tables[node as usize];
            *table = ForwardingTable::new(top);
            let held = held.get(node as usize);
            let mut take = |lid: Lid| {
                let block = held.and_then(|held| held.lft_block(lid.0 / BLOCK_ENTRIES as u16));
                match block {
                    Some(block) => table.set(lid, block[usize::from(lid.0) % BLOCK_ENTRIES]),
                    None => standing.is_whole = false,
                }
            };
            if inner.binary_search(&node).is_ok() {
                (1..=space.0).map(Lid).for_each(&mut take);
            }
            lids.iter().copied().for_each(take);
        }
        standing
    }
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

/// No engine serves the fabric: why, for each.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct NoEngine(pub Vec<Refusal>);

impl Options {
    /// The options of engines where links have this number of data lanes besides management's.
    fn given(&self, lanes: u8) -> EngineOptions {
        EngineOptions { lanes: self.routing.engine.lanes.min(lanes), ..self.routing.engine.clone() }
    }

    /// The routing of a fabric whose links all have `lanes` data lanes besides management's: by the
    /// first engine that serves it.
    pub fn route(&self, fabric: &Fabric, lids: &Lids, lanes: u8) -> Result<Routing, NoEngine> {
        self.route_as(fabric, lids, &self.given(lanes), None)
    }

    fn route_as(
        &self,
        fabric: &Fabric,
        lids: &Lids,
        engines: &EngineOptions,
        kept: Option<&mut KeptPaths>,
    ) -> Result<Routing, NoEngine> {
        let chain = &self.routing.chain;
        let routing = match kept {
            Some(kept) => chain.route_keeping(&Input { fabric, lids, options: engines }, kept),
            None => chain.route(fabric, lids, engines),
        };
        routing.map_err(NoEngine)
    }
}

/// The lane that is management's alone: the highest that every link has, where there is another.
pub(crate) fn management_lane(subnet: &Subnet, options: &Options) -> Option<u8> {
    let highest = || lanes(subnet, options).saturating_sub(1);
    options.lanes.management_lane.then(highest).filter(|lane| *lane > 0)
}

/// How many data lanes every cabled port has and maps service levels to.
fn lanes(subnet: &Subnet, options: &Options) -> u8 {
    let of_port = |at| {
        let lanes = Lanes::of(subnet, at, options);
        if lanes.maps { lanes.operational.lanes() } else { 1 }
    };
    subnet.cabled_ports().map(|(at, ..)| of_port(at)).min().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_a_host_fit_and_keep_their_proportions() {
        let fits = |given: &[(u32, u16, u32)]| {
            let given = given.iter().map(|(host, lid, weight)| (*host, Lid(*lid), *weight)).collect();
            fitting(given).into_iter().map(|(_, weight)| weight).collect::<Vec<_>>()
        };
        let whole = WEIGHT_OF_A_HOST;
        assert_eq!(fits(&[(1, 1, whole), (2, 2, whole - 1), (2, 3, 1)]), [whole, whole - 1, 1]);
        let halves = fits(&[(1, 1, whole), (1, 2, whole), (2, 3, 7)]);
        assert_eq!((halves[0], halves[2]), (halves[1], 7));
        assert!((whole / 2 - 1..=whole / 2).contains(&halves[0]), "{halves:?}");
        let mut many: Vec<_> = (1..=251).map(|lid| (1, lid, 1)).collect();
        many.push((1, 252, whole));
        let many = fits(&many);
        assert!(many.iter().all(|weight| *weight >= 1) && many.iter().sum::<u32>() <= whole, "{many:?}");
    }
}
