//! An event as one line: a sentence for people, its fields, or its JSON.

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde_json::Value;
use weft_control::agent::PortEnd;
use weft_control::event::Place;
use weft_control::{EventKind, HexGuid, Utc};
use weft_lab::events::Told;
use weft_topology::Fabric;
use weft_wire::{Guid, Printable, printable_json};

use super::wanted::guid_of;

/// The form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Sentences,
    Fields,
    Json,
}

/// What writes lines, with the user's names of nodes and end ports.
pub(super) struct Lines {
    form: Form,
    names: BTreeMap<Guid, String>,
}

impl Lines {
    pub(super) fn new(form: Form, fabric: Option<&Fabric>) -> Self {
        let mut names = BTreeMap::new();
        if let Some(fabric) = fabric {
            for (index, node) in fabric.iter() {
                let label = fabric.label(index);
                if !node.is_switch() {
                    names.extend(node.end_ports().map(|(port, end)| (end.guid, format!("{label}:{port}"))));
                }
                names.insert(node.guid, label);
            }
        }
        Self { form, names }
    }

    /// The line, with its line end; `now` is the time by the clock of the event's moment.
    pub(super) fn of(&self, told: &Told, now: Utc) -> String {
        let line = match (self.form, told.kind()) {
            (Form::Json, _) => printable_json(&told.json).into_owned(),
            (Form::Sentences, Some(kind)) => {
                let source = told.head.source.as_str();
                format!("{} {}", clock(told.moment, now), self.sentence(source, &kind))
            }
            // A later version's event has no sentence here.
            (Form::Sentences, None) => self.fields(&clock(told.moment, now), &told.json),
            (Form::Fields, _) => self.fields(&told.moment.rfc3339(9), &told.json),
        };
        line + "\n"
    }

    /// Where it happened and what: `S1:2 link down (cut here), peer S2:2`.
    fn sentence(&self, source: &str, kind: &EventKind) -> String {
        let place = match kind.place() {
            Some(Place { guid, node, port }) => {
                let known = self.names.get(&guid.0).cloned();
                let node = known.unwrap_or_else(|| Printable(node).to_string());
                port.map_or_else(|| node.clone(), |port| format!("{node}:{port}"))
            }
            None => Printable(source).to_string(),
        };
        format!("{place} {}", self.with_names(&kind.sentence()))
    }

