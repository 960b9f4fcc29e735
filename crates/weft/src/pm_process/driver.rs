//! The performance manager's machine, and what comes of its events.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use weft_agent::Journal;
use weft_machine::Time;
use weft_metrics::Page;
use weft_pm::{Event, Input, Output, PerformanceManager, Snapshot};
use weft_wire::{AddressedMad, Registration};

use super::PmConfig;
use super::page::page;
use crate::lab::launch::PM;
use crate::manager::status_file::bytes;
use crate::manager::{LauncherLine, Manager, News, StatusFile, TurnEnd};
use crate::output;

/// Writing the status may take one part in so many of the time.
const WRITING_SHARE: u32 = 20;
/// How long a status stands at least.
const STATUS_TIME_MIN: Duration = Duration::from_millis(100);
/// How long a status stands at most, so that whoever reads it knows that somebody lives.
const STATUS_TIME_MAX: Duration = Duration::from_secs(1);

/// What the performance manager says of itself in its file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PmStatus {
    /// Whether it is attached to its port.
    pub(crate) attached: bool,
    /// What it was told.
    pub(crate) options: weft_pm::Options,
    /// What it sees.
    pub(crate) snapshot: Snapshot,
}

impl PmStatus {
    /// Reads it; `None` when the performance manager has not said anything yet.
    pub(crate) fn load(path: &Path) -> anyhow::Result<Option<Self>> {
        match crate::input::read(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .with_context(|| format!("{} makes no sense", path.display())),
        }
    }
}

/// The performance manager with what its events change.
pub(super) struct Driver {
    config: PmConfig,
    machine: PerformanceManager,
    journal: Journal,
    attached: bool,
    stopping: bool,
    changed: bool,
    status_file: StatusFile,
    /// When the status may be written again, and when it must.
    write_after: Instant,
    write_by: Instant,
}

impl Manager for Driver {
    const NAME: &'static str = PM;
    const NEEDS_REGISTRATIONS: bool = false;
    // Hosts that were moved are asked to move back; `down` waits somewhat longer.
    const STOP_PATIENCE: Duration = Duration::from_secs(1);
    type Machine = PerformanceManager;
    type Figures = Arc<PmStatus>;

    fn registrations() -> Vec<Registration> {
        weft_pm::registrations()
    }

    fn machine(&mut self) -> &mut PerformanceManager {
        &mut self.machine
    }

    fn note(&mut self, news: &News) {
        match news {
            News::Attached { .. } => (self.attached, self.changed) = (true, true),
            News::Detached => {
                (self.attached, self.changed) = (false, true);
                self.journal.record("detached", &[]);
            }
            News::Stop => self.stopping = true,
            _ => {}
        }
    }

    fn input(news: News) -> Option<Input> {
        Some(match news {
            News::Attached { node_guid, port_guid, port } => Input::Attached { node_guid, port_guid, port },
            News::Detached => Input::Detached,
            News::Mad(mad) => Input::Receive(mad),
            News::PortChanged { up } => Input::PortChanged { up },
            News::Hangup => Input::Refresh,
            News::Stop => Input::Withdraw,
            News::Order(..) => return None,
        })
    }

    fn take(&mut self, output: Output, _launcher: &mut LauncherLine) -> Option<AddressedMad> {
        match output {
            Output::Send(mad) => return Some(mad),
            Output::Event(event) => self.tell(&event),
        }
        None
    }

    fn end_turn(&mut self, now: Time, _launcher: &mut LauncherLine) -> TurnEnd {
        self.journal.flush();
        let at = Instant::now();
        if self.changed && self.write_after <= at || self.write_by <= at {
            self.write_status(now);
        }
        let wake_at = if self.changed { self.write_after } else { self.write_by };
        let done = self.stopping && self.machine.snapshot(now).moves == 0;
        TurnEnd { done, wake_at: Some(wake_at) }
    }

    fn figures(&self, now: Time) -> Arc<PmStatus> {
        Arc::new(self.status(now))
    }

    fn render(figures: &Arc<PmStatus>) -> Page {
        page(figures)
    }
}

impl Driver {
    pub(super) fn new(config: PmConfig) -> Self {
        let now = Instant::now();
        Self {
            machine: PerformanceManager::new(config.options.clone()),
            journal: Journal::open(config.seat.events.as_deref(), PM),
            attached: false,
            stopping: false,
            changed: true,
            status_file: StatusFile::new(config.seat.status.clone()),
            write_after: now,
            write_by: now,
            config,
        }
    }

    fn status(&self, now: Time) -> PmStatus {
        PmStatus {
            attached: self.attached,
            // The key is for nobody who reads how the manager is.
            options: weft_pm::Options { m_key: weft_wire::MKey(0), ..self.config.options.clone() },
            snapshot: self.machine.snapshot(now),
        }
    }

    /// A large fabric's status is megabytes, and sweeps may be many a second: it is written as often as that costs
    /// little.
    fn write_status(&mut self, now: Time) {
        let began = Instant::now();
        let status = self.status(now);
        self.status_file.write(true, || bytes(&status));
        let pause = (began.elapsed() * WRITING_SHARE).max(STATUS_TIME_MIN);
        self.changed = false;
        self.write_after = Instant::now() + pause;
        self.write_by = Instant::now() + pause.max(STATUS_TIME_MAX);
    }

    fn tell(&mut self, event: &Event) {
        self.changed = true;
        if let Event::Swept { .. } = event {
            tracing::debug!(?event, "routine");
            return;
        }
        tracing::info!(?event, "event");
        let Ok(value) = serde_json::to_value(event) else { return };
        let (name, fields) = match value {
            Value::Object(object) => match object.into_iter().next() {
                Some((name, fields)) => (name, fields),
                None => return,
            },
            Value::String(name) => (name, Value::Null),
            _ => return,
        };
        let fields = if let Value::Object(fields) = fields { fields } else { Map::new() };
        // A port is a number elsewhere in the journal, and a node a name; here they are GUIDs.
        let named = |name: String| if ["port", "node"].contains(&&*name) { name + "_guid" } else { name };
        let mut fields: Value = fields.into_iter().map(|(name, value)| (named(name), value)).collect();
        output::name_guids(&mut fields);
        let Value::Object(fields) = fields else { return };
        self.journal.record_object(&kebab(&name), fields);
    }
}

/// `HotSpotEnded` as the other events of the journal are written: `hot-spot-ended`.
fn kebab(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_named_as_the_others_are() {
        assert_eq!(kebab("HotSpotEnded"), "hot-spot-ended");
        assert_eq!(kebab("Learned"), "learned");
    }
}
