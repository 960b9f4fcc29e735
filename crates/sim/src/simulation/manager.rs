//! The subnet manager's process, and its attachment to a device.

use weft_device::{ClientId, Input};
use weft_machine::{Machine, Time};
use weft_sm::{Event, GuidToLid, SubnetManager, Summary};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{AddressedMad, PortNum};

use super::{Happening, PORT_ZERO, SM_CLIENTS, Simulation};

/// The subnet manager, when its process runs.
#[derive(Debug)]
pub(super) struct Manager {
    machine: Option<SubnetManager>,
    /// Where it is attached.
    pub(super) port: PortRef,
    /// Counts attachments, so that what is under way from before does not arrive after.
    pub(super) attachment: u64,
    attached: bool,
    wake: Option<Time>,
    /// What its `guid2lid` file has in it.
    pub(super) persisted: GuidToLid,
    /// What it has said of each heavy sweep, the last one last.
    summaries: Vec<(Time, Summary)>,
}

/// Summaries that are kept.
const SUMMARIES_MAX: usize = 1024;

impl Manager {
    pub(super) fn new(fabric: &Fabric, port: Option<PortRef>) -> Self {
        Self {
            machine: None,
            port: port.or_else(|| fabric.attach_place()).unwrap_or(PortRef::new(NodeIndex(0), PORT_ZERO)),
            attachment: 0,
            attached: false,
            wake: None,
            persisted: GuidToLid::default(),
            summaries: Vec::new(),
        }
    }

    /// The number of this attachment.
    fn client(&self) -> ClientId {
        ClientId((self.attachment % u64::from(SM_CLIENTS)) as u16)
    }
}

impl Simulation {
    /// The subnet manager, if its process runs.
    pub fn sm(&self) -> Option<&SubnetManager> {
        self.manager.machine.as_ref()
    }

    /// Takes the subnet manager out of its process, as it is; the fabric ends here.
    pub fn into_sm(self) -> Option<SubnetManager> {
        self.manager.machine
    }

    /// The port that the subnet manager is attached to.
    pub fn sm_port(&self) -> PortRef {
        self.manager.port
    }

    /// What the subnet manager wrote into its `guid2lid` file last.
    pub fn guid2lid(&self) -> &GuidToLid {
        &self.manager.persisted
    }

    /// What the subnet manager said of its heavy sweeps, and when.
    pub fn summaries(&self) -> &[(Time, Summary)] {
        &self.manager.summaries
    }

    /// A fabric whose subnet manager finds this `guid2lid` file when it begins.
    pub fn set_guid2lid(&mut self, known: GuidToLid) {
        self.manager.persisted = known;
    }

    pub(super) fn start_sm(&mut self, known: &GuidToLid, at: Time) {
        self.manager.machine = Some(SubnetManager::new(self.options.sm.clone(), known));
        self.manager.attachment += 1;
        self.manager.wake = None;
        let incarnation = self.manager.attachment;
        self.queue.push(at.max(self.now), Happening::AttachSm { incarnation });
    }

    pub(super) fn kill_sm(&mut self) {
        self.manager.machine = None;
        self.manager.wake = None;
        let client = self.manager.client();
        self.manager.attachment += 1;
        if std::mem::take(&mut self.manager.attached) {
            self.feed(self.manager.port.node, Input::Detach { client });
        }
    }

    pub(super) fn attach_sm(&mut self, incarnation: u64) {
        let PortRef { node, port } = self.manager.port;
        if incarnation != self.manager.attachment || self.device(node).is_none() {
            return;
        }
        self.manager.attached = true;
        let (client, registrations) = (self.manager.client(), weft_sm::registrations());
        self.feed(node, Input::Attach { client, port, registrations });
        let (node_guid, port_guid) = {
            let node = self.fabric.node(node);
            (node.guid, node.port(port).map_or(node.guid, |port| port.guid))
        };
        self.feed_sm(weft_sm::Input::Attached { node_guid, port_guid, port });
    }

    /// The device is gone that the subnet manager was attached to.
    pub(super) fn detach_sm(&mut self) {
        self.manager.attachment += 1;
        if std::mem::take(&mut self.manager.attached) && self.manager.machine.is_some() {
            self.feed_sm(weft_sm::Input::Detached);
        }
    }

    /// The device is there again.
    pub(super) fn reattach_sm(&mut self) {
        if self.manager.machine.is_some() {
            self.manager.attachment += 1;
            let incarnation = self.manager.attachment;
            self.queue.push(self.now + self.options.attach_delay, Happening::AttachSm { incarnation });
        }
    }

    pub(super) fn give_sm(&mut self, incarnation: u64, mad: AddressedMad) {
        if incarnation == self.manager.attachment {
            self.feed_sm(weft_sm::Input::Receive(mad));
        }
    }

    pub(super) fn tell_sm_of_port(&mut self, incarnation: u64, up: bool) {
        if incarnation == self.manager.attachment {
            self.feed_sm(weft_sm::Input::PortChanged { up });
        }
    }

    pub(super) fn take_from_sm(&mut self, incarnation: u64, mad: AddressedMad) {
        if incarnation == self.manager.attachment {
            let client = self.manager.client();
            self.feed(self.manager.port.node, Input::Send { client, mad: Box::new(mad) });
        }
    }

    pub(super) fn wake_sm(&mut self) {
        if self.manager.wake != Some(self.now) {
            return;
        }
        self.manager.wake = None;
        if let Some(machine) = &mut self.manager.machine {
            machine.handle_timeout(self.now);
            self.drain_sm();
        }
    }

    fn feed_sm(&mut self, input: weft_sm::Input) {
        if let Some(machine) = &mut self.manager.machine {
            machine.handle_input(self.now, input);
            self.drain_sm();
        }
    }

    fn drain_sm(&mut self) {
        while let Some(output) = self.manager.machine.as_mut().and_then(Machine::poll_output) {
            match output {
                weft_sm::Output::Send(mad) => {
                    let incarnation = self.manager.attachment;
                    let at = self.now + self.options.attach_delay;
                    self.queue.push(at, Happening::FromSm { incarnation, mad: Box::new(mad) });
                }
                weft_sm::Output::Event(event) => self.sm_event(event),
                weft_sm::Output::Persist(guid2lid) => self.manager.persisted = guid2lid,
            }
        }
        let due = self.manager.machine.as_ref().and_then(Machine::poll_timeout).map(|due| due.max(self.now));
        if let Some(due) = due.filter(|&due| self.manager.wake.is_none_or(|wake| due < wake)) {
            self.manager.wake = Some(due);
            self.queue.push(due, Happening::WakeSm);
        }
    }

    fn sm_event(&mut self, event: Event) {
        if self.trace.is_on() {
            let place = format_args!("{:<24}", "sm");
            self.trace.line(self.now, "sm", place, format_args!("{event:?}"));
        }
        match event {
            Event::Quiet => self.quiet_sweeps += 1,
            Event::SweepStarted { kind: weft_sm::SweepKind::Light, .. } => {}
            Event::SubnetUp(summary) => {
                self.disturb();
                if self.manager.summaries.len() == SUMMARIES_MAX {
                    self.manager.summaries.remove(0);
                }
                self.manager.summaries.push((self.now, summary));
            }
            _ => self.disturb(),
        }
    }

    /// The port that programs attach to at a node: 0 on a switch, the first cabled one on an HCA.
    pub(crate) fn program_port(&self, node: NodeIndex) -> Option<PortNum> {
        let node = self.fabric.node(node);
        if node.is_switch() { Some(PORT_ZERO) } else { node.cabled_ports().next().map(|(port, _)| port) }
    }
}
