//! A hub of remote processes learns the cabling from them: they know what is plugged in, also where an
//! earlier hub wrote that down in a folder that is gone. From an agent that it has heard before it learns nothing new: one that
//! begins again has forgotten, and is reminded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use weft_bundle::folder::LabFolder;
use weft_bundle::record::LabRecord;
use weft_control::HexGuid;
use weft_control::agent::{PlacedCable, PortEnd, PortStatus};
use weft_process::ClientError;
use weft_topology::{Fabric, PortRef};

use crate::agents::read_ports;
use crate::recabling::note;
use crate::recabling::remind::{Lapse, remind};

/// The pause before agents that were silent are asked again.
const AGAIN: Duration = Duration::from_secs(2);

/// What the agents that were heard have in their ports, or should have.
#[derive(Debug, Default)]
struct Heard {
    /// By port: the other end of its cable and the cable's delay, or no cable.
    ports: BTreeMap<PortEnd, Option<(PortEnd, u64)>>,
    /// Ports that were not as planned when they were first heard: their agents have had orders. An
    /// agent whose ports are as planned may have begun again and forgotten its orders.
    told: BTreeSet<PortEnd>,
    /// How often clients have changed cables: what agents said while one did may be old.
    changes: u64,
}

/// The changes that make the files say what agents say.
#[derive(Debug, Default, PartialEq, Eq)]
struct News {
    taken_out: Vec<[PortEnd; 2]>,
    put_in: Vec<PlacedCable>,
}

impl Heard {
    /// Takes what agents say, and gives back in which ports they have forgotten what is written down: an agent that was heard before, or
    /// that has what it began with. Slots of virtual machines are left out: their devices change, and their cables stay.
    fn hear(
        &mut self,
        told: impl Iterator<Item = PortStatus>,
        written: &Fabric,
        planned: Option<&Fabric>,
    ) -> Vec<Lapse> {
        let mut lapses = Vec::new();
        for PortStatus { end: at, peer: has, delay_ns, .. } in told.filter(|port| port.slot.is_none()) {
            let Some(wanted) = peer_in(written, at) else { continue };
            let begins = planned.and_then(|planned| peer_in(planned, at));
            if !self.ports.contains_key(&at) && begins.is_some_and(|begins| begins != has) {
                self.told.insert(at);
            }
            if has == wanted || (!self.ports.contains_key(&at) && begins != Some(has)) {
                self.ports.insert(at, has.map(|peer| (peer, delay_ns)));
                continue;
            }
            let known = self.ports.get(&at).copied().flatten();
            let delay = known.filter(|(peer, _)| Some(*peer) == wanted).map_or(0, |(_, delay_ns)| delay_ns);
            let had = wanted.map(|peer| (peer, delay));
            self.ports.insert(at, had);
            lapses.push(Lapse { at, has, had });
        }
        lapses
    }

    /// A client has given agents these orders.
    fn change(&mut self, taken_out: &[[PortEnd; 2]], put_in: &[PlacedCable]) {
        self.changes += 1;
        let mut set = |end: PortEnd, cable| {
            if let Some(known) = self.ports.get_mut(&end) {
                *known = cable;
                self.told.remove(&end);
            }
        };
        taken_out.iter().flatten().for_each(|end| set(*end, None));
        for PlacedCable { ends: [a, b], delay_ns } in put_in {
            set(*a, Some((*b, *delay_ns)));
            set(*b, Some((*a, *delay_ns)));
        }
    }

    /// The cables, by both ends: those that both ends have, and those that only one had an order
    /// for, where the other is as planned. Of two such to one port neither is believed.
    fn cables(&self) -> BTreeMap<PortEnd, (PortEnd, u64)> {
        let (mut cables, mut claims) = (BTreeMap::new(), BTreeMap::<PortEnd, Vec<(PortEnd, u64)>>::new());
        for (end, has) in &self.ports {
            let Some((peer, delay_ns)) = *has else { continue };
            let Some(back) = self.ports.get(&peer) else { continue };
            if back.is_some_and(|(back, _)| back == *end) {
                cables.insert(*end, (peer, delay_ns));
            } else if self.told.contains(end) && !self.told.contains(&peer) {
                claims.entry(peer).or_default().push((*end, delay_ns));
            }
        }
        for (peer, ends) in claims {
            let [(end, delay_ns)] = ends[..] else { continue };
            // Two that have both forgotten agree on what was planned.
            if let Some((old, _)) = cables.insert(peer, (end, delay_ns)) {
                cables.remove(&old);
            }
            cables.insert(end, (peer, delay_ns));
        }
        cables
    }

