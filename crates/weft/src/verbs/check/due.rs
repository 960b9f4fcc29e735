//! Whether the subnet manager still owes a sweep for what has just happened.
//!
//! A reading just after `weft fault restart` shows a fabric that is about to change. A sweep is due when one is under
//! way, when a fault was recorded and no whole sweep since, or when ports have a link and wait for activation.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags};
use serde_json::Value;
use weft_control::event::SmEvent;
use weft_control::sm::{RoutingReport, SmStatus};
use weft_control::{Event, EventKind, Since};
use weft_process::Client;
use weft_process::lock;
use weft_sm::Surveyed;
use weft_topology::PortRef;
use weft_wire::PortState;

use crate::lab::managers::{in_charge, listen, subnet_managers};
use crate::lab::names::{IBSIM, PM, SM};
use crate::lab::process::poll_for;
use crate::lab::{LabFolder, Place};
use crate::verbs::Lab;

/// The end of the file of events in which the last fault is looked for.
const EVENTS_BYTES: u64 = 1 << 20;

/// The subnet manager's sweeps at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sweeps {
    /// Heavy sweeps begun.
    begun: u64,
    /// Whether one is under way.
    under_way: bool,
}

impl Sweeps {
    /// `None` where no subnet manager of weft runs. One that has said nothing yet has not swept.
    pub(super) fn of(lab: &Lab) -> anyhow::Result<Option<Self>> {
        let managers = subnet_managers(&lab.folder, &lab.record)?;
        let Some(manager) = in_charge(&managers).filter(|manager| manager.told.is_running()) else {
            return Ok(None);
        };
        let told = |status: &SmStatus| Self { begun: status.heavy_sweeps, under_way: status.phase.is_some() };
        Ok(Some(manager.told.status().map_or(Self { begun: 0, under_way: false }, told)))
    }
}

/// What is known of sweeps and faults at one moment.
pub(super) struct Moment {
    pub(super) sweeps: Sweeps,
    /// The end of the file of events.
    events: String,
}

impl Moment {
    /// `None` where no subnet manager of weft runs.
    pub(super) fn of(lab: &Lab) -> anyhow::Result<Option<Self>> {
        let Some(sweeps) = Sweeps::of(lab)? else { return Ok(None) };
        Ok(Some(Self { sweeps, events: recent_events(&lab.folder)? }))
    }

    /// The fault that the subnet manager has not swept yet.
    fn owed(&self) -> Option<String> {
        let fault = unswept_fault_in(&self.events)?;
        Some(format!("the subnet manager has not swept since `weft fault {fault}`"))
    }
}

