//! Commands for the hosts behind adapters' ports.

use std::rc::Rc;

use weft_host::traffic::Command;
use weft_node::{PortId, Request};
use weft_umad::HostFlows;
use weft_wire::{Guid, PortNum};

use crate::asked::Asker;
use crate::client::Program;
use crate::core::Core;

/// Flows of all hosts of the agent: what became of them has to fit into one answer.
const FLOWS_MAX: usize = 1 << 15;

impl Core {
    /// Tells a host to do something; the answer comes by itself, unless the reason for a refusal is known at once.
    pub(crate) fn host_command(
        &mut self,
        (program, request): (&Rc<Program>, u32),
        (node, port): (Guid, PortNum),
        command: &Command,
    ) -> Result<(), String> {
        let Some(device) = self.names.find(node) else {
            return Err(format!("there is no host behind port {port} of node {node}"));
        };
        let begins = matches!(command, Command::Open(_) | Command::Expect { .. });
        if begins && !self.has_room() {
            return Err(format!("the hosts of this agent have {FLOWS_MAX} flows already"));
        }
        let asker = if begins { Asker::Flow } else { Asker::Control };
        let (at, command) = (PortId::new(device, port), command.clone());
        self.ask(asker(program.clone(), request), Request::Command { at, command });
        Ok(())
    }

    /// Whether there may be one more flow. They are counted only when there seem to be too many.
    fn has_room(&mut self) -> bool {
        if self.flows >= FLOWS_MAX {
            self.flows = self.node.flows().map(|(_, flows)| flows.len()).sum();
        }
        self.flows < FLOWS_MAX
    }

    /// What became of the flows of every host, in order of node and port.
    pub(crate) fn host_flows(&self) -> Vec<HostFlows> {
        let now_ns = self.now().as_nanos();
        let flows = self.node.flows().map(|(at, flows)| HostFlows { end: self.names.end(at), now_ns, flows });
        let mut flows: Vec<_> = flows.collect();
        flows.sort_by_key(|flows| flows.end);
        flows
    }
}
