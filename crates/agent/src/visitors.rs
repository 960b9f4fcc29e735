//! Clients that come over QUIC: their certificates say what they may do.

use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use weft_control::Role;
use weft_link::{Protocol, Room, Visitor};
use weft_process::{Requester, Server};

use crate::channel::Channel;
use crate::client;
use crate::counter::Counter;
use crate::program::{Holder, Program};
use crate::service::Door;
use crate::shared::Agent;

/// Visitors that may wait to be received.
pub(crate) const VISITORS_MAX: usize = 64;
/// Clients of the control protocol over QUIC at the same time, for each role, and of these of one identity.
const CLIENTS_MAX: usize = 64;
const CLIENTS_OF_ONE_MAX: usize = 8;
/// Programs that attach over QUIC at the same time, and of these of one identity. They have places of their own, so no crowd keeps
/// a manager out.
const ATTACHED_MAX: usize = 64;
const ATTACHED_OF_ONE_MAX: usize = 16;
/// A client that opens no stream in this time is sent away.
const STREAM_PATIENCE: Duration = Duration::from_secs(10);

/// Serves clients as they come.
pub(crate) async fn serve(agent: Rc<Agent>, server: Rc<Server<Door>>, mut visitors: mpsc::Receiver<Visitor>) {
    let mut served = JoinSet::new();
    let clients: Room<Role> = Room::new(CLIENTS_MAX, CLIENTS_OF_ONE_MAX);
    let programs: Room<()> = Room::new(ATTACHED_MAX, ATTACHED_OF_ONE_MAX);
    loop {
        tokio::select! {
            visitor = visitors.recv() => match visitor {
                Some(visitor) if visitor.protocol() == Protocol::Control => {
                    let Some(role) = role_of(&agent, &visitor) else { continue };
                    match clients.take(role, visitor.role(), visitor.serial()) {
                        Some(place) => {
                            let talk = converse(agent.clone(), server.clone(), visitor, role);
                            served.spawn_local(holding(place, talk));
                        }
                        None => turn_away(&agent, &visitor),
                    }
                }
                Some(visitor) if visitor.protocol() == Protocol::Mad => {
                    if may_attach(&agent, &visitor) {
                        match programs.take((), visitor.role(), visitor.serial()) {
                            Some(place) => {
                                served.spawn_local(holding(place, attach(agent.clone(), visitor)));
                            }
                            None => turn_away(&agent, &visitor),
                        }
                    }
                }
                Some(visitor) => turn_away(&agent, &visitor),
                None => return,
            },
            Some(_) = served.join_next() => {}
        }
    }
}

async fn holding<S>(_seat: S, served: impl Future<Output = ()>) {
    served.await;
}

/// Sends a client away for which there is no place. The first is logged, and every doubling.
fn turn_away(agent: &Agent, visitor: &Visitor) {
    visitor.refuse("too many clients of this identity or role");
    let count = agent.with_core(|core| core.recorder.count_of(Counter::VisitorsTurnedAway));
    if count.is_power_of_two() {
        let (address, role) = (visitor.address(), visitor.role());
        let serial = visitor.serial().map(ToString::to_string);
        tracing::warn!(%address, role, serial, count, "a client too many is sent away");
    }
}

/// What a client may ask; one whose certificate says nothing of that is sent away.
fn role_of(agent: &Agent, visitor: &Visitor) -> Option<Role> {
    let role = Role::of_certificate(visitor.role());
    if role.is_none() {
        let address = visitor.address();
        tracing::warn!(%address, role = visitor.role(), "a client without a role is sent away");
        agent.with_core(|core| core.recorder.count(Counter::VisitorsWithoutRole));
        visitor.refuse("the certificate names no role that clients have; use operator or viewer");
    }
    role
}

async fn converse(agent: Rc<Agent>, server: Rc<Server<Door>>, visitor: Visitor, role: Role) {
    match timeout(STREAM_PATIENCE, visitor.stream()).await {
        Ok(Ok(stream)) => {
            agent.with_core(|core| core.recorder.count(Counter::Visitors));
            let requester = Requester::Identity(visitor.serial().map(ToString::to_string));
            server.converse(stream, role, requester).await;
            visitor.goodbye().await;
        }
        Ok(Err(_)) => {}
        Err(_) => visitor.refuse("no stream was opened in time"),
    }
}

/// Whether a client attaches where it likes, as programs of this machine do.
fn is_operator(visitor: &Visitor) -> bool {
    Role::of_certificate(visitor.role()) == Some(Role::Operator)
}

/// Whether a client's certificate names any node to attach to, or an operator. Others are sent away before they take a place.
fn may_attach(agent: &Agent, visitor: &Visitor) -> bool {
    let may = is_operator(visitor) || !visitor.attaches().is_empty();
    if !may {
        let address = visitor.address();
        tracing::warn!(%address, role = visitor.role(), "a client that may not attach is sent away");
        agent.with_core(|core| core.recorder.count(Counter::AttachNotAllowed));
        visitor.refuse("the certificate does not let its holder attach to a node; use that of sm or pm");
    }
    may
}

/// Serves a program as one that comes over the socket.
async fn attach(agent: Rc<Agent>, visitor: Visitor) {
    match timeout(STREAM_PATIENCE, visitor.pipe()).await {
        Ok(Ok(pipe)) => {
            let holder = match is_operator(&visitor) {
                true => Holder::Operator,
                false => Holder::Manager {
                    role: visitor.role().map(str::to_owned),
                    attaches: visitor.attaches().to_vec(),
                },
            };
            agent.with_core(|core| core.recorder.count(Counter::AttachVisitors));
            client::converse(&agent, Rc::new(Program::new(Channel::Quic(pipe), Some(holder)))).await;
        }
        Ok(Err(_)) => {}
        Err(_) => visitor.refuse("no stream was opened in time"),
    }
}
