//! The attachment that stands for whoever holds a port's issm file open.

use weft_node::{Answer, Input, Refusal, Request as NodeRequest};
use weft_wire::{Guid, PortNum};

use super::Core;
use crate::asked::Asker;
use crate::counter::Counter;

impl Core {
    /// The file of a port is held open now, or no longer.
    pub(crate) fn issm_changed(&mut self, node: Guid, port: PortNum, held: bool) {
        let Some(at) = self.user_place(node, port) else { return };
        let Some(file) = self.issm.files.get_mut(&(node, port)) else { return };
        match (file.manager, held) {
            (None, true) => {
                let request = NodeRequest::Attach { at, registrations: Vec::new(), is_sm: true };
                self.ask(Asker::Issm(node, port), request);
            }
            (Some(client), false) => {
                file.manager = None;
                self.feed(Input::Detach { client });
            }
            _ => {}
        }
    }

    /// The attachment that stands for whoever holds the file of a port open.
    pub(crate) fn issm_attached(&mut self, node: Guid, port: PortNum, outcome: &Result<Answer, Refusal>) {
        let Ok(Answer::Client(client)) = *outcome else {
            let reason = outcome.as_ref().err().map(tracing::field::display);
            tracing::info!(%node, %port, reason, "no subnet manager can be at the port");
            return self.recorder.count(Counter::ClientRefused);
        };
        self.recorder.count(Counter::ClientAttached);
        match self.issm.files.get_mut(&(node, port)) {
            Some(file) => file.manager = Some(client),
            None => self.feed_next(Input::Detach { client }),
        }
    }
}
