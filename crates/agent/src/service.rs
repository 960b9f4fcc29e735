//! The agent's end of the control protocol: what it shows and does when a client asks.

use std::rc::Rc;

use prometheus::Registry;
use tokio::sync::oneshot;
use weft_control::agent::{PortEnd, Tap};
use weft_control::process::ProcessKind;
use weft_control::traffic::Command;
use weft_control::{Answer, Error, ErrorCode, Request};
use weft_metrics::{NoAnswer, Page, Source};
use weft_node::{PortId, Refusal, Request as NodeRequest};
use weft_process::{Requester, Service, not_here, utc_now};

use crate::asked::{Asker, Reply};
use crate::capture::Capture;
use crate::core::Core;
use crate::counter::Counter;
use crate::lateness::Histogram;
use crate::shared::Agent;

/// Flows of all hosts of the agent.
const FLOWS_MAX: usize = 1 << 15;

/// The agent, for its clients.
#[derive(Clone)]
pub(crate) struct Door {
    agent: Rc<Agent>,
    registry: Registry,
}

impl Door {
    pub(crate) fn new(agent: Rc<Agent>, registry: Registry) -> Self {
        Self { agent, registry }
    }
}

impl Service for Door {
    type Capture = Capture;

    async fn answer(&self, request: Request) -> Result<Answer, Error> {
        let (reply, answered) = oneshot::channel();
        let registry = &self.registry;
        match self.agent.with_core(|core| core.request(request, reply, registry)) {
            Some(answer) => answer,
            // The node answers each request once; without a word it has gone.
            None => {
                answered.await.unwrap_or_else(|_| Err(Error::new(ErrorCode::Stopping, "the agent stops")))
            }
        }
    }

    fn capture(&self, tap: &Tap, requester: &Requester) -> Option<Result<Capture, Error>> {
        Some(Capture::begin(&self.agent, tap, requester))
    }
}

/// What HTTP shows.
impl Source for Door {
    async fn page(&self) -> Result<Page, NoAnswer> {
        Ok(self.agent.with_core(|core| core.metrics()))
    }

    fn registry(&self) -> Registry {
        self.registry.clone()
    }
}

impl Core {
    /// Answers a request at once, or `None` when the node is asked: then the answer goes to `reply`.
    fn request(
        &mut self,
        request: Request,
        reply: Reply,
        registry: &Registry,
    ) -> Option<Result<Answer, Error>> {
        Some(match request {
            Request::AgentStatus => Ok(Answer::AgentStatus(self.status())),
            Request::Devices(page) => {
                let (devices, more) =
                    page.cut(self.device_statuses(page.after), |device| PortEnd::of_node(device.node));
                Ok(Answer::Devices { devices, more })
            }
            Request::Ports(page) => {
                let (ports, more) = page.cut(self.ports(page.after), |port| port.end);
                Ok(Answer::Ports { ports, more })
            }
            Request::LaneCounts(page) => Ok(Answer::LaneCounts(self.lane_counts(&page))),
            Request::Flows(page) => {
                let (hosts, more) = page.cut(self.host_flows(), |host| host.end);
                Ok(Answer::Flows { hosts, more })
            }
            Request::Account(page) => {
                let (devices, more) =
                    page.cut(self.accounts(page.after), |device| PortEnd::of_node(device.node));
                Ok(Answer::Account { devices, more })
            }
            Request::Metrics => Ok(Answer::Metrics { text: self.metrics().encode(registry) }),
            Request::SetFault { id, damage, for_ms } => self.set_fault(id, damage, for_ms),
            Request::ClearFault { id } => self.clear_fault(&id),
            Request::Faults => Ok(Answer::Faults { faults: self.list_faults(), now: utc_now() }),
            Request::ConnectCable { end, peer, peer_address, delay_ns } => {
                self.connect_cable(end, peer, peer_address.as_deref(), delay_ns)
            }
            Request::DisconnectCable { end, peer } => self.disconnect_cable(end, peer),
            Request::Host { end, command } => match self.port_behind(end) {
                Ok(at) => return self.command_host(at, command, reply),
                Err(error) => Err(error),
            },
            Request::Slots(page) => {
                let (slots, more) = page.cut(self.slots(), |slot| PortEnd::of_node(slot.slot));
                Ok(Answer::Slots {
                    generation: self.vms.generation(""),
                    others: self.vms.other_generations(),
                    slots,
                    more,
                })
            }
            Request::Vm(order) => return self.vm_order(*order, reply),
            Request::VmGeneration { generation, manager } => self.begin_generation(&manager, generation),
            Request::ResetLateness => {
                self.waking.lateness = Histogram::new();
                Ok(Answer::Done)
            }
            Request::Shutdown => {
                self.signals.stop.notify_one();
                Ok(Answer::Done)
            }
            Request::Begin => {
                self.signals.begin.notify_one();
                Ok(Answer::Done)
            }
            other => Err(not_here(&other, ProcessKind::Agent)),
        })
    }