    /// What tells a cabling from what agents say. Nothing is known of a cable that only one of its ends has, unless the other has
    /// forgotten.
    fn news(&self, fabric: &Fabric) -> News {
        let (mut news, cables) = (News::default(), self.cables());
        for cable in fabric.cables() {
            let [a, b] = [cable.a, cable.b].map(|end| named(fabric, end));
            let (Some(at_a), Some(at_b)) = (self.ports.get(&a), self.ports.get(&b)) else { continue };
            let lacks = |has: &Option<(PortEnd, u64)>, to: PortEnd| has.is_none_or(|(peer, _)| peer != to);
            let was_told = |end: PortEnd, has, to: PortEnd| lacks(has, to) && self.told.contains(&end);
            let is_gone = lacks(at_a, b) && lacks(at_b, a) || was_told(a, at_a, b) || was_told(b, at_b, a);
            let leads_away =
                |end: PortEnd, to: PortEnd| cables.get(&end).is_some_and(|(peer, _)| *peer != to);
            if is_gone || leads_away(a, b) || leads_away(b, a) {
                news.taken_out.push([a, b]);
            }
        }
        for (end, (peer, delay_ns)) in cables.iter().filter(|(end, (peer, _))| *end < peer) {
            let place = |end: &PortEnd| Some(PortRef::new(fabric.by_guid(end.node.0)?, end.port));
            let Some((a, b)) = place(end).zip(place(peer)) else { continue };
            if fabric.peer(a) != Some(b) {
                news.put_in.push(PlacedCable { ends: [*end, *peer], delay_ns: *delay_ns });
            }
        }
        news
    }
}

/// Writes down what agents have plugged in, whenever one of them is heard for the first time, and reminds those that have begun
/// again.
#[derive(Clone, Debug)]
pub struct Learner {
    memory: Arc<Memory>,
    met: Sender<String>,
}

/// What a learner knows.
#[derive(Debug)]
struct Memory {
    lab: LabFolder,
    record: LabRecord,
    /// The cabling that agents begin with, if it is known here.
    planned: Option<Fabric>,
    /// Ports whose cables lead to slots of virtual machines.
    inside: BTreeSet<PortEnd>,
    heard: Mutex<Heard>,
}

impl Learner {
    /// Begins in a thread of its own, which ends with this.
    pub fn begin(lab: &LabFolder, record: &LabRecord, planned: Option<Fabric>) -> anyhow::Result<Self> {
        let inside = inside(record, &weft_bundle::topology_file::load(&lab.bundle().topology())?);
        let (lab, record, heard) = (lab.clone(), record.clone(), Mutex::default());
        let memory = Arc::new(Memory { lab, record, planned, inside, heard });
        let ((met, names), own) = (channel(), memory.clone());
        std::thread::Builder::new()
            .name("cables".into())
            .spawn(move || own.learn(&names))
            .context("cannot start a thread")?;
        Ok(Self { memory, met })
    }

    /// A process has said who it is.
    pub fn met(&self, process: &str) {
        // The thread lives as long as this.
        let _ = self.met.send(process.to_owned());
    }

    /// Writes down a client's orders to agents, and asks the agents: they may have begun again.
    pub fn write(&self, taken_out: &[[PortEnd; 2]], put_in: &[PlacedCable]) -> anyhow::Result<()> {
        self.memory.write(taken_out, put_in)?;
        let agents = self.memory.agents_at(taken_out, put_in);
        agents.iter().for_each(|agent| self.met(agent));
        Ok(())
    }
}

