//! State kept from one plan to the next about the tables in force.

use std::collections::{BTreeMap, BTreeSet};

use weft_topology::{Fabric, NodeIndex};
use weft_wire::Lid;

use super::error::KeptError;
use super::network::Network;
use super::plan::Proof;
use super::skyline::Skylines;
use super::waits::Waits;
use crate::lanes::SERVICE_LEVELS;
use crate::lids::Lids;
use crate::options::EngineOptions;
use crate::routing::Routing;
use crate::sorted;
use crate::verify::dependencies::Dependencies;
use crate::verify::ground::{End, Ground};
use crate::verify::pass::{Flows, Pass};
use crate::verify::rows::Rows;
use crate::verify::sources::{Sources, whole};

/// The cabling as planners see it, and which channels wait for which by the tables in force. To be made again after each
/// routing; plans that were carried out are [admitted](Kept::admit).
#[derive(Debug)]
pub struct Kept {
    pub(super) network: Network,
    /// The switches as a fat-tree, or why they are none.
    pub(super) skylines: Result<Skylines, String>,
    pub(super) waits: Waits,
    /// The senders: switches and source classes, in order.
    pub(super) senders: Vec<(u32, Option<u16>)>,
    /// By service level: the lane as a bit; 0 where such packets are dropped.
    pub(super) lanes: [u16; SERVICE_LEVELS],
    pub(super) idle: BTreeSet<Lid>,
    /// Channels with packets that were sent by rows which plans have replaced since, by LID.
    pub(super) stale: BTreeSet<(Lid, u32)>,
    /// Lanes on which those may be, as bits, by LID.
    pub(super) stale_lanes: BTreeMap<Lid, u16>,
    /// Rows that are detours.
    pub(super) detours: BTreeSet<(NodeIndex, Lid)>,
}

impl Kept {
    /// Follows all packets of a routing once. `vswitches` are the switches that stand for adapters with virtual functions: port 1
    /// or any other leads to the one switch above, the lowest adapter is the physical function. `idle` are the LIDs of
    /// functions that no machine has: no packets go there, so they are part of no circle.
    ///
    /// # Errors
    ///
    /// When lanes depend on ports, or a vSwitch is none.
    pub fn new(
        fabric: &Fabric,
        lids: &Lids,
        routing: &Routing,
        options: &EngineOptions,
        vswitches: &[NodeIndex],
        idle: &BTreeSet<Lid>,
    ) -> Result<Self, KeptError> {
        let network = Network::new(fabric, vswitches)?;
        let skylines = Skylines::new(fabric, &network, vswitches, options);
        let ground = Ground::new(fabric, lids, &options.management_nodes);
        let rows = Rows::new(&ground, &[&routing.lanes], options.lanes);
        let lanes = *rows.constant().ok_or(KeptError::Lanes)?;
        let ends: Vec<End> = ground.ends.iter().filter(|end| !idle.contains(&end.lid)).copied().collect();
        let parts = whole(&ends);
        let levels = [&routing.levels];
        let sources = Sources::new(&ground, &rows, &levels, &parts);
        let dependencies = Dependencies::new(&ground, false, rows.lane_count());
        let flows = Flows { rows: &rows, sources: &sources, dependencies: &dependencies, loads: None };
        Pass { ground: &ground, routes: &routing.routes, ups: None, flows: Some(flows) }.run_to(&ends);
        let waits = Waits::new(dependencies);
        let class = |end: &End| (end.switch, routing.levels.source_class(end.lid));
        let mut senders: Vec<(u32, Option<u16>)> = ends.iter().map(class).collect();
        sorted::by_key(&mut senders, |item| *item);
        senders.dedup();
        let (stale, stale_lanes, detours) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
        let idle = idle.clone();
        Ok(Self { network, skylines, waits, senders, lanes, idle, stale, stale_lanes, detours })
    }

    /// Why the cabling is no fat-tree, if it is none.
    pub fn no_tree(&self) -> Option<&str> {
        self.skylines.as_ref().err().map(String::as_str)
    }

    /// Adds what packets wait for while a proven plan is carried out, and after it: the next plan is proved with packets of this
    /// one under way.
    pub fn admit(&mut self, proof: &Proof) {
        self.waits.lasting.extend(&proof.lasting);
        self.waits.passing.extend(&proof.passing);
        self.stale.extend(&proof.stale);
        for (lid, lanes) in &proof.stale_lanes {
            *self.stale_lanes.entry(*lid).or_default() |= lanes;
        }
        self.idle.retain(|lid| !proof.busy.contains(lid));
        self.idle.extend(&proof.idle);
    }

    /// Says which LIDs no machine has, from now on. What was kept of packets to them stays, which errs on the safe side.
    pub fn set_idle(&mut self, idle: BTreeSet<Lid>) {
        self.idle = idle;
    }

    /// Packets that were under way when the last plan ended have arrived or are dropped.
    pub fn settle(&mut self) {
        self.waits.passing.clear();
        self.stale.clear();
        self.stale_lanes.clear();
    }

    /// Says which rows are detours that [`Move::Finish`](super::Move::Finish) is to replace.
    pub fn set_detours(&mut self, detours: BTreeSet<(NodeIndex, Lid)>) {
        self.detours = detours;
    }

    /// Those rows.
    pub fn detours(&self) -> &BTreeSet<(NodeIndex, Lid)> {
        &self.detours
    }

    /// The lowest to highest marked switches between the switches of two leaves or vSwitches, as FTreeMinRC marks them: what a
    /// move from one to the other may have to write. `None` where the cabling is no fat-tree.
    pub fn mark(&self, a: NodeIndex, b: NodeIndex) -> Option<Vec<NodeIndex>> {
        let number = |node: NodeIndex| Some(self.network.physical(self.network.graph.number(node)?));
        let marked = self.skylines.as_ref().ok()?.between(number(a)?, number(b)?)?;
        Some(marked.into_iter().map(|switch| self.network.graph.nodes[switch as usize]).collect())
    }
}
