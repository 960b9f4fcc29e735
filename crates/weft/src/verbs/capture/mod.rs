//! `weft capture`
//!
//! ```text
//!   agents ──Captured──▶ Sources ──▶ Merge ──in order of time──▶ file, ring, pipe
//!                                                            └─▶ lines or JSON
//! ```

mod file;
mod merge;
mod plan;
mod show;
mod source;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_control::agent::Captured;
use weft_lab::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use weft_lab::view::Lab;
use weft_process::utc_now;
use weft_wire::{Guid, count_of};

use self::file::CaptureFile;
use self::merge::Merge;
use self::plan::Plan;
use self::show::Shown;
use self::source::Sources;
use crate::cli::capture::CaptureArgs;
use crate::output::{print, say};
use crate::progress::spinner;

/// How often the line that counts is drawn again.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

pub(super) fn run(folder: &LabFolder, args: &CaptureArgs) -> anyhow::Result<()> {
    weft_process::raise_file_limit();
    let lab = Lab::load_for(folder, args.ports.iter().map(String::as_str))?;
    let plan = Plan::new(&lab, &args.ports)?;
    let (ports, agents) = (plan.ports, plan.taps.len());
    let mut signals = Signals::watch(&[SIGINT, SIGTERM, SIGHUP])?;
    let mut sources = Sources::open(folder, plan)?;
    let mut sink = Sink::open(&lab, args, ports > 1)?;
    let mut merge = Merge::new(sources.count());
    let deadline = args.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let (ports, agents) = (count_of(ports, "port"), count_of(agents, "agent"));
    say(&format!("capturing at {ports} of {agents}; press Ctrl-C to end"));
    loop {
        let now = utc_now().as_nanos();
        while let Some(packet) = merge.pop(now).filter(|_| !sink.is_full()) {
            sink.take(&packet)?;
        }
        sink.flush(sources.lost())?;
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if sink.is_full() || left.is_some_and(|left| left.is_zero()) || signals.arrived() {
            break;
        }
        let timeout = [left, merge.wait(now)].into_iter().flatten().min();
        if !sources.wait(&signals, timeout, |packet| merge.push(packet))? {
            say("the laboratory is being taken down");
            break;
        }
    }
    sources.end(|packet| merge.push(packet))?;
    while let Some(packet) = merge.pop_any().filter(|_| !sink.is_full()) {
        sink.take(&packet)?;
    }
    sink.flush(sources.lost())?;
    sink.end();
    let late = match merge.late() {
        0 => String::new(),
        late => format!(", {late} out of order"),
    };
    let (packets, bytes) = (count_of(whole(sink.packets), "packet"), count_of(whole(sink.bytes), "byte"));
    say(&format!("captured {packets}, {bytes}; {} lost{late}", sources.lost()));
    Ok(())
}

fn whole(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Where packets go.
struct Sink {
    file: Option<CaptureFile>,
    /// Lines that wait to be printed.
    lines: String,
    show: Show,
    /// What a person can type for the nodes.
    names: BTreeMap<Guid, String>,
    packets: u64,
    bytes: u64,
    packets_max: u64,
    progress: Option<ProgressBar>,
    drawn: Instant,
}

/// What is printed of each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    Nothing,
    Line,
    Json,
}

impl Sink {
    fn open(lab: &Lab, args: &CaptureArgs, named: bool) -> anyhow::Result<Self> {
        if args.json && args.write.as_ref().is_some_and(|path| path.as_os_str() == "-") {
            let failure = Failure::bad_input("standard output cannot be both a capture file and JSON");
            return Err(failure.into());
        }
        let file = CaptureFile::open(args, named)?;
        let show = match &file {
            _ if args.json => Show::Json,
            Some(_) => Show::Nothing,
            None => Show::Line,
        };
        let progress = (show == Show::Nothing).then(|| spinner("{spinner} {msg}"));
        let name = |(index, node): (_, &weft_topology::Node)| (node.guid, lab.fabric.label(index));
        let names = lab.fabric.iter().map(name).collect();
        let packets_max = args.count.unwrap_or(u64::MAX);
        let (packets, bytes, drawn) = (0, 0, Instant::now());
        Ok(Self { file, lines: String::new(), show, names, packets, bytes, packets_max, progress, drawn })
    }

    /// As many packets were taken as were asked for.
    fn is_full(&self) -> bool {
        self.packets >= self.packets_max
    }

    fn take(&mut self, packet: &Captured) -> anyhow::Result<()> {
        if let Some(file) = &mut self.file {
            file.write(packet)?;
        }
        if self.show != Show::Nothing {
            let node = self.names.get(&packet.end.node.0).map_or("?", String::as_str);
            let shown = Shown::new(packet, node);
            let line = if self.show == Show::Json { shown.json()? } else { shown.line() };
            self.lines.push_str(&line);
        }
        self.packets += 1;
        self.bytes += packet.packet.0.len() as u64;
        Ok(())
    }

    /// Lets the user see all that was taken.
    fn flush(&mut self, lost: u64) -> anyhow::Result<()> {
        if let Some(file) = &mut self.file {
            file.flush()?;
        }
        if !self.lines.is_empty() {
            print(&std::mem::take(&mut self.lines))?;
        }
        if let Some(progress) = &self.progress
            && self.drawn.elapsed() >= PROGRESS_INTERVAL
        {
            self.drawn = Instant::now();
            let packets = count_of(whole(self.packets), "packet");
            progress.set_message(format!("{packets}, {lost} lost"));
            progress.tick();
        }
        Ok(())
    }

    fn end(&mut self) {
        if let Some(progress) = self.progress.take() {
            progress.finish_and_clear();
        }
    }
}
