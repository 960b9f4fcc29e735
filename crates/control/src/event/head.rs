//! The head of an event: the fields that a reader needs who may not know the event's kind.

use serde::Deserialize;
use serde_json::Value;

use crate::process::ProcessKind;
use crate::{HexGuid, Incarnation, Utc};

/// What any event says of itself, whatever its kind: all that is needed to order it, to pass it on and to choose it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct EventHead {
    /// Its source.
    pub source: String,
    /// When, by its source's clock.
    pub time: Option<Value>,
    /// The life of the source.
    pub incarnation: Incarnation,
    /// Its number.
    pub sequence: u64,
    /// Its area.
    #[serde(default)]
    pub area: String,
    /// Its kind.
    pub event: String,
    /// How many events were lost, where it tells that.
    pub count: Option<Value>,
    /// The node that an agent tells of.
    pub guid: Option<Value>,
    /// The description of that node.
    pub node: Option<Value>,
    /// The place in a hub's stream, which only a hub gives.
    pub place: Option<Value>,
    /// How far the source's clock is ahead, which only a hub says.
    pub ahead_ns: Option<Value>,
}

impl EventHead {
    /// When it happened, if this version can read that.
    pub fn time(&self) -> Option<Utc> {
        readable(self.time.as_ref())
    }

    /// When it happened by the clock of the hub whose stream it was read from, if this version can read that.
    pub fn moment(&self) -> Option<Utc> {
        let ahead_ns = self.ahead_ns.as_ref().and_then(Value::as_i64);
        self.time().map(|time| time.less(ahead_ns.unwrap_or(0)))
    }

    /// Its number in a hub's stream.
    pub fn place(&self) -> Option<u64> {
        self.place.as_ref()?.as_u64()
    }

    /// How many events the source says were lost.
    pub fn lost(&self) -> Option<u64> {
        self.count.as_ref().filter(|_| self.event == "events-lost")?.as_u64()
    }

    /// The GUID and the description of the node that it is about, as far as it says and this version can read that.
    pub fn about(&self) -> (Option<HexGuid>, Option<&str>) {
        let guid = readable(self.guid.as_ref());
        (guid, self.node.as_ref().and_then(Value::as_str))
    }

    /// Whether a process of this name and kind may say this: of itself, and of what such processes know. Areas of later versions
    /// may be anybody's.
    pub fn is_said_by(&self, process: &str, kind: Option<ProcessKind>) -> bool {
        let is_for_its_kind = match self.area.as_str() {
            "agent" => kind == Some(ProcessKind::Agent),
            "sm" => matches!(kind, Some(ProcessKind::Sm | ProcessKind::Opensm)),
            "pm" => kind == Some(ProcessKind::Pm),
            "vm" => kind == Some(ProcessKind::Vmm),
            // Any process may be asked to take note of a fault. The rest is the hub's to report.
            "lab" if self.event.starts_with("program-") => kind == Some(ProcessKind::Ibsim),
            "lab" => self.event == "fault",
            _ => true,
        };
        self.source == process && is_for_its_kind && self.place.is_none() && self.ahead_ns.is_none()
    }
}

fn readable<'de, T: Deserialize<'de>>(value: Option<&'de Value>) -> Option<T> {
    T::deserialize(value?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_tells_of_itself_and_of_what_its_kind_knows() {
        let said = |area: &str, event: &str| EventHead {
            source: "x".into(),
            area: area.into(),
            event: event.into(),
            ..EventHead::default()
        };
        for (head, kinds) in [
            (said("agent", "link-down"), &[ProcessKind::Agent][..]),
            (said("sm", "subnet-up"), &[ProcessKind::Sm, ProcessKind::Opensm]),
            (said("pm", "swept"), &[ProcessKind::Pm]),
            (said("vm", "moved"), &[ProcessKind::Vmm]),
            (said("lab", "program-died"), &[ProcessKind::Ibsim]),
            (said("lab", "fault-cost"), &[]),
        ] {
            for kind in [
                ProcessKind::Agent,
                ProcessKind::Sm,
                ProcessKind::Opensm,
                ProcessKind::Pm,
                ProcessKind::Vmm,
                ProcessKind::Ibsim,
            ] {
                assert_eq!(head.is_said_by("x", Some(kind)), kinds.contains(&kind), "{head:?} {kind:?}");
            }
            assert!(!head.is_said_by("x", None), "{head:?}");
        }
        for head in [said("process", "process-ready"), said("lab", "fault"), said("weather", "rain")] {
            assert!(head.is_said_by("x", None) && !head.is_said_by("y", None), "{head:?}");
            assert!(!EventHead { place: Some(7.into()), ..head.clone() }.is_said_by("x", None));
            assert!(!EventHead { ahead_ns: Some(7.into()), ..head }.is_said_by("x", None));
        }
    }
}
