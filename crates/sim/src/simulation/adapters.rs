//! Virtualised adapters: the fabric gets them as the options say, and their functions are plugged in and out.

use weft_sm::LidScheme;
use weft_topology::{Adapter, Fabric, NodeIndex, PortRef, Virtualised};

use super::Simulation;
use crate::{Change, SimOptions};

/// The fabric with virtual functions as the options want them.
///
/// # Panics
/// When the fabric cannot be virtualised so: the options are a test's, as the fabric is.
pub(super) fn virtualised(fabric: &Fabric, options: &SimOptions) -> (Fabric, Vec<Adapter>) {
    if options.vfs == 0 {
        return (fabric.clone(), Vec::new());
    }
    let whole =
        fabric.virtualised(options.vfs).expect("the adapters have one cable each and room for functions");
    let whole = if options.sm.lids == LidScheme::Dynamic { whole.unplugged() } else { whole };
    let Virtualised { fabric, adapters } = whole;
    (fabric, adapters)
}

impl Simulation {
    /// The virtualised adapters that [`SimOptions::vfs`] asks for.
    pub fn adapters(&self) -> &[Adapter] {
        &self.adapters
    }

    /// Plugs a virtual function into its slot, as when a machine boots. Whether that could be: false when
    /// [`SimOptions::recabling`] is off, or it is plugged in already, or there is no such function.
    pub fn plug(&mut self, vf: NodeIndex) -> bool {
        self.inner_cable(vf).is_some_and(|(slot, port)| self.change(Change::Connect([slot, port])))
    }

    /// Unplugs a virtual function, as when its machine ends. Whether that could be, as [`Self::plug`] says.
    pub fn unplug(&mut self, vf: NodeIndex) -> bool {
        self.inner_cable(vf).is_some_and(|(slot, _)| self.change(Change::Disconnect(slot)))
    }

    fn inner_cable(&self, vf: NodeIndex) -> Option<(PortRef, PortRef)> {
        self.adapters.iter().flat_map(Adapter::slots).find(|(_, port)| port.node == vf)
    }
}
