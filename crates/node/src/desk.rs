//! The memory that a node works with while it is drained.

use std::collections::VecDeque;

use weft_device as device;
use weft_wire::PortNum;

use crate::{Output, ToHost};

/// The memory that a node works with between an input and the last output that it causes; empty in between.
///
/// A driver of thousands of nodes lends each of them the same in turn ([`Node::exchange_desk`](crate::Node::exchange_desk)), which
/// stays in the processor's cache. A node that is lent none has one of its own.
#[derive(Debug, Default)]
pub struct Desk {
    /// What the device in hand wants. Lent to it while it is fed.
    pub(crate) device_outputs: device::Outputs,
    /// Outputs of the node that are known already.
    pub(crate) ready: VecDeque<Output>,
    /// What the device in hand gets when its outputs have been taken.
    pub(crate) injections: VecDeque<device::Input>,
    /// What the device in hand has for its hosts.
    pub(crate) for_hosts: VecDeque<(PortNum, ToHost)>,
}

impl Desk {
    pub(crate) fn is_empty(&self) -> bool {
        self.device_outputs.is_empty()
            && self.ready.is_empty()
            && self.injections.is_empty()
            && self.for_hosts.is_empty()
    }
}
