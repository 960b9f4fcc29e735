//! `weft flow observe`: what happens to flows and their packets, with the reason.

use std::collections::BTreeMap;

use serde::Serialize;
use weft_bundle::folder::LabFolder;
use weft_control::event::{AgentEvent, LabEvent};
use weft_control::flow::FlowLine;
use weft_control::{EventKind, Utc};
use weft_lab::agents::read_ports;
use weft_lab::events::{Follower, Told, remembered, say_silent};
use weft_lab::flows;
use weft_lab::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use weft_lab::view::Lab;
use weft_wire::{Lid, PKey, ServiceLevel};

use crate::cli::flow::{FlowObserveArgs, Verdict};
use crate::output::{print, say};

/// The kinds of events that tell of flows and their packets.
const KINDS: [&str; 4] = ["packet-dropped", "flow-started", "flow-stopped", "flow-ended"];

/// One thing that happened.
#[derive(Debug, Serialize)]
struct Observed {
    time: Utc,
    verdict: Verdict,
    /// The flows between the two ends, in either direction: a packet does not say whose it is.
    flows: Vec<String>,
    from: Option<String>,
    to: Option<String>,
    /// The node and the port where it happened.
    at: Option<String>,
    service_level: Option<ServiceLevel>,
    p_key: Option<PKey>,
    reason: Option<String>,
    /// Drops of that agent before this one of which nothing else is known.
    more: u64,
}

/// What is wanted of them.
struct Wanted {
    from: Option<String>,
    to: Option<String>,
    partition: Option<u16>,
    verdicts: Vec<Verdict>,
}

/// Names of what events tell of.
struct Names {
    lab: Lab,
    by_lid: BTreeMap<Lid, String>,
    flows: BTreeMap<String, [String; 2]>,
}

pub(super) fn run(folder: &LabFolder, args: &FlowObserveArgs) -> anyhow::Result<()> {
    let mut names = Names::of(folder)?;
    let end = |name: &Option<String>| {
        name.as_deref().map(|name| names.lab.find(name).map(|node| names.name_of(node))).transpose()
    };
    let (from, to) = (end(&args.from)?, end(&args.to)?);
    let wanted = Wanted { from, to, partition: args.partition, verdicts: args.verdict.clone() };
    let mut show = |told: Vec<Told>| {
        let mut text = String::new();
        for told in told {
            let Some(observed) = names.observe(folder, &told).filter(|observed| wanted.takes(observed))
            else {
                continue;
            };
            text += &if args.json { serde_json::to_string(&observed)? } else { observed.to_line() };
            text.push('\n');
        }
        print(&text)
    };
    if !args.follow {
        let (past, _) = remembered(folder, &KINDS)?;
        say_silent(folder, &past.silent);
        return show(past.told);
    }
    let stop = Signals::watch(&[SIGINT, SIGTERM, SIGHUP])?;
    let (mut follower, past) = Follower::begin(folder, false)?;
    say("following flows; press Ctrl-C to end");
    show(past)?;
    while let Some(told) = follower.next(&stop)? {
        show(told)?;
    }
    Ok(())
}

impl Wanted {
    fn takes(&self, observed: &Observed) -> bool {
        let is = |wanted: &Option<String>, end: &Option<String>| wanted.is_none() || wanted == end;
        let in_partition = |key: u16| observed.p_key.is_some_and(|own| own.0 & 0x7fff == key & 0x7fff);
        is(&self.from, &observed.from)
            && is(&self.to, &observed.to)
            && self.partition.is_none_or(in_partition)
            && (self.verdicts.is_empty() || self.verdicts.contains(&observed.verdict))
    }
}

impl Names {
    fn of(folder: &LabFolder) -> anyhow::Result<Self> {
        let mut names =
            Self { lab: Lab::load_live(folder)?, by_lid: BTreeMap::new(), flows: BTreeMap::new() };
        names.learn(folder)?;
        Ok(names)
    }

    /// Asks who has which LID, and which flows there are.
    fn learn(&mut self, folder: &LabFolder) -> anyhow::Result<()> {
        let agents = self.lab.record.agents.iter().map(|agent| agent.name.as_str());
        let ports = read_ports(folder, agents)?.told;
        for port in ports.into_values().filter(|port| port.lid.is_unicast()) {
            if let Some(node) = self.lab.fabric.by_guid(port.end.node.0) {
                let name = self.name_of(node);
                self.by_lid.insert(port.lid, name);
            }
        }
        for FlowLine { name, from, to, .. } in flows::list(folder).unwrap_or_default() {
            self.flows.insert(name, [from.name, to.name]);
        }
        Ok(())
    }

    /// A host as people call it, or the virtual machine in a slot.
    fn name_of(&self, node: weft_topology::NodeIndex) -> String {
        let vm = self.lab.slots.get(&node).and_then(|slot| slot.vm.as_deref());
        vm.map_or_else(|| self.lab.fabric.label(node), |vm| format!("vm:{vm}"))
    }

