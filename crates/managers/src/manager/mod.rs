//! The common part of the subnet manager's, the performance manager's and the VM manager's processes: one thread that waits for
//! the manager's agent, its clock, its desk and at most one bell of its own, and nothing else.
//!
//! ```text
//!   attachment ──MADs──▶ machine ──MADs──▶ attachment
//!   clock ─────────────▶         ─events─▶ the manager's own driver: control
//!   desk ── signals, requests ──▶ figures
//! ```

mod attachment;
mod eager;
mod process;

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use weft_bundle::config::managers::{QuicPart, SeatPart};
use weft_bundle::identity::papers::Papers;
use weft_control::{Answer, Error, Request};
use weft_link::Destination;
use weft_machine::{Machine, Time};
use weft_metrics::Guard;
use weft_process::{DoorCounts, Manned};
use weft_wire::{AddressedMad, Guid, PortNum, Registration};

use crate::door::http;
use crate::door::serve::Door;
use crate::start::Start;

pub use attachment::{AttachPoint, Way};
pub use process::Process;

/// Where a manager sits, in a folder to run in.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The lock that it holds while it lives.
    pub lock: Option<PathBuf>,
    /// Where it attaches.
    pub attach: AttachPoint,
    /// Whether it attaches only when a client tells it to begin.
    pub waits: bool,
    /// Its laboratory; empty without one.
    pub lab: String,
    /// Its control socket.
    pub control: Option<PathBuf>,
    /// Where it serves `/metrics`, and to whom.
    pub metrics: Option<(SocketAddr, Guard)>,
    /// Where it lets clients in over QUIC.
    pub door: Option<Door>,
    /// What it proves itself with, where it talks to others over QUIC.
    pub papers: Option<Papers>,
}

impl Seat {
    /// The seat of a process that is started so.
    pub fn new(part: SeatPart, args: &Start) -> anyhow::Result<Self> {
        let run = args.run_folder(&part.lab)?;
        let shows = part.metrics.is_some_and(|address| !address.ip().is_loopback());
        let talks = part.quic.is_some() || args.door.is_some() || shows;
        let papers = talks.then(|| args.papers(None)).transpose()?;
        let credentials = papers.as_ref().map(|papers| papers.credentials().clone());
        let (shown_by, token) = (credentials.as_ref(), part.http_token.as_deref());
        let guard = |address| Ok::<_, anyhow::Error>((address, http::guard(address, shown_by, token)?));
        let metrics = part.metrics.map(guard).transpose()?;
        let way = match part.quic.zip(credentials.clone()) {
            None => Way::Unix(run.agent_socket(&part.agent)),
            Some((QuicPart { address, node }, credentials)) => {
                Way::Quic(Box::new(Destination { address, node }), credentials)
            }
        };
        let door = args.door.zip(credentials).map(|(address, credentials)| {
            let (folder, name) = (run.clone(), args.name.clone());
            Door { address, credentials, folder, name, relays: false, counts: DoorCounts::default() }
        });
        Ok(Self {
            door,
            papers,
            lock: Some(run.locks().join(&args.name)),
            attach: AttachPoint::Agent { way, node: part.node, port: part.port },
            waits: args.waits,
            lab: part.lab,
            control: Some(run.control(&args.name)),
            metrics,
        })
    }
}

/// A port of this machine alone, and who may look there.
pub fn loopback(port: u16) -> (SocketAddr, Guard) {
    (SocketAddr::from((Ipv4Addr::LOCALHOST, port)), Guard::loopback())
}

/// What happens to a manager.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "MADs are nearly all there is; a box each would cost more")]
pub enum News {
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
    /// It is to stop.
    Stop,
}

/// What a manager does at the end of a turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct TurnEnd {
    /// What it was started for is done.
    pub done: bool,
    /// When it wants another turn, whatever the machine wants.
    pub wake_at: Option<Instant>,
}

/// Where the answer to a request goes.
pub type Reply = oneshot::Sender<Result<Answer, Error>>;

/// A manager's machine, and what its driver does with what comes out of it.
pub trait Manager: Manned {
    /// Whether it is of no use without its registrations. A port has one program for each.
    const NEEDS_REGISTRATIONS: bool;
    /// How long it has to bring what it began to an end when it is told to stop ([`News::Stop`]).
    const STOP_PATIENCE: Duration;
    /// The machine.
    type Machine: Machine;

    /// Which MADs that no one asked for it wants.
    fn registrations() -> Vec<Registration>;
    /// The machine.
    fn machine(&mut self) -> &mut Self::Machine;
    /// Takes note of news that are not MADs.
    fn note(&mut self, news: &News);
    /// What the machine is told; `None` when it need not know.
    fn input(news: News) -> Option<<Self::Machine as Machine>::Input>;
    /// Carries out a request of those that it takes ([`Manned::takes`]), and answers now or later: what the machine is
    /// told.
    fn order(&mut self, request: Request, reply: Reply) -> Option<<Self::Machine as Machine>::Input>;
    /// What else to wait for: readable when there is something to take ([`Manager::rung`]).
    fn bell(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// Takes what the bell rings for.
    fn rung(&mut self, _now: Time) {}
    /// Does what the machine wants done; what is to be sent is returned.
    fn take(&mut self, output: <Self::Machine as Machine>::Output) -> Option<AddressedMad>;
    /// Writes down what is new.
    fn end_turn(&mut self, now: Time) -> TurnEnd;
    /// What whoever looks is shown now.
    fn figures(&self, now: Time) -> Self::Figures;
}
