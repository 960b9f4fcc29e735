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
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use weft_bundle::config::managers::{QuicPart, SeatPart};
use weft_control::{Answer, Error, Request};
use weft_link::Destination;
use weft_machine::{Machine, Time};
use weft_metrics::Guard;
use weft_process::Manned;
use weft_wire::{AddressedMad, Guid, PortNum, Registration};

use crate::post::Post;
use crate::start::Start;

pub use attachment::{AttachPoint, Way};
pub use process::Process;

/// Where a manager sits.
#[derive(Clone, Debug)]
pub struct Seat {
    /// Where it attaches.
    pub attach: AttachPoint,
    /// Whether it attaches only when a client tells it to begin.
    pub waits: bool,
    /// Where it answers.
    pub post: Post,
}

impl Seat {
    /// The seat of a process that is started so. `metrics_port`: where it serves metrics on loopback, if not where the bundle says.
    pub fn new(part: SeatPart, start: &Start, metrics_port: Option<u16>) -> anyhow::Result<Self> {
        let mut post = Post::new(&part, start)?;
        post.metrics = metrics_port.map(loopback).or(post.metrics);
        let way = match part.quic.zip(post.papers.as_ref()) {
            None => Way::Unix(start.run_folder(&part.lab)?.agent_socket(&part.agent)),
            Some((QuicPart { address, node }, papers)) => {
                Way::Quic(Box::new(Destination { address, node }), papers.credentials().clone())
            }
        };
        let attach = AttachPoint::Agent { way, node: part.node, port: part.port };
        Ok(Self { attach, waits: start.waits, post })
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
    const NEEDS_REGISTRATIONS: bool = false;
    /// How long it has to bring what it began to an end when it is asked to stop ([`News::Stop`]).
    const STOP_PATIENCE: Duration;
    /// The machine.
    type Machine: Machine;

    /// Which MADs that no one asked for it wants; none where it only asks.
    fn registrations() -> Vec<Registration> {
        Vec::new()
    }
    /// The machine.
    fn machine(&mut self) -> &mut Self::Machine;
    /// The attachment is gone.
    fn detached(&mut self) {}
    /// The machine's input for news; `None` when it need not know.
    fn input(&mut self, news: News) -> Option<<Self::Machine as Machine>::Input>;
    /// Carries out a request of those that it takes ([`Manned::takes`]) and answers now or later.
    /// Returns the machine's input for it.
    fn order(&mut self, request: Request, reply: Reply) -> Option<<Self::Machine as Machine>::Input>;
    /// What else to wait for: readable when there is something to take ([`Manager::rung`]).
    fn bell(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// Takes what the bell rings for.
    fn rung(&mut self, _now: Time) {}
    /// Does what the machine wants done; what is to be sent is returned.
    fn take(&mut self, output: <Self::Machine as Machine>::Output) -> Option<AddressedMad>;
    /// Writes down what is new. `is_stopping`: the process was asked to stop.
    fn end_turn(&mut self, now: Time, is_stopping: bool) -> TurnEnd;
    /// What whoever looks is shown now.
    fn figures(&self, now: Time, is_attached: bool) -> Self::Figures;
}
