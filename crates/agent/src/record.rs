//! Events of the agent, each written in one place as a log record, a counter, and an event.
//!
//! Bringing up a fabric makes thousands of events. Clients receive those that an operator would
//! look for; the rest are counted, and logged at a lower level.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;

use tracing::{debug, info, trace, warn};
use weft_control::agent::PortEnd;
use weft_control::event::{AgentEvent, ProcessEvent};
use weft_control::{EventKind, HexGuid, Utc};
use weft_device::Event;
use weft_link::{CableEnd, LinkIndex, RefusalReason};
use weft_process::{Crowded, EventLog, utc_now};
use weft_wire::{Guid, PortNum, PortState, Printable, VirtualLane};

use crate::counter::{Counted, Counter};
use crate::rates::Rate;

/// Who something happened to.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    pub(crate) guid: Guid,
    pub(crate) description: String,
    /// Whether it is a slot of virtual machines, whose manager wants to know its first LID too.
    pub(crate) is_slot: bool,
}

/// Peers and reasons that are counted separately; refusals beyond them are counted together.
const REFUSALS_MAX: usize = 256;

/// Drops of data packets that clients hear of in a second, of each agent.
const DROPS_A_SECOND: u32 = 2;

/// Who was refused, where and why.
type Refusal = (Option<LinkIndex>, SocketAddr, String);

impl Who {
    /// The GUID and the description, as events have them.
    pub(crate) fn named(&self) -> (HexGuid, String) {
        (HexGuid(self.guid), self.description.clone())
    }
}

/// Takes everything worth telling.
#[derive(Debug)]
pub(crate) struct Recorder {
    events: EventLog,
    counts: Counted,
    refusals: BTreeMap<Refusal, u64>,
    /// Refusals of peers for whom there is no room in the list.
    other_refusals: u64,
    drops: Drops,
}

/// Drops of data packets that clients heard of.
#[derive(Debug, Default)]
struct Drops {
    second: u64,
    told: u32,
    /// Those since, of which there was no event.
    more: u64,
}

impl Drops {
    /// One more. Whether there is to be an event, and how many before it had none.
    fn more_at(&mut self, now: Utc) -> Option<u64> {
        let second = now.as_nanos() / 1_000_000_000;
        if second != self.second {
            (self.second, self.told) = (second, 0);
        }
        if self.told == DROPS_A_SECOND {
            self.more = self.more.saturating_add(1);
            return None;
        }
        self.told += 1;
        Some(std::mem::take(&mut self.more))
    }
}

impl Recorder {
    pub(crate) fn new(events: EventLog) -> Self {
        Self {
            events,
            counts: Counted::default(),
            refusals: BTreeMap::new(),
            other_refusals: 0,
            drops: Drops::default(),
        }
    }

    /// Counts a program's connection for which there is no place.
    pub(crate) fn turn_away(&mut self, why: Crowded) {
        self.count(match why {
            Crowded::Full => Counter::ProgramsTurnedAway,
            Crowded::OfOne => Counter::ProgramsOfOneTurnedAway,
        });
    }

    /// Counts an event that is not worth a line each time.
    pub(crate) fn count(&mut self, counter: Counter) {
        self.counts.add(counter);
    }

    /// The same; gives how often it has happened.
    pub(crate) fn count_of(&mut self, counter: Counter) -> u64 {
        self.counts.add(counter)
    }

