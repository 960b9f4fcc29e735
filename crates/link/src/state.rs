//! The state of an agent's links, which their tasks share.

use std::cell::{Cell, Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::Rc;

use quinn::{ClientConfig, Endpoint};
use tokio::sync::Notify;
use weft_wire::LinkParameters;

use crate::cable::{Cable, Handler, LinkEvent, LinkIndex, PeerStats, Stats};
use crate::codec::Hello;
use crate::config::LinkConfig;
use crate::credentials::Credentials;
use crate::end::CableEnd;
use crate::gate::Gate;
use crate::handshake_slots::HandshakeSlots;
use crate::live::Live;
use crate::process::Processes;
use crate::reason::{CloseCode, DownReason};
use crate::resolve::Resolver;
use crate::visitor::Visitor;

/// What the tasks of an agent's links share.
pub(crate) struct Inner {
    pub(crate) endpoint: Endpoint,
    /// Where this agent listens.
    pub(crate) local: SocketAddr,
    pub(crate) client: ClientConfig,
    /// Its own identity, and whom it believes.
    pub(crate) credentials: Credentials,
    pub(crate) config: LinkConfig,
    /// By link; none where the cable was taken out.
    pub(crate) slots: RefCell<Vec<Option<Rc<Slot>>>>,
    /// Indices of cables that were taken out and of which no task knows any more.
    pub(crate) free: FreeIndices,
    pub(crate) by_ends: RefCell<BTreeMap<(CableEnd, CableEnd), LinkIndex>>,
    pub(crate) handler: Rc<dyn Handler>,
    pub(crate) dialling: Cell<bool>,
    /// The agent is ending: nothing is dialled any more.
    pub(crate) stopped: Cell<bool>,
    /// Handshakes that peers have begun and not finished.
    pub(crate) places: HandshakeSlots,
    /// Handshakes that this agent has begun and not finished.
    pub(crate) gate: Rc<Gate>,
    pub(crate) resolver: Resolver,
    /// Peers of this machine.
    pub(crate) processes: Processes,
    pub(crate) peers: Cell<PeerStats>,
}

impl Inner {
    /// A client of the agent itself has come.
    pub(crate) fn visited(&self, visitor: Visitor) {
        self.handler.on_visitor(visitor);
    }

    pub(crate) fn emit(&self, event: LinkEvent) {
        self.handler.on_event(event);
    }

    pub(crate) fn count_peer(&self, change: impl FnOnce(&mut PeerStats)) {
        let mut peers = self.peers.get();
        change(&mut peers);
        self.peers.set(peers);
    }

    /// The slot of the cable between two ports.
    pub(crate) fn slot_between(&self, local: CableEnd, remote: CableEnd) -> Option<Rc<Slot>> {
        let link = self.by_ends.borrow().get(&(local, remote)).copied()?;
        self.slot(link)
    }

    /// An index for another link: one that was given back, if there is one.
    pub(crate) fn next_index(&self) -> LinkIndex {
        let free = self.free.borrow_mut().pop_first();
        free.unwrap_or_else(|| LinkIndex(self.slots.borrow().len()))
    }

    /// The slot of a cable that is still there.
    pub(crate) fn slot(&self, link: LinkIndex) -> Option<Rc<Slot>> {
        self.slots.borrow().get(link.0)?.clone()
    }

    /// This end's hello for a link.
    pub(crate) fn hello(&self, slot: &Slot) -> Hello {
        Hello {
            lab: self.config.lab.clone(),
            from: slot.cable.local,
            to: slot.cable.remote,
            incarnation: self.config.incarnation,
            parameters: slot.parameters.get(),
            process: self.processes.own().cloned(),
        }
    }
}

/// Indices that links gave back.
pub(crate) type FreeIndices = Rc<RefCell<BTreeSet<LinkIndex>>>;

/// The index of a link. It is given back when the last task of the link has ended: until then a late event could be taken for
/// one of the cable that has the index next.
struct HeldIndex {
    link: LinkIndex,
    free: FreeIndices,
}

impl Drop for HeldIndex {
    fn drop(&mut self) {
        self.free.borrow_mut().insert(self.link);
    }
}

/// One cable and the state of its link.
pub(crate) struct Slot {
    pub(crate) link: LinkIndex,
    _index: HeldIndex,
    pub(crate) cable: Cable,
    /// The cable was taken out: it is not dialled any more.
    pub(crate) removed: Cell<bool>,
    /// Rings when the cable is taken out: an attempt to dial it ends.
    pub(crate) gone: Notify,
    pub(crate) enabled: Cell<bool>,
    pub(crate) parameters: Cell<LinkParameters>,
    /// Wakes the dialler when the link is enabled.
    pub(crate) wake: Notify,
    /// The connection that carries the link, while it is up.
    pub(crate) live: RefCell<Option<Live>>,
    /// Counts connections; events of any but the last are stale.
    generation: Cell<u64>,
    /// An `Up` has been emitted and its `Down` has not.
    told_up: Cell<bool>,
    /// Why this end closed the connection.
    closing: RefCell<Option<DownReason>>,
    stats: Cell<Stats>,
}

impl Slot {
    pub(crate) fn new(link: LinkIndex, cable: Cable, free: &FreeIndices) -> Self {
        Self {
            link,
            _index: HeldIndex { link, free: free.clone() },
            removed: Cell::new(false),
            gone: Notify::new(),
            parameters: Cell::new(cable.parameters),
            cable,
            enabled: Cell::new(true),
            wake: Notify::new(),
            live: RefCell::new(None),
            generation: Cell::new(0),
            told_up: Cell::new(false),
            closing: RefCell::new(None),
            stats: Cell::default(),
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        self.stats.get()
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Stats)) {
        let mut stats = self.stats.get();
        change(&mut stats);
        self.stats.set(stats);
    }

    /// Whether the connection of this generation still carries the link.
    pub(crate) fn carries(&self, generation: u64) -> bool {
        self.generation.get() == generation && self.live.borrow().is_some()
    }

    pub(crate) fn live(&self) -> Ref<'_, Option<Live>> {
        self.live.borrow()
    }

    /// Closes the connection at once; the task that reads it tells of it.
    pub(crate) fn close(&self, code: CloseCode, reason: DownReason) {
        if let Some(live) = self.live.take() {
            live.connection.close(code.var_int(), reason.to_string().as_bytes());
            self.closing.replace(Some(reason));
        }
    }

    /// Installs a new connection and returns its generation.
    pub(crate) fn install(&self, live: Live) -> u64 {
        self.closing.take();
        self.generation.set(self.generation.get() + 1);
        self.live.replace(Some(live));
        self.told_up.set(true);
        self.count(|stats| stats.ups += 1);
        self.generation.get()
    }

    /// Forgets the connection, if it is still the one of `generation`; says why this end closed it and
    /// whether a `Down` is due.
    pub(crate) fn retire(&self, generation: u64) -> (Option<DownReason>, bool) {
        if self.generation.get() != generation {
            return (None, false);
        }
        self.live.take();
        let due = self.told_up.replace(false);
        if due {
            self.count(|stats| stats.downs += 1);
        }
        (self.closing.take(), due)
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.get()
    }
}