    pub(crate) fn port_of(&self, end: PortEnd) -> Result<PortId, Error> {
        let device = self.names.find(end.node.0);
        device
            .map(|device| PortId::new(device, end.port))
            .ok_or_else(|| Error::new(ErrorCode::NotFound, format!("node {} is not here", end.node)))
    }

    fn port_behind(&self, end: PortEnd) -> Result<PortId, Error> {
        let no_host = || format!("there is no host behind port {} of node {}", end.port, end.node);
        self.port_of(end).map_err(|error| Error { message: no_host(), ..error })
    }

    /// Passes a host's command on. Where the laboratory began without hosts, one begins with its first flow and ends with its last.
    fn command_host(&mut self, at: PortId, command: Command, reply: Reply) -> Option<Result<Answer, Error>> {
        let asker = match command {
            Command::Open(_) | Command::Expect { .. } => {
                if !self.has_room() {
                    let message = format!("the hosts of this agent have {FLOWS_MAX} flows already");
                    return Some(Err(
                        Error::new(ErrorCode::TooMany, message).hint("close some of them first")
                    ));
                }
                if self.node.stack(at).is_none() {
                    let options = self.later_hosts.clone();
                    self.ask(Asker::Host, NodeRequest::StartHost { at, options });
                }
                Asker::Flow(reply, at)
            }
            Command::Close { .. } if !self.begins_with_hosts => Asker::LastFlow(reply, at),
            _ => Asker::Client(reply),
        };
        self.ask(asker, NodeRequest::Command { at, command });
        None
    }

    /// A host that began with a flow ends when it has none.
    pub(crate) fn end_idle_host(&mut self, at: PortId) {
        let is_idle = self.node.stack(at).is_some_and(|stack| stack.is_idle() && !stack.is_suspended());
        if is_idle && !self.begins_with_hosts {
            self.ask_next(Asker::Host, NodeRequest::EndHost { at });
        }
    }

    /// Whether there may be one more flow. They are counted only when there seem to be too many.
    fn has_room(&mut self) -> bool {
        if self.flows >= FLOWS_MAX {
            self.flows = self.node.flows().map(|(_, flows)| flows.len()).sum();
        }
        self.flows < FLOWS_MAX
    }

    /// A refusal of the node, for a client.
    pub(crate) fn refused(&mut self, refusal: &Refusal) -> Error {
        let code = match refusal {
            Refusal::Command(_) => {
                self.recorder.count(Counter::HostCommandsRefused);
                ErrorCode::Conflict
            }
            Refusal::Vm(_) | Refusal::HostNotAttached(_) | Refusal::Cabled(_) | Refusal::Attach(_) => {
                ErrorCode::Conflict
            }
            _ => ErrorCode::NotFound,
        };
        Error::new(code, self.names.explain(refusal))
    }
}
