//! Pairs of hosts whose datagrams show who hears whom. The sender is software that asks no one where it may send, so that keys alone
//! keep its packets away.

use std::collections::BTreeSet;

use rand::RngExt;
use rand_pcg::Pcg64;
use weft_host::traffic::{Command, Destination, FlowId, FlowReport, FlowSpec, LearntPath, Transport};
use weft_routing::Partitions;
use weft_sim::Simulation;
use weft_topology::PortRef;
use weft_wire::{Guid, Lid, PKey, PathRate, PortState, ServiceLevel};

use super::acks::Acks;
use super::file::{guid, may_talk};
use super::{STEADY, STRANGE, TENANTS};
use crate::support::counts::Counts;

/// A packet every 100 ms: ten in a time for which a pair is judged, and more.
const BYTES: u32 = 256;
const BYTES_PER_SECOND: u64 = 10 * BYTES as u64;
/// Switches on a path of the tree at most.
const HOPS_MAX: usize = 3;

/// What a pair's partition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Both stay in the steady partition.
    Steady,
    /// The receiver is never in the sender's partition.
    Stranger,
    /// A tenants' partition, which is drawn for each change.
    Tenants,
}

/// A pair, and its flow during one change.
pub(super) struct Pair {
    role: Role,
    from: PortRef,
    to: PortRef,
    guids: (Guid, Guid),
    flow: FlowId,
    p_key: u16,
    /// Where the flow goes, if it was opened.
    dlid: Option<Lid>,
    /// The sender's LID when it was opened, and whether it has been that whenever it was looked at.
    slid: Option<Lid>,
    slid_stays: bool,
    /// Whether the path has led to the receiver whenever it was looked at.
    clear: bool,
    /// The same since both ends have acknowledged the change.
    clear_since: bool,
    /// Packets when the change began, and when both ends had acknowledged it.
    began: Seen,
    acknowledged: Option<Seen>,
}

/// What has been seen of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    sent: u64,
    arrived: u64,
    missing: u64,
}

/// What a change was, for the judgement of pairs.
pub(super) struct Judged<'a> {
    pub(super) before: &'a Partitions,
    pub(super) after: &'a Partitions,
    pub(super) acks: &'a Acks,
    pub(super) bad_cable: Option<PortRef>,
    /// Hosts that have begun again since the flows were opened: they have forgotten them.
    pub(super) restarted: &'a BTreeSet<PortRef>,
    /// Whether a second has gone by since the last acknowledgement.
    pub(super) is_long: bool,
}

impl Pair {
    pub(super) fn new(simulation: &Simulation, role: Role, from: PortRef, to: PortRef) -> Self {
        let guids = (guid(simulation.fabric(), from), guid(simulation.fabric(), to));
        let (began, acknowledged) = (Seen::default(), None);
        let (flow, p_key, clear, clear_since) = (FlowId(0), 0, false, false);
        let (dlid, slid, slid_stays) = (None, None, false);
        Self {
            role,
            from,
            to,
            guids,
            flow,
            p_key,
            dlid,
            slid,
            slid_stays,
            clear,
            clear_since,
            began,
            acknowledged,
        }
    }

    fn may_talk(&self, file: &Partitions) -> bool {
        may_talk(file, self.p_key, self.guids.0, self.guids.1)
    }

    /// Whether the two may talk in a partition of the file that is not the pair's: a path that is asked for again may be of that one.
    fn may_talk_otherwise(&self, file: &Partitions) -> bool {
        let mut others = file.list.iter().map(|partition| partition.pkey).filter(|key| *key != self.p_key);
        others.any(|key| may_talk(file, key, self.guids.0, self.guids.1))
    }

    /// A partition for the next change: one of those in which the two stay, meet, part or remain strangers, by chance.
    pub(super) fn draw(&mut self, random: &mut Pcg64, before: &Partitions, after: &Partitions) {
        self.p_key = match self.role {
            Role::Steady => STEADY,
            Role::Stranger => STRANGE,
            Role::Tenants => {
                let talk = |file, pkey| may_talk(file, pkey, self.guids.0, self.guids.1);
                let wanted = (random.random_bool(0.5), random.random_bool(0.5));
                let fits: Vec<u16> = TENANTS
                    .into_iter()
                    .filter(|key| (talk(before, *key), talk(after, *key)) == wanted)
                    .collect();
                let of = if fits.is_empty() { &TENANTS } else { &*fits };
                of[random.random_range(0..of.len())]
            }
        };
    }

    /// Ends the flow.
    pub(super) fn close(&self, simulation: &mut Simulation) {
        for end in [self.from, self.to] {
            simulation.command(end, Command::Close { flow: self.flow });
        }
    }