    /// How often each kind of event happened.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (String, u64)> {
        self.counts.shown()
    }

    /// Tells clients.
    pub(crate) fn tell(&self, event: AgentEvent) {
        self.events.publish(EventKind::Agent(event));
    }

    /// The same of something that happened to a device.
    fn tell_of(&self, who: &Who, event: impl FnOnce(HexGuid, String) -> AgentEvent) {
        let (guid, node) = who.named();
        self.tell(event(guid, node));
    }

    /// What happens to the process.
    pub(crate) fn process(&self, event: ProcessEvent) {
        info!(%event, "agent");
        self.events.publish(EventKind::Process(event));
    }

    /// A device's event.
    pub(crate) fn device(&mut self, who: &Who, event: &Event) {
        let node = Printable(&who.description);
        match *event {
            Event::PortStateChanged { port, from, to } => {
                debug!(%node, %port, %from, %to, "port state changed");
                self.count(Counter::PortStateChanged);
                if from == PortState::Active || to == PortState::Active {
                    let (from, to) = (from.into(), to.into());
                    self.tell_of(who, |guid, node| AgentEvent::PortState { guid, node, port, from, to });
                }
            }
            Event::LinkMismatch { port } => {
                warn!(%node, %port, "the ends of a cable have no width or no speed in common");
                self.count(Counter::LinkMismatch);
                self.tell_of(who, |guid, node| AgentEvent::LinkMismatch { guid, node, port });
            }
            Event::LidChanged { port, from, to } => {
                debug!(%node, %port, %from, %to, "LID changed");
                self.count(Counter::LidChanged);
                if from.is_unicast() || who.is_slot {
                    self.tell_of(who, |guid, node| AgentEvent::LidChanged { guid, node, port, from, to });
                }
            }
            Event::ForwardingTableWritten { block } => {
                trace!(%node, block, "forwarding table written");
                self.count(Counter::ForwardingTableWritten);
            }
            Event::Dropped { port, reason } => {
                trace!(%node, %port, %reason, "packet dropped");
                self.count(Counter::PacketDropped);
            }
            Event::DataDropped { port, reason, slid, dlid, service_level, p_key } => {
                // Clients hear of few of them: whoever sends decides how many there are.
                if let Some(more) = self.drops.more_at(utc_now()) {
                    let ((guid, node), reason) = (who.named(), reason.name().to_owned());
                    self.tell(AgentEvent::PacketDropped {
                        guid,
                        node,
                        port,
                        reason,
                        slid,
                        dlid,
                        service_level,
                        p_key,
                        more,
                    });
                }
            }
            Event::TrapSent { trap_number: trap, attempt } => {
                debug!(%node, trap_number = %trap, attempt, "trap sent");
                self.count(Counter::TrapSent);
                if attempt == 1 {
                    self.tell_of(who, |guid, node| AgentEvent::TrapSent { guid, node, trap });
                }
            }
            _ => self.rare(who, event),
        }
    }

    fn rare(&mut self, who: &Who, event: &Event) {
        let node = Printable(&who.description);
        match *event {
            Event::TrapRepressed { trap_number: trap } => {
                debug!(%node, trap_number = %trap, "trap repressed");
                self.count(Counter::TrapRepressed);
            }
            Event::TrapAbandoned { trap_number: trap } => {
                info!(%node, trap_number = %trap, "nobody answered a trap");
                self.count(Counter::TrapAbandoned);
                self.tell_of(who, |guid, node| AgentEvent::TrapAbandoned { guid, node, trap });
            }
            Event::MKeyViolation { port, method, attribute_id } => {
                warn!(%node, %port, %method, %attribute_id, "wrong M_Key");
                let count = self.count_of(Counter::MKeyViolation);
                if count.is_power_of_two() {
                    self.tell_of(who, |guid, node| AgentEvent::MKeyViolation { guid, node, port, count });
                }
            }
            Event::ClientDetached { client } => {
                debug!(%node, %client, "program detached");
                self.count(Counter::ClientDetached);
            }
            _ => self.count(Counter::Other),
        }
    }

    /// The other end of a cable sent more than its credit.
    pub(crate) fn overrun(&mut self, who: &Who, port: PortNum, lane: VirtualLane) {
        let node = Printable(&who.description);
        warn!(%node, %port, %lane, "the other end of a cable sent more than its credit");
        self.tell_of(who, |guid, node| AgentEvent::CreditOverrun { guid, node, port, lane });
    }

    /// A link came up.
    pub(crate) fn link_up(&mut self, who: &Who, port: PortNum, peer: Option<CableEnd>) {
        debug!(node = %Printable(&who.description), %port, "link up");
        self.count(Counter::LinkUp);
        self.tell_of(who, |guid, node| AgentEvent::LinkUp { guid, node, port, peer: peer.map(port_end) });
    }

    /// A link that came up runs at a lower rate than this end can do.
    pub(crate) fn link_degraded(
        &mut self,
        who: &Who,
        port: PortNum,
        peer: Option<CableEnd>,
        rates: [Rate; 2],
    ) {
        let [rate, supported] = rates;
        self.count(Counter::LinkDegraded);
        warn!(node = %Printable(&who.description), %port, %rate, %supported, "link is degraded");
        let ((guid, node), [rate, supported]) = (who.named(), rates.map(|rate| rate.to_string()));
        self.tell(AgentEvent::LinkDegraded { guid, node, port, peer: peer.map(port_end), rate, supported });
    }

    /// A link went down.
    pub(crate) fn link_down(&mut self, who: &Who, port: PortNum, peer: Option<CableEnd>, why: &impl Display) {
        self.count(Counter::LinkDown);
        info!(node = %Printable(&who.description), %port, reason = %why, "link down");
        let ((guid, node), reason) = (who.named(), why.to_string());
        self.tell(AgentEvent::LinkDown { guid, node, port, peer: peer.map(port_end), reason });
    }

    /// A peer was refused. It retries for ever, so of each peer and reason the first refusal is
    /// reported, and then only each doubling of their number.
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
        let (address, reason) = (address.to_string(), why.to_string());
        let end = at.map(|(who, port)| PortEnd { node: HexGuid(who.guid), port });
        let node = at.map(|(who, _)| who.description.clone());
        self.tell(AgentEvent::PeerRefused { address, reason, count, end, node });
    }

    /// A program read too slowly and was sent away.
    pub(crate) fn slow_client(&mut self, dropped: u64) {
        warn!(dropped, "a program reads too slowly and was disconnected");
        self.count(Counter::SlowClient);
        self.tell(AgentEvent::SlowProgram { dropped });
    }
}

