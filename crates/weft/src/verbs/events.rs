//! `weft events`

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;

use anyhow::Context;
use rustix::fs::inotify;

use crate::cli::EventsArgs;
use crate::lab::process::readable;
use crate::lab::{LabFolder, Place};
use crate::output::print;

pub(super) fn run(lab: &LabFolder, args: &EventsArgs) -> anyhow::Result<()> {
    let path = lab.place(Place::Events);
    // Watched before the first read, so that nothing falls between.
    let watch = if args.follow { Some(Watch::new(&path, lab)?) } else { None };
    let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        let read = reader.read_until(b'\n', &mut line).context("cannot read events")?;
        if read > 0 && line.ends_with(b"\n") {
            print(&show(&line, args.json))?;
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
fn show(line: &[u8], json: bool) -> String {
    let text = String::from_utf8_lossy(line);
    let Ok(serde_json::Value::Object(mut fields)) = serde_json::from_slice(line) else {
        return text.into_owned();
    };
    if json {
        return text.into_owned();
    }
    let mut take = |name: &str| fields.remove(name).map(plain).unwrap_or_default();
    let (time, who, what) = (take("time"), take("source"), take("event"));
    let mut shown = format!("{time} {who:<6} {what}");
    // Lists and objects are for programs: `--json` has them.
    for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_array() && !value.is_object()) {
        shown.push_str(&format!(" {name}={}", plain(value)));
    }
    shown.push('\n');
    shown
}

fn plain(value: serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    }
}
