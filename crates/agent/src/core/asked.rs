//! Asking the node, and giving its answers to whoever asked.

use weft_node::{Answer, Input, Refusal, Request, RequestId};
use weft_umad::user_mad;

use super::Core;
use super::users::errno;
use crate::asked::{Asker, Reply};
use crate::counter::Counter;

impl Core {
    /// Asks the node for something; whoever asks gets the answer when it comes.
    pub(crate) fn ask(&mut self, asker: Asker, request: Request) {
        let id = self.asked.note(asker);
        self.feed(Input::Request { id, request: Box::new(request) });
    }

    /// The same when the node has been drained of what it says now.
    pub(crate) fn ask_next(&mut self, asker: Asker, request: Request) {
        let id = self.asked.note(asker);
        self.feed_next(Input::Request { id, request: Box::new(request) });
    }

    /// The node's answer.
    pub(crate) fn answered(&mut self, id: RequestId, outcome: Result<Answer, Refusal>) {
        let Some(asker) = self.asked.take(id) else { return };
        match asker {
            Asker::Agent => {
                if let Err(refusal) = outcome {
                    // The configuration has been checked, so this is weft's own fault.
                    tracing::error!(%refusal, "the agent's own request was refused");
                    self.recorder.count(Counter::RequestsRefused);
                }
            }
            Asker::Device(named) => {
                if let Ok(Answer::Device(id)) = outcome {
                    self.names.add(id, *named);
                }
            }
            Asker::Attach(program, at) => self.program_attached(&program, at, outcome),
            Asker::Issm(node, port) => self.issm_attached(node, port, &outcome),
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
            Asker::Vm(reply, device, offset) => self.vm_answered(reply, device, offset, outcome),
            Asker::Host => {}
            Asker::Flow(reply, at) => {
                self.flows += usize::from(outcome.is_ok());
                if outcome.is_err() {
                    self.end_idle_host(at);
                }
                self.client_answered(reply, outcome);
            }
            Asker::LastFlow(reply, at) => {
                self.end_idle_host(at);
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