    /// Ends the flow before, and begins one with the key of the partition.
    pub(super) fn open(&mut self, simulation: &mut Simulation, flow: FlowId) {
        self.close(simulation);
        self.flow = flow;
        let transport = Transport::UnreliableDatagram;
        let expect = Command::Expect {
            flow,
            from: Some(self.guids.0),
            transport,
            work: Default::default(),
            message_bytes: BYTES,
        };
        self.dlid = lid(simulation, self.to).filter(|lid| lid.is_unicast());
        (self.slid, self.slid_stays) = (lid(simulation, self.from), true);
        let is_open = self.dlid.is_some() && simulation.command(self.to, expect) && self.send(simulation);
        self.dlid = self.dlid.filter(|_| is_open);
        (self.clear, self.clear_since) = (is_open, is_open);
        (self.began, self.acknowledged) = (Seen::default(), None);
    }

    fn send(&self, simulation: &mut Simulation) -> bool {
        let (p_key, rate) = (PKey::new(self.p_key, true), PathRate::default());
        let Some(dlid) = self.dlid else { return false };
        let path = LearntPath { to: self.guids.1, dlid, service_level: ServiceLevel(0), p_key, rate };
        let spec = FlowSpec {
            flow: self.flow,
            to: Destination::One(self.guids.1),
            transport: Transport::UnreliableDatagram,
            work: Default::default(),
            message_bytes: BYTES,
            packet_bytes: BYTES as u16,
            bytes_per_second: Some(BYTES_PER_SECOND),
            bytes_max: None,
            paths: Default::default(),
            move_by: Default::default(),
        };
        simulation.command(self.from, Command::LearnPaths(vec![path]))
            && simulation.command(self.from, Command::Open(spec))
    }

    fn reports(&self, simulation: &Simulation) -> (Option<FlowReport>, Option<FlowReport>) {
        let of = |port: PortRef, sender: bool| {
            let reports = simulation.host_reports(port.node);
            reports.into_iter().find(|report| report.sender == sender && report.flow == self.flow)
        };
        (of(self.from, true), of(self.to, false))
    }

    fn seen(&self, simulation: &Simulation) -> Seen {
        let (sender, receiver) = self.reports(simulation);
        let (arrived, missing) = receiver.map_or((0, 0), |report| (report.packets, report.missing));
        Seen { sent: sender.map_or(0, |report| report.packets), arrived, missing }
    }

    /// The change begins.
    pub(super) fn begin(&mut self, simulation: &Simulation) {
        self.began = self.seen(simulation);
    }

    /// Follows tables and links from the sender to the receiver, and takes down who has acknowledged.
    pub(super) fn look(&mut self, simulation: &mut Simulation, after: &Partitions, acks: &Acks) {
        let leads = self.leads(simulation);
        self.slid_stays &= lid(simulation, self.from) == self.slid;
        self.clear &= leads;
        self.clear_since &= leads;
        if self.acknowledged.is_some() || !acks.has_both(self.guids) {
            return;
        }
        self.acknowledged = Some(self.seen(simulation));
        self.clear_since = leads;
        // A flow whose sender was out of the partition for a while has ended, and its owner begins it again.
        let is_over = self.reports(simulation).0.is_none_or(|report| report.state == "error");
        if is_over && self.may_talk(after) {
            self.send(simulation);
        }
    }

    fn leads(&self, simulation: &Simulation) -> bool {
        let is_active = |port: PortRef| {
            let device = simulation.device(port.node);
            let found = device.and_then(|device| device.port_snapshot(port.port));
            found.filter(|port| port.state == PortState::Active)
        };
        let own = is_active(self.to).map(|port| port.lid);
        let Some(dlid) = self.dlid.filter(|dlid| own == Some(*dlid)) else { return false };
        let mut port = self.from;
        for _ in 0..=HOPS_MAX {
            let peer = simulation.fabric().peer(port).filter(|_| simulation.is_link_up(port));
            let Some(peer) = peer.filter(|peer| is_active(port).is_some() && is_active(*peer).is_some())
            else {
                return false;
            };
            if peer == self.to {
                return true;
            }
            let table = simulation.device(peer.node).map(weft_device::Device::forwarding_table);
            let Some(out) = table.and_then(|table| table.get(usize::from(dlid.0))) else { return false };
            port = PortRef::new(peer.node, *out);
        }
        false
    }

