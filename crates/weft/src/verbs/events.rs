//! `weft events`

use std::collections::BTreeMap;

use weft_bundle::folder::LabFolder;
use weft_control::Utc;
use weft_control::agent::PortEnd;
use weft_lab::events::{Follower, Teller, Told, remembered, say_silent, say_without_hub};
use weft_lab::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use weft_lab::view::Lab;
use weft_process::utc_now;
use weft_wire::{Guid, Printable, printable_json};

use crate::cli::{EventsArgs, Since};
use crate::output::{print, say};

pub(super) fn run(folder: &LabFolder, args: &EventsArgs) -> anyhow::Result<()> {
    let first = First::of(args, utc_now());
    // While a laboratory comes up or goes, its cabling may not be there: then nodes keep the names that they give.
    let lab = if args.json { None } else { Lab::load(folder).ok() };
    let show_all = |told: Vec<Told>| {
        let wanted = told.iter().filter(|told| first.wants(told.moment));
        print(&wanted.map(|told| show(told, lab.as_ref(), args.json)).collect::<String>())
    };
    if !args.follow {
        let (past, teller) = remembered(folder, &[])?;
        if teller == Teller::Processes {
            say_without_hub(folder);
        }
        say_silent(folder, &past.silent);
        return show_all(past.told);
    }
    // To stop listening is the way in which this ends.
    let stop = Signals::watch(&[SIGINT, SIGTERM, SIGHUP])?;
    let (mut follower, past) = Follower::begin(folder, args.since.is_some())?;
    say("following events; press Ctrl-C to end");
    show_all(past)?;
    while let Some(told) = follower.next(&stop)? {
        show_all(told)?;
    }
    Ok(())
}

/// The first moment of which events are wanted, in RFC 3339's form: times of this form are ordered as texts are.
#[derive(Debug, PartialEq, Eq)]
struct First(String);

impl First {
    fn of(args: &EventsArgs, now: Utc) -> Self {
        let before = |ago: std::time::Duration| {
            let ago = u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX);
            Utc::from_nanos(now.as_nanos().saturating_sub(ago)).rfc3339(9)
        };
        Self(match &args.since {
            None if args.follow => before(std::time::Duration::ZERO),
            None | Some(Since::Start) => String::new(),
            Some(Since::Time(time)) => time.clone(),
            Some(Since::Ago(ago)) => before(*ago),
        })
    }

    fn wants(&self, time: Utc) -> bool {
        time.rfc3339(9) >= self.0
    }
}

/// An event as it stands, or as a line for people: time by this machine's clock, who, what, and the simple rest as `name=value`.
fn show(told: &Told, lab: Option<&Lab>, json: bool) -> String {
    let event = told.json.as_str();
    if json {
        return printable_json(event).into_owned() + "\n";
    }
    let Ok(mut fields) = serde_json::from_str::<BTreeMap<String, serde_json::Value>>(event) else {
        return event.to_owned() + "\n";
    };
    // Its number in the hub's stream tells people nothing, and the time is one clock's already.
    for name in ["place", "ahead_ns", "time"] {
        fields.remove(name);
    }
    let guid = fields.get("guid").and_then(serde_json::Value::as_str).and_then(hexadecimal);
    if let Some(label) =
        lab.zip(guid).and_then(|(lab, guid)| Some(lab.fabric.label(lab.fabric.by_guid(guid)?)))
    {
        if fields.get("description").and_then(serde_json::Value::as_str) == Some(&label) {
            fields.remove("description");
        }
        fields.insert("node".to_owned(), label.into());
    }
    let mut take = |name: &str| fields.remove(name).map(plain).unwrap_or_default();
    let (who, what) = (take("source"), take("event"));
    let mut shown = format!("{} {who:<6} {what}", told.moment.rfc3339(9));
    // Lists and objects are for programs, except ports: `--json` has them.
    for (name, value) in fields {
        let port = port_label(&value, lab);
        if let Some(text) = port.or_else(|| (!value.is_array() && !value.is_object()).then(|| plain(value))) {
            shown.push_str(&format!(" {name}={text}"));
        }
    }
    shown.push('\n');
    shown
}

/// A port as the user names it.
fn port_label(value: &serde_json::Value, lab: Option<&Lab>) -> Option<String> {
    let end: PortEnd = serde_json::from_value(value.clone()).ok()?;
    let known = lab.and_then(|lab| Some(lab.fabric.label(lab.fabric.by_guid(end.node.0)?)));
    Some(known.map_or_else(|| end.to_string(), |node| format!("{node}:{}", end.port)))
}

fn hexadecimal(text: &str) -> Option<Guid> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok().map(Guid)
}

fn plain(value: serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => Printable(&text).to_string(),
        other => other.to_string(),
    }
}
