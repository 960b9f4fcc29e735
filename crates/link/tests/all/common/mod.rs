//! Agents of two kinds for the tests: in the test's own thread, and in a thread that can be killed.

#![allow(dead_code, reason = "each test file uses its own part")]

#[path = "../../../../../tests/src/ports.rs"]
mod ports;

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;
use weft_link::{
    Authority, Cable, CableEnd, Credentials, DownReason, Handler, Identity, LinkConfig, LinkEvent, LinkIndex,
    Links, RefusalReason,
};
use weft_wire::{Guid, LinkParameters, PortNum, VirtualLane};

/// The only link of the agents here.
pub(crate) const LINK: LinkIndex = LinkIndex(0);
/// The management lane.
pub(crate) const VL15: VirtualLane = VirtualLane::MANAGEMENT;
/// Long enough for a machine that does other things too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
const QDR_4X: LinkParameters = LinkParameters { width: 3, speed: 7, speed_ext: 0 };

/// The GUID of the dialling end.
pub(crate) const LOW: Guid = Guid(0x10);
/// The GUID of the accepting end.
pub(crate) const HIGH: Guid = Guid(0x20);

/// An end at port 1.
pub(crate) fn end(guid: Guid) -> CableEnd {
    CableEnd { guid, port: PortNum(1) }
}

/// A cable from `local` to `remote`.
pub(crate) fn cable(local: Guid, remote: Guid, remote_addr: SocketAddr) -> Cable {
    Cable { local: end(local), remote: end(remote), remote_addr: remote_addr.into(), parameters: QDR_4X }
}

/// An address where no one listens, and that no other test process takes.
pub(crate) fn free_address() -> SocketAddr {
    (std::net::Ipv4Addr::LOCALHOST, ports::free_port()).into()
}

/// The configuration of these tests.
pub(crate) fn config(incarnation: u64) -> LinkConfig {
    LinkConfig::new("test", incarnation)
}

/// Where events go.
#[derive(Clone)]
struct Recorder(mpsc::UnboundedSender<LinkEvent>);

impl Handler for Recorder {
    fn on_event(&self, event: LinkEvent) {
        let _ = self.0.send(event);
    }
}

/// Awaits events and fails with what came instead.
pub(crate) struct Events(mpsc::UnboundedReceiver<LinkEvent>);

impl Events {
    /// The next event.
    pub(crate) async fn next(&mut self) -> LinkEvent {
        let event = tokio::time::timeout(PATIENCE, self.0.recv()).await;
        event.expect("an event within the test's patience").expect("an agent that lives")
    }

    /// The next event, which must be `Up`.
    pub(crate) async fn up(&mut self) -> LinkParameters {
        match self.next().await {
            LinkEvent::Up { link: LINK, peer } => peer,
            other => panic!("awaited Up, got {other:?}"),
        }
    }

    /// The next event, which must be `Down`.
    pub(crate) async fn down(&mut self) -> DownReason {
        match self.next().await {
            LinkEvent::Down { link: LINK, reason } => reason,
            other => panic!("awaited Down, got {other:?}"),
        }
    }

    /// The next event, which must be a packet.
    pub(crate) async fn packet(&mut self) -> (VirtualLane, Bytes) {
        match self.next().await {
            LinkEvent::Received { link: LINK, lane, packet } => (lane, packet),
            other => panic!("awaited a packet, got {other:?}"),
        }
    }

    /// The next event, which must be a refusal.
    pub(crate) async fn refused(&mut self) -> RefusalReason {
        match self.next().await {
            LinkEvent::Refused { reason, .. } => reason,
            other => panic!("awaited a refusal, got {other:?}"),
        }
    }

    /// Whether nothing has come.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.0.try_recv().is_err()
    }
}

/// An agent in the test's own thread.
pub(crate) struct Agent {
    pub(crate) links: Links,
    pub(crate) credentials: Credentials,
    pub(crate) events: Events,
}

