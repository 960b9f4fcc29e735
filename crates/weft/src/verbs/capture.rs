//! `weft capture`

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, IsTerminal as _};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_capture::{Capture, CaptureFile, Shown};
use weft_control::agent::Captured;
use weft_lab::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use weft_lab::view::Lab;
use weft_wire::{Guid, count_of};

use crate::cli::capture::CaptureArgs;
use crate::output::{StdoutClosed, print, say};
use crate::progress::spinner;

/// How often the line that counts is drawn again.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

pub(super) fn run(folder: &LabFolder, args: &CaptureArgs) -> anyhow::Result<()> {
    weft_process::raise_file_limit();
    let lab = Lab::load_for(folder, args.ports.iter().map(String::as_str))?;
    let mut signals = Signals::watch(&[SIGINT, SIGTERM, SIGHUP])?;
    let capture = Capture::begin(&lab, &args.ports)?;
    let mut sink = Sink::open(&lab, args, capture.ports() > 1)?;
    let (ports, agents) = (count_of(capture.ports(), "port"), count_of(capture.agents(), "agent"));
    say(&format!("capturing at {ports} of {agents}; press Ctrl-C to end"));
    let totals = capture.run(&mut signals, args.seconds.map(Duration::from_secs), &mut sink)?;
    sink.end();
    let late = match totals.late {
        0 => String::new(),
        late => format!(", {late} out of order"),
    };
    let (packets, bytes) = (count_of(whole(sink.packets), "packet"), count_of(whole(sink.bytes), "byte"));
    say(&format!("captured {packets}, {bytes}; {} lost{late}", totals.lost));
    Ok(())
}

fn whole(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// The file that `-w` and `--ring` name, with records that name their port where there are several.
fn file(args: &CaptureArgs, named: bool) -> anyhow::Result<Option<CaptureFile>> {
    let Some(path) = &args.write else { return Ok(None) };
    let piped = path.as_os_str() == "-";
    let file = match args.ring {
        Some(_) if piped => {
            return Err(Failure::bad_input("standard output cannot be a ring of files").into());
        }
        Some(ring) => CaptureFile::ring(path, ring, named),
        None if piped && io::stdout().is_terminal() => {
            return Err(Failure::bad_input("a terminal cannot show a capture file")
                .hint("pipe it, as in `weft capture all -w - | tshark -r -`, or leave `-w -` out"));
        }
        None if piped => CaptureFile::pipe(path, Box::new(io::stdout()), named).map_err(closed)?,
        None => CaptureFile::create(path, named).map_err(closed)?,
    };
    Ok(Some(file))
}

/// A reader that has closed its pipe has seen enough.
fn closed(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<io::Error>() {
        Some(closed) if closed.kind() == ErrorKind::BrokenPipe => StdoutClosed.into(),
        _ => error,
    }
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
        let file = file(args, named)?;
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

    fn end(&mut self) {
        if let Some(progress) = self.progress.take() {
            progress.finish_and_clear();
        }
    }
}

impl weft_capture::Sink for Sink {
    /// As many packets were taken as were asked for.
    fn is_full(&self) -> bool {
        self.packets >= self.packets_max
    }

    fn take(&mut self, packet: &Captured) -> anyhow::Result<()> {
        if let Some(file) = &mut self.file {
            file.write(packet).map_err(closed)?;
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

    fn flush(&mut self, lost: u64) -> anyhow::Result<()> {
        if let Some(file) = &mut self.file {
            file.flush().map_err(closed)?;
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
}