    fn of_lid(&mut self, folder: &LabFolder, lid: Lid) -> String {
        if !self.by_lid.contains_key(&lid) {
            // A virtual machine may have moved since, or a host may have come.
            if let Ok(lab) = Lab::load_live(folder) {
                self.lab = lab;
                let _ = self.learn(folder);
            }
            // A LID of which agents know nothing is not asked for again.
            self.by_lid.entry(lid).or_insert_with(|| format!("LID {lid}"));
        }
        self.by_lid.get(&lid).cloned().unwrap_or_default()
    }

    fn between(&self, from: &str, to: &str) -> Vec<String> {
        let joins =
            |ends: &[String; 2]| (ends[0] == from && ends[1] == to) || (ends[0] == to && ends[1] == from);
        self.flows.iter().filter(|(_, ends)| joins(ends)).map(|(name, _)| name.clone()).collect()
    }

    fn observe(&mut self, folder: &LabFolder, told: &Told) -> Option<Observed> {
        let time = told.moment;
        match told.kind()? {
            EventKind::Agent(AgentEvent::PacketDropped {
                guid,
                node,
                port,
                reason,
                slid,
                dlid,
                service_level,
                p_key,
                more,
            }) => {
                let (from, to) = (self.of_lid(folder, slid), self.of_lid(folder, dlid));
                Some(Observed {
                    time,
                    verdict: Verdict::Dropped,
                    flows: self.between(&from, &to),
                    from: Some(from),
                    to: Some(to),
                    at: Some(format!("{}:{port}", self.lab.label(guid.0, &node))),
                    service_level: Some(service_level),
                    p_key,
                    reason: Some(reason),
                    more,
                })
            }
            EventKind::Lab(event) => self.of_hub(time, event),
            _ => None,
        }
    }

    fn of_hub(&mut self, time: Utc, event: LabEvent) -> Option<Observed> {
        let (flow, verdict, reason) = match event {
            LabEvent::FlowStarted { flow, from, to, .. } => {
                self.flows.insert(flow.clone(), [from, to]);
                (flow, Verdict::Started, None)
            }
            LabEvent::FlowStopped { flow } => (flow, Verdict::Stopped, None),
            LabEvent::FlowEnded { flow, done, reason } => {
                (flow, if done { Verdict::Done } else { Verdict::Failed }, Some(reason))
            }
            _ => return None,
        };
        let [from, to] = self.flows.get(&flow).cloned().map_or([None, None], |ends| ends.map(Some));
        let (flows, at, service_level, p_key, more) = (vec![flow], None, None, None, 0);
        Some(Observed { time, verdict, flows, from, to, at, service_level, p_key, reason, more })
    }
}

impl Observed {
    fn to_line(&self) -> String {
        let dash = |end: &Option<String>| end.clone().unwrap_or_else(|| "-".into());
        let mut line =
            format!("{} {:7} {} -> {}", self.time, self.verdict.name(), dash(&self.from), dash(&self.to));
        let mut add = |text: String| line.push_str(&text);
        if !self.flows.is_empty() {
            add(format!(" ({})", self.flows.join(", ")));
        }
        if let Some(at) = &self.at {
            add(format!(" at {at}"));
        }
        if let Some(level) = self.service_level {
            add(format!(", SL {level}"));
        }
        if let Some(key) = self.p_key {
            add(format!(", P_Key {key}"));
        }
        if let Some(reason) = &self.reason {
            add(format!(": {reason}"));
        }
        if self.more > 0 {
            add(format!(" and {} drops before it", self.more));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dropped() -> Observed {
        Observed {
            time: Utc::default(),
            verdict: Verdict::Dropped,
            flows: vec!["web".into()],
            from: Some("host-0".into()),
            to: Some("host-3".into()),
            at: Some("leaf:2".into()),
            service_level: Some(ServiceLevel(1)),
            p_key: Some(PKey(0x8001)),
            reason: Some("no_route".into()),
            more: 7,
        }
    }

    #[test]
    fn drops_are_chosen_by_ends_partition_and_verdict() {
        let all = || Wanted { from: None, to: None, partition: None, verdicts: Vec::new() };
        let name = |name: &str| Some(name.to_owned());
        for (wanted, takes) in [
            (all(), true),
            (Wanted { from: name("host-0"), ..all() }, true),
            (Wanted { from: name("host-3"), ..all() }, false),
            (Wanted { to: name("host-3"), ..all() }, true),
            (Wanted { partition: Some(1), ..all() }, true),
            (Wanted { partition: Some(0x7fff), ..all() }, false),
            (Wanted { verdicts: vec![Verdict::Dropped], ..all() }, true),
            (Wanted { verdicts: vec![Verdict::Failed], ..all() }, false),
        ] {
            assert_eq!(wanted.takes(&dropped()), takes);
        }
    }

    #[test]
    fn a_line_says_whose_packet_was_dropped_where_and_why() {
        let line = dropped().to_line();
        for part in
            ["dropped host-0 -> host-3 (web) at leaf:2, SL 1, P_Key ", ": no_route and 7 drops before"]
        {
            assert!(line.contains(part), "{line}");
        }
    }
}
