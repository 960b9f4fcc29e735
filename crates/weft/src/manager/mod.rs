//! What the processes of the subnet manager and of the performance manager have in common: one thread that waits for
//! the manager's agent, its clock and its signals, and nothing else.
//!
//! ```text
//!   attachment ──MADs──▶ machine ──MADs──▶ attachment
//!   clock, SIGHUP ─────▶         ─events─▶ the manager's own driver: files, the launcher
//!   scrapers ──────────▶ figures
//! ```

mod attachment;
mod eager;
mod launcher;
pub(crate) mod orders;
mod process;
pub(crate) mod status_file;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weft_machine::{Machine, Time};
use weft_metrics::Page;
use weft_wire::{AddressedMad, Guid, PortNum, Registration};

pub(crate) use attachment::Place;
pub(crate) use launcher::LauncherLine;
pub(crate) use orders::Order;
pub(crate) use process::Process;
pub(crate) use status_file::StatusFile;

/// What every manager's process is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Seat {
    /// The lock that it holds while it lives.
    pub(crate) lock: Option<PathBuf>,
    /// Where it attaches.
    pub(crate) attach: Place,
    /// The launcher's socket.
    pub(crate) launch: Option<PathBuf>,
    /// Where it says how it is.
    pub(crate) status: Option<PathBuf>,
    /// Where it says what happened.
    pub(crate) events: Option<PathBuf>,
    /// Where it takes the operator's orders.
    #[serde(default)]
    pub(crate) orders: Option<PathBuf>,
    /// Where it serves `/metrics`.
    #[serde(default)]
    pub(crate) metrics: Option<SocketAddr>,
}

/// A port of this machine alone.
pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Reads what the laboratory wrote down.
pub(crate) fn load_config<C: DeserializeOwned>(path: &Path) -> anyhow::Result<C> {
    let text = crate::input::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} makes no sense", path.display()))
}

/// What happens to a manager.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "MADs are nearly all there is; a box each would cost more")]
pub(crate) enum News {
    /// It is attached.
    Attached {
        /// The node.
        node_guid: Guid,
        /// The port's GUID.
        port_guid: Guid,
        /// The port.
        port: PortNum,
    },
    /// It is attached no more.
    Detached,
    /// A MAD came.
    Mad(AddressedMad),
    /// The own port's link came up or went down.
    PortChanged {
        /// Whether there is a link now.
        up: bool,
    },
    /// The operator sent SIGHUP.
    Hangup,
    /// The operator has an order; its outcome is to be sent there.
    Order(Order, PathBuf),
    /// It is to stop.
    Stop,
}

/// What a manager does at the end of a turn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TurnEnd {
    /// What it was started for is done.
    pub(crate) done: bool,
    /// When it wants another turn, whatever the machine wants.
    pub(crate) wake_at: Option<Instant>,
}

/// A manager's machine, and what its driver does with what comes out of it.
pub(crate) trait Manager {
    /// Its name among the processes.
    const NAME: &'static str;
    /// Whether it is of no use without its registrations. A port has one program for each.
    const NEEDS_REGISTRATIONS: bool;
    /// How long it has to bring what it began to an end when it is told to stop ([`News::Stop`]).
    const STOP_PATIENCE: Duration;
    /// The machine.
    type Machine: Machine;
    /// What it is to show to scrapers.
    type Figures: Clone + Send + 'static;

    /// Which MADs that nobody asked for it wants.
    fn registrations() -> Vec<Registration>;
    /// The machine.
    fn machine(&mut self) -> &mut Self::Machine;
    /// Takes note of news that are not MADs.
    fn note(&mut self, news: &News);
    /// What the machine is told; `None` when it need not know.
    fn input(news: News) -> Option<<Self::Machine as Machine>::Input>;
    /// Does what the machine wants done; what is to be sent is returned.
    fn take(
        &mut self,
        output: <Self::Machine as Machine>::Output,
        launcher: &mut LauncherLine,
    ) -> Option<AddressedMad>;
    /// Writes down what is new.
    fn end_turn(&mut self, now: Time, launcher: &mut LauncherLine) -> TurnEnd;
    /// What scrapers are shown now.
    fn figures(&self, now: Time) -> Self::Figures;
    /// How it is shown to them.
    fn render(figures: &Self::Figures) -> Page;
}
