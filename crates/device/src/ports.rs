//! The ports of a device, by number.

use std::ops::{Deref, DerefMut};

use weft_wire::PortNum;

use crate::port::Port;

/// All ports: the first is a switch's port 0, and on an HCA stands for nothing.
#[derive(Debug)]
pub(crate) struct Ports {
    list: Vec<Port>,
    is_switch: bool,
}

impl Ports {
    pub(crate) fn new(list: Vec<Port>, is_switch: bool) -> Self {
        Self { list, is_switch }
    }

    #[inline]
    pub(crate) fn is_switch(&self) -> bool {
        self.is_switch
    }

    /// Whether the port exists; an HCA has no port 0.
    #[inline]
    pub(crate) fn has(&self, port: PortNum) -> bool {
        usize::from(port.0) < self.list.len() && (port != PortNum::ZERO || self.is_switch)
    }

    /// The port that has a LID: a switch's port 0, an HCA's own.
    #[inline]
    pub(crate) fn end(&self, port: PortNum) -> PortNum {
        if self.is_switch { PortNum::ZERO } else { port }
    }

    /// The highest number of a port.
    #[inline]
    pub(crate) fn last(&self) -> u8 {
        (self.list.len() - 1) as u8
    }
}

impl Deref for Ports {
    type Target = [Port];

    #[inline]
    fn deref(&self) -> &[Port] {
        &self.list
    }
}

impl DerefMut for Ports {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Port] {
        &mut self.list
    }
}
