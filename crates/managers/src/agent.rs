//! An agent's process: from a bundle to a running agent.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use weft_agent::{AgentConfig, RECORD_BYTES_MAX};
use weft_agent_config::AgentPart;
use weft_bundle::folder::bundle;
use weft_bundle::ports::{Transport, keep_port};

use crate::manager::loopback;
use crate::start::Start;

/// Runs an agent until it is asked to stop. `record_file`: where it records its inputs, if it does.
pub fn run(process: &Start, metrics_port: Option<u16>, record_file: Option<PathBuf>) -> anyhow::Result<()> {
    let mut part: AgentPart = bundle::load(&process.bundle.agent(&process.name))?;
    part.metrics = metrics_port.map(|port| loopback(port).0).or(part.metrics);
    let papers = process.papers(part.facing())?;
    let run = process.run_folder(&part.lab)?;
    let _kept = match part.bind {
        // It is kept for this laboratory as long as the agent lives; a port that is taken, the agent itself finds.
        SocketAddr::V4(bind) if bind.ip().is_loopback() => keep_port(Transport::Udp, bind).ok().flatten(),
        _ => None,
    };
    let config = AgentConfig {
        credentials: papers.credentials().clone(),
        papers: Some(Arc::new(papers)),
        attach_socket: run.agent_socket(&process.name),
        control_socket: run.control(&process.name),
        lock_file: run.agent_lock(&process.name),
        faults_file: Some(run.faults(&process.name)),
        slots_file: Some(run.slots(&process.name)),
        record_file,
        record_bytes_max: RECORD_BYTES_MAX,
        waits: process.waits,
        part,
    };
    Ok(weft_agent::run(&config)?)
}
