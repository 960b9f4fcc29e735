//! What happened in a run, in a few words: from events of the managers' machines, and from their lines in a
//! laboratory's file of events.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use anyhow::Context;
use serde_json::Value;
use weft_experiment::{Mark, MarkKind};
use weft_machine::Time;
use weft_pm::Event;
use weft_sm::Event as SmEvent;
use weft_topology::Fabric;
use weft_wire::{Guid, RepathKind};

use super::perform::has_port;
use crate::lab::{LabFolder, Place};

/// What is said of a heavy sweep that has ended.
pub(super) const REROUTED: &str = "the subnet manager has swept and written what changed";

/// The name of the node that has a port with this GUID.
fn host(fabric: &Fabric, port: Guid) -> String {
    let owner = fabric.iter().find(|(_, node)| has_port(node, port));
    owner.map_or_else(|| port.to_string(), |(index, _)| fabric.label(index))
}

fn hot(fabric: &Fabric, port: Guid, begins: bool) -> String {
    let what = if begins { "hot spot" } else { "hot spot no more" };
    format!("{what}: {}", host(fabric, port))
}

/// A figure tells all those together that do the same at one time.
fn moved(fabric: &Fabric, hot_spot: Guid, port: Guid, begins: bool) -> String {
    let verb = if begins { "take" } else { "leave" };
    format!("{verb} the slow lane to {}: {}", host(fabric, hot_spot), host(fabric, port))
}

/// What the performance manager says, as far as a report shows it.
pub(super) fn of_pm(fabric: &Fabric, at: Time, event: &Event) -> Option<Mark> {
    let (kind, text) = match event {
        Event::HotSpot { port, .. } => (MarkKind::HotSpot, hot(fabric, *port, true)),
        Event::HotSpotEnded { port, .. } => (MarkKind::HotSpotEnded, hot(fabric, *port, false)),
        Event::Repathed { hot_spot_guid, port, .. } => {
            (MarkKind::Repath, moved(fabric, *hot_spot_guid, *port, true))
        }
        Event::Unpathed { hot_spot_guid, port, .. } => {
            (MarkKind::Repath, moved(fabric, *hot_spot_guid, *port, false))
        }
        Event::NotMoved { hot_spot, lid, .. } => {
            (MarkKind::Note, format!("the host with LID {lid} was not told of LID {hot_spot}"))
        }
        _ => return None,
    };
    Some(Mark { at, kind, text })
}

/// What the subnet manager tells hosts of its own accord. Hot spots are the performance manager's to tell of.
pub(super) fn of_sm(at: Time, event: &SmEvent) -> Option<Mark> {
    let SmEvent::Repath { kind, service_level, slid, dlid, told, .. } = event else { return None };
    if ![RepathKind::WILDCARD, RepathKind::PATH].contains(&RepathKind(*kind)) {
        return None;
    }
    let text = repath_text(RepathKind(*kind), (slid.0, dlid.0), service_level.0, *told);
    Some(Mark { at, kind: MarkKind::Repath, text })
}

fn repath_text(kind: RepathKind, (slid, dlid): (u16, u16), level: u8, told: u32) -> String {
    let hosts = if told == 1 { "1 host is".to_owned() } else { format!("{told} hosts are") };
    match kind {
        RepathKind::PATH => {
            format!("{hosts} told that packets from LID {slid} to {dlid} take service level {level}")
        }
        _ => format!("{hosts} told to ask for all paths again"),
    }
}

/// Reads a laboratory's file of events as it grows.
pub(super) struct JournalReader {
    file: File,
    /// A line that has not ended yet.
    rest: String,
}

impl JournalReader {
    /// From the beginning of the file.
    pub(super) fn open(lab: &LabFolder) -> anyhow::Result<Self> {
        let path = lab.place(Place::Events);
        let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self { file, rest: String::new() })
    }

    /// Leaves out what is there.
    pub(super) fn skip(&mut self) -> anyhow::Result<()> {
        self.rest.clear();
        self.file.seek(SeekFrom::End(0)).map(drop).context("cannot read the laboratory's events")
    }

    /// The whole lines that have come since the last call.
    fn lines(&mut self) -> anyhow::Result<String> {
        let mut bytes = Vec::new();
        self.file.read_to_end(&mut bytes).context("cannot read the laboratory's events")?;
        self.rest.push_str(&String::from_utf8_lossy(&bytes));
        let whole = self.rest.rfind('\n').map_or(0, |end| end + 1);
        Ok(self.rest.drain(..whole).collect())
    }

    /// Whether the performance manager has said that it knows the fabric, since the last call.
    pub(super) fn has_learned(&mut self) -> anyhow::Result<bool> {
        let lines = self.lines()?;
        let learned = |line: &str| {
            let value: Value = serde_json::from_str(line).unwrap_or_default();
            value.get("source").and_then(Value::as_str) == Some("pm")
                && value.get("event").and_then(Value::as_str) == Some("learned")
        };
        Ok(lines.lines().any(learned))
    }

    /// What has come since the last call, told of this moment.
    pub(super) fn marks(&mut self, now: Time, fabric: &Fabric) -> anyhow::Result<Vec<Mark>> {
        let lines = self.lines()?;
        Ok(lines.lines().filter_map(|line| of_line(fabric, now, line)).collect())
    }
}

/// One line of the file, as far as a report shows it.
fn of_line(fabric: &Fabric, at: Time, line: &str) -> Option<Mark> {
    let value: Value = serde_json::from_str(line).ok()?;
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let number = |name: &str| value.get(name).and_then(Value::as_u64).unwrap_or_default();
    let guid = |name: &str| {
        let digits = text(name).trim_start_matches("0x");
        Guid(u64::from_str_radix(digits, 16).unwrap_or_default())
    };
    let (port, hot_spot) = (guid("port_guid"), guid("hot_spot_guid"));
    let (kind, words) = match (text("source"), text("event")) {
        ("sm", "subnet-up" | "sweep-incomplete") => (MarkKind::Rerouted, REROUTED.to_owned()),
        ("sm", "repath") if matches!(number("kind"), 0 | 1) => {
            let lids = (number("slid") as u16, number("dlid") as u16);
            let kind = RepathKind(number("kind") as u8);
            let (level, told) = (number("service_level") as u8, number("told") as u32);
            (MarkKind::Repath, repath_text(kind, lids, level, told))
        }
        ("pm", "hot-spot") => (MarkKind::HotSpot, hot(fabric, port, true)),
        ("pm", "hot-spot-ended") => (MarkKind::HotSpotEnded, hot(fabric, port, false)),
        ("pm", "repathed") => (MarkKind::Repath, moved(fabric, hot_spot, port, true)),
        ("pm", "unpathed") => (MarkKind::Repath, moved(fabric, hot_spot, port, false)),
        _ => return None,
    };
    Some(Mark { at, kind, text: words })
}
