//! `weft events`

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;

use anyhow::Context;
use rustix::fs::inotify;
use weft_control::Utc;
use weft_control::agent::PortEnd;
use weft_process::utc_now;
use weft_wire::{Guid, Printable, printable_json};

use super::Lab;
use crate::cli::{EventsArgs, Since};
use crate::lab::process::readable;
use crate::lab::{LabFolder, Place};
use crate::output::{print, say};

pub(super) fn run(lab: &LabFolder, args: &EventsArgs) -> anyhow::Result<()> {
    let path = lab.place(Place::Events);
    // Watched before the first read, so that nothing falls between.
    let watch = if args.follow { Some(Watch::new(&path, lab)?) } else { None };
    let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let first = First::of(args, file.metadata().context("cannot read events")?.len());
    // While a laboratory comes up or goes, its cabling may not be there: then nodes keep the names that they give.
    let lab = if args.json { None } else { Lab::load(lab).ok() };
    if args.follow {
        say("following events; press Ctrl-C to end");
    }
    let mut reader = BufReader::new(file);
    let (mut line, mut place) = (Vec::new(), 0);
    loop {
        let read = reader.read_until(b'\n', &mut line).context("cannot read events")?;
        if read > 0 && line.ends_with(b"\n") {
            place += line.len() as u64;
            if first.wants(&line, place) {
                print(&show(&line, lab.as_ref(), args.json))?;
            }
            line.clear();
        } else if let Some(watch) = &watch {
            if !watch.wait()? {
                return Ok(());
            }
        } else {
            return Ok(());
        }
    }
}

/// Which event is the first.
#[derive(Debug, PartialEq, Eq)]
enum First {
    /// The first whose line ends behind this place in the file.
    Behind(u64),
    /// The first of this time, in RFC 3339's form.
    At(String),
}

impl First {
    /// What the user wants of a file of which this much is there.
    fn of(args: &EventsArgs, bytes: u64) -> Self {
        match &args.since {
            None if args.follow => Self::Behind(bytes),
            None | Some(Since::Start) => Self::Behind(0),
            Some(Since::Time(time)) => Self::At(time.clone()),
            Some(Since::Ago(ago)) => {
                let ago = u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX);
                let first = Utc::from_nanos(utc_now().as_nanos().saturating_sub(ago)).rfc3339(3);
                // Without its end it comes before all times of the same millisecond.
                Self::At(first.trim_end_matches('Z').to_owned())
            }
        }
    }

    /// Whether a line that ends at `place` is wanted.
    fn wants(&self, line: &[u8], place: u64) -> bool {
        match self {
            Self::Behind(bytes) => place > *bytes,
            // Times of this form are ordered as texts are.
            Self::At(first) => {
                let event = serde_json::from_slice::<serde_json::Value>(line).unwrap_or_default();
                event.get("time").and_then(|time| time.as_str()).is_none_or(|time| time >= first.as_str())
            }
        }
    }
}

/// Tells when the file of events grows and when it goes.
struct Watch(std::os::fd::OwnedFd);

impl Watch {
    fn new(path: &std::path::Path, lab: &LabFolder) -> anyhow::Result<Self> {
        let inotify = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)
            .context("cannot watch files")?;
        let file = inotify::WatchFlags::MODIFY | inotify::WatchFlags::DELETE_SELF;
        // A file that a reader holds open is removed without a word; its folder tells.
        let folder = inotify::WatchFlags::DELETE | inotify::WatchFlags::DELETE_SELF;
        inotify::add_watch(&inotify, path, file)
            .with_context(|| format!("cannot watch {}", path.display()))?;
        inotify::add_watch(&inotify, lab.path(), folder)
            .with_context(|| format!("cannot watch {}", lab.path().display()))?;
        Ok(Self(inotify))
    }

    /// Waits for more; false when the laboratory is gone.
    fn wait(&self) -> anyhow::Result<bool> {
        readable(&self.0, None)?;
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.0, &mut buffer);
        loop {
            match events.next() {
                Ok(event) => {
                    let flags = event.events();
                    let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).to_owned());
                    let gone = inotify::ReadFlags::DELETE_SELF | inotify::ReadFlags::IGNORED;
                    let deleted = flags.contains(inotify::ReadFlags::DELETE)
                        && name.is_some_and(|name| name == "events.jsonl");
                    if flags.intersects(gone) || deleted {
                        return Ok(false);
                    }
                }
                Err(error) if std::io::Error::from(error).kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error).context("cannot read what changed"),
            }
        }
    }
}

/// An event as it stands, or as a line for people: time, who, what, and the simple rest as `name=value`.
fn show(line: &[u8], lab: Option<&Lab>, json: bool) -> String {
    let text = String::from_utf8_lossy(line);
    if json {
        return printable_json(&text).into_owned();
    }
    let Ok(serde_json::Value::Object(mut fields)) = serde_json::from_slice(line) else {
        return text.into_owned();
    };
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
    let (time, who, what) = (take("time"), take("source"), take("event"));
    let mut shown = format!("{time} {who:<6} {what}");
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
