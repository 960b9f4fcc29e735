//! What happens in the agent, said three ways in one place: a log record, a counter, and a line of the journal.
//!
//! Bringing up a fabric makes thousands of events. What an operator would look for becomes a line; the rest is
//! counted, and logged where somebody raised the level.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;

use serde_json::Value;
use tracing::{debug, info, trace, warn};
use weft_device::Event;
use weft_link::{CableEnd, LinkIndex, RefusalReason};
use weft_process::Journal;
use weft_wire::{Guid, PortNum, PortState, Printable, VirtualLane};

/// What an operator looks for even when it has not happened.
const COUNTED_FROM_THE_START: [&str; 10] = [
    "credit_overruns",
    "hosts_refused",
    "program_frames_malformed",
    "program_mads_dropped",
    "programs_paused",
    "programs_turned_away",
    "slow_client",
    "umad_mads_dropped",
    "umad_messages_malformed",
    "umad_sends_refused",
];

/// Who something happened to.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    pub(crate) guid: Guid,
    pub(crate) description: String,
}

/// Peers and reasons that are told apart; what comes beyond them is counted together.
const REFUSALS_MAX: usize = 256;

/// Who was refused, where and why.
type Refusal = (Option<LinkIndex>, SocketAddr, String);

/// Takes everything worth telling.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) journal: Journal,
    counts: BTreeMap<&'static str, u64>,
    refusals: BTreeMap<Refusal, u64>,
    /// Refusals of peers for whom there is no room in the list.
    other_refusals: u64,
}

impl Recorder {
    pub(crate) fn new(journal: Journal) -> Self {
        let counts = COUNTED_FROM_THE_START.iter().map(|name| (*name, 0)).collect();
        Self { journal, counts, refusals: BTreeMap::new(), other_refusals: 0 }
    }

    /// Counts an event that is not worth a line each time.
    pub(crate) fn count(&mut self, event: &'static str) {
        *self.counts.entry(event).or_default() += 1;
    }

