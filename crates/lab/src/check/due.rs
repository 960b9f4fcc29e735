//! Sweeps that the subnet manager still owes for recent events.
//!
//! A reading just after `weft fault restart` shows a fabric that is about to change. A sweep is due when one is under
//! way, when a fault was recorded and no whole sweep since, or when ports have a link and wait for activation.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use weft_bundle::folder::LabFolder;
use weft_bundle::names::{HUB, IBSIM, PM, SM, VMM, is_of, number_of};
use weft_bundle::record::{AgentRecord, DeviceRecord};
use weft_control::event::{AgentEvent, LabEvent, SmEvent};
use weft_control::fault::Word;
use weft_control::sm::{EngineReport, SmStatus, SweepKind};
use weft_control::{EventKind, Since};
use weft_process::{Client, poll_for};
use weft_sm::Surveyed;
use weft_topology::PortRef;
use weft_wire::{Guid, PortState, count_of};

use crate::events::remembered;
use crate::managers::{in_charge, listen, subnet_managers};
use crate::site;
use crate::view::Lab;

/// What is asked for to tell whether a fault has been swept.
const KINDS: [&str; 5] = ["fault", "link-up", "sweep-started", "subnet-up", "sweep-incomplete"];

/// What happened, and which process said so.
type Said = (String, EventKind);

/// The subnet manager's sweeps at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sweeps {
    /// Heavy sweeps begun.
    begun: u64,
    /// Whether one is under way.
    under_way: bool,
    /// LIDs that have moved and of which some switches get their rows late.
    late: u32,
    /// Ports that had a link and did not answer the last heavy sweep; light ones ask them again.
    silent: u32,
}

impl Sweeps {
    /// `None` where no subnet manager of weft runs. One that has said nothing yet has not swept.
    pub(crate) fn of(lab: &Lab) -> anyhow::Result<Option<Self>> {
        let managers = subnet_managers(&lab.folder, &lab.record)?;
        let Some(manager) = in_charge(&managers).filter(|manager| manager.told.is_running()) else {
            return Ok(None);
        };
        let told = |status: &SmStatus| Self {
            begun: status.heavy_sweeps,
            under_way: status.phase.is_some(),
            late: status.vm_lids.late,
            silent: status.last.as_ref().map_or(0, |last| last.ports_silent),
        };
        Ok(Some(manager.told.status().map(told).unwrap_or_default()))
    }
}

/// What is known of sweeps and faults at one moment.
pub(crate) struct Moment {
    pub(crate) sweeps: Sweeps,
    /// What happened since the first fault that is remembered, oldest first.
    events: Vec<Said>,
}

impl Moment {
    /// `None` where no subnet manager of weft runs.
    pub(crate) fn of(lab: &Lab) -> anyhow::Result<Option<Self>> {
        let Some(sweeps) = Sweeps::of(lab)? else { return Ok(None) };
        let mut events = recent_events(&lab.folder)?;
        events.retain(|said| lab.whole || is_of_piece(lab, said));
        Ok(Some(Self { sweeps, events }))
    }

    /// The fault that the subnet manager has not swept yet.
    fn owed(&self) -> Option<String> {
        let fault = unswept_fault_in(&self.events)?;
        Some(format!("the subnet manager has not swept since `weft fault {fault}`"))
    }
}

/// Why a sweep is due after a reading that began at `before`; `None` if none is.
pub(crate) fn due(lab: &Lab, before: Option<&Moment>, live: &Surveyed) -> anyhow::Result<Option<String>> {
    let owed_before = || before.and_then(Moment::owed);
    let Some(now) = Moment::of(lab)? else { return Ok(owed_before()) };
    if before.map(|before| before.sweeps) != Some(now.sweeps) || now.sweeps.under_way {
        return Ok(Some("the subnet manager sweeps".to_owned()));
    }
    if now.sweeps.late > 0 {
        let late = format!("rows of moved LIDs are late: {}", count_of(now.sweeps.late as usize, "LID"));
        return Ok(Some(late));
    }
    if now.sweeps.silent > 0 && live.unanswered == 0 && live.silent.is_empty() {
        let silent = now.sweeps.silent;
        return Ok(Some(format!(
            "{} now where the subnet manager's sweep heard nothing",
            if silent == 1 { "1 port answers".to_owned() } else { format!("{silent} ports answer") }
        )));
    }
    let why = now.owed().or_else(|| missing_after_restart(lab, &now, live));
    Ok(why.or_else(|| waiting_port(live)).or_else(owed_before))
}

