//! Clients that come over QUIC: their certificates say what they may do.

use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use weft_control::Role;
use weft_link::Visitor;
use weft_process::Server;

use crate::agent::Agent;
use crate::service::Door;

/// Clients over QUIC at the same time.
pub(crate) const VISITORS_MAX: usize = 64;
/// A client that opens no stream in this time is sent away.
const STREAM_PATIENCE: Duration = Duration::from_secs(10);

/// What the role in a certificate allows.
fn role(name: Option<&str>) -> Option<Role> {
    match name? {
        "operator" | "hub" => Some(Role::Operator),
        "viewer" | "sm" | "pm" => Some(Role::Viewer),
        _ => None,
    }
}

/// Serves clients as they come.
pub(crate) async fn serve(agent: Rc<Agent>, server: Rc<Server<Door>>, mut visitors: mpsc::Receiver<Visitor>) {
    let mut served = JoinSet::new();
    loop {
        tokio::select! {
            visitor = visitors.recv() => match visitor {
                Some(visitor) if served.len() < VISITORS_MAX => {
                    served.spawn_local(converse(agent.clone(), server.clone(), visitor));
                }
                Some(visitor) => {
                    visitor.refuse("too many clients");
                    agent.with_core(|core| core.recorder.count("visitors_turned_away"));
                }
                None => return,
            },
            Some(_) = served.join_next() => {}
        }
    }
}

async fn converse(agent: Rc<Agent>, server: Rc<Server<Door>>, visitor: Visitor) {
    let Some(role) = role(visitor.role()) else {
        let address = visitor.address();
        tracing::warn!(%address, role = ?visitor.role(), "a client without a role is sent away");
        agent.with_core(|core| core.recorder.count("visitors_without_role"));
        return visitor.refuse("the certificate names no role that clients have; use operator or viewer");
    };
    match timeout(STREAM_PATIENCE, visitor.stream()).await {
        Ok(Ok(stream)) => {
            agent.with_core(|core| core.recorder.count("visitors"));
            server.converse(stream, role).await;
        }
        Ok(Err(_)) => {}
        Err(_) => visitor.refuse("no stream was opened in time"),
    }
}
