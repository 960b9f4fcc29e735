//! `weft top`: what the performance manager sees, the port where data waits most at the top.

mod lanes;
mod line;
mod picture;
mod screen;
mod traffic;

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use weft_bundle::failure::{Failure, Interrupted};
use weft_bundle::folder::LabFolder;
use weft_bundle::record::LabRecord;
use weft_control::HexGuid;
use weft_control::pm::{PmPort, PmStatus};
use weft_lab::managers::{Told, performance_manager, performance_ports};
use weft_lab::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use weft_lab::view::Lab;
use weft_process::readable;

use crate::cli::pm::TopArgs;
use crate::output::{print, print_json, say};
use crate::terminal::is_dumb;
use lanes::Lanes;
use line::{Line, Style};
use picture::{Choice, Picture, Sight};
use screen::{Key, Screen, Woken};
use traffic::Traffic;

/// How often is looked whether a sweep has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// What lanes do takes two sweeps to see; one picture waits no longer for the second one.
const SECOND_SWEEP_MAX: Duration = Duration::from_secs(5);

pub(super) fn run(lab: &LabFolder, args: &TopArgs) -> anyhow::Result<()> {
    let record = LabRecord::load(lab)?;
    if record.pms.is_empty() {
        return Err(Failure::new(format!("the laboratory `{}` has no performance manager", lab.name()))
            .hint("start it with `weft up --pm`"));
    }
    let mut watch = Watch { lab, known: Lab::load(lab)?, lanes: Lanes::default() };
    let once = args.json || args.once || !std::io::stdout().is_terminal();
    if once || is_dumb() {
        let mut picture = watch.one(&Signals::watch(&[SIGINT, SIGTERM, SIGHUP])?)?.with(Traffic::look(lab));
        picture.sort(args.sort);
        if !once {
            say("this terminal cannot be drawn on (TERM), so there is one table");
        }
        return match args.json {
            true => print_json(&picture),
            false => print(&picture.to_text(args.view, args.rows.unwrap_or(usize::MAX))),
        };
    }
    on_screen(&mut watch, args)
}

/// Shows one picture after the other, until the user has seen enough.
fn on_screen(watch: &mut Watch<'_>, args: &TopArgs) -> anyhow::Result<()> {
    let every = Duration::from_millis(args.every);
    let mut screen = Screen::enter()?;
    let mut choice = Choice { view: args.view, sort: args.sort };
    loop {
        if !watch.lab.path().is_dir() {
            return Err(Failure::new(format!("the laboratory `{}` was taken down", watch.lab.name())).into());
        }
        let (looked, due) = (watch.look()?, Instant::now() + every);
        let mut looked = looked.map(|picture| picture.with(Traffic::look(watch.lab)));
        loop {
            let (columns, rows) = screen.size();
            let lines = match &mut looked {
                Some(picture) => {
                    picture.sort(choice.sort);
                    picture.to_screen(columns, rows, choice, args.rows.unwrap_or(usize::MAX))
                }
                None => vec![Line::new(Style::Alarm, "the performance manager does not answer")],
            };
            screen.draw(&lines, columns, rows)?;
            match screen.wait(due.saturating_duration_since(Instant::now()))? {
                Woken::Quit => return Ok(()),
                Woken::Due => break,
                Woken::Stale => {}
                Woken::Key(Key::Sort) => choice.sort = choice.sort.next(),
                Woken::Key(Key::Show(view)) => choice.view = view,
            }
        }
    }
}

/// What all performance managers see: each has a piece of the fabric.
struct Seen {
    running: bool,
    now: PmStatus,
    ports: Vec<PmPort>,
    managers: usize,
}

impl Default for Seen {
    fn default() -> Self {
        Self { running: true, now: PmStatus::default(), ports: Vec::new(), managers: 0 }
    }
}

impl Seen {
    /// Adds what another one sees; `None` of one that does not run.
    fn add(&mut self, seen: Option<(PmStatus, Vec<PmPort>)>) {
        self.managers += 1;
        self.running &= seen.is_some();
        let (now, ports) = seen.unwrap_or_default();
        self.ports.extend(ports);
        if self.managers == 1 {
            self.now = now;
            return;
        }
        let (all, own) = (&mut self.now, now);
        all.attached &= own.attached;
        all.ready &= own.ready;
        all.hot_spots.extend(own.hot_spots);
        all.moves += own.moves;
        all.statistics.sweeps = all.statistics.sweeps.min(own.statistics.sweeps);
        all.statistics.sweep_last = all.statistics.sweep_last.max(own.statistics.sweep_last);
        all.statistics.silent_nodes += own.statistics.silent_nodes;
        // A host with a port in each piece is one.
        let nodes: BTreeSet<HexGuid> = self.ports.iter().map(|port| port.end.node_guid).collect();
        all.statistics.nodes = nodes.len() as u64;
    }
}

/// Looks again and again.
struct Watch<'a> {
    lab: &'a LabFolder,
    known: Lab,
    lanes: Lanes,
}

impl Watch<'_> {
    /// What there is to see now; `None` when the performance manager does not answer.
    fn look(&mut self) -> anyhow::Result<Option<Picture>> {
        let mut seen = Seen::default();
        for place in &self.known.record.pms {
            match performance_manager(self.lab, &place.name)? {
                Told::Silent(_) => return Ok(None),
                Told::NotRunning => seen.add(None),
                Told::Status(now) => seen.add(Some((now, performance_ports(self.lab, &place.name)?))),
            }
        }
        let Seen { running, now, mut ports, .. } = seen;
        for port in &mut ports {
            for end in std::iter::once(&mut port.end).chain(&mut port.peer) {
                end.name = self.known.label(end.node_guid.0, &end.name);
            }
        }
        self.lanes.note(&ports);
        Ok(Some(Picture::new(self.lab.name(), running, &now, &Sight { ports: &ports, lanes: &self.lanes })))
    }

    /// One picture; when lanes are swept, of two sweeps.
    fn one(&mut self, stop: &Signals) -> anyhow::Result<Picture> {
        let began = Instant::now();
        loop {
            let looked = self.look()?;
            let is_late = began.elapsed() >= SECOND_SWEEP_MAX;
            match looked {
                Some(picture) if is_late || !picture.running || picture.has_lanes() => return Ok(picture),
                None if is_late => {
                    return Err(Failure::new("the performance manager does not answer")
                        .hint("`weft ps` tells whether it runs, its file under logs in the laboratory's folder why not"));
                }
                _ => {}
            }
            if readable(stop, Some(LOOK_INTERVAL))? {
                return Err(Interrupted::NO_RESULT.into());
            }
        }
    }
}
