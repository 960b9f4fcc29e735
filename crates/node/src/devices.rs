//! The devices of a node, by names that are never given twice.

use weft_device::Device;
use weft_machine::Time;
use weft_wire::PortNum;

use crate::DeviceId;
use crate::cables::End;
use crate::parts::Host;
use crate::timers::TimerId;

/// A device and what belongs to its ports. What every packet needs is in front.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Slot {
    /// By port number; empty where the node knows of no cable.
    jacks: Vec<Jack>,
    /// By port number; empty without hosts.
    pub(crate) hosts: Vec<Option<Box<Host>>>,
    pub(crate) timer: TimerId,
    /// The last number that was given to a program.
    pub(crate) last_client: u16,
    /// Whether it does not answer.
    pub(crate) frozen: bool,
    pub(crate) device: Device,
}

/// What is in a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jack {
    pub(crate) cable: Plugged,
    /// Whether the cable is plugged in, which is the operator's doing.
    pub(crate) plugged: bool,
    /// Whether the port lets its link come up, which is the subnet manager's doing.
    pub(crate) enabled: bool,
    /// Whether there is a function in the slot that the port is of; true for ports that are none.
    pub(crate) seated: bool,
    /// How long what comes over the data lanes is held back.
    pub(crate) delay: Time,
    /// Whether something is wrong with what comes over the cable, or was and is late still.
    pub(crate) impaired: bool,
    /// Whether a fault of the port keeps its link down.
    pub(crate) held_down: bool,
    /// Whether the device does not answer.
    pub(crate) frozen: bool,
}

/// Where the cable in a port leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plugged {
    /// There is none, or the node does not know of it.
    Nothing,
    /// Out of the node.
    Outside,
    /// To another port of the node.
    Inside(End),
}

impl Jack {
    const EMPTY: Self = Self {
        cable: Plugged::Nothing,
        plugged: true,
        enabled: true,
        seated: true,
        delay: Time::ZERO,
        impaired: false,
        held_down: false,
        frozen: false,
    };

    pub(crate) fn of(cable: Plugged, delay: Time) -> Self {
        Self { cable, delay, ..Self::EMPTY }
    }

    pub(crate) fn may_be_up(self) -> bool {
        self.plugged && self.enabled && self.seated && !self.held_down && !self.frozen
    }
}

impl Slot {
    pub(crate) fn new(device: Device, timer: TimerId) -> Self {
        Self { device, timer, last_client: 0, frozen: false, hosts: Vec::new(), jacks: Vec::new() }
    }

    /// What is in a port.
    #[inline]
    pub(crate) fn jack(&self, port: PortNum) -> Jack {
        self.jacks.get(usize::from(port.0)).copied().unwrap_or(Jack::EMPTY)
    }

    /// What is in a port; there is room for all ports up to it from now on.
    pub(crate) fn jack_mut(&mut self, port: PortNum) -> &mut Jack {
        let place = usize::from(port.0);
        if self.jacks.len() <= place {
            self.jacks.resize(place + 1, Jack::EMPTY);
        }
        &mut self.jacks[place]
    }

    /// The ports that have a cable.
    pub(crate) fn cabled(&self) -> impl Iterator<Item = (PortNum, Jack)> {
        let jacks = (0..=u8::MAX).zip(&self.jacks).filter(|(_, jack)| jack.cable != Plugged::Nothing);
        jacks.map(|(port, jack)| (PortNum(port), *jack))
    }

    #[inline]
    pub(crate) fn host(&mut self, port: PortNum) -> Option<&mut Host> {
        self.hosts.get_mut(usize::from(port.0))?.as_deref_mut()
    }
}

/// All devices. The first one has its place in the node itself, since most nodes have no other.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Devices {
    first: Option<Slot>,
    others: Vec<Option<Box<Slot>>>,
    added: u32,
}

impl Devices {
    /// Makes room for one more, under a name that none had before.
    pub(crate) fn add(&mut self, slot: Slot) -> DeviceId {
        let id = DeviceId(self.added);
        self.added += 1;
        if id.0 == 0 {
            self.first = Some(slot);
        } else {
            self.others.push(Some(Box::new(slot)));
        }
        id
    }

    /// The name that the next one gets.
    pub(crate) fn next_id(&self) -> DeviceId {
        DeviceId(self.added)
    }

    pub(crate) fn remove(&mut self, id: DeviceId) -> Option<Slot> {
        match id.0.checked_sub(1) {
            None => self.first.take(),
            Some(other) => self.others.get_mut(other as usize)?.take().map(|slot| *slot),
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: DeviceId) -> Option<&Slot> {
        match id.0.checked_sub(1) {
            None => self.first.as_ref(),
            Some(other) => self.others.get(other as usize)?.as_deref(),
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: DeviceId) -> Option<&mut Slot> {
        match id.0.checked_sub(1) {
            None => self.first.as_mut(),
            Some(other) => self.others.get_mut(other as usize)?.as_deref_mut(),
        }
    }

    /// All that are on, in order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (DeviceId, &Slot)> {
        let others = self.others.iter().map(Option::as_deref);
        let all = std::iter::once(self.first.as_ref()).chain(others).zip(0..);
        all.filter_map(|(slot, id)| Some((DeviceId(id), slot?)))
    }
}
