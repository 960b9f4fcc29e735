//! Frames that come out of an impaired cable: lost, late, or twice there.

use weft_device::{self as device, Unsent};
use weft_fault::Impairment;
use weft_machine::Time;
use weft_wire::VirtualLane;

use crate::held::Arriving;
use crate::impair::{Fate, ImpairmentCounts, Kind, What};
use crate::parts::ImpairedPort;
use crate::{Frame, Node, Output, PortId, Refusal};

/// Packets of lane 15 that may be late at one port: as many as a link's own queue holds. Those of data lanes are bounded by
/// their credits.
const MANAGEMENT_MAX: u32 = 1024;

impl Node {
    /// What impairments have done since the node began.
    pub fn impairment_counts(&self) -> ImpairmentCounts {
        self.impaired.counts
    }

    /// Impairs what arrives at a port, or the port itself.
    pub(crate) fn impair(&mut self, at: PortId, how: Impairment, seed: u32) -> Result<(), Refusal> {
        if how.is_of_port() {
            return self.degrade(at, how, seed);
        }
        let slot = self.devices.get_mut(at.device).ok_or(Refusal::NoSuchDevice(at.device))?;
        slot.device.link_parameters(at.port).ok_or(Refusal::NoSuchPort(at))?;
        slot.jack_mut(at.port).impaired = true;
        self.is_wired = true;
        let port = self.impaired.ports.entry(at).or_default();
        port.impairments.add(how, seed);
        // What is held back for it has been so for the cable's length.
        port.held = self.held.count(at);
        Ok(())
    }

    /// Ends an impairment; nothing happens where there is none.
    pub(crate) fn mend(&mut self, at: PortId, how: Impairment, seed: u32) -> Result<(), Refusal> {
        if how.is_of_port() {
            return self.restore(at, how, seed);
        }
        self.devices.get(at.device).ok_or(Refusal::NoSuchDevice(at.device))?;
        if let Some(port) = self.impaired.ports.get_mut(&at) {
            port.impairments.remove(how, seed);
        }
        self.forget_mended(at);
        Ok(())
    }

    /// A port is as others are when nothing is wrong with it any more and nothing is late.
    fn forget_mended(&mut self, at: PortId) {
        let is_mended = |port: &ImpairedPort| port.impairments.is_empty() && port.held[0] == 0;
        if self.impaired.ports.get(&at).is_some_and(is_mended) {
            self.impaired.ports.remove(&at);
            if let Some(slot) = self.devices.get_mut(at.device) {
                slot.jack_mut(at.port).impaired = false;
            }
        }
    }

    /// A frame comes out of the impaired cable at a port, whose data lanes take `delay` as well.
    #[inline(never)]
    pub(crate) fn arrives_impaired(&mut self, at: PortId, delay: Time, frame: Frame) {
        let kind = kind_of(&frame);
        let length = if frame.is_management() { Time::ZERO } else { delay };
        let comes = self.now + length;
        let Some(port) = self.impaired.ports.get_mut(&at) else {
            return self.let_in(at, Arriving::Frame(frame));
        };
        let Fate { at: arrives, what, is_overtaken } = port.impairments.judge(comes, kind);
        let counts = &mut self.impaired.counts;
        counts.late += u64::from(arrives > comes && !matches!(kind, Kind::Credit { .. }));
        counts.reordered += u64::from(is_overtaken);
        match what {
            What::Whole | What::Twice => {}
            What::Lost => counts.lost += 1,
            What::Damaged { .. } => counts.damaged += 1,
        }
        match (what, frame.unsent()) {
            (What::Lost, Some(lost)) => self.arrives_by(at, arrives, Arriving::Lost { lost, bit_errors: 0 }),
            (What::Damaged { bit_errors }, Some(lost)) => {
                self.arrives_by(at, arrives, Arriving::Lost { lost, bit_errors });
            }
            (What::Twice, _) => {
                self.impaired.counts.duplicated += 1;
                self.arrives_by(at, arrives, Arriving::Frame(frame.clone()));
                self.arrives_by(at, arrives, Arriving::Frame(frame));
            }
            _ => self.arrives_by(at, arrives, Arriving::Frame(frame)),
        }
        self.forget_mended(at);
    }

    /// Gives a port what arrives there now, or holds it back.
    fn arrives_by(&mut self, at: PortId, time: Time, arriving: Arriving) {
        let Some(port) = self.impaired.ports.get_mut(&at) else { return };
        if time <= self.now && port.held[0] == 0 {
            return self.let_in(at, arriving);
        }
        let is_management = arriving.lane() == Some(VirtualLane::MANAGEMENT);
        if is_management && port.held[1] >= MANAGEMENT_MAX {
            return self.has_no_room(at, &arriving);
        }
        match self.held.put(time, at, arriving) {
            Ok(()) => {
                port.held[0] += 1;
                port.held[1] += u32::from(is_management);
                self.set_held_timer();
            }
            Err(arriving) => self.has_no_room(at, &arriving),
        }
    }

    /// Too much is late already: the packet is lost.
    fn has_no_room(&mut self, at: PortId, arriving: &Arriving) {
        self.impaired.counts.no_room += 1;
        self.say(Output::CableFull { at });
        if let Some(lost) = arriving.unsent() {
            self.let_in(at, Arriving::Lost { lost, bit_errors: 0 });
        }
    }

    /// The device hears of what arrives at one of its ports.
    pub(crate) fn let_in(&mut self, at: PortId, arriving: Arriving) {
        let port = at.port;
        let input = match arriving {
            Arriving::Frame(frame) => device::Input::Arrive { port, frame },
            Arriving::Lost { lost, bit_errors } => device::Input::Lost { port, lost, bit_errors },
        };
        self.feed(at.device, input);
    }

    /// Something that was held back arrives.
    pub(crate) fn held_arrives(&mut self, at: PortId, arriving: Arriving) {
        self.impaired.arrives(at, &arriving);
        self.forget_mended(at);
        self.let_in(at, arriving);
    }
}

fn kind_of(frame: &Frame) -> Kind {
    let bytes = |unsent: Unsent| unsent.words * 4 + 2;
    match frame {
        Frame::Credit(flow_control) => Kind::Credit { lane: flow_control.vl.0 },
        Frame::Data(packet) => Kind::Data { lane: packet.vl.0, bytes: bytes(packet.into()) },
        Frame::Packet(packet) if packet.vl() == VirtualLane::MANAGEMENT => {
            Kind::Management { bytes: bytes(packet.into()) }
        }
        Frame::Packet(packet) => Kind::Data { lane: packet.vl().0, bytes: bytes(packet.into()) },
    }
}
