//! The network address of an agent.

use anyhow::Context;
use weft_agent_config::AgentPart;
use weft_link::Destination;

use crate::folder::bundle::{self, Bundle};
use crate::record::AgentRecord;

/// Where an agent listens, and a node that its certificate names.
pub fn destination(bundle: &Bundle, agent: &AgentRecord) -> anyhow::Result<Destination> {
    let part: AgentPart = bundle::load(&bundle.agent(&agent.name))?;
    let node = part.facing().or_else(|| part.devices.first().map(|device| device.guid));
    let node = node.with_context(|| format!("agent {} runs no device", agent.name))?;
    Ok(Destination { address: agent.address.clone(), node })
}
