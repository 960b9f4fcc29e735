//! The machine: inputs to the machine that they are for, and the one order in which all that follows is done.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use weft_device::{self as device, Device};
use weft_machine::{Machine, Time, Timer};
use weft_wire::{DataPacket, LinkParameters, ServiceLevel};

use crate::cables::Cables;
use crate::devices::{Devices, Plugged};
use crate::held::Held;
use crate::parts::{Clients, DegradedPorts, ImpairedPorts};
use crate::timers::{Owner, TimerId, Timers};
use crate::vms::Slots;
use crate::{Desk, DeviceId, Frame, Input, NodeTimer, Output, PortId, RequestId, ToHost};

weft_wire::defaults! {
    /// How a node works.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct NodeOptions {
        /// Frames between the node's ports, timers, and things that hosts hear late, that one drain begins at most, beside what
        /// the input itself begins.
        pub steps_max: u32 = 4096,
        /// Whether the node notes how late its timers were, for [`Node::take_lateness`].
        pub notes_lateness: bool = false,
    }
}

/// What one agent holds; see the [crate](crate). What every packet needs is in front.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Node {
    pub(crate) desk: Option<Box<Desk>>,
    pub(crate) now: Time,
    /// The device that is being drained.
    pub(crate) hand: Option<DeviceId>,
    /// When the node was woken, as long as timers that were due then are left.
    pub(crate) woken_at: Option<Time>,
    /// Whether an answer, a cable between the node's ports, or what hosts hear later, may have something left.
    pub(crate) may_go_on: bool,
    /// Whether the node ever got a cable, so that ports have to be looked up.
    pub(crate) is_wired: bool,
    /// Whether there was ever a host, so that ports have to be looked up.
    pub(crate) has_hosts: bool,
    pub(crate) is_watching: bool,
    /// Exchanges of the device in hand with its hosts.
    pub(crate) rounds: u32,
    /// What this drain may still begin.
    pub(crate) steps: u32,
    pub(crate) timers: Timers,
    pub(crate) devices: Devices,
    pub(crate) cables: Cables,
    pub(crate) clients: Clients,
    pub(crate) held: Held,
    pub(crate) held_timer: Option<TimerId>,
    /// What hosts hear when the drain goes on.
    pub(crate) later: VecDeque<(PortId, ToHost)>,
    pub(crate) late: Vec<Time>,
    pub(crate) options: NodeOptions,
    /// Slots of virtual machines.
    pub(crate) slots: Slots,
    pub(crate) impaired: ImpairedPorts,
    pub(crate) degraded: DegradedPorts,
}

impl Node {
    /// A node that holds nothing.
    pub fn new(options: NodeOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// A device that is on.
    #[inline]
    pub fn device(&self, id: DeviceId) -> Option<&Device> {
        self.devices.get(id).map(|slot| &slot.device)
    }

    /// All devices that are on, in the order in which they were added.
    pub fn devices(&self) -> impl Iterator<Item = (DeviceId, &Device)> {
        self.devices.iter().map(|(id, slot)| (id, &slot.device))
    }

    /// Whether the last drain ended at its bound: [`Input::Continue`] goes on with it.
    #[inline]
    pub fn is_unfinished(&self) -> bool {
        (self.may_go_on && (!self.later.is_empty() || !self.cables.is_idle()))
            || self.woken_at.is_some_and(|at| self.is_due(at))
    }

    /// Lends the node a desk, or takes it back. Only between a drain and the next input.
    #[inline]
    pub fn exchange_desk(&mut self, desk: &mut Option<Box<Desk>>) {
        debug_assert!(self.desk.as_ref().is_none_or(|desk| desk.is_empty()), "outputs are taken first");
        std::mem::swap(&mut self.desk, desk);
    }

    /// How late its timers were since the last call: each one that fired, or whose machine was fed at its moment or after.
    pub fn take_lateness(&mut self) -> impl Iterator<Item = Time> + '_ {
        self.late.drain(..)
    }

