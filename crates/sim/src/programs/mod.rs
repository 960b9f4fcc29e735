//! The programs of a fabric: subnet managers, performance manager and VM manager. Each is attached to a port, sends and receives
//! MADs there that take a while on their way, and loses its attachment with the node.

mod frozen;

use std::collections::BTreeMap;

use weft_machine::Time;
use weft_node::Client;
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_vm::seat_beside;
use weft_wire::{AddressedMad, Guid, PortNum};

use crate::SimOptions;
use crate::clock::{Clock, Event, MadUnderWay, Rare};
use crate::world::World;
use frozen::Frozen;
pub(crate) use frozen::Waiting;

/// The numbers of the programs.
pub(crate) const SM: u32 = 0;
pub(crate) const PM: u32 = 1;
pub(crate) const STANDBY: u32 = 2;
pub(crate) const VMM: u32 = STANDBY + STANDBYS_MAX as u32;
const PROGRAMS: u32 = VMM + 1;

/// The most subnet managers beside the first one.
pub(crate) const STANDBYS_MAX: usize = 4;

/// A program's place at a device.
#[derive(Clone, Debug)]
struct Attachment {
    /// Where it is attached.
    port: PortRef,
    /// Counts attachments, so that what is under way from before does not arrive after.
    incarnation: u64,
    /// Its name at the node, as long as it is attached.
    client: Option<Client>,
    wake: Option<Time>,
}

/// What happens to any program.
#[derive(Debug)]
pub(crate) enum ProgramEvent {
    /// It is attached.
    Attached,
    /// It is attached no more.
    Detached,
    /// A MAD.
    Receive(Box<AddressedMad>),
    /// Its port's link came up or went down.
    PortChanged(bool),
}

/// Where all programs are attached, by their numbers, and which of them are frozen.
#[derive(Debug)]
pub(crate) struct Programs {
    attachments: Vec<Attachment>,
    frozen: Frozen,
}

impl Programs {
    /// None is attached.
    pub(crate) fn new(fabric: &Fabric, options: &SimOptions) -> Self {
        let attachment = |port| Attachment { port, incarnation: 0, client: None, wake: None };
        let attachments = ports(fabric, options).into_iter().map(attachment).collect();
        Self { attachments, frozen: BTreeMap::new() }
    }

    fn of(&self, program: u32) -> &Attachment {
        &self.attachments[program as usize]
    }

    fn of_mut(&mut self, program: u32) -> &mut Attachment {
        &mut self.attachments[program as usize]
    }

    /// The port that a program is attached to, or will be.
    pub(crate) fn port(&self, program: u32) -> PortRef {
        self.of(program).port
    }

    /// A program's name at its node, as long as it is attached.
    pub(crate) fn client(&self, program: u32) -> Option<Client> {
        self.of(program).client
    }

    /// The program that is attached to a node under this name; none for checkers.
    pub(crate) fn find(&self, node: NodeIndex, client: Client) -> Option<u32> {
        self.at(node).find(|program| self.client(*program) == Some(client))
    }

    /// The programs whose ports are a node's.
    pub(crate) fn at(&self, node: NodeIndex) -> impl Iterator<Item = u32> {
        (SM..PROGRAMS).filter(move |program| self.port(*program).node == node)
    }

    /// The process of a program begins and attaches itself at some time.
    pub(crate) fn start(&mut self, program: u32, at: Time, clock: &mut Clock) {
        let attachment = self.of_mut(program);
        (attachment.incarnation, attachment.wake) = (attachment.incarnation + 1, None);
        let incarnation = attachment.incarnation;
        clock.push_rare(at.max(clock.now()), Rare::Attach { program, incarnation });
    }

    /// The process of a program has ended. What it was attached as.
    pub(crate) fn end(&mut self, program: u32) -> Option<(NodeIndex, Client)> {
        let attachment = self.of_mut(program);
        (attachment.incarnation, attachment.wake) = (attachment.incarnation + 1, None);
        attachment.client.take().map(|client| (attachment.port.node, client))
    }

    /// A node has taken a program in.
    pub(crate) fn attach(&mut self, program: u32, client: Client) {
        self.of_mut(program).client = Some(client);
    }

    /// The device is gone that a program was attached to. Whether it was.
    pub(crate) fn detach(&mut self, program: u32) -> bool {
        let attachment = self.of_mut(program);
        attachment.incarnation += 1;
        attachment.client.take().is_some()
    }

    /// Whether a program's attachment is still that one.
    pub(crate) fn is_attachment(&self, program: u32, incarnation: u64) -> bool {
        self.of(program).incarnation == incarnation
    }

    /// A MAD sets out from a program to its device, or back.
    pub(crate) fn push_mad(&self, program: u32, to_device: bool, mad: Box<AddressedMad>, world: &mut World) {
        let incarnation = self.of(program).incarnation;
        let at = world.when_attached();
        world.clock.push_mad(at, MadUnderWay { program, incarnation, to_device, mad });
    }

    /// A program will learn the state of its port's link.
    pub(crate) fn push_port(&self, program: u32, up: bool, world: &mut World) {
        let incarnation = self.of(program).incarnation;
        let at = world.when_attached();
        world.clock.push_rare(at, Rare::PortTo { program, incarnation, up });
    }

    /// Sees to it that a program is woken when it wants to be.
    #[inline]
    pub(crate) fn wake_at(&mut self, program: u32, due: Option<Time>, clock: &mut Clock) {
        let Some(due) = due else { return };
        let (due, attachment) = (due.max(clock.now()), self.of_mut(program));
        if attachment.wake.is_none_or(|wake| due < wake) {
            attachment.wake = Some(due);
            clock.push(due, Event::WakeProgram(program));
        }
    }

    /// A wake-up has come. Whether it is meant, and the program does anything.
    pub(crate) fn wakes(&mut self, program: u32, now: Time) -> bool {
        let attachment = self.of_mut(program);
        if attachment.wake != Some(now) {
            return false;
        }
        attachment.wake = None;
        !self.is_frozen(program)
    }

    /// The port of a program, in the form that managers get it.
    pub(crate) fn guids(&self, program: u32, fabric: &Fabric) -> (Guid, Guid, PortNum) {
        let PortRef { node, port } = self.port(program);
        let node = fabric.node(node);
        (node.guid, node.port(port).map_or(node.guid, |port| port.guid), port)
    }
}

/// Where managers sit, by their numbers.
fn ports(fabric: &Fabric, options: &SimOptions) -> Vec<PortRef> {
    // The performance manager's is not the subnet manager's, if there are two hosts.
    let first = [
        options.sm_port.or_else(|| fabric.attach_place()),
        options.pm_port.or_else(|| fabric.seats().last()),
    ];
    let standbys = (0..STANDBYS_MAX).map(|number| options.standbys.get(number).map(|standby| standby.port));
    let vmm = options.vmm_port.or_else(|| vmm_port(options)).or(first[0]);
    let ports = first.into_iter().chain(standbys).chain([vmm]);
    ports.map(|port| port.unwrap_or(PortRef::new(NodeIndex(0), PortNum::ZERO))).collect()
}

/// The default port of the VM manager: a physical function's.
fn vmm_port(options: &SimOptions) -> Option<PortRef> {
    let taken = options.sm_port.map(|port| port.node);
    let pf = seat_beside(&options.adapters, taken).or_else(|| seat_beside(&options.adapters, None))?;
    Some(PortRef::new(pf, PortNum(1)))
}
