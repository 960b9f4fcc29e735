//! Packets at ports of a laboratory that runs: taken from its agents, brought into the order of time, and written for Wireshark.
//!
//! ```text
//!   agents ──Captured──▶ Sources ──▶ Merge ──in order of time──▶ Sink: a file, a ring of files, lines
//! ```
//!
//! The laboratory's front end hears, as lines, of what happens meanwhile, such as an agent that ends.
//!
//! ```no_run
//! # use std::time::Duration;
//! # use weft_capture::{Capture, CaptureFile, Sink};
//! # use weft_control::agent::Captured;
//! # use weft_lab::signals::Signals;
//! struct Few(CaptureFile, usize);
//!
//! impl Sink for Few {
//!     fn is_full(&self) -> bool {
//!         self.1 == 0
//!     }
//!
//!     fn take(&mut self, packet: &Captured) -> anyhow::Result<()> {
//!         self.1 -= 1;
//!         self.0.write(packet)
//!     }
//!
//!     fn flush(&mut self, _lost: u64) -> anyhow::Result<()> {
//!         self.0.flush()
//!     }
//! }
//!
//! # fn show(lab: &weft_lab::view::Lab) -> anyhow::Result<()> {
//! let capture = Capture::begin(lab, &["all".to_owned()])?;
//! let mut first = Few(CaptureFile::create("first.pcap".as_ref(), true)?, 100);
//! let totals = capture.run(&mut Signals::none()?, Some(Duration::from_secs(5)), &mut first)?;
//! assert_eq!(totals.lost, 0);
//! # Ok(())
//! # }
//! ```

mod file;
mod merge;
mod plan;
mod show;
mod source;

use std::time::{Duration, Instant};

use weft_bundle::folder::LabFolder;
use weft_control::agent::Captured;
use weft_lab::signals::Signals;
use weft_lab::view::Lab;
use weft_process::utc_now;

use merge::Merge;
use plan::Plan;
use source::Sources;

pub use file::{CaptureFile, InvalidRing, Ring};
pub use show::Shown;

/// Takes packets in the order of time.
pub trait Sink {
    /// Whether it wants no more.
    fn is_full(&self) -> bool;

    /// Takes a packet.
    ///
    /// # Errors
    /// What it cannot write ends the capture.
    fn take(&mut self, packet: &Captured) -> anyhow::Result<()>;

    /// No packet comes for the moment, and `lost` were lost so far.
    ///
    /// # Errors
    /// What it cannot write ends the capture.
    fn flush(&mut self, lost: u64) -> anyhow::Result<()>;
}

/// A capture that agents have begun.
#[derive(Debug)]
pub struct Capture {
    lab: LabFolder,
    sources: Sources,
    merge: Merge,
    ports: usize,
}

/// What a capture has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Packets that agents did not tell.
    pub lost: u64,
    /// Packets that came too late to be in order.
    pub late: u64,
}

impl Capture {
    /// Has agents capture at ports: `NODE:PORT`, all cabled ports of a `NODE` or of a virtual machine's function (`vm:NAME`), or `all`. Of
    /// a cable between two of them each packet is captured once, at its sender.
    ///
    /// # Errors
    /// When there is no such port, or none of the agents runs. One that does not run yet is captured once it does.
    pub fn begin(lab: &Lab, ports: &[String]) -> anyhow::Result<Self> {
        let plan = Plan::new(lab, ports)?;
        let ports = plan.ports;
        let sources = Sources::open(&lab.folder, plan)?;
        let merge = Merge::new(sources.count());
        Ok(Self { lab: lab.folder.clone(), sources, merge, ports })
    }

    /// How many ports it is at.
    pub fn ports(&self) -> usize {
        self.ports
    }

    /// How many agents take part.
    pub fn agents(&self) -> usize {
        self.sources.count()
    }

    /// Goes on until the sink is full, the time is over, a signal arrives, or the laboratory is taken down.
    ///
    /// # Errors
    /// When the sink cannot write.
    pub fn run(
        mut self,
        signals: &mut Signals,
        time: Option<Duration>,
        sink: &mut impl Sink,
    ) -> anyhow::Result<Totals> {
        let deadline = time.map(|time| Instant::now() + time);
        loop {
            let now = utc_now().as_nanos();
            while let Some(packet) = self.merge.pop(now).filter(|_| !sink.is_full()) {
                sink.take(&packet)?;
            }
            sink.flush(self.sources.lost())?;
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if sink.is_full() || left.is_some_and(|left| left.is_zero()) || signals.arrived() {
                break;
            }
            let timeout = [left, self.merge.wait(now)].into_iter().flatten().min();
            if !self.sources.wait(signals, timeout, |packet| self.merge.push(packet))? {
                self.lab.say("the laboratory is being taken down");
                break;
            }
        }
        self.sources.end(|packet| self.merge.push(packet))?;
        while let Some(packet) = self.merge.pop_any().filter(|_| !sink.is_full()) {
            sink.take(&packet)?;
        }
        sink.flush(self.sources.lost())?;
        Ok(Totals { lost: self.sources.lost(), late: self.merge.late() })
    }
}