impl Agent {
    /// Binds and dials at once.
    pub(crate) fn start(
        address: SocketAddr,
        identity: &Identity,
        config: LinkConfig,
        cables: Vec<Cable>,
    ) -> Self {
        let (send, receive) = mpsc::unbounded_channel();
        let credentials = Credentials::new(identity.clone()).unwrap();
        let links = Links::bind(address, &credentials, config, cables, Rc::new(Recorder(send))).unwrap();
        links.start_dialling();
        Self { links, credentials, events: Events(receive) }
    }

    /// Sends a packet that must not be dropped.
    pub(crate) fn send(&self, lane: VirtualLane, packet: &[u8]) {
        let outcome = self.links.send(LINK, lane, Bytes::copy_from_slice(packet));
        assert!(!matches!(outcome, weft_link::SendOutcome::Dropped(_)), "{outcome:?}");
    }
}

/// An order to a victim. A victim that can get no more orders is killed.
enum Order {
    Stop,
    /// Does nothing at all for so long, as by SIGSTOP and SIGCONT.
    Suspend(Duration, oneshot::Sender<()>),
}

/// An agent in a thread and runtime of its own, which can die without a word, as by `kill -9`.
pub(crate) struct Victim {
    pub(crate) events: Events,
    orders: Option<mpsc::UnboundedSender<Order>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Victim {
    /// Binds and dials at once.
    pub(crate) fn start(
        address: SocketAddr,
        identity: &Identity,
        config: LinkConfig,
        cables: Vec<Cable>,
    ) -> Self {
        let (send, receive) = mpsc::unbounded_channel();
        let (orders, mut ordered) = mpsc::unbounded_channel();
        let credentials = Credentials::new(identity.clone()).unwrap();
        let thread = std::thread::spawn(move || {
            let runtime = runtime();
            let local = LocalSet::new();
            local.block_on(&runtime, async {
                let links =
                    Links::bind(address, &credentials, config, cables, Rc::new(Recorder(send))).unwrap();
                links.start_dialling();
                while let Some(order) = ordered.recv().await {
                    match order {
                        Order::Stop => return links.shutdown().await,
                        Order::Suspend(duration, awake) => {
                            #[expect(clippy::disallowed_methods, reason = "it is to stop dead")]
                            std::thread::sleep(duration);
                            let _ = awake.send(());
                        }
                    }
                }
            });
            // Dropping the runtime ends QUIC's own tasks before they could say goodbye.
            drop(runtime);
        });
        Self { events: Events(receive), orders: Some(orders), thread: Some(thread) }
    }

    /// Asks it to stop; it ends as soon as it has informed its peers.
    pub(crate) fn stop(mut self) {
        let _ = self.orders.take().unwrap().send(Order::Stop);
        self.thread.take().unwrap().join().unwrap();
    }

    /// Suspends it; ready when it has woken again.
    pub(crate) async fn suspend(&self, duration: Duration) {
        let (awake, woken) = oneshot::channel();
        let _ = self.orders.as_ref().unwrap().send(Order::Suspend(duration, awake));
        woken.await.unwrap();
    }

    /// Kills it; when this returns its socket is closed.
    pub(crate) fn kill(mut self) {
        drop(self.orders.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Runs a test in a runtime like an agent's.
pub(crate) fn run(test: impl Future<Output = ()>) {
    LocalSet::new().block_on(&runtime(), test);
}

/// Two agents with a cable between them, both up.
pub(crate) async fn pair(configure: impl Fn(&mut LinkConfig)) -> (Agent, Agent) {
    let authority = Authority::new("test").unwrap();
    let (low_at, high_at) = (free_address(), free_address());
    let start = |me, other, at, other_at, incarnation| {
        let mut config = config(incarnation);
        configure(&mut config);
        Agent::start(at, &authority.issue(&[me]).unwrap(), config, vec![cable(me, other, other_at)])
    };
    let mut high = start(HIGH, LOW, high_at, low_at, 1);
    let mut low = start(LOW, HIGH, low_at, high_at, 2);
    assert_eq!(low.events.up().await, QDR_4X);
    assert_eq!(high.events.up().await, QDR_4X);
    (low, high)
}
