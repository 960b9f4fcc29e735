//! Who waits for the node's answers.

use std::collections::BTreeMap;
use std::rc::Rc;

use weft_node::{Answer, Input, PortId, Refusal, Request, RequestId};
use weft_umad::user_mad::{self, Token};
use weft_wire::{Guid, PortNum};

use crate::client::Program;
use crate::core::Core;
use crate::names::Named;
use crate::service::Reply;
use crate::user::{Line, errno};

/// Who asked, and what for.
#[derive(Debug)]
pub(crate) enum Asker {
    /// The agent itself, which expects no refusal.
    Agent,
    /// The agent, for the device of this name.
    Device(Box<Named>),
    /// A program wants to be attached.
    Attach(Rc<Program>, PortId),
    /// Whoever holds this port's issm file open.
    Issm(Guid, PortNum),
    /// A program of libibumad opens a port.
    Open(Rc<Line>, Token),
    /// A program of libibumad registers, or gives a registration back.
    Registration(Rc<Line>),
    /// A client of the control protocol.
    Client(Reply),
    /// A client told a host to begin a flow.
    Flow(Reply),
}

/// All that wait.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    waiting: BTreeMap<RequestId, Asker>,
    last: u64,
}

impl Asked {
    fn note(&mut self, asker: Asker) -> RequestId {
        self.last += 1;
        let id = RequestId(self.last);
        self.waiting.insert(id, asker);
        id
    }
}

impl Core {
    /// Asks the node for something; whoever asks gets the answer when it comes.
    pub(crate) fn ask(&mut self, asker: Asker, request: Request) {
        let id = self.asked.note(asker);
        self.feed(Input::Request { id, request: Box::new(request) });
    }

    /// The node's answer.
    pub(crate) fn answered(&mut self, id: RequestId, outcome: Result<Answer, Refusal>) {
        let Some(asker) = self.asked.waiting.remove(&id) else { return };
        match asker {
            Asker::Agent => {
                if let Err(refusal) = outcome {
                    // The configuration has been checked, so this is weft's own fault.
                    tracing::error!(%refusal, "the agent's own request was refused");
                    self.recorder.count("requests_refused");
                }
            }
            Asker::Device(named) => {
                if let Ok(Answer::Device(id)) = outcome {
                    self.names.add(id, *named);
                }
            }
            Asker::Attach(program, at) => self.program_attached(&program, at, outcome),
            Asker::Issm(node, port) => self.issm_attached((node, port), &outcome),
            Asker::Open(line, token) => self.user_opened(&line, token, &outcome),
            Asker::Registration(line) => {
                let reply = match outcome {
                    Ok(Answer::Agent(agent)) => user_mad::Reply::Registered { agent_id: agent.0 },
                    Ok(_) => user_mad::Reply::Done,
                    Err(refusal) => user_mad::Reply::Failed(errno(&refusal)),
                };
                self.user_answer(&line, &reply);
            }
            Asker::Client(reply) => self.client_answered(reply, outcome),
            Asker::Flow(reply) => {
                self.flows += usize::from(outcome.is_ok());
                self.client_answered(reply, outcome);
            }
        }
    }

    fn client_answered(&mut self, reply: Reply, outcome: Result<Answer, Refusal>) {
        let answer = outcome.map(|_| weft_control::Answer::Done).map_err(|refusal| self.refused(&refusal));
        // A client that has left does not want to know.
        let _ = reply.send(answer);
    }
}
