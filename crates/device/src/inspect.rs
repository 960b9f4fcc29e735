//! A port as the software of its own host sees it, who need not ask by MADs.

use weft_wire::{LinkParameters, PKey, PortInfo, PortNum};

use crate::Device;

impl Device {
    /// What the port says in its next hello; [`Output::SetLink`](crate::Output::SetLink) tells when it changes.
    pub fn link_parameters(&self, port: PortNum) -> Option<LinkParameters> {
        self.ports
            .get(usize::from(port.0))
            .filter(|_| port != PortNum::ZERO)
            .map(crate::port::Port::parameters)
    }

    /// What the port is and how it has been set, M_Key and all; `None` when there is no such port.
    pub fn own_port_info(&self, port: PortNum) -> Option<&PortInfo> {
        self.ports.get(usize::from(port.0)).filter(|_| self.has_port(port)).map(|port| &port.info)
    }

    /// The port's P_Key table.
    pub fn own_p_keys(&self, port: PortNum) -> &[PKey] {
        self.ports.get(usize::from(port.0)).filter(|_| self.has_port(port)).map_or(&[], |port| &port.p_keys)
    }
}
