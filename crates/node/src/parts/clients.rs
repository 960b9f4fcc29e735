//! Programs attached to devices.

use std::collections::BTreeMap;

use weft_host::mad::MadLayer;

use crate::timers::TimerId;
use crate::{Client, RequestId};

/// All programs.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    pub(crate) attached: BTreeMap<Client, Attachment>,
    /// Those that their device has yet to take.
    pub(crate) waiting: Vec<(Client, RequestId)>,
}

/// A program at its device.
#[derive(Debug)]
pub(crate) struct Attachment {
    /// Whether it is to count as a subnet manager as soon as it is attached.
    pub(crate) is_sm: bool,
    pub(crate) layer: Option<Box<Layer>>,
}

/// A MAD layer, and when it wants to be woken.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) layer: MadLayer,
    pub(crate) timer: TimerId,
}
