//! What goes wrong and is put right: cables, devices and the managers' processes.

use weft_node::{Input, NewDevice, Node, NodeOptions, Request};
use weft_sm::GuidToLid;
use weft_topology::NodeIndex;

use super::programs::{Asked, SM, STANDBY};
use super::{ASLEEP, DEVICE, Simulation};
use crate::{Fault, device_config};

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

    fn kill(&mut self, node: NodeIndex) {
        let Some(slot) = self.slots.get_mut(node.index()) else { return };
        let Some(device) = slot.node.take() else { return };
        if let Some(recordings) = &mut self.recordings {
            recordings.end(node);
        }
        if let Some(device) = device.device(DEVICE) {
            self.past.bury(&device.data_account());
        }
        self.wakes[node.index()] = ASLEEP;
        for cable in self.cabling.of_node(node) {
            self.reset_end(cable, node);
            self.update_link(cable);
        }
        self.detach_programs(node);
    }

    fn switch_on(&mut self, node: NodeIndex) {
        let Some(slot) = self.slots.get_mut(node.index()) else { return };
        slot.incarnation += 1;
        self.begin_node(node);
        for cable in self.cabling.of_node(node) {
            self.update_link(cable);
        }
        self.reattach_programs(node);
    }

    /// A node begins, with its device and the hosts behind its ports.
    pub(super) fn begin_node(&mut self, node: NodeIndex) {
        let hosts = self.host_ports(node);
        let stack = (!hosts.is_empty()).then(|| self.options.host.clone());
        let config = device_config(&self.fabric, node, &self.options.device);
        let Some(slot) = self.slots.get_mut(node.index()) else { return };
        let options = NodeOptions::default();
        slot.node = Some(Box::new(Node::new(options)));
        if let Some(recordings) = &mut self.recordings {
            recordings.begin(node, options);
        }
        let new = NewDevice { config, incarnation: slot.incarnation, hosts, stack };
        let request = Box::new(Request::AddDevice(new));
        self.feed(node, Input::Request { id: Asked::Nobody.id(), request });
    }
}
