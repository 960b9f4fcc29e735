//! Programs attached to a port by weft's own protocol: their requests and the messages to them.

use std::rc::Rc;

use weft_node::{Answer, Client, Input, PortId, Refusal, Request};
use weft_umad::{Attached, ServerMessage};
use weft_wire::{AddressedMad, Guid, PortNum, Registration};

use super::Core;
use crate::asked::Asker;
use crate::counter::Counter;
use crate::program::{Program, Queued};

impl Core {
    /// Says something to a program, attached or not.
    pub(crate) fn say(&mut self, program: &Rc<Program>, message: &ServerMessage) {
        match program.queue(message) {
            Queued::ToBeNoted => self.programs.note(program),
            Queued::Dropped => self.recorder.count(Counter::ProgramMadsDropped),
            Queued::No => {}
        }
    }

    /// Ends a program's connection and says why.
    pub(crate) fn refuse(&mut self, program: &Rc<Program>, reason: String) {
        self.say(program, &ServerMessage::Refused { reason });
        program.close();
    }

    fn say_to_client(&mut self, client: Client, message: &ServerMessage) {
        if let Some(program) = self.programs.of(client) {
            self.say(&program, message);
        }
    }

    pub(crate) fn programs_hear(&mut self, client: Client, mad: AddressedMad) {
        self.say_to_client(client, &ServerMessage::Receive(mad));
    }

    /// The link of a program's port came up or went down.
    pub(crate) fn port_changed(&mut self, client: Client, up: bool) {
        self.say_to_client(client, &ServerMessage::PortChanged { up });
    }

    /// A program wants to be attached to a port.
    pub(crate) fn program_attaches(
        &mut self,
        program: &Rc<Program>,
        node: Guid,
        port: PortNum,
        registrations: Vec<Registration>,
    ) {
        if program.attached().is_some() {
            return self.refuse(program, "this connection is attached already".into());
        }
        if !program.may_attach(node) {
            self.recorder.count(Counter::AttachNotAllowed);
            return self
                .refuse(program, format!("the certificate does not let its holder attach to node {node}"));
        }
        let Some(device) = self.names.find(node) else {
            return self.refuse(program, format!("node {node} is not here"));
        };
        let at = PortId::new(device, port);
        self.supersede(program, at);
        let request = Request::Attach { at, registrations, is_sm: false };
        self.ask(Asker::Attach(program.clone(), at), request);
    }

    /// Ends the attachments of a process's lives before: over the network its end is not seen before it has been silent
    /// for long, and until then it would have the registrations.
    fn supersede(&mut self, program: &Rc<Program>, at: PortId) {
        for other in self.programs.before(program, at) {
            self.recorder.count(Counter::AttachmentsSuperseded);
            self.program_gone(&other);
            self.refuse(&other, "a process with this identity has attached again".into());
        }
    }

    pub(crate) fn program_attached(
        &mut self,
        program: &Rc<Program>,
        at: PortId,
        outcome: Result<Answer, Refusal>,
    ) {
        let (client, named) = match (outcome, self.names.of(at.device)) {
            (Ok(Answer::Client(client)), Some(named)) => (client, named),
            (outcome, _) => {
                let reason =
                    outcome.map_or_else(|refusal| refusal.to_string(), |_| "the node is gone".into());
                tracing::info!(%reason, "program not attached");
                self.recorder.count(Counter::ClientRefused);
                return self.refuse(program, reason);
            }
        };
        let (node, port_guid, port) = (named.who.guid, named.port_guid(at.port), at.port);
        self.recorder.count(Counter::ClientAttached);
        program.set_attached(Some((client, at)));
        self.programs.add(client, program);
        self.say(
            program,
            &ServerMessage::Attached(Attached { client: client.number.0, node, port_guid, port }),
        );
    }

    /// A program sends a MAD through its port.
    pub(crate) fn program_sends(&mut self, program: &Rc<Program>, mad: AddressedMad) {
        let Some(client) = program.attached() else {
            return self.refuse(program, "this connection is not attached to a port".into());
        };
        self.feed(Input::Send { client, mad: Box::new(mad) });
    }

    /// A program's connection has ended.
    pub(crate) fn program_gone(&mut self, program: &Rc<Program>) {
        if let Some(client) = program.attached()
            && self.programs.remove(client).is_some()
        {
            program.set_attached(None);
            self.feed(Input::Detach { client });
        }
    }

    /// The device that a program was attached to is gone.
    pub(crate) fn program_detached(&mut self, client: Client) {
        if let Some(program) = self.programs.remove(client) {
            program.set_attached(None);
            self.refuse(&program, "the node is gone".into());
        }
    }
}