    /// How often each kind of event happened.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().map(|(event, count)| (*event, *count))
    }

    fn line(&mut self, event: &'static str, who: &Who, port: Option<PortNum>, fields: &[(&str, Value)]) {
        let mut all =
            vec![("guid", who.guid.to_string().into()), ("node", Value::from(who.description.clone()))];
        all.extend(port.map(|port| ("port", port.0.into())));
        all.extend_from_slice(fields);
        self.journal.record(event, &all);
    }

    /// A device's event.
    pub(crate) fn device(&mut self, who: &Who, event: &Event) {
        let node = Printable(&who.description);
        match event {
            Event::PortStateChanged { port, from, to } => {
                debug!(%node, %port, ?from, ?to, "port state changed");
                self.count("port_state_changed");
                if *from == PortState::Active || *to == PortState::Active {
                    let fields = [("from", format!("{from:?}").into()), ("to", format!("{to:?}").into())];
                    self.line("port-state", who, Some(*port), &fields);
                }
            }
            Event::LinkMismatch { port } => {
                warn!(%node, %port, "the ends of a cable have no width or no speed in common");
                self.count("link_mismatch");
                self.line("link-mismatch", who, Some(*port), &[]);
            }
            Event::LidChanged { port, from, to } => {
                debug!(%node, %port, %from, %to, "LID changed");
                self.count("lid_changed");
                if from.is_unicast() {
                    self.line(
                        "lid-changed",
                        who,
                        Some(*port),
                        &[("from", from.0.into()), ("to", to.0.into())],
                    );
                }
            }
            Event::ForwardingTableWritten { block } => {
                trace!(%node, block, "forwarding table written");
                self.count("forwarding_table_written");
            }
            Event::Dropped { port, reason } => {
                trace!(%node, %port, %reason, "packet dropped");
                self.count("packet_dropped");
            }
            Event::TrapSent { trap_number, attempt } => {
                debug!(%node, %trap_number, attempt, "trap sent");
                self.count("trap_sent");
                if *attempt == 1 {
                    self.line("trap-sent", who, None, &[("trap", trap_number.0.into())]);
                }
            }
            other => self.rare(who, other),
        }
    }

    fn rare(&mut self, who: &Who, event: &Event) {
        let node = Printable(&who.description);
        match event {
            Event::TrapRepressed { trap_number } => {
                debug!(%node, %trap_number, "trap repressed");
                self.count("trap_repressed");
            }
            Event::TrapAbandoned { trap_number } => {
                info!(%node, %trap_number, "nobody answered a trap");
                self.count("trap_abandoned");
                self.line("trap-abandoned", who, None, &[("trap", trap_number.0.into())]);
            }
            Event::MKeyViolation { port, method, attribute_id } => {
                warn!(%node, %port, ?method, ?attribute_id, "wrong M_Key");
                self.count("m_key_violation");
                let count = self.counts.get("m_key_violation").copied().unwrap_or_default();
                if count.is_power_of_two() {
                    self.line("m-key-violation", who, Some(*port), &[("count", count.into())]);
                }
            }
            Event::ClientDetached { client } => {
                debug!(%node, %client, "program detached");
                self.count("client_detached");
            }
            other => {
                debug!(%node, event = ?other, "device event");
                self.count("other");
            }
        }
    }

    /// The other end of a cable sent more than its credit.
    pub(crate) fn overrun(&mut self, who: &Who, port: PortNum, lane: VirtualLane) {
        let node = Printable(&who.description);
        warn!(%node, %port, %lane, "the other end of a cable sent more than its credit");
        self.line("credit-overrun", who, Some(port), &[("lane", lane.0.into())]);
    }

    /// A link came up.
    pub(crate) fn link_up(&mut self, who: &Who, port: PortNum, peer: Option<CableEnd>) {
        debug!(node = %Printable(&who.description), %port, "link up");
        self.count("link_up");
        self.line("link-up", who, Some(port), &[("peer", peer_text(peer))]);
    }

    /// A link went down.
    pub(crate) fn link_down(&mut self, who: &Who, port: PortNum, peer: Option<CableEnd>, why: &impl Display) {
        self.count("link_down");
        info!(node = %Printable(&who.description), %port, reason = %why, "link down");
        let fields = [("peer", peer_text(peer)), ("reason", why.to_string().into())];
        self.line("link-down", who, Some(port), &fields);
    }

    /// A peer was refused. It will try again for ever, so of each peer and reason only every doubling is told after
    /// the first.
    pub(crate) fn refused(
        &mut self,
        at: Option<(&Who, PortNum)>,
        link: Option<LinkIndex>,
        address: SocketAddr,
        why: &RefusalReason,
    ) {
        let refusal = (link, address, why.to_string());
        let room = self.refusals.len() < REFUSALS_MAX || self.refusals.contains_key(&refusal);
        let count = if room { self.refusals.entry(refusal).or_default() } else { &mut self.other_refusals };
        *count += 1;
        let count = *count;
        if !count.is_power_of_two() {
            return;
        }
        warn!(%address, reason = %why, count, "peer refused");
        let mut fields = vec![
            ("address", Value::from(address.to_string())),
            ("reason", why.to_string().into()),
            ("count", count.into()),
        ];
        if let Some((who, port)) = at {
            fields.push(("guid", who.guid.to_string().into()));
            fields.push(("node", who.description.clone().into()));
            fields.push(("port", port.0.into()));
        }
        self.journal.record("peer-refused", &fields);
    }

    /// A program read too slowly and was sent away.
    pub(crate) fn slow_client(&mut self, dropped: u64) {
        warn!(dropped, "a program reads too slowly and was disconnected");
        self.count("slow_client");
        self.journal.record("slow-program", &[("dropped", dropped.into())]);
    }

    /// The agent itself began or ended.
    pub(crate) fn agent(&mut self, event: &'static str) {
        info!(event, "agent");
        self.count(event);
        self.journal.record(event, &[("pid", std::process::id().into())]);
    }
}

fn peer_text(peer: Option<CableEnd>) -> Value {
    peer.map_or(Value::Null, |peer| peer.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn every_stranger_is_told_of_once_and_then_at_doublings() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut recorder = Recorder::new(Journal::open(Some(file.path()), "a0"));
        for _ in 0..5 {
            for port in 1..=5 {
                recorder.refused(None, None, address(port), &RefusalReason::Malformed);
            }
        }
        recorder.refused(None, None, address(1), &RefusalReason::Version(7));
        recorder.journal.flush();
        let lines = std::fs::read_to_string(file.path()).unwrap();
        for port in 2..=5 {
            let of_it = lines.lines().filter(|line| line.contains(&address(port).to_string()));
            assert_eq!(of_it.count(), 3, "the first, second and fourth: {lines}");
        }
        assert!(lines.contains("version 7"), "another reason is news: {lines}");
    }

    #[test]
    fn a_flood_of_strangers_is_bounded() {
        let mut recorder = Recorder::new(Journal::open(None, "a0"));
        for port in 0..10_000 {
            recorder.refused(None, None, address(port), &RefusalReason::Malformed);
        }
        assert_eq!(recorder.refusals.len(), REFUSALS_MAX);
        assert_eq!(recorder.other_refusals, 10_000 - REFUSALS_MAX as u64);
    }
}
