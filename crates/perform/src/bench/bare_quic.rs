//! The baseline of all comparisons: a QUIC datagram of a packet's size to another process and back, with nothing
//! of weft in between but its certificates.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::pem::PemObject;
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig};
use weft_lab::signals::Interruption;
use weft_link::{Authority, Identity, node_name};
use weft_wire::{Guid, MAD_PACKET_SIZE};

use super::quiet;

/// The node that the certificate names.
const NODE: Guid = Guid(1);

/// A connection to another process that echoes.
pub(super) struct BareQuic {
    child: Child,
    runtime: tokio::runtime::Runtime,
    endpoint: Endpoint,
    connection: Connection,
}

impl BareQuic {
    /// Starts the other process, by a program whose verb `bench-echo` is [`echo`], and connects to it.
    pub(super) fn start(program: &Path) -> anyhow::Result<Self> {
        let authority = Authority::new("bench").context("cannot make an authority")?;
        let identity = authority.issue(&[NODE]).context("cannot issue a certificate")?;
        let mut child = Command::new(program)
            .arg("bench-echo")
            // Ctrl-C is for the bench, which ends in order and this with it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the other process")?;
        let connected = connect(&mut child, &identity);
        if connected.is_err() {
            // It waits for a connection that will not come.
            let _ = child.kill();
            let _ = child.wait();
        }
        let (runtime, endpoint, connection) = connected?;
        Ok(Self { child, runtime, endpoint, connection })
    }

    /// That many round trips, one at a time.
    pub(super) fn round_trips(
        &self,
        count: u32,
        samples: &mut Vec<Duration>,
        interruption: &Interruption,
    ) -> anyhow::Result<()> {
        let packet = Bytes::from(vec![7; MAD_PACKET_SIZE]);
        self.runtime.block_on(async {
            for _ in 0..count {
                interruption.check()?;
                let sent = Instant::now();
                self.connection.send_datagram(packet.clone())?;
                self.connection.read_datagram().await?;
                samples.push(sent.elapsed());
            }
            Ok(())
        })
    }

    /// The other process.
    pub(super) fn pid(&self) -> anyhow::Result<rustix::process::Pid> {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        pid.context("the other process has no id")
    }

    /// What the other process used of a core.
    pub(super) fn used(&self) -> Duration {
        i32::try_from(self.child.id()).ok().and_then(quiet::process_used).unwrap_or_default()
    }
}

impl Drop for BareQuic {
    fn drop(&mut self) {
        self.connection.close(0u32.into(), b"");
        self.runtime.block_on(self.endpoint.wait_idle());
        // It ends with its connection; killing it makes sure.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn connect(
    child: &mut Child,
    identity: &Identity,
) -> anyhow::Result<(tokio::runtime::Runtime, Endpoint, Connection)> {
    let mut stdin = child.stdin.take().context("no pipe to the other process")?;
    writeln!(stdin, "{}", serde_json::to_string(&(identity.ca_pem(), identity.pem()))?)?;
    let mut stdout = BufReader::new(child.stdout.take().context("no pipe from the other process")?);
    let mut line = String::new();
    stdout.read_line(&mut line).context("cannot read from the other process")?;
    let address: SocketAddr = line.trim().parse().context("the other process does not listen")?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(identity.ca_pem().as_bytes())?)?;
    let client = ClientConfig::with_root_certificates(Arc::new(roots))?;
    let runtime = runtime()?;
    let (endpoint, connection) = runtime.block_on(async {
        let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
        let connection = endpoint.connect_with(client, address, &node_name(NODE))?.await?;
        anyhow::Ok((endpoint, connection))
    })?;
    Ok((runtime, endpoint, connection))
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot make a runtime")
}

/// The other process: reads its identity from standard input, tells where it listens, and echoes one connection. The front end's program
/// calls it for its verb `bench-echo`, and `tell` writes the address and a line end to standard output.
///
/// # Errors
/// Where there is no identity or no socket.
pub fn echo(tell: impl FnOnce(SocketAddr) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let (ca, own): (String, String) = serde_json::from_str(&line)?;
    let identity = Identity::from_pem(&ca, own);
    runtime()?.block_on(async {
        let chain = vec![CertificateDer::from_pem_slice(identity.pem().as_bytes())?];
        let key = PrivateKeyDer::from_pem_slice(identity.pem().as_bytes())?;
        let server = ServerConfig::with_single_cert(chain, key)?;
        let endpoint = Endpoint::server(server, (Ipv4Addr::LOCALHOST, 0).into())?;
        tell(endpoint.local_addr()?)?;
        let connection = endpoint.accept().await.context("the endpoint closed")?.await?;
        while let Ok(packet) = connection.read_datagram().await {
            connection.send_datagram(packet)?;
        }
        Ok(())
    })
}