    /// What is wrong with what the receiver has heard.
    pub(super) fn judge(
        &self,
        simulation: &Simulation,
        judged: &Judged<'_>,
        counts: &mut Counts,
    ) -> Result<(), String> {
        let Some(_) = self.dlid else { return Ok(()) };
        let now = self.seen(simulation);
        let is_forgotten = judged.restarted.contains(&self.from) || judged.restarted.contains(&self.to);
        let (before, after) = (self.may_talk(judged.before), self.may_talk(judged.after));
        let heard = |since: Seen| now.arrived.saturating_sub(since.arrived);
        if self.role == Role::Stranger {
            counts.add("strays sent", now.sent);
            return self.silence(simulation, heard(Seen::default()), "who is never in the partition");
        }
        let has_left = !after && !self.may_talk_otherwise(judged.after);
        if let Some(since) = self.acknowledged.filter(|_| has_left && !judged.acks.is_open(self.guids)) {
            let who = "who is not in the partition with the sender any more";
            self.silence(simulation, heard(since), who)?;
            let sends = now.sent > since.sent && self.began.arrived > 0;
            counts.add("leavers deaf", (before && sends).into());
            counts.add("kept out", judged.acks.is_kept(self.guids).into());
        }
        if is_forgotten || !after {
            return Ok(());
        }
        if before && self.began.arrived > 0 && self.clear {
            counts.one("stayers heard");
            self.speech(simulation, heard(self.began), "the two were and are in the partition")?;
            let bad = judged.bad_cable.is_some();
            let fabric = simulation.fabric();
            let near =
                fabric.peer(self.from).map(|peer| peer.node) == fabric.peer(self.to).map(|peer| peer.node);
            let lost = if near && !bad { self.lost(now) } else { 0 };
            if lost > 0 {
                return Err(format!("{}: {lost} packets are missing of two who stay", self.name(simulation)));
            }
            counts.add("stayers without a gap", (near && !bad).into());
        }
        let since = self.acknowledged.filter(|_| judged.is_long && self.clear_since && !judged.acks.waits());
        if let Some(since) = since.filter(|_| judged.bad_cable.is_none()) {
            counts.one(if before { "stayers heard after" } else { "newcomers heard" });
            self.speech(simulation, heard(since), "both have acknowledged that they are in the partition")?;
        }
        Ok(())
    }

    /// Packets that the receiver has not got since the change began. It counts missing numbers by the sender's LID, and takes all
    /// numbers before the first one from another LID for missing. Where the sender has got another one, as when two parts of the
    /// fabric that have had managers of their own are joined, packets sent and arrived are compared: one may be on its way.
    fn lost(&self, now: Seen) -> u64 {
        if self.slid_stays {
            return now.missing.saturating_sub(self.began.missing);
        }
        let under_way = |seen: Seen| seen.sent.saturating_sub(seen.arrived);
        under_way(now).saturating_sub(under_way(self.began) + 1)
    }

    fn silence(&self, simulation: &Simulation, heard: u64, who: &str) -> Result<(), String> {
        match heard {
            0 => Ok(()),
            packets => Err(format!("{}: {packets} packets reached one {who}", self.name(simulation))),
        }
    }

    fn speech(&self, simulation: &Simulation, heard: u64, why: &str) -> Result<(), String> {
        match heard {
            0 => Err(format!("{}: nothing is heard, and {why}", self.name(simulation))),
            _ => Ok(()),
        }
    }

    /// All is over: whoever shares the partition hears the other one, and no one else.
    pub(super) fn judge_at_rest(
        &self,
        simulation: &Simulation,
        file: &Partitions,
        counts: &mut Counts,
    ) -> Result<(), String> {
        let Seen { arrived, .. } = self.seen(simulation);
        if self.may_talk(file) {
            counts.one("heard at rest");
            self.speech(simulation, arrived, "both are in the partition, and all is at rest")
        } else {
            counts.one("silent at rest");
            self.silence(simulation, arrived, "who is not in the partition with the sender")
        }
    }

    /// The pair has this partition, if tenants' partitions are what it has.
    pub(super) fn take_key(&mut self, p_key: u16) {
        if self.role == Role::Tenants {
            self.p_key = p_key;
        }
    }

    fn name(&self, simulation: &Simulation) -> String {
        let name = |port| simulation.fabric().port_name(port);
        let Self { flow, p_key, began, acknowledged, .. } = self;
        let (from, to, now) = (name(self.from), name(self.to), self.seen(simulation));
        let flow = flow.0;
        format!("{from} to {to} in {p_key:#06x} (flow {flow}: {began:?}, then {acknowledged:?}, now {now:?})")
    }
}

fn lid(simulation: &Simulation, at: PortRef) -> Option<Lid> {
    simulation.device(at.node)?.port_snapshot(at.port).map(|port| port.lid)
}