impl Memory {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, taken_out: &[[PortEnd; 2]], put_in: &[PlacedCable]) -> anyhow::Result<()> {
        let mut heard = self.heard();
        note(&self.lab, taken_out, put_in)?;
        heard.change(taken_out, put_in);
        Ok(())
    }

    /// The agents at the ends of cables.
    fn agents_at(&self, taken_out: &[[PortEnd; 2]], put_in: &[PlacedCable]) -> BTreeSet<String> {
        let ends = taken_out.iter().chain(put_in.iter().map(|cable| &cable.ends)).flatten();
        let agents = ends.filter_map(|end| self.record.device(end.node.0));
        agents.map(|(agent, _)| agent.name.clone()).collect()
    }

    fn learn(&self, names: &Receiver<String>) {
        let mut late: BTreeSet<String> = BTreeSet::new();
        loop {
            match names.recv_timeout(if late.is_empty() { Duration::MAX } else { AGAIN }) {
                Ok(first) => late.insert(first),
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            late.extend(names.try_iter());
            let agents = self.record.agents.iter().map(|agent| agent.name.as_str());
            let met: Vec<&str> = agents.filter(|agent| late.contains(*agent)).collect();
            late = self.ask(&met).unwrap_or_else(|error| {
                let error = format!("{error:#}");
                tracing::warn!(error, "cannot learn from agents which cables there are");
                BTreeSet::new()
            });
        }
    }

    /// Asks agents for their cables, writes down what is new, and reminds those that have forgotten some. Gives back who is to be
    /// asked again; one that does not run is met when it is back.
    fn ask(&self, agents: &[&str]) -> anyhow::Result<BTreeSet<String>> {
        let (lapses, silent, changed) = loop {
            let before = self.heard().changes;
            let ports = read_ports(&self.lab, agents.iter().copied())?;
            let mut heard = self.heard();
            if heard.changes != before {
                continue;
            }
            let written = weft_bundle::topology_file::load(&self.lab.bundle().topology())?;
            let told = ports.told.into_values().filter(|port| !self.inside.contains(&port.end));
            let lapses = heard.hear(told, &written, self.planned.as_ref());
            let changed = self.note(&heard, &written).unwrap_or_else(|error| {
                let error = format!("{error:#}");
                tracing::warn!(error, "cannot write down which cables agents have");
                BTreeSet::new()
            });
            break (lapses, ports.silent, changed);
        };
        let is_late = |error: &ClientError| !matches!(error, ClientError::Connect { .. });
        let mut late: BTreeSet<String> = silent
            .into_iter()
            .filter(|(_, error)| is_late(error))
            .map(|(agent, _)| agent.to_owned())
            .collect();
        // Clients may change cables meanwhile: writing that down asks the agents concerned again.
        late.extend(remind(&self.lab, &self.record, &lapses));
        // Whoever has forgotten what is written down now shows when it is asked again.
        late.extend(changed);
        Ok(late)
    }

    /// Writes down what is new. The agents that it is about.
    fn note(&self, heard: &Heard, written: &Fabric) -> anyhow::Result<BTreeSet<String>> {
        let News { taken_out, put_in } = heard.news(written);
        if taken_out.is_empty() && put_in.is_empty() {
            return Ok(BTreeSet::new());
        }
        note(&self.lab, &taken_out, &put_in)?;
        let (out, new) = (taken_out.len(), put_in.len());
        tracing::info!(
            out,
            new,
            "agents have other cables than were written down here; that is written down now"
        );
        Ok(self.agents_at(&taken_out, &put_in))
    }
}

/// Ports whose cables lead to slots of virtual machines: these cables stay, and whom they lead to changes.
fn inside(record: &LabRecord, fabric: &Fabric) -> BTreeSet<PortEnd> {
    let devices = record.agents.iter().flat_map(|agent| &agent.devices);
    let slots: BTreeSet<_> =
        devices.filter(|device| device.slot).filter_map(|device| fabric.by_guid(device.guid)).collect();
    let ends = fabric.cables().flat_map(|cable| [(cable.a, cable.b), (cable.b, cable.a)]);
    ends.filter(|(_, peer)| slots.contains(&peer.node)).map(|(end, _)| named(fabric, end)).collect()
}

/// The other end of the cable in a port, if it has one; nothing where there is no such node.
fn peer_in(fabric: &Fabric, end: PortEnd) -> Option<Option<PortEnd>> {
    let place = PortRef::new(fabric.by_guid(end.node.0)?, end.port);
    Some(fabric.peer(place).map(|peer| named(fabric, peer)))
}

