//! Events as they happen, also when hubs and processes end: none comes twice, and none that is
//! remembered is left out.

use std::collections::BTreeMap;

use rustix::event::{PollFd, PollFlags};
use weft_bundle::folder::{LabFile, LabFolder};
use weft_bundle::names::HUB;
use weft_control::{EventFilter, Incarnation, Since};
use weft_process::{Change, lock, poll_for, raise_file_limit};

use crate::events::past::{of_hub, of_processes};
use crate::events::talk::Talk;
use crate::events::told::{Line, Seen, Told};
use crate::events::watch::Watch;
use crate::signals::Signals;
use crate::site::frozen::Frozen;

/// From where on to listen.
#[derive(Clone, Copy, Debug)]
enum Begin {
    Now,
    Start,
    /// From behind the last event.
    Again,
}

/// Follows a laboratory until it ends.
pub struct Follower {
    lab: LabFolder,
    watch: Watch,
    seen: Seen,
    /// The hub alone, or all processes.
    links: BTreeMap<String, Talk>,
    by_hub: bool,
    /// Behind the hub's last event, by its place.
    reached: Option<(Incarnation, u64)>,
    has_ended: bool,
}

impl Follower {
    /// Begins; remembered events come first if they are wanted.
    ///
    /// # Errors
    /// When the laboratory's folder cannot be watched.
    pub fn begin(lab: &LabFolder, with_past: bool) -> anyhow::Result<(Self, Vec<Told>)> {
        raise_file_limit();
        // Watched before anybody is asked, so that nothing falls between.
        let watch = Watch::new(lab)?;
        let (seen, links) = (Seen::default(), BTreeMap::new());
        let mut follower =
            Self { lab: lab.clone(), watch, seen, links, by_hub: false, reached: None, has_ended: false };
        let told = follower.tune_in(if with_past { Begin::Start } else { Begin::Now })?;
        Ok((follower, told))
    }

    /// Waits for the next events; `None` when the laboratory has ended, or `stop` has.
    ///
    /// # Errors
    /// When the system refuses to wait.
    pub fn next(&mut self, stop: &Signals) -> anyhow::Result<Option<Vec<Told>>> {
        loop {
            if self.by_hub && self.links.is_empty() && !self.has_ended {
                let told = self.tune_in(Begin::Again)?;
                if !told.is_empty() {
                    return Ok(Some(told));
                }
            }
            if self.has_ended {
                return Ok(None);
            }
            let told = self.wait(stop)?;
            if !told.is_empty() {
                return Ok(Some(told));
            }
        }
    }

    /// Listens to the hub, or to every process where none answers; returns events that are new.
    fn tune_in(&mut self, begin: Begin) -> anyhow::Result<Vec<Told>> {
        self.links.clear();
        if let Some(told) = self.tune_in_to_hub(begin)? {
            return Ok(told);
        }
        self.by_hub = false;
        self.say_without_hub();
        let seen = &self.seen;
        let past = of_processes(&self.lab, &[], |process| match begin {
            Begin::Now => Since::Now,
            Begin::Start | Begin::Again => seen.resume(process),
        })?;
        say_silent(&self.lab, &past.silent);
        let reached = past.reached.clone();
        let told = self.take(past.told);
        for (process, (incarnation, next)) in reached {
            self.seen.skip_to(&process, incarnation, next);
            self.listen_to(&process);
        }
        Ok(told)
    }

    fn tune_in_to_hub(&mut self, begin: Begin) -> anyhow::Result<Option<Vec<Told>>> {
        let from = match begin {
            Begin::Now => Since::Now,
            Begin::Start => Since::Start,
            Begin::Again => self.resume(),
        };
        let Some(past) = of_hub(&self.lab, &[], from)? else { return Ok(None) };
        self.reached = past.reached.get(HUB).copied();
        let filter = EventFilter { from: self.resume(), ..EventFilter::default() };
        let told = self.take(past.told);
        // If it ends just now, the next look finds no link.
        self.by_hub = true;
        self.links =
            Talk::begin(&self.lab, HUB, filter).ok().map(|hub| (HUB.to_owned(), hub)).into_iter().collect();
        Ok(Some(told))
    }

