//! Clients that come over QUIC: their certificates say what they may do.

use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use weft_control::Role;
use weft_link::{Protocol, Visitor};
use weft_process::Server;

use crate::channel::Channel;
use crate::client;
use crate::program::{Holder, Program};
use crate::service::Door;
use crate::shared::Agent;

/// Clients of the control protocol over QUIC at the same time.
pub(crate) const VISITORS_MAX: usize = 64;
/// Programs that attach over QUIC at the same time. They have places of their own, so no crowd keeps a manager out.
const ATTACHED_MAX: usize = 64;
/// A client that opens no stream in this time is sent away.
const STREAM_PATIENCE: Duration = Duration::from_secs(10);

/// Serves clients as they come.
pub(crate) async fn serve(agent: Rc<Agent>, server: Rc<Server<Door>>, mut visitors: mpsc::Receiver<Visitor>) {
    let (mut served, mut attached) = (JoinSet::new(), JoinSet::new());
    loop {
        tokio::select! {
            visitor = visitors.recv() => match visitor {
                Some(visitor) if visitor.protocol() == Protocol::Control && served.len() < VISITORS_MAX => {
                    served.spawn_local(converse(agent.clone(), server.clone(), visitor));
                }
                Some(visitor) if visitor.protocol() == Protocol::Mad && attached.len() < ATTACHED_MAX => {
                    if may_attach(&agent, &visitor) {
                        attached.spawn_local(attach(agent.clone(), visitor));
                    }
                }
                Some(visitor) => {
                    visitor.refuse("too many clients");
                    agent.with_core(|core| core.recorder.count("visitors_turned_away"));
                }
                None => return,
            },
            Some(_) = served.join_next() => {}
            Some(_) = attached.join_next() => {}
        }
    }
}

async fn converse(agent: Rc<Agent>, server: Rc<Server<Door>>, visitor: Visitor) {
    let Some(role) = Role::of_certificate(visitor.role()) else {
        let address = visitor.address();
        tracing::warn!(%address, role = ?visitor.role(), "a client without a role is sent away");
        agent.with_core(|core| core.recorder.count("visitors_without_role"));
        return visitor.refuse("the certificate names no role that clients have; use operator or viewer");
    };
    match timeout(STREAM_PATIENCE, visitor.stream()).await {
        Ok(Ok(stream)) => {
            agent.with_core(|core| core.recorder.count("visitors"));
            server.converse(stream, role).await;
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
        tracing::warn!(%address, role = ?visitor.role(), "a client that may not attach is sent away");
        agent.with_core(|core| core.recorder.count("attach_not_allowed"));
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
            agent.with_core(|core| core.recorder.count("attach_visitors"));
            client::converse(&agent, Rc::new(Program::new(Channel::Quic(pipe), Some(holder)))).await;
        }
        Ok(Err(_)) => {}
        Err(_) => visitor.refuse("no stream was opened in time"),
    }
}
