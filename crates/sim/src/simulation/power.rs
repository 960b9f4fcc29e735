//! What goes wrong and is put right: cables, devices and the managers' processes.

use weft_node::{NewDevice, Node, NodeOptions, Request};
use weft_sm::GuidToLid;
use weft_topology::NodeIndex;

use super::places::NOT_THERE;
use super::programs::{SM, STANDBY};
use super::{ASLEEP, Simulation};
use crate::Fault;
use crate::ledger::Asked;

impl Simulation {
    /// Something goes wrong, or is put right, now.
    pub fn apply(&mut self, fault: Fault) {
        self.disturb();
        if self.trace.is_on() {
            self.trace.line(self.now, "fault", format_args!("-"), format_args!("{fault:?}"));
        }
        match fault {
            Fault::Kill(node) => self.kill(node),
            Fault::Restart(node) => {
                self.kill(node);
                self.switch_on(node);
            }
            Fault::Cut(port) => self.set_whole(port, false),
            Fault::Restore(port) => self.set_whole(port, true),
            Fault::KillSm => self.kill_sm(SM),
            Fault::StartSm { with_guid2lid } => {
                self.start_again(SM, with_guid2lid);
            }
            Fault::KillStandby(number) | Fault::StartStandby(number)
                if usize::from(number) >= self.options.standbys.len() => {}
            Fault::KillStandby(number) => self.kill_sm(STANDBY + u32::from(number)),
            Fault::StartStandby(number) => self.start_again(STANDBY + u32::from(number), true),
            Fault::KillPm => self.kill_pm(),
            Fault::StartPm => {
                self.kill_pm();
                self.start_pm(self.now);
            }
        }
    }

    fn start_again(&mut self, program: u32, with_guid2lid: bool) {
        self.kill_sm(program);
        let persisted = &self.sm_process(program).persisted;
        let known = if with_guid2lid { persisted.clone() } else { GuidToLid::default() };
        self.start_sm(program, &known, self.now);
    }

    /// The node of a device ends, and all devices in it.
    fn kill(&mut self, device: NodeIndex) {
        let home = self.home(device);
        let Some(slot) = self.slots.get_mut(home.index()) else { return };
        let Some(node) = slot.node.take() else { return };
        if let Some(recordings) = &mut self.recordings {
            recordings.end(home);
        }
        node.devices().for_each(|(_, device)| self.past.bury(&device.data_account()));
        self.past.bury_cables(&node);
        self.ledger.forget(home);
        self.wakes[home.index()] = ASLEEP;
        for member in self.members(home) {
            self.places[member.index()].device = NOT_THERE;
            for cable in self.cabling.of_node(member) {
                self.reset_end(cable, member);
                self.update_link(cable);
            }
        }
        self.members(home).for_each(|member| self.detach_programs(member));
    }

    fn switch_on(&mut self, device: NodeIndex) {
        let home = self.home(device);
        for member in self.members(home) {
            if let Some(tenant) = self.tenants.get_mut(member.index()) {
                tenant.incarnation += 1;
            }
        }
        self.begin_node(home);
        for member in self.members(home) {
            for cable in self.cabling.of_node(member) {
                self.update_link(cable);
            }
            self.reattach_programs(member);
        }
    }

    /// A node begins, with its devices and the hosts behind their ports.
    pub(super) fn begin_node(&mut self, home: NodeIndex) {
        let Some(slot) = self.slots.get_mut(home.index()) else { return };
        let options = NodeOptions::default();
        slot.node = Some(Box::new(Node::new(options)));
        if let Some(recordings) = &mut self.recordings {
            recordings.begin(home, options);
        }
        for member in
            self.members(home).filter(|member| self.tenants[member.index()].present).collect::<Vec<_>>()
        {
            self.add_device(member);
        }
        if self.options.recabling {
            self.lay_cables(home);
        }
    }

    /// A device is switched on in its node.
    pub(super) fn add_device(&mut self, node: NodeIndex) {
        let hosts = self.host_ports(node);
        let stack = (!hosts.is_empty()).then(|| self.options.host.clone());
        let config = weft_node::device_config(&self.fabric, node, &self.options.device);
        let incarnation = self.tenants[node.index()].incarnation;
        let new = NewDevice { config, incarnation, hosts, stack };
        self.request(node, Asked::Device(node), Request::AddDevice(new));
    }
}