    /// Whether the link of the cable between two ports of the node is up, seen from one of them.
    pub fn is_link_up(&self, at: PortId) -> bool {
        let jack = self.devices.get(at.device).map(|slot| slot.jack(at.port));
        jack.is_some_and(|jack| matches!(jack.cable, Plugged::Inside(end) if self.cables.is_up(end)))
    }

    /// The other end of the cable in a port, if both are ports of the node.
    pub fn peer(&self, at: PortId) -> Option<PortId> {
        match self.devices.get(at.device)?.jack(at.port).cable {
            Plugged::Inside(end) => Some(self.cables.peer(end)),
            _ => None,
        }
    }

    /// Whether the cable in a port is plugged in: the operator has left it there, and the port is not that of an empty slot.
    pub fn is_plugged(&self, at: PortId) -> bool {
        self.devices
            .get(at.device)
            .map(|slot| slot.jack(at.port))
            .is_some_and(|jack| jack.plugged && jack.seated)
    }

    /// Whether a port lets its link come up, and what its next hello says: for a driver that puts a cable into it.
    pub fn link_offer(&self, at: PortId) -> Option<(bool, LinkParameters)> {
        let slot = self.devices.get(at.device)?;
        let parameters = self.degraded.limited(at, slot.device.link_parameters(at.port)?);
        Some((slot.jack(at.port).may_be_up(), parameters))
    }

    /// Cables between ports of the node whose link is up.
    pub fn inner_links_up(&self) -> usize {
        self.cables.up_count()
    }

    /// How often a cable between ports of the node went down because what must not be lost found no room.
    pub fn inner_overflows(&self) -> u64 {
        self.cables.overflows()
    }

    /// Packets that cables between ports of the node took with them when they went down, by lane.
    pub fn lost_on_cables(&self) -> [u64; 16] {
        self.cables.lost()
    }

    /// The next output, as [`Machine::poll_output`] has it, but for those that `taker` takes before.
    #[inline(always)]
    pub fn drain(&mut self, taker: &mut impl Taker) -> Option<Output> {
        loop {
            if self.may_go_on
                && let Some(output) = self.desk.as_mut().and_then(|desk| desk.ready.pop_front())
            {
                return Some(output);
            }
            if let Some(id) = self.hand {
                if let Some(output) = self.go_on(id, taker) {
                    return Some(output);
                }
            } else if self.is_at_rest() || !self.begin_next() {
                return None;
            }
        }
    }

    /// Packets that are on cables between ports of the node, or held back at the end of a long one, by lane.
    pub fn on_cables(&self) -> [u64; 16] {
        let mut count = [0; 16];
        let lanes = self.cables.frames().filter_map(Frame::packet_lane).chain(self.held.lanes());
        lanes.for_each(|lane| count[usize::from(lane.0 & 0xf)] += 1);
        count
    }

    pub(crate) fn desk(&mut self) -> &mut Desk {
        self.desk.get_or_insert_default()
    }

    /// Something happens now.
    #[inline(always)]
    fn begin(&mut self, now: Time) {
        (self.now, self.steps) = (now, self.options.steps_max);
        if self.desk.is_none() {
            self.desk = Some(Box::default());
        }
    }

    pub(crate) fn say(&mut self, output: Output) {
        self.may_go_on = true;
        self.desk().ready.push_back(output);
    }

    /// Whether nothing is left to be taken or done.
    #[inline]
    pub fn is_at_rest(&self) -> bool {
        self.hand.is_none() && self.woken_at.is_none() && !self.may_go_on
    }

    fn is_due(&self, by: Time) -> bool {
        self.timers.earliest().is_some_and(|at| at <= by)
    }

    /// Sets a machine's timer, and notes how late it was that its last wish was met.
    #[inline]
    pub(crate) fn set_timer(&mut self, timer: TimerId, moment: Option<Time>) {
        if let Some(met) = self.timers.revise(self.now, timer, moment)
            && self.options.notes_lateness
        {
            self.late.push(self.now.saturating_sub(met));
        }
    }

