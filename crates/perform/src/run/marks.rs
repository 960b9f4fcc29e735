//! Events of a run in a few words: from events of the managers' machines, and from those that the managers of a
//! laboratory tell.

use std::time::Duration;

use weft_bundle::folder::LabFolder;
use weft_bundle::names::{PM, SM};
use weft_control::event::{PmEvent, RepathUse, SmEvent};
use weft_control::{EventKind, Incarnation, Since};
use weft_experiment::{Mark, MarkKind, Plan};
use weft_lab::managers::listen;
use weft_machine::Time;
use weft_process::{Client, ClientError};
use weft_wire::Guid;

/// What is said of a heavy sweep that has ended.
pub(super) const REROUTED: &str = "the subnet manager has swept and written what changed";

/// A figure tells all those together that do the same at one time.
fn moved(plan: &Plan, hot_spot: Guid, port: Guid, begins: bool) -> String {
    let verb = if begins { "take" } else { "leave" };
    format!("{verb} the slow lane to {}: {}", plan.end_with_port(hot_spot), plan.end_with_port(port))
}

/// What the performance manager says, as far as a report shows it.
pub(super) fn of_pm(plan: &Plan, at: Time, event: &PmEvent) -> Option<Mark> {
    let (kind, text) = match event {
        PmEvent::HotSpot { port_guid, .. } => {
            return Some(Mark::hot_spot(at, &plan.end_with_port(port_guid.0)));
        }
        PmEvent::HotSpotEnded { port_guid, .. } => {
            (MarkKind::HotSpotEnded, format!("hot spot no more: {}", plan.end_with_port(port_guid.0)))
        }
        PmEvent::Repathed { hot_spot_guid, port_guid, .. } => {
            (MarkKind::Repath, moved(plan, hot_spot_guid.0, port_guid.0, true))
        }
        PmEvent::Unpathed { hot_spot_guid, port_guid, .. } => {
            (MarkKind::Repath, moved(plan, hot_spot_guid.0, port_guid.0, false))
        }
        PmEvent::NotMoved { hot_spot, lid, .. } => {
            (MarkKind::Note, format!("the host with LID {lid} was not told of LID {hot_spot}"))
        }
        _ => return None,
    };
    Some(Mark { at, kind, text })
}

/// What the subnet manager tells hosts of its own accord. Hot spots are the performance manager's to tell of.
pub(super) fn of_sm(at: Time, event: &SmEvent) -> Option<Mark> {
    let SmEvent::Repath { kind, service_level, slid, dlid, told, .. } = event else { return None };
    let hosts = if *told == 1 { "1 host is".to_owned() } else { format!("{told} hosts are") };
    let text = match kind {
        RepathUse::Path => {
            format!("{hosts} told that packets from LID {slid} to {dlid} take service level {service_level}")
        }
        RepathUse::Wildcard => format!("{hosts} told to ask for all paths again"),
        RepathUse::Rate => format!("{hosts} told that ways to LID {dlid} carry another rate or MTU"),
        RepathUse::Hold => format!("{hosts} told to hold queue pairs to LID {dlid}"),
        RepathUse::Levels => format!("{hosts} told that ways to LID {dlid} have other service levels"),
        RepathUse::HotSpot | RepathUse::Lid | RepathUse::Other => return None,
    };
    Some(Mark { at, kind: MarkKind::Repath, text })
}

/// What of the managers' events a report may show.
const SM_KINDS: [&str; 3] = ["subnet-up", "sweep-incomplete", "repath"];
const PM_KINDS: [&str; 5] = ["learned", "hot-spot", "hot-spot-ended", "repathed", "unpathed"];

/// Listens to the managers of a laboratory, through their ends and restarts.
pub(super) struct Listener {
    lab: LabFolder,
    sm: Ear,
    pm: Ear,
}

impl Listener {
    /// Hears what the managers remember, from their beginning.
    pub(super) fn new(lab: LabFolder) -> Self {
        Self { lab, sm: Ear::new(SM, &SM_KINDS), pm: Ear::new(PM, &PM_KINDS) }
    }

    /// Leaves out what has happened so far.
    pub(super) fn skip(&mut self) -> anyhow::Result<()> {
        self.events().map(drop)
    }

    /// Whether the performance manager has said that it knows the fabric, since the last call.
    pub(super) fn has_learned(&mut self) -> anyhow::Result<bool> {
        let learned =
            |event: &weft_control::Event| matches!(event.kind, EventKind::Pm(PmEvent::Learned { .. }));
        Ok(self.events()?.iter().any(learned))
    }

    /// What has happened since the last call, marked with this moment.
    pub(super) fn marks(&mut self, now: Time, plan: &Plan) -> anyhow::Result<Vec<Mark>> {
        Ok(self.events()?.iter().filter_map(|event| of_event(plan, now, &event.kind)).collect())
    }

    /// The events since the last call, the subnet manager's first.
    fn events(&mut self) -> anyhow::Result<Vec<weft_control::Event>> {
        let mut events = self.sm.hear(&self.lab)?;
        events.extend(self.pm.hear(&self.lab)?);
        Ok(events)
    }
}

/// One manager's events.
struct Ear {
    process: &'static str,
    kinds: &'static [&'static str],
    client: Option<Client>,
    /// The last that was heard.
    last: Option<(Incarnation, u64)>,
}

impl Ear {
    fn new(process: &'static str, kinds: &'static [&'static str]) -> Self {
        Self { process, kinds, client: None, last: None }
    }

    /// What is there to hear. A manager that does not run says nothing.
    fn hear(&mut self, lab: &LabFolder) -> anyhow::Result<Vec<weft_control::Event>> {
        let mut heard = Vec::new();
        // Twice, because what a manager said before it ended is heard, and what its next life says as well.
        for _ in 0..2 {
            self.connect(lab)?;
            let Some(client) = &mut self.client else { return Ok(heard) };
            loop {
                match client.next_event(Duration::ZERO) {
                    Ok(Some(event)) => {
                        self.last = Some((event.incarnation, event.sequence));
                        heard.push(event);
                    }
                    Ok(None) => return Ok(heard),
                    Err(ClientError::Io(_) | ClientError::Closed) => break,
                    Err(error) => return Err(error.into()),
                }
            }
            self.client = None;
        }
        Ok(heard)
    }

    fn connect(&mut self, lab: &LabFolder) -> anyhow::Result<()> {
        if self.client.is_none() {
            let after = |(incarnation, sequence)| Since::After { incarnation, sequence };
            let from = self.last.map_or(Since::Start, after);
            match listen(lab, self.process, from, self.kinds) {
                Ok(client) => self.client = Some(client),
                Err(ClientError::Connect { .. } | ClientError::Io(_) | ClientError::Closed) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// One event of a manager, as far as a report shows it.
fn of_event(plan: &Plan, at: Time, event: &EventKind) -> Option<Mark> {
    match event {
        EventKind::Sm(SmEvent::SubnetUp(_) | SmEvent::SweepIncomplete(_)) => {
            Some(Mark { at, kind: MarkKind::Rerouted, text: REROUTED.to_owned() })
        }
        EventKind::Sm(event) => of_sm(at, event),
        EventKind::Pm(event) => of_pm(plan, at, event),
        _ => None,
    }
}