/// Why a sweep is due after a reading that began at `before`; `None` if none is.
pub(super) fn due(lab: &Lab, before: Option<&Moment>, live: &Surveyed) -> anyhow::Result<Option<String>> {
    let owed_before = || before.and_then(Moment::owed);
    let Some(now) = Moment::of(lab)? else { return Ok(owed_before()) };
    if before.map(|before| before.sweeps) != Some(now.sweeps) || now.sweeps.under_way {
        return Ok(Some("the subnet manager sweeps".to_owned()));
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
    let runs = |name: &str| lock::holder(&lab.folder.agent_lock(name)).is_ok_and(|holder| holder.is_some());
    let running = lab.record.agents.iter().filter(|agent| runs(&agent.name));
    let mut missing =
        running.flat_map(|agent| &agent.devices).filter(|device| live.fabric.by_guid(device.guid).is_none());
    missing.next().map(|device| format!("`{}` runs and is not in the fabric after a restart", device.label))
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
pub(super) fn wait_for_sweep(lab: &Lab, before: Option<Sweeps>, until: Instant) -> anyhow::Result<()> {
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

/// Whether the last fault was a restart.
fn restarted_last_in(events: &str) -> bool {
    let text = |event: &Value, name: &str| event.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut events = events.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let last = events.find(|event| text(event, "event").as_deref() == Some("fault"));
    last.and_then(|event| text(&event, "fault")).as_deref() == Some("restart")
}

/// The end of the file of events.
fn recent_events(lab: &LabFolder) -> anyhow::Result<String> {
    let path = lab.place(Place::Events);
    let mut end = Vec::new();
    let mut read = || {
        let mut file = File::open(&path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(EVENTS_BYTES)))?;
        file.take(EVENTS_BYTES).read_to_end(&mut end)
    };
    read().with_context(|| format!("cannot read {}", path.display()))?;
    Ok(String::from_utf8_lossy(&end).into_owned())
}

/// The last fault after which no heavy sweep has begun and ended, as the command that made it. After a restart the sweep
/// must begin once the first link is up again: an earlier one has only seen the device go.
fn unswept_fault_in(events: &str) -> Option<String> {
    let (mut fault, mut begun, mut restarted) = (None, false, false);
    for line in events.lines() {
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
        match (text("source"), text("event")) {
            // Those are none of the fabric's.
            ("fault", "fault") if [PM, IBSIM].contains(&text("target")) => {}
            ("fault", "fault") => {
                restarted = text("fault") == "restart" && !is_sm(text("target"));
                (fault, begun) = (Some(format!("{} {}", text("fault"), text("target"))), false);
            }
            (_, "link-up") if restarted => (begun, restarted) = (false, false),
            (source, "sweep-started") if is_sm(source) && text("kind") == "heavy" => begun = true,
            (source, "subnet-up" | "sweep-incomplete") if is_sm(source) && begun && !restarted => {
                fault = None;
            }
            _ => {}
        }
    }
    fault
}

/// Whether a source of events is a subnet manager, the first one or one that stands by.
fn is_sm(source: &str) -> bool {
    source.strip_prefix(SM).is_some_and(|number| number.is_empty() || number.starts_with('-'))
}

/// How long to wait before managers that could not be listened to are tried again.
const RETRY: Duration = Duration::from_millis(200);

/// Connections to the subnet managers, which tell of sweeps.
struct Ears(Vec<Client>);

impl Ears {
    fn of(lab: &Lab) -> Self {
        let kinds = ["sweep-started", "subnet-up", "sweep-incomplete", "route-failed", "sm-state"];
        let managers = lab.record.subnet_managers();
        // A manager that does not run tells of no sweep.
        Self(managers.filter_map(|(name, _)| listen(&lab.folder, &name, Since::Now, &kinds).ok()).collect())
    }

    /// Waits for news, no longer than this; a manager that ends is news.
    fn wait(&mut self, lab: &Lab, left: Duration) -> anyhow::Result<()> {
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

    /// Takes what has been told; whether there was anything.
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
pub(super) fn last_routed(lab: &LabFolder) -> anyhow::Result<Option<RoutingReport>> {
    let path = lab.place(Place::Events);
    let text = crate::input::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let routed = |line: &[u8]| match serde_json::from_slice::<Event>(line).ok()?.kind {
        EventKind::Sm(SmEvent::Routed(report)) => Some(report),
        _ => None,
    };
    Ok(text.rsplit(|byte| *byte == b'\n').find_map(routed))
}

#[cfg(test)]
mod tests {
    use super::{restarted_last_in, unswept_fault_in};

    const FAULT: &str = r#"{"source":"fault","event":"fault","fault":"restart","target":"a0001"}"#;
    const LINK: &str = r#"{"source":"a0002","event":"link-up","port":1}"#;
    const HEAVY: &str = r#"{"source":"sm","event":"sweep-started","kind":"heavy"}"#;
    const LIGHT: &str = r#"{"source":"sm","event":"sweep-started","kind":"light"}"#;
    const UP: &str = r#"{"source":"sm","event":"subnet-up","complete":true}"#;
    const INCOMPLETE: &str = r#"{"source":"sm-2","event":"sweep-incomplete","silent":1}"#;
    const KILL: &str = r#"{"source":"fault","event":"fault","fault":"kill","target":"a0001"}"#;
    const OF_PM: &str = r#"{"source":"fault","event":"fault","fault":"kill","target":"pm"}"#;

    #[test]
    fn the_last_fault_may_be_a_restart() {
        for (events, restarted) in [
            (&[][..], false),
            (&[HEAVY, UP], false),
            (&[KILL, FAULT, LINK, HEAVY, UP], true),
            (&[FAULT, HEAVY, UP, KILL], false),
        ] {
            assert_eq!(restarted_last_in(&events.join("\n")), restarted, "{events:?}");
        }
    }

    #[test]
    fn a_fault_is_swept_by_a_whole_heavy_sweep_after_it() {
        for (events, due) in [
            (&[][..], false),
            (&[HEAVY, UP], false),
            (&[FAULT], true),
            (&[HEAVY, UP, FAULT], true),
            (&[HEAVY, FAULT, UP], true),
            (&[FAULT, LIGHT, UP], true),
            (&[FAULT, HEAVY], true),
            (&[FAULT, HEAVY, UP], true),
            (&[FAULT, HEAVY, LINK, UP], true),
            (&[FAULT, LINK, HEAVY, UP], false),
            (&[FAULT, LINK, HEAVY, LINK, UP], false),
            (&[KILL, HEAVY, UP], false),
            (&[KILL, HEAVY, INCOMPLETE], false),
            (&[FAULT, LINK, INCOMPLETE], true),
            (&[FAULT, LINK, HEAVY, UP, FAULT], true),
            (&["half a lin", OF_PM, HEAVY, UP, OF_PM], false),
        ] {
            let expected = due.then(|| "restart a0001".to_owned());
            assert_eq!(unswept_fault_in(&events.join("\n")), expected, "{events:?}");
        }
    }
}
