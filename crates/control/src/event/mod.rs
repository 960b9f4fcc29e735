//! Events as typed records; sentences for people are made of them.
//!
//! `area` says whose record it is and `event` which one; the fields of the event stand beside. A reader that knows
//! neither still has the source, the times and the name.

mod agent;
mod head;
mod lab;
mod process;
mod signs;
mod text;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use weft_vocabulary::fields::Fields;

use crate::{Incarnation, Utc};

pub use agent::{AgentEvent, Place};
pub use head::EventHead;
pub use lab::LabEvent;
pub use process::ProcessEvent;
pub use signs::{FAULT_SIGNS, fault_sign};
pub use weft_vocabulary::pm::{Event as PmEvent, Question};
pub use weft_vocabulary::sm::{Event as SmEvent, Reason as SweepReason, RepathUse};
pub use weft_vocabulary::vm::Event as VmEvent;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// When, by the wall clock of the source's machine.
    pub time: Utc,
    /// The process that says so, by its name in the laboratory.
    pub source: String,
    /// The life of the source.
    pub incarnation: Incarnation,
    /// Its number: the source's first event is 0, and each has the next number.
    pub sequence: u64,
    /// The event's number in a hub's stream of all sources; only there. The hub's own incarnation goes with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u64>,
    /// How many nanoseconds the source's wall clock is ahead of the hub's, negative where it is behind; only in a hub's stream,
    /// and only where the two differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead_ns: Option<i64>,
    /// Nanoseconds since the source began, by a clock that never goes back.
    pub monotonic_ns: u64,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl Event {
    /// Reads an event's JSON.
    ///
    /// # Errors
    /// When it is no event, or none that this version knows.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        Self::read(Fields::parse(text)?)
    }

    pub(crate) fn read(mut fields: Fields) -> Result<Self, serde_json::Error> {
        Ok(Self {
            time: fields.take("time")?,
            source: fields.take("source")?,
            incarnation: fields.take("incarnation")?,
            sequence: fields.take("sequence")?,
            place: fields.take("place")?,
            ahead_ns: fields.take("ahead_ns")?,
            monotonic_ns: fields.take("monotonic_ns")?,
            kind: EventKind::read(fields)?,
        })
    }

    /// That `count` events of a source were lost, in its place: the last of them had this number.
    pub fn lost(time: Utc, source: &str, incarnation: Incarnation, sequence: u64, count: u64) -> Self {
        let kind = EventKind::Process(ProcessEvent::EventsLost { count });
        let (source, place, ahead_ns) = (source.to_owned(), None, None);
        Self { time, source, incarnation, sequence, place, ahead_ns, monotonic_ns: 0, kind }
    }

    /// Its JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("an event holds nothing that JSON cannot say")
    }

    /// When, by the wall clock of the hub whose stream it was read from.
    pub fn moment(&self) -> Utc {
        self.time.less(self.ahead_ns.unwrap_or(0))
    }
}

/// Declares what happens, by who tells of it: each area with its name in `area` and its events.
macro_rules! areas {
    ($( $(#[$doc:meta])* $variant:ident($event:ident) = $area:literal, )+) => {
        /// What happened, by who tells of it.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "area")]
        pub enum EventKind {
            $( $(#[$doc])* #[serde(rename = $area)] $variant($event), )+
        }

        impl EventKind {
            fn read(mut fields: Fields) -> Result<Self, serde_json::Error> {
                let area: String = fields.take("area")?;
                Ok(match area.as_str() {
                    $( $area => Self::$variant($event::read(fields)?), )+
                    _ => return Err(serde_json::Error::unknown_variant(&area, &[$( $area, )+])),
                })
            }

            /// The names of all events in `event`, by area.
            pub fn names() -> impl Iterator<Item = &'static str> {
                [$( $event::NAMES, )+].into_iter().flatten().copied()
            }

            /// The name in `event`.
            pub fn name(&self) -> &'static str {
                match self { $( Self::$variant(event) => event.name(), )+ }
            }

            /// What happened, without the place: `link down (cut here), peer 0x0000000000000002:2`.
            pub fn sentence(&self) -> String {
                match self { $( Self::$variant(event) => event.to_string(), )+ }
            }
        }
    };
}

areas! {
    /// To the subnet, as a subnet manager sees it.
    Sm(SmEvent) = "sm",
    /// To the fabric's traffic, as a performance manager sees it.
    Pm(PmEvent) = "pm",
    /// To virtual machines, as their manager sees it.
    Vm(VmEvent) = "vm",
    /// To an agent, its devices and its links.
    Agent(AgentEvent) = "agent",
    /// To any process.
    Process(ProcessEvent) = "process",
    /// To the laboratory.
    Lab(LabEvent) = "lab",
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::read(Fields::deserialize(from)?).map_err(D::Error::custom)
    }
}