    /// A text with the user's names instead of the GUIDs of nodes and ports.
    fn with_names(&self, text: &str) -> String {
        const DIGITS: usize = "0x0000000000000000".len();
        let (mut named, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(at) = rest.find("0x") {
            let (before, from) = rest.split_at(at);
            named.push_str(before);
            let guid = from.get(..DIGITS).and_then(|digits| Some((digits, guid_of(digits)?)));
            let Some((digits, name)) = guid.and_then(|(digits, guid)| Some((digits, self.names.get(&guid)?)))
            else {
                named.push_str("0x");
                rest = &from["0x".len()..];
                continue;
            };
            rest = &from[digits.len()..];
            // "`leaf-1` (0x…)" names it twice.
            match (named.strip_suffix(&format!("`{name}` (")), rest.strip_prefix(')')) {
                (Some(before), Some(behind)) => (named, rest) = (format!("{before}{name}"), behind),
                _ => named.push_str(name),
            }
        }
        named + rest
    }

    /// Who, what, and the simple rest as `name=value`.
    fn fields(&self, time: &str, event: &str) -> String {
        let Ok(mut fields) = serde_json::from_str::<BTreeMap<String, Value>>(event) else {
            return event.to_owned();
        };
        // Its number in the hub's stream tells people nothing, and the time is one clock's already.
        for name in ["place", "ahead_ns", "time"] {
            fields.remove(name);
        }
        let guid = fields.get("guid").and_then(Value::as_str).and_then(guid_of);
        if let Some(label) = guid.and_then(|guid| self.names.get(&guid)) {
            if fields.get("description").and_then(Value::as_str) == Some(label) {
                fields.remove("description");
            }
            fields.insert("node".to_owned(), label.as_str().into());
        }
        let mut take = |name: &str| fields.remove(name).map(plain).unwrap_or_default();
        let (who, what) = (take("source"), take("event"));
        let mut shown = format!("{time} {who:<6} {what}");
        // Lists and objects are for programs, except ports: `--json` has them.
        for (name, value) in fields {
            let port = self.port_label(&value);
            if let Some(text) =
                port.or_else(|| (!value.is_array() && !value.is_object()).then(|| plain(value)))
            {
                shown.push_str(&format!(" {name}={text}"));
            }
        }
        shown
    }

    /// A port as the user names it.
    fn port_label(&self, value: &Value) -> Option<String> {
        let PortEnd { node: HexGuid(guid), port } = PortEnd::deserialize(value).ok()?;
        let node = self.names.get(&guid).cloned().unwrap_or_else(|| HexGuid(guid).to_string());
        Some(format!("{node}:{port}"))
    }
}

/// The time of day in UTC to the millisecond, with its day unless that is today.
fn clock(moment: Utc, now: Utc) -> String {
    let [moment, now] = [moment, now].map(|utc| utc.rfc3339(3));
    match (moment.split_once('T'), now.split_once('T')) {
        (Some((day, time)), Some((today, _))) => {
            let time = time.trim_end_matches('Z');
            if day == today { time.to_owned() } else { format!("{day} {time}") }
        }
        _ => moment,
    }
}

fn plain(value: Value) -> String {
    match value {
        Value::String(text) => Printable(&text).to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use weft_control::event::{AgentEvent, LabEvent, ProcessEvent, SmEvent};
    use weft_control::{Event, Incarnation};
    use weft_wire::{Lid, PortNum};

    use super::*;

    const TOPOLOGY: &str = r#"
switchguid=0x1
Switch 4 "S-0000000000000001" # "S1"
[1] "H-0000000000000010"[1]
[2] "S-0000000000000002"[2]

switchguid=0x2
Switch 4 "S-0000000000000002" # "S2"
[2] "S-0000000000000001"[2]

caguid=0x10
Ca 1 "H-0000000000000010" # "host-0"
[1](11) "S-0000000000000001"[1]
"#;
    const NOON: &str = "2026-11-20T12:00:00.000000000Z";

    fn told(source: &str, time: &str, kind: EventKind) -> Told {
        let (incarnation, sequence, monotonic_ns) = (Incarnation(7), 3, 5);
        let (place, ahead_ns) = (Some(9), None);
        let (time, source) = (time.parse().unwrap(), source.to_owned());
        let event = Event { time, source, incarnation, sequence, place, ahead_ns, monotonic_ns, kind };
        Told::of(serde_json::to_string(&event).unwrap()).unwrap().unwrap()
    }

    fn down(reason: &str) -> EventKind {
        let [guid, peer] = [1, 2].map(|guid| HexGuid(Guid(guid)));
        let peer = Some(PortEnd { node: peer, port: PortNum(2) });
        let (node, port) = ("S1 as it says".into(), PortNum(2));
        EventKind::Agent(AgentEvent::LinkDown { guid, node, port, peer, reason: reason.into() })
    }

    #[track_caller]
    fn check(form: Form, told: &Told, line: &str) {
        let fabric = weft_topology::parse("x.topo", TOPOLOGY).unwrap();
        let now = NOON.parse().unwrap();
        assert_eq!(Lines::new(form, Some(&fabric)).of(told, now), format!("{line}\n"));
    }

    #[test]
    fn a_link_that_goes_down_is_a_sentence() {
        let down = told("a0001", "2026-11-20T11:13:57.578123456Z", down("cut here"));
        check(Form::Sentences, &down, "11:13:57.578 S1:2 link down (cut here), peer S2:2");
        let fields = "2026-11-20T11:13:57.578123456Z a0001  link-down area=agent guid=0x0000000000000001 \
             incarnation=0000000000000007 monotonic_ns=5 node=S1 peer=S2:2 port=2 reason=cut here sequence=3";
        check(Form::Fields, &down, fields);
        check(Form::Json, &down, &down.json);
        // Without the cabling, as events have it.
        let line = Lines::new(Form::Sentences, None).of(&down, NOON.parse().unwrap());
        let bare = "11:13:57.578 S1 as it says:2 link down (cut here), peer 0x0000000000000002:2\n";
        assert_eq!(line, bare);
    }

    #[test]
    fn events_of_another_day_show_their_date() {
        let ready = |time| told("sm", time, EventKind::Process(ProcessEvent::Ready));
        check(Form::Sentences, &ready("2026-11-19T23:59:59.999999999Z"), "2026-11-19 23:59:59.999 sm ready");
        check(Form::Sentences, &ready(NOON), "12:00:00.000 sm ready");
    }

    #[test]
    fn nodes_and_ports_have_the_names_of_the_user() {
        let guid = |guid| HexGuid(Guid(guid));
        let lost = |node, description: &str| {
            let kind = weft_control::agent::NodeKind::Switch;
            told(
                "sm",
                NOON,
                EventKind::Sm(SmEvent::NodeLost { guid: node, kind, description: description.into() }),
            )
        };
        check(Form::Sentences, &lost(guid(1), "S1"), "12:00:00.000 sm lost switch S1");
        let other = "12:00:00.000 sm lost switch `x` (S2)";
        check(Form::Sentences, &lost(guid(2), "x"), other);
        let unknown = "12:00:00.000 sm lost switch `0x7` (0x0000000000000007)";
        check(Form::Sentences, &lost(guid(7), "0x7"), unknown);
        let lid = |port_guid| {
            let event = SmEvent::LidAssigned { port_guid, lid: Lid(5), before: Lid(0) };
            told("sm", NOON, EventKind::Sm(event))
        };
        check(Form::Sentences, &lid(guid(0x11)), "12:00:00.000 sm port host-0:1 gets LID 5");
        check(Form::Sentences, &lid(guid(1)), "12:00:00.000 sm port S1 gets LID 5");
    }

    #[test]
    fn a_line_holds_nothing_that_a_terminal_obeys() {
        let kind = LabEvent::StartFailed { process: "a\u{1b}[2J".into(), reason: "b\nc".into() };
        let event = told("x\u{7}", NOON, EventKind::Lab(kind));
        let line = r"12:00:00.000 x\u{7} cannot start a\u{1b}[2J: b\nc";
        check(Form::Sentences, &event, line);
    }

    #[test]
    fn kinds_of_later_versions_are_shown_by_their_fields() {
        let rain = r#"{"time":"2026-11-20T12:00:00.000000000Z","source":"x","incarnation":"0000000000000007","sequence":3,
            "monotonic_ns":1,"area":"weather","event":"rain","guid":"0x0000000000000001"}"#;
        let rain = Told::of(rain.to_owned()).unwrap().unwrap();
        let line = "12:00:00.000 x      rain area=weather guid=0x0000000000000001 incarnation=0000000000000007 \
             monotonic_ns=1 node=S1 sequence=3";
        check(Form::Sentences, &rain, line);
    }
}
