//! The process that serves ibsim's client protocol for a laboratory: a client of the agents' sockets.
//!
//! ```text
//!   program ─control, MADs─▶ weft_ibsim::Server ─attach, MADs─▶ agent of the program's node
//!   clock ──────────────────▶      (machine)          ─answers, MADs, status 110─▶ program
//!   desk ── signals, requests ──▶ figures, events
//! ```

mod driver;
mod figures;
mod nodes;

use weft_bundle::config::managers::IbsimPart;
use weft_bundle::folder::bundle;
use weft_bundle::record::LabRecord;
use weft_bundle::topology_file;
use weft_control::event::ProcessEvent;
use weft_control::process::ProcessKind;

use crate::post::Post;
use crate::start::Start;
use figures::Shown;
use nodes::Nodes;

/// Runs until a signal or a client asks it to end, or until its starter is gone if it is bound to that.
pub fn run(start: &Start) -> anyhow::Result<()> {
    let bundle = &start.bundle;
    let record = LabRecord::read(&bundle.record())?;
    let run = start.run_folder(&record.lab)?;
    let part: IbsimPart = bundle::load(&bundle.manager(&start.name))?;
    // One that serves a single program has no socket: it is no part of the laboratory, and a hub would start it again without its program.
    let control = (!part.bound).then(|| run.control(&start.name));
    let lock = Some(run.locks().join(&start.name));
    let post = Post { lab: record.lab.clone(), lock, control, ..Post::default() };
    let mut held = post.take::<Shown>(&start.name, ProcessKind::Ibsim)?;
    let nodes = Nodes { fabric: topology_file::load(&bundle.topology())?, record, sockets: run.sockets() };
    let mut driver = driver::Driver::new(&part, nodes, held.events.clone())?;
    held.publish(ProcessEvent::Ready);
    driver.run(&mut held.desk, part.bound.then(std::io::stdin))?;
    held.note_stop();
    held.publish(ProcessEvent::Stopping);
    Ok(())
}