/// A device that runs and is not in the fabric after a restart: the one restarted, or one behind it, as links come up
/// one by one.
fn missing_after_restart(lab: &Lab, now: &Moment, live: &Surveyed) -> Option<String> {
    if !restarted_last_in(&now.events) {
        return None;
    }
    let runs = |name: &str| site::pid(&lab.folder, name).is_ok_and(|pid| pid.is_some());
    let running = lab.record.agents.iter().filter(|agent| runs(&agent.name));
    let missing = missing(running, |guid| live.fabric.by_guid(guid).is_some())?;
    Some(format!("`{}` runs and is not in the fabric after a restart", missing.label))
}

/// The first device of these agents that is not in the fabric. A slot may be empty, or have a virtual machine's identity.
fn missing<'a>(
    mut agents: impl Iterator<Item = &'a AgentRecord>,
    is_there: impl Fn(Guid) -> bool,
) -> Option<&'a DeviceRecord> {
    agents.find_map(|agent| agent.devices.iter().find(|device| !device.slot && !is_there(device.guid)))
}

/// A port with a link that waits for activation.
fn waiting_port(live: &Surveyed) -> Option<String> {
    let waits = |port: PortRef| {
        let state = live.port_info(port).map(|info| info.port_state);
        matches!(state, Some(PortState::Initialize | PortState::Armed)).then(|| {
            let node = live.fabric.label(port.node);
            format!("`{node}` port {} waits for the subnet manager", port.port)
        })
    };
    let ports = live
        .fabric
        .iter()
        .flat_map(|(index, node)| node.cabled_ports().map(move |(port, _)| PortRef::new(index, port)));
    ports.filter_map(waits).next()
}

