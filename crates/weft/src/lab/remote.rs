//! Agents as they are reached from elsewhere: over QUIC, with an identity of the laboratory's authority.

use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use tokio::net::UnixStream as Half;
use weft_agent::AgentPart;
use weft_link::{Identity, visit};
use weft_process::Client;
use weft_wire::Guid;

use super::bundle::{self, Bundle};
use super::issue;
use super::record::AgentRecord;
use crate::failure::Failure;

/// How long an agent has to take a connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connects to an agent with the identity in a file.
pub(crate) fn connect(bundle: &Bundle, agent: &AgentRecord, identity: &Path) -> anyhow::Result<Client> {
    let identity = issue::load(bundle, identity, None)?;
    let part: AgentPart = bundle::load(&bundle.agent(&agent.name))?;
    let node = part.facing().or_else(|| part.devices.first().map(|device| device.guid));
    let node = node.with_context(|| format!("agent {} runs no device", agent.name))?;
    let text = agent.address.to_string();
    let resolved = text.to_socket_addrs().with_context(|| format!("cannot resolve {text}"))?.next();
    let address = resolved.with_context(|| format!("{text} resolves to nothing"))?;
    Ok(Client::over(tunnel(address, node, identity).map_err(|error| {
        Failure::new(format!("cannot talk to agent {} at {address}: {error:#}", agent.name))
            .hint("`weft ps` tells whether it runs; the identity must be an operator's or a viewer's")
    })?)?)
}

/// A stream to the agent. A thread carries what is written to it over QUIC, until either side ends it.
fn tunnel(address: SocketAddr, node: Guid, identity: Identity) -> anyhow::Result<UnixStream> {
    let (near, far) = UnixStream::pair()?;
    far.set_nonblocking(true)?;
    let (sender, connected) = std::sync::mpsc::channel();
    std::thread::Builder::new().name("tunnel".into()).spawn(move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(sender.send(Err(error.into()))),
        };
        runtime.block_on(async {
            let visited = async {
                let visit = tokio::time::timeout(PATIENCE, visit(address, node, &identity)).await;
                Ok::<_, anyhow::Error>((visit.context("no answer")??, Half::from_std(far)?))
            };
            match visited.await {
                Err(error) => drop(sender.send(Err(error))),
                Ok((mut visit, mut far)) => {
                    let _ = sender.send(Ok(()));
                    // However it ends, both sides see that it has.
                    let _ = tokio::io::copy_bidirectional(&mut visit.stream, &mut far).await;
                    visit.end().await;
                }
            }
        });
    })?;
    connected.recv().context("the thread that carries the conversation has ended")??;
    Ok(near)
}
