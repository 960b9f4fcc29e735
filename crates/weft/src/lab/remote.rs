//! Agents as they are reached from elsewhere: over QUIC, with an identity of the laboratory's authority.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use weft_agent::AgentPart;
use weft_link::{Destination, Protocol, Tunnel};
use weft_process::Client;

use super::bundle::{self, Bundle};
use super::issue;
use super::record::AgentRecord;
use crate::failure::Failure;

/// How long an agent has to take a connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connects to an agent with the identity in a file.
pub(crate) fn connect(bundle: &Bundle, agent: &AgentRecord, identity: &Path) -> anyhow::Result<Client> {
    let credentials = issue::credentials(bundle, identity, None)?;
    let to = destination(bundle, agent)?;
    let opened = Tunnel::open(&to, &credentials, Protocol::Control, PATIENCE);
    let (stream, tunnel) = opened.map_err(|error| {
        let error = anyhow::Error::from(error);
        Failure::new(format!("cannot talk to agent {} at {}: {error:#}", agent.name, to.address))
            .hint("`weft ps` tells whether it runs; the identity must be an operator's or a viewer's")
    })?;
    tunnel.detach();
    Ok(Client::over(stream)?)
}

/// Where an agent listens, and a node that its certificate names.
pub(crate) fn destination(bundle: &Bundle, agent: &AgentRecord) -> anyhow::Result<Destination> {
    let part: AgentPart = bundle::load(&bundle.agent(&agent.name))?;
    let node = part.facing().or_else(|| part.devices.first().map(|device| device.guid));
    let node = node.with_context(|| format!("agent {} runs no device", agent.name))?;
    Ok(Destination { address: agent.address.clone(), node })
}