/// Waits until the subnet manager has swept since `before` held and sweeps no more, or until `until`.
pub(crate) fn wait_for_sweep(lab: &Lab, before: Option<Sweeps>, until: Instant) -> anyhow::Result<()> {
    let mut ears = Ears::of(lab);
    loop {
        let Some(now) = Sweeps::of(lab)? else { return Ok(()) };
        if before != Some(now) && !now.under_way {
            return Ok(());
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        ears.wait(lab, left)?;
    }
}

/// Whether an event is about a piece of the laboratory: other pieces have managers of their own.
fn is_of_piece(lab: &Lab, (source, event): &Said) -> bool {
    let manages = |name: &str| lab.record.subnet_managers().any(|(own, _)| own == name);
    let (fault, target) = match event {
        EventKind::Sm(_) => return manages(source),
        EventKind::Lab(LabEvent::Fault { fault, target }) => (*fault, target),
        _ => return true,
    };
    if number_of(target).is_some() {
        return lab.record.agents.iter().any(|agent| agent.name == *target);
    }
    // What these name is a fault, or a list of nodes.
    let is_any = matches!(fault, Word::Clear | Word::Partition);
    let cabled = |port: PortRef| lab.fabric.peer(port).is_some();
    is_any || manages(target) || lab.find(target).is_ok() || lab.port(target).is_ok_and(cabled)
}

/// Whether a process is beside the fabric: no sweep is due for its faults.
fn is_beside(target: &str) -> bool {
    [IBSIM, HUB].contains(&target) || [PM, VMM].iter().any(|first| is_of(target, first))
}

/// Whether the last fault of the fabric was a restart.
fn restarted_last_in(events: &[Said]) -> bool {
    let fault = |(_, event): &Said| match event {
        EventKind::Lab(LabEvent::Fault { fault, target }) if !is_beside(target) => Some(*fault),
        _ => None,
    };
    events.iter().rev().find_map(fault) == Some(Word::Restart)
}

/// What tells of faults and sweeps, since the first fault.
fn recent_events(lab: &LabFolder) -> anyhow::Result<Vec<Said>> {
    // Where nothing was broken, a large fabric's link events need not be read.
    let (faults, _) = remembered(lab, &["fault"])?;
    let Some(first) = faults.told.first().map(|told| told.moment) else { return Ok(Vec::new()) };
    let (all, _) = remembered(lab, &KINDS)?;
    let since = all.told.into_iter().filter(|told| told.moment >= first);
    Ok(since.filter_map(|told| Some((told.kind()?, told.head.source))).map(|(kind, of)| (of, kind)).collect())
}

/// The last fault after which no heavy sweep has begun and ended, as the command that made it. After a restart the sweep
/// must begin once the first link is up again: an earlier one has only seen the device go.
fn unswept_fault_in(events: &[Said]) -> Option<String> {
    let (mut owed, mut begun, mut restarted) = (None, false, false);
    for (source, event) in events {
        match event {
            // Those are none of the fabric's.
            EventKind::Lab(LabEvent::Fault { target, .. }) if is_beside(target) => {}
            EventKind::Lab(LabEvent::Fault { fault, .. }) if !fault.takes_links() => {}
            EventKind::Lab(LabEvent::Fault { fault, target }) => {
                restarted = *fault == Word::Restart && !is_sm(target);
                (owed, begun) = (Some(format!("{} {target}", fault.name())), false);
            }
            EventKind::Agent(AgentEvent::LinkUp { .. }) if restarted => (begun, restarted) = (false, false),
            EventKind::Sm(SmEvent::SweepStarted { kind: SweepKind::Heavy, .. }) if is_sm(source) => {
                begun = true;
            }
            EventKind::Sm(SmEvent::SubnetUp(_) | SmEvent::SweepIncomplete(_))
                if is_sm(source) && begun && !restarted =>
            {
                owed = None;
            }
            _ => {}
        }
    }
    owed
}

/// Whether a source of events is a subnet manager, the first one or one that stands by.
fn is_sm(source: &str) -> bool {
    source.strip_prefix(SM).is_some_and(|number| number.is_empty() || number.starts_with('-'))
}

/// How long to wait before managers that could not be listened to are tried again.
const RETRY: Duration = Duration::from_millis(200);

/// Connections to the subnet managers, which tell of sweeps.
pub(crate) struct Ears(Vec<Client>);

impl Ears {
    /// Begins to listen.
    pub(crate) fn of(lab: &Lab) -> Self {
        let kinds = ["sweep-started", "subnet-up", "sweep-incomplete", "route-failed", "sm-state"];
        let managers = lab.record.subnet_managers();
        // A manager that does not run tells of no sweep.
        Self(managers.filter_map(|(name, _)| listen(&lab.folder, &name, Since::Now, &kinds).ok()).collect())
    }

    /// Waits for news, no longer than this; a manager that ends is news.
    pub(crate) fn wait(&mut self, lab: &Lab, left: Duration) -> anyhow::Result<()> {
        if self.0.is_empty() {
            *self = Self::of(lab);
            if !self.0.is_empty() {
                // What happened before they were listened to is seen by looking again.
                return Ok(());
            }
        }
        if self.hear() {
            return Ok(());
        }
        let left = if self.0.is_empty() { left.min(RETRY) } else { left };
        let mut fds: Vec<_> = self.0.iter().map(|client| PollFd::new(client, PollFlags::IN)).collect();
        poll_for(&mut fds, Some(left))?;
        self.hear();
        Ok(())
    }

    /// Takes what has arrived; whether there was anything.
    fn hear(&mut self) -> bool {
        let mut heard = false;
        self.0.retain_mut(|client| {
            loop {
                match client.next_event(Duration::ZERO) {
                    Ok(None) => return true,
                    Ok(Some(_)) => heard = true,
                    Err(_) => {
                        heard = true;
                        return false;
                    }
                }
            }
        });
        heard
    }
}

/// How the tables that are in the switches came to be, by the last event of a subnet manager that says so.
pub(crate) fn last_routed(lab: &Lab) -> anyhow::Result<Option<EngineReport>> {
    let (past, _) = remembered(&lab.folder, &["routed"])?;
    let is_own = |name: &str| lab.record.subnet_managers().any(|(own, _)| own == name);
    Ok(past.told.iter().rev().filter(|told| is_own(&told.head.source)).find_map(|told| {
        match told.kind()? {
            EventKind::Sm(SmEvent::Routed(report)) => Some(report),
            _ => None,
        }
    }))
}

#[cfg(test)]
mod tests {
    use weft_control::event::SweepReason;
    use weft_control::sm::Summary;
    use weft_wire::PortNum;

    use super::*;

    fn fault(fault: Word, target: &str) -> Said {
        ("hub".into(), EventKind::Lab(LabEvent::Fault { fault, target: target.into() }))
    }

    #[test]
    fn a_slot_of_virtual_machines_is_not_missed() {
        let device = |guid: u64, label: &str, slot| DeviceRecord {
            guid: Guid(guid),
            id: label.into(),
            description: label.into(),
            label: label.into(),
            switch: false,
            slot,
        };
        let agent = AgentRecord {
            name: "a0000".into(),
            address: "127.0.0.1:20000".parse().unwrap(),
            devices: vec![device(1, "host-0", false), device(2, "host-0 vf1", true)],
            proves: Vec::new(),
            metrics: None,
        };
        let missed = |there: u64| {
            let found = missing(std::iter::once(&agent), |guid| guid.0 == there);
            found.map(|device| device.label.clone())
        };
        assert_eq!(missed(1), None, "the slot is empty");
        assert_eq!(missed(2), Some("host-0".to_owned()));
    }

    fn link() -> Said {
        let up = AgentEvent::LinkUp {
            guid: weft_control::HexGuid::default(),
            node: "leaf".into(),
            port: PortNum(1),
            peer: None,
        };
        ("a0002".into(), EventKind::Agent(up))
    }

    fn sweep(kind: SweepKind) -> Said {
        ("sm".into(), EventKind::Sm(SmEvent::SweepStarted { kind, reason: SweepReason::Start }))
    }

    fn up() -> Said {
        ("sm".into(), EventKind::Sm(SmEvent::SubnetUp(Summary::default())))
    }

    fn incomplete() -> Said {
        ("sm-2".into(), EventKind::Sm(SmEvent::SweepIncomplete(Summary::default())))
    }

    /// A letter for each event: Fault, Link, Heavy or light (q) sweep, Up, Incomplete, Kill, Pm killed, and hub restarted (b).
    fn events(letters: &str) -> Vec<Said> {
        let event = |letter| match letter {
            'F' => fault(Word::Restart, "a0001"),
            'K' => fault(Word::Kill, "a0001"),
            'P' => fault(Word::Kill, "pm"),
            'b' => fault(Word::Restart, "hub"),
            'L' => link(),
            'H' => sweep(SweepKind::Heavy),
            'q' => sweep(SweepKind::Light),
            'U' => up(),
            _ => incomplete(),
        };
        letters.chars().map(event).collect()
    }

    #[test]
    fn the_last_fault_may_be_a_restart() {
        for (letters, restarted) in
            [("", false), ("HU", false), ("KFLHU", true), ("FHUK", false), ("Kb", false), ("FbP", true)]
        {
            assert_eq!(restarted_last_in(&events(letters)), restarted, "{letters}");
        }
    }

    #[test]
    fn a_fault_is_swept_by_a_whole_heavy_sweep_after_it() {
        for (letters, due) in [
            ("", false),
            ("HU", false),
            ("F", true),
            ("HUF", true),
            ("HFU", true),
            ("FqU", true),
            ("FH", true),
            ("FHU", true),
            ("FHLU", true),
            ("FLHU", false),
            ("FLHLU", false),
            ("KHU", false),
            ("KHI", false),
            ("FLI", true),
            ("FLHUF", true),
            ("PHUP", false),
            ("b", false),
            ("Fb", true),
        ] {
            let expected = due.then(|| "restart a0001".to_owned());
            assert_eq!(unswept_fault_in(&events(letters)), expected, "{letters}");
        }
    }
}