fn named(fabric: &Fabric, end: PortRef) -> PortEnd {
    PortEnd { node: HexGuid(fabric.node(end.node).guid), port: end.port }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use weft_topology::{FabricBuilder, LinkRate, Node, NodeType};
    use weft_wire::{Guid, PortNum};

    use super::*;

    fn end(guid: u64, port: u8) -> PortEnd {
        PortEnd { node: HexGuid(Guid(guid)), port: PortNum(port) }
    }

    /// Three switches with two ports each; port 1 of the first leads to port 1 of the second.
    fn fabric() -> Fabric {
        cabled(1, 2)
    }

    /// The same with another cable.
    fn cabled(from: u64, to: u64) -> Fabric {
        let mut builder = FabricBuilder::new();
        for guid in 1..=3 {
            builder.add_node(Node::new(NodeType::Switch, Guid(guid), 2, LinkRate::default())).unwrap();
        }
        let at = |guid| PortRef::new(builder.fabric().by_guid(Guid(guid)).unwrap(), PortNum(1));
        let (a, b) = (at(from), at(to));
        builder.connect(a, b).unwrap();
        builder.build()
    }

    fn says(at: PortEnd, peer: Option<PortEnd>) -> PortStatus {
        PortStatus { end: at, peer, delay_ns: 700, ..PortStatus::default() }
    }

    /// What agents say of which nothing but the plan is written down; whether it is known with what they begin.
    fn heard_with(said: &[(PortEnd, Option<PortEnd>)], planned: Option<&Fabric>) -> Heard {
        let mut heard = Heard::default();
        let ports = said.iter().map(|(at, peer)| says(*at, *peer));
        assert_eq!(heard.hear(ports, &fabric(), planned), []);
        heard
    }

    fn heard(said: &[(PortEnd, Option<PortEnd>)]) -> Heard {
        heard_with(said, Some(&fabric()))
    }

    /// A hub without its folder and an agent begin again together: the other ends know what both have forgotten.
    #[test]
    fn one_end_that_was_told_knows_more_than_one_that_is_as_planned() {
        let (a, b, c) = (end(1, 1), end(2, 1), end(3, 1));
        let placed = PlacedCable { ends: [a, c], delay_ns: 700 };
        for (said, taken_out, put_in) in [
            // The cable between a and b was taken out.
            (&[(a, Some(b)), (b, None)][..], vec![[a, b]], vec![]),
            (&[(a, None), (b, Some(a))], vec![[a, b]], vec![]),
            // It was moved to c; a, b or c has forgotten.
            (&[(a, Some(b)), (b, None), (c, Some(a))], vec![[a, b]], vec![placed]),
            (&[(a, Some(c)), (b, Some(a)), (c, Some(a))], vec![[a, b]], vec![placed]),
            (&[(a, Some(c)), (b, None), (c, None)], vec![[a, b]], vec![placed]),
            // All have.
            (&[(a, Some(b)), (b, Some(a)), (c, None)], vec![], vec![]),
        ] {
            let mut heard = heard(said);
            let news = heard.news(&fabric());
            assert_eq!(news, News { taken_out, put_in }, "{said:?}");
            let all_forgot = news == News::default();
            // Once it is written down, those that have forgotten are reminded, and all agree.
            let mut written = fabric();
            let at = |end: PortEnd| PortRef::new(fabric().by_guid(end.node.0).unwrap(), end.port);
            for [a, _] in news.taken_out {
                written.disconnect(at(a));
            }
            for PlacedCable { ends: [a, b], .. } in news.put_in {
                written.connect(at(a), at(b)).unwrap();
            }
            let again = said.iter().map(|(at, peer)| says(*at, *peer));
            let lapses = heard.hear(again, &written, Some(&fabric()));
            let forgot = said.iter().filter(|(at, peer)| peer_in(&written, *at) != Some(*peer));
            let forgot: Vec<PortEnd> = forgot.map(|(at, _)| *at).collect();
            assert_eq!(lapses.iter().map(|lapse| lapse.at).collect::<Vec<_>>(), forgot, "{said:?}");
            assert_eq!(forgot.is_empty(), all_forgot, "{said:?}");
            assert_eq!(heard.news(&written), News::default(), "{said:?}");
        }
    }

    /// The two agents at a cable's planned ends have forgotten that one end was moved, and the third knows: whatever their GUIDs are.
    #[test]
    fn one_that_was_told_is_believed_where_two_have_forgotten() {
        for [kept, left, new] in [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]] {
            let plan = cabled(kept, left);
            let [kept, left, new] = [kept, left, new].map(|guid| end(guid, 1));
            let mut heard = Heard::default();
            let said = [(kept, Some(left)), (left, Some(kept)), (new, Some(kept))];
            let lapses = heard.hear(said.iter().map(|(at, peer)| says(*at, *peer)), &plan, Some(&plan));
            assert_eq!(lapses, []);
            let sorted = |mut ends: [PortEnd; 2]| {
                ends.sort_unstable();
                ends
            };
            let news = heard.news(&plan);
            let out: Vec<_> = news.taken_out.into_iter().map(sorted).collect();
            assert_eq!(out, [sorted([kept, left])], "{said:?}");
            let put: Vec<_> = news.put_in.into_iter().map(|cable| sorted(cable.ends)).collect();
            assert_eq!(put, [sorted([kept, new])], "{said:?}");
        }
    }

    /// Two say that a cable leads from them to one port: one is wrong, and no one knows which.
    #[test]
    fn two_claims_to_one_port_are_both_ignored() {
        let plan = fabric();
        let mut heard = Heard::default();
        let third = end(3, 2);
        let said = [
            (end(2, 1), Some(end(1, 1))),
            (end(1, 1), Some(end(2, 1))),
            (end(3, 1), Some(end(1, 1))),
            (third, Some(end(1, 1))),
        ];
        heard.hear(said.iter().map(|(at, peer)| says(*at, *peer)), &plan, Some(&plan));
        assert_eq!(heard.news(&plan), News::default());
    }

    #[test]
    fn a_cable_is_what_both_of_its_ends_have() {
        let (a, b, c) = (end(1, 1), end(2, 1), end(3, 1));
        let placed = PlacedCable { ends: [a, c], delay_ns: 700 };
        for (said, taken_out, put_in) in [
            (&[(a, Some(b)), (b, Some(a)), (c, None)][..], vec![], vec![]),
            // One that is silent may have anything, and one that has begun again has forgotten.
            (&[(a, None)], vec![], vec![]),
            (&[(a, Some(b)), (b, None)], vec![], vec![]),
            (&[(a, Some(c)), (b, Some(a)), (c, None)], vec![], vec![]),
            (&[(a, None), (b, None)], vec![[a, b]], vec![]),
            (&[(a, Some(c)), (b, None), (c, Some(a))], vec![[a, b]], vec![placed]),
            (&[(a, Some(c)), (b, Some(a)), (c, Some(a))], vec![[a, b]], vec![placed]),
        ] {
            assert_eq!(heard_with(said, None).news(&fabric()), News { taken_out, put_in }, "{said:?}");
        }
    }

    #[test]
    fn one_that_begins_again_is_reminded_of_what_is_written_down() {
        let (a, b, c) = (end(1, 1), end(2, 1), end(3, 1));
        let mut written = fabric();
        let at = |end: PortEnd| PortRef::new(written.by_guid(end.node.0).unwrap(), end.port);
        let [from, to] = [at(a), at(c)];
        written.disconnect(from);
        written.connect(from, to).unwrap();
        let forgotten = |at, has, had| vec![Lapse { at, has, had }];
        let hear = |heard: &mut Heard, at, peer, planned: bool| {
            let plan = fabric();
            heard.hear(std::iter::once(says(at, peer)), &written, planned.then_some(&plan))
        };
        // Agents got orders, and have reported their cables since.
        let mut known = heard(&[(a, Some(b)), (b, Some(a)), (c, None)]);
        known.change(&[[a, b]], &[PlacedCable { ends: [a, c], delay_ns: 9 }]);
        assert_eq!(hear(&mut known, b, None, false), []);
        assert_eq!(hear(&mut known, a, Some(b), false), forgotten(a, Some(b), Some((c, 9))));
        assert_eq!(hear(&mut known, b, Some(a), false), forgotten(b, Some(a), None));
        assert_eq!(hear(&mut known, c, None, false), forgotten(c, None, Some((a, 9))));
        // What they have said is no news, although both ends agree.
        assert_eq!(known.news(&written), News::default());
        // A hub that has begun again, and knows with what agents begin.
        let mut fresh = Heard::default();
        assert_eq!(hear(&mut fresh, a, Some(b), true), forgotten(a, Some(b), Some((c, 0))));
        assert_eq!(hear(&mut fresh, b, Some(end(3, 2)), true), [], "it was told, by who knows more");
        assert_eq!(hear(&mut Heard::default(), a, Some(b), false), [], "nothing is known");
    }

    #[test]
    fn a_clients_cable_change_is_known_at_once() {
        let (a, b, c) = (end(1, 1), end(2, 1), end(3, 1));
        let mut heard = heard(&[(a, Some(b)), (b, Some(a)), (c, None)]);
        let placed = PlacedCable { ends: [a, c], delay_ns: 9 };
        heard.change(&[[a, b]], &[placed]);
        assert_eq!(heard.news(&fabric()), News { taken_out: vec![[a, b]], put_in: vec![placed] });
        assert_eq!(heard.changes, 1);
        let mut unheard = Heard::default();
        unheard.change(&[[a, b]], &[placed]);
        assert!(unheard.ports.is_empty(), "of agents that were not heard nothing is known");
    }

    #[test]
    fn cables_of_slots_are_left_as_they_are() {
        let (a, b) = (end(1, 1), end(2, 1));
        let mut heard = heard(&[(a, Some(end(9, 1)))]);
        let slot = Some(weft_control::agent::SlotUse { slot: b.node, ..Default::default() });
        heard.hear(std::iter::once(PortStatus { slot, ..says(b, None) }), &fabric(), None);
        assert_eq!(heard.news(&fabric()), News::default());
    }
}