    /// What does not happen with every packet.
    fn handle_other(&mut self, input: Input) {
        match input {
            Input::Arrived { .. } | Input::Continue => {}
            Input::Inject { at, packet } => {
                self.feed(at.device, device::Input::Inject { port: at.port, packet });
            }
            Input::Unsent { at, unsent } => {
                self.feed(at.device, device::Input::TransmitDropped { port: at.port, unsent });
            }
            Input::Damaged { at, physical } => {
                self.feed(at.device, device::Input::ReceiveError { port: at.port, physical });
            }
            Input::LinkUp { at, peer } => {
                // It may have gone down since without notice.
                self.lose_held(at);
                let peer = self.degraded.limited(at, peer);
                self.feed(at.device, device::Input::LinkUp { port: at.port, peer });
            }
            Input::LinkDown { at } => self.link_goes(at),
            Input::Send { client, mad } => self.client_sends(client, mad),
            Input::SendThroughLayer { client, message } => self.layer_sends(client, *message),
            Input::Detach { client } => self.detach(client),
            Input::Request { id, request } => {
                // Cables may have come, gone, or come up.
                self.may_go_on = true;
                self.request(id, *request);
            }
        }
    }

    fn request(&mut self, id: RequestId, request: crate::Request) {
        match self.carry_out(id, request) {
            Ok(Some(answer)) => self.say(Output::Answer { id, outcome: Ok(answer) }),
            Err(refusal) => self.say(Output::Answer { id, outcome: Err(refusal) }),
            Ok(None) => {}
        }
    }
}

/// Takes what most devices want most of the time from where it lies, in its turn, so that it is not moved about. Each method
/// says whether it has taken it; otherwise it is an output like others.
pub trait Taker {
    /// [`Output::Transmit`].
    #[inline]
    fn transmit(&mut self, _at: PortId, _frame: &Frame) -> bool {
        false
    }

    /// [`ToHost::Injected`].
    #[inline]
    fn injected(&mut self, _at: PortId, _service_level: ServiceLevel, _packets: u16) -> bool {
        false
    }

    /// [`ToHost::Accept`].
    #[inline]
    fn accept(&mut self, _at: PortId, _packet: &DataPacket) -> bool {
        false
    }
}

/// Takes nothing.
struct TakesNothing;

impl Taker for TakesNothing {}

impl Machine for Node {
    type Input = Input;
    type Output = Output;
    type Reason = NodeTimer;

    #[inline(always)]
    fn handle_input(&mut self, now: Time, input: Input) {
        self.begin(now);
        match input {
            Input::Arrived { at, frame } => self.arrives(at, frame),
            other => self.handle_other(other),
        }
    }

    #[inline]
    fn handle_timeout(&mut self, now: Time) {
        self.begin(now);
        if let Some((owner, at)) = self.timers.due(now) {
            self.woken_at = self.timers.has_others().then_some(now);
            if self.options.notes_lateness {
                self.late.push(now.saturating_sub(at));
            }
            match owner {
                Owner::Device(id) => self.wake_device(id),
                other => self.fire(other),
            }
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.drain(&mut TakesNothing)
    }

    fn next_timer(&self) -> Option<Timer<NodeTimer>> {
        let (owner, at) = self.timers.first()?;
        let reason = match owner {
            Owner::Free => return None,
            Owner::Device(id) => NodeTimer::Device(id, self.device(id)?.next_timer()?.reason),
            Owner::Host(at) => NodeTimer::Host(at, self.stack(at)?.next_timer()?.reason),
            Owner::Layer(client) => NodeTimer::Layer(client, self.mad_layer(client)?.next_timer()?.reason),
            Owner::Held => NodeTimer::Held,
            Owner::Flap => NodeTimer::Flap,
        };
        Some(Timer { at, reason })
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Time> {
        let due = self.timers.earliest();
        // The machine that is being fed has revised its timer; it is asked when it is put back.
        debug_assert!(
            !self.is_at_rest() || due == self.next_timer().map(|timer| timer.at),
            "a timer that its machine does not know: {due:?}"
        );
        due
    }
}