fn port_end(end: CableEnd) -> PortEnd {
    PortEnd { node: HexGuid(end.guid), port: end.port }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_control::EventFilter;

    fn recorder() -> Recorder {
        Recorder::new(EventLog::new("a0", weft_process::Clock::start()))
    }

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[tokio::test]
    async fn every_stranger_is_told_of_once_and_then_at_doublings() {
        let mut recorder = recorder();
        let (mut told, _) = recorder.events.subscribe(&EventFilter::default());
        for _ in 0..5 {
            for port in 1..=5 {
                recorder.refused(None, None, address(port), &RefusalReason::Malformed);
            }
        }
        recorder.refused(None, None, address(1), &RefusalReason::Version(7));
        let lines = told.next().await.events;
        for port in 2..=5 {
            let of_it = lines.iter().filter(|line| line.contains(&address(port).to_string()));
            assert_eq!(of_it.count(), 3, "the first, second and fourth: {lines:?}");
        }
        assert!(lines.iter().any(|line| line.contains("version 7")), "another reason is news: {lines:?}");
    }

    #[test]
    fn a_flood_of_drops_is_told_of_by_few_events_and_a_count() {
        let mut drops = Drops::default();
        let at = |second: u64| Utc::from_nanos(second * 1_000_000_000);
        let told: Vec<Option<u64>> = (0..1000).map(|_| drops.more_at(at(7))).collect();
        assert_eq!(told.iter().flatten().count(), DROPS_A_SECOND as usize);
        assert_eq!(drops.more_at(at(8)), Some(1000 - u64::from(DROPS_A_SECOND)));
        assert_eq!(drops.more_at(at(8)), Some(0));
    }

    #[test]
    fn a_flood_of_strangers_is_bounded() {
        let mut recorder = recorder();
        for port in 0..10_000 {
            recorder.refused(None, None, address(port), &RefusalReason::Malformed);
        }
        assert_eq!(recorder.refusals.len(), REFUSALS_MAX);
        assert_eq!(recorder.other_refusals, 10_000 - REFUSALS_MAX as u64);
    }
}
