//! Events of the queue: a few bytes each, so that the queue moves little. What is large waits in a slab, or, when it
//! keeps its order on its way, in the queue of that way.

use weft_topology::{NodeIndex, PortRef};
use weft_vm::{Command as SlotCommand, Input as VmInput};
use weft_wire::{AddressedMad, Packet};

use crate::{Change, Fault, ToHost};

/// An event in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The next thing under way on data lanes reaches the end of this way.
    Arrive(u32),
    /// A packet of lane 15 reaches the end of a cable.
    ArriveManagement(u32),
    /// A node wants to be woken.
    WakeNode(NodeIndex),
    /// A program wants to be woken.
    WakeProgram(u32),
    /// A MAD is on its way between a program and its device.
    Mad(u32),
    /// A rare event.
    Rare(u32),
}

/// A packet of lane 15 under way.
#[derive(Debug)]
pub(crate) struct ManagementPacket {
    pub(crate) way: u32,
    pub(crate) incarnation: u64,
    pub(crate) packet: Packet,
}

/// A MAD between a program and its device.
#[derive(Debug)]
pub(crate) struct MadUnderWay {
    pub(crate) program: u32,
    /// The attachment; what is under way from before does not arrive after.
    pub(crate) incarnation: u64,
    /// Whether the program sends it.
    pub(crate) to_device: bool,
    pub(crate) mad: Box<AddressedMad>,
}

/// Rare events.
#[derive(Debug)]
pub(crate) enum Rare {
    /// A link has trained.
    Trained { cable: usize, incarnation: u64 },
    /// An end notices that its link is gone.
    Noticed { cable: usize, side: usize, life: u32 },
    /// A program's process is there and attaches itself.
    Attach { program: u32, incarnation: u64 },
    /// A program learns the state of its port's link.
    PortTo { program: u32, incarnation: u64, up: bool },
    /// A fault.
    Fault(Fault),
    /// The first subnet manager loses its `guid2lid` file.
    LoseGuid2Lid,
    /// A device or a cable comes or goes.
    Change(Change),
    /// A load hears late what an adapter has for it.
    ToLoad(PortRef, ToHost),
    /// A node that had come to no end goes on.
    GoOn(NodeIndex),
    /// News between the VM manager and the agents of slots, of one life of the manager's process.
    Vm { life: u64, news: Box<VmNews> },
}

/// News between the VM manager, the agents of slots and its disk. Hosts by their places in the options' adapters.
#[derive(Debug)]
pub(crate) enum VmNews {
    /// A command arrives at an agent.
    Command(usize, Box<SlotCommand>),
    /// What an agent says arrives at the manager.
    Answer(Box<VmInput>),
    /// There is a connection to an agent.
    HostUp(usize),
    /// An agent's process has ended.
    HostEnded(usize),
    /// The journal is on disk up to this write.
    Synced(u64),
}

/// Things by number; a number is used again when its thing is taken. Bounded by the queue.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    things: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Self {
        Self { things: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn put(&mut self, thing: T) -> u32 {
        if let Some(at) = self.free.pop() {
            self.things[at as usize] = Some(thing);
            return at;
        }
        self.things.push(Some(thing));
        (self.things.len() - 1) as u32
    }

    pub(crate) fn take(&mut self, at: u32) -> Option<T> {
        let thing = self.things.get_mut(at as usize)?.take();
        if thing.is_some() {
            self.free.push(at);
        }
        thing
    }
}
