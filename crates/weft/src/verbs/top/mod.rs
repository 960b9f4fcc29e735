//! `weft top`: what the performance manager sees, the port where data waits most at the top.

mod lanes;
mod picture;
mod screen;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use weft_control::pm::PmStatus;

use super::Lab;
use crate::cli::TopArgs;
use crate::failure::Failure;
use crate::lab::managers::{Told, performance_manager, performance_ports};
use crate::lab::process::readable;
use crate::lab::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use crate::lab::{LabFolder, LabRecord};
use crate::output::{print, print_json};
use lanes::Lanes;
use picture::{Picture, Sight};
use screen::Screen;

/// How often is looked whether a sweep has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// What lanes do takes two sweeps to see; one picture waits no longer for the second one.
const SECOND_SWEEP_MAX: Duration = Duration::from_secs(5);

pub(super) fn run(lab: &LabFolder, args: &TopArgs) -> anyhow::Result<()> {
    let record = LabRecord::load(lab)?;
    if record.pm.is_none() {
        return Err(Failure::new(format!("the laboratory `{}` has no performance manager", lab.name()))
            .hint("start it with `weft up --pm`")
            .into());
    }
    let stop = Signals::watch(&[SIGINT, SIGTERM, SIGHUP])?;
    let mut watch = Watch { lab, known: Lab::load(lab)?, lanes: Lanes::default() };
    if args.json || args.once || !std::io::stdout().is_terminal() {
        let picture = watch.one(&stop)?;
        return match args.json {
            true => print_json(&picture),
            false => print(&picture.to_text(args.rows.unwrap_or(usize::MAX))),
        };
    }
    let screen = Screen::enter()?;
    loop {
        let (columns, rows) = screen.size();
        let text = match watch.look()? {
            Some(picture) => {
                let room = rows.saturating_sub(picture.heading().lines().count() + 2);
                picture.to_text(args.rows.unwrap_or(room).min(room))
            }
            None => "the performance manager does not answer\n".to_owned(),
        };
        screen.draw(&text, columns, rows)?;
        if readable(&stop, Some(Duration::from_millis(args.every)))? {
            return Ok(());
        }
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
        let told = performance_manager(self.lab)?;
        let running = told.is_running();
        let (now, ports) = match told {
            Told::Silent(_) => return Ok(None),
            Told::NotRunning => (PmStatus::default(), Vec::new()),
            Told::Status(now) => (now, performance_ports(self.lab)?),
        };
        let mut ports = ports;
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
                        .hint("`weft ps` tells whether it runs, its file under logs in the laboratory's folder why not")
                        .into());
                }
                _ => {}
            }
            if readable(stop, Some(LOOK_INTERVAL))? {
                anyhow::bail!("interrupted");
            }
        }
    }
}
