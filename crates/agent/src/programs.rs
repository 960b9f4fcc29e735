//! Programs that are attached to a port by weft's own protocol.

use std::collections::BTreeMap;
use std::rc::Rc;

use weft_node::{Client, PortId};

use crate::program::Program;

/// All attached programs.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    attached: BTreeMap<Client, Rc<Program>>,
    /// Those with something to be written.
    to_flush: Vec<Rc<Program>>,
}

impl Programs {
    /// A program whose attachment stands.
    pub(crate) fn add(&mut self, client: Client, program: &Rc<Program>) {
        self.attached.insert(client, program.clone());
    }

    /// The program of an attachment.
    pub(crate) fn of(&self, client: Client) -> Option<Rc<Program>> {
        self.attached.get(&client).cloned()
    }

    /// Forgets an attachment.
    pub(crate) fn remove(&mut self, client: Client) -> Option<Rc<Program>> {
        self.attached.remove(&client)
    }

    /// The attachments of this program's lives before at a port.
    pub(crate) fn before(&self, program: &Program, at: PortId) -> Vec<Rc<Program>> {
        self.attached.values().filter(|other| other.precedes(program, at)).cloned().collect()
    }

    /// A program to which something is to be written.
    pub(crate) fn note(&mut self, program: &Rc<Program>) {
        self.to_flush.push(program.clone());
    }

    /// Writes what waits.
    pub(crate) fn flush(&mut self) {
        self.to_flush.drain(..).for_each(|program| program.flush());
    }
}
