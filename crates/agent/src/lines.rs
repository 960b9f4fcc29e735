//! Open ports of programs of libibumad.

use std::collections::BTreeMap;
use std::rc::Rc;

use weft_node::Client;
use weft_umad::user_mad::Token;

use crate::line::Line;

/// All open ports of the agent's devices.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) open: BTreeMap<Client, (Rc<Line>, Token)>,
    pub(crate) by_token: BTreeMap<Token, Client>,
    /// Lines with something to be written.
    pub(crate) to_flush: Vec<Rc<Line>>,
}

impl Lines {
    /// Writes what waits.
    pub(crate) fn flush(&mut self) {
        self.to_flush.drain(..).for_each(|line| line.flush());
    }
}
