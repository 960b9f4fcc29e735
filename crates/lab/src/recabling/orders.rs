//! Telling agents what becomes of cables.

use std::time::{Duration, Instant};

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_control::agent::{PortEnd, PortStatus};
use weft_control::{Answer, ErrorCode, HexGuid, Page, Request};
use weft_process::ClientError;
use weft_wire::PortNum;

use crate::agents::{PATIENCE, connect};
use crate::looks;
use crate::recabling::cords::{Cord, CordEnd, Order};

/// How long a link has to come up before the user is warned. Its agents go on trying.
const LINK_PATIENCE: Duration = Duration::from_secs(5);
/// The looks in between.
const LOOK: Duration = Duration::from_millis(10);

/// Whether an agent answers.
pub(crate) fn runs(lab: &LabFolder, agent: &str) -> anyhow::Result<bool> {
    let client = connect(lab, agent).with_context(|| format!("agent {agent}"))?;
    Ok(client.is_some())
}

/// Why agents have not carried out their orders.
pub(crate) enum NotDone {
    /// One has refused, and nothing is changed.
    Refused(anyhow::Error),
    /// One has not answered, and may have done its part or be about to. Those before it have done theirs.
    Unknown(anyhow::Error),
}

/// Whether agents may have had the orders before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Telling {
    /// They have not.
    First,
    /// They may have, by a process that was killed. One that does not run reads what becomes of its cables when it begins again.
    Again,
}

/// Gives agents their orders in turn; where one refuses, those before it have to undo theirs.
pub(crate) fn give(lab: &LabFolder, orders: &[Order], telling: Telling) -> Result<(), NotDone> {
    for (done, order) in orders.iter().enumerate() {
        match ask(lab, &order.agent, &order.request) {
            Ok(()) => {}
            Err(ClientError::Connect { .. }) if telling == Telling::Again => {}
            Err(error) if telling == Telling::Again && is_out(&order.request, &error) => {}
            Err(error @ (ClientError::Refused(_) | ClientError::Connect { .. })) => {
                take_back(lab, &orders[..done]);
                return Err(NotDone::Refused(refused(&order.agent, error)));
            }
            Err(error) => return Err(NotDone::Unknown(refused(&order.agent, error))),
        }
    }
    Ok(())
}

/// Undoes the orders that agents had, or may have had, the last first. One that does not run begins
/// again with what is written down; another one that cannot be reached is named.
pub(crate) fn take_back(lab: &LabFolder, orders: &[Order]) {
    for order in orders.iter().rev() {
        if let Err(error) = ask(lab, &order.agent, &order.undo)
            && !matches!(error, ClientError::Connect { .. })
            && !is_out(&order.undo, &error)
        {
            lab.say(&format!(
                "warning: agent {} could not be told to undo `{}` ({error}); `weft topo diff` tells what differs",
                order.agent,
                order.request.name()
            ));
        }
    }
}

/// Tells agents what they may know already. One that does not run reads it when it begins again; others that refuse are
/// named.
pub(crate) fn repeat(lab: &LabFolder, orders: &[Order]) {
    for order in orders {
        match ask(lab, &order.agent, &order.request) {
            Ok(()) | Err(ClientError::Connect { .. }) => {}
            Err(error) if is_out(&order.request, &error) => {}
            Err(error) => lab.say(&format!(
                "warning: agent {} does not take `{}` ({error}); restart it with `weft fault restart`",
                order.agent,
                order.request.name()
            )),
        }
    }
}

/// Whether an agent refuses to take a cable out because it is not there: none is, or another.
pub(crate) fn is_out(request: &Request, error: &ClientError) -> bool {
    let ClientError::Refused(error) = error else { return false };
    let is_gone = matches!(error.code, ErrorCode::NotFound | ErrorCode::Conflict);
    is_gone && matches!(request, Request::DisconnectCable { .. })
}

/// Tells a process something.
pub(crate) fn ask(lab: &LabFolder, process: &str, request: &Request) -> Result<(), ClientError> {
    let mut client = weft_process::Client::connect(&lab.control(process))?;
    client.ask(request.clone(), PATIENCE).map(drop)
}

fn refused(agent: &str, error: ClientError) -> anyhow::Error {
    match error {
        ClientError::Refused(error) => {
            let failure = Failure::new(format!("agent {agent}: {}; nothing was changed", error.message));
            failure.hint(error.hint.unwrap_or_else(|| "`weft topo diff` tells what agents have".to_owned()))
        }
        ClientError::Connect { .. } => {
            Failure::new(format!("agent {agent} does not run any more; nothing was changed"))
                .hint("`weft ps` tells whose it is; start it with `weft fault restart NODE`")
        }
        error => Failure::new(format!("agent {agent}: {error}; whether it has done its part is not known"))
            .hint("once it answers, or was restarted with `weft fault restart NODE`, run `weft topo diff`"),
    }
}

/// Waits until the links of cables are up at both ends, for a while; whether they are.
pub fn await_links(lab: &LabFolder, cords: &[Cord]) -> bool {
    let until = Instant::now() + LINK_PATIENCE;
    cords.iter().flat_map(|cord| &cord.ends).all(|end| {
        let port = PortEnd { node: HexGuid(end.port.guid), port: end.port.port };
        let left = until.saturating_duration_since(Instant::now());
        // No event tells of both ends.
        looks::until(left, LOOK, || link_is_up(lab, &end.agent, port))
    })
}

fn link_is_up(lab: &LabFolder, agent: &str, end: PortEnd) -> bool {
    port(lab, agent, end).is_some_and(|port| port.link_up)
}

/// How long the data lanes of the cable in a port take, in nanoseconds, as its agent says if it answers.
pub(crate) fn delay_at(lab: &LabFolder, end: &CordEnd) -> u64 {
    let at = PortEnd { node: HexGuid(end.port.guid), port: end.port.port };
    port(lab, &end.agent, at).map_or(0, |port| port.delay_ns)
}

/// What an agent says of a port.
fn port(lab: &LabFolder, agent: &str, end: PortEnd) -> Option<PortStatus> {
    let mut client = connect(lab, agent).ok()??;
    // The page begins behind the port before.
    let before = PortEnd { port: PortNum(end.port.0.saturating_sub(1)), ..end };
    let page = Page { after: Some(before), limit: Some(1) };
    match client.ask(Request::Ports(page), PATIENCE) {
        Ok(Answer::Ports { ports, .. }) => ports.into_iter().find(|port| port.end == end),
        _ => None,
    }
}
