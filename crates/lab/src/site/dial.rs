//! An agent over the network, without a hub between: over QUIC, with an identity of the laboratory's authority.

use std::path::Path;
use std::time::Duration;

use weft_bundle::failure::Failure;
use weft_bundle::folder::bundle::Bundle;
use weft_bundle::identity::issue;
use weft_bundle::plan::destination::destination;
use weft_bundle::record::AgentRecord;
use weft_link::{Protocol, Tunnel};
use weft_process::Client;

/// How long an agent has to take a connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connects to an agent with the identity in a file.
pub fn connect(bundle: &Bundle, agent: &AgentRecord, identity: &Path) -> anyhow::Result<Client> {
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