    /// From where on the hub is to go on.
    fn resume(&self) -> Since {
        self.reached.map_or(Since::Start, |(incarnation, next)| Since::behind(incarnation, next))
    }

    /// Listens to one process, from where its last event was.
    fn listen_to(&mut self, process: &str) {
        let filter = EventFilter { from: self.seen.resume(process), ..EventFilter::default() };
        // One that has ended meanwhile appears again when it is started.
        if let Ok(talk) = Talk::begin(&self.lab, process, filter) {
            self.links.insert(process.to_owned(), talk);
        }
    }

    fn take(&mut self, told: Vec<Told>) -> Vec<Told> {
        told.into_iter().filter(|told| self.seen.takes(told)).collect()
    }

    /// Waits, and takes what has come.
    fn wait(&mut self, stop: &Signals) -> anyhow::Result<Vec<Told>> {
        let (ready, has_changed, has_stopped): (Vec<String>, bool, bool) = {
            let mut fds = vec![PollFd::new(&self.watch, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
            fds.extend(self.links.values().map(|link| PollFd::new(link, PollFlags::IN)));
            poll_for(&mut fds, None)?;
            let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
            let names = self.links.keys().zip(&fds[2..]).filter(|(_, fd)| ready(fd));
            (names.map(|(name, _)| name.clone()).collect(), ready(&fds[0]), ready(&fds[1]))
        };
        self.has_ended |= has_stopped;
        let mut told = Vec::new();
        for name in ready {
            self.hear(&name, &mut told);
        }
        for change in if has_changed { self.watch.changes()? } else { Vec::new() } {
            match change {
                Change::Gone => self.has_ended = true,
                Change::Appeared(name) if !self.by_hub && name == HUB => {
                    told.extend(self.tune_in(Begin::Again)?);
                }
                Change::Appeared(name) if !self.by_hub => {
                    // What its life before said comes first.
                    self.hear(&name, &mut told);
                    self.listen_to(&name);
                }
                Change::Overflowed if !self.by_hub => told.extend(self.tune_in(Begin::Again)?),
                Change::Appeared(_) | Change::Overflowed | Change::Removed(_) => {}
            }
        }
        told.sort_by_key(|told| told.moment);
        Ok(told)
    }

    /// Takes what one has sent. One that is gone or refuses is listened to no more.
    fn hear(&mut self, name: &str, all: &mut Vec<Told>) {
        let Some(link) = self.links.get_mut(name) else { return };
        loop {
            let line = match link.next() {
                Ok(Some(line)) => line,
                Ok(None) => return,
                Err(_) => break,
            };
            match line {
                Line::Event(told) => {
                    if let (Some((_, next)), Some(place)) = (&mut self.reached, told.head.place()) {
                        *next = place.saturating_add(1);
                    }
                    if self.seen.takes(&told) {
                        all.push(*told);
                    }
                }
                Line::Hello(_) | Line::Subscribed(_) | Line::Ended | Line::Nonsense => {}
                Line::Refused(why) => {
                    self.lab.say(&format!("warning: `{name}` tells no events: {why}"));
                    break;
                }
            }
        }
        self.links.remove(name);
    }

    fn say_without_hub(&self) {
        let down = self.lab.place(LabFile::DownLock);
        let is_going_down = !down.exists() || lock::holder(&down).is_ok_and(|holder| holder.is_some());
        if !is_going_down {
            say_without_hub(&self.lab);
        }
    }
}

/// Says that there is no hub, and what to do about it.
pub fn say_without_hub(lab: &LabFolder) {
    let name = lab.name();
    let (what, hint) = match Frozen::of_process(lab, HUB) {
        Some(frozen) => (
            format!("the hub of `{name}` is frozen (fault {})", frozen.id),
            "`weft fault thaw hub` lets it go on",
        ),
        None => (format!("no hub of `{name}` answers"), "start one with `weft hub --detached`"),
    };
    lab.say(&format!("{what}; asking every process\nhint: {hint}"));
}

/// Says whose events are missing.
pub fn say_silent(lab: &LabFolder, silent: &[String]) {
    if let [first, others @ ..] = silent {
        let others = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
        lab.say(&format!("warning: {first}{others} did not answer; events of theirs are missing"));
    }
}
