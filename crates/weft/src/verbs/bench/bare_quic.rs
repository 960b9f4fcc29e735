//! What everything is compared with: a QUIC datagram of a packet's size to another process and back, with nothing
//! of weft in between but its certificates.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::pem::PemObject;
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use quinn::{ClientConfig, Endpoint, ServerConfig};
use weft_link::{Authority, Identity, node_name};
use weft_wire::{Guid, MAD_PACKET_SIZE};

use super::{Quantiles, quiet};

/// The node that the certificate names.
const NODE: Guid = Guid(1);

/// Round trips to another process, and what that process used.
pub(super) fn round_trips(count: u32) -> anyhow::Result<(Quantiles, Duration)> {
    let authority = Authority::new("bench").context("cannot make an authority")?;
    let identity = authority.issue(&[NODE]).context("cannot issue a certificate")?;
    let program = std::env::current_exe().context("cannot tell which program this is")?;
    let mut child = Command::new(program)
        .arg("bench-echo")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the other process")?;
    let measured = (|| {
        let mut stdin = child.stdin.take().context("no pipe to the other process")?;
        writeln!(stdin, "{}", serde_json::to_string(&identity)?)?;
        let mut stdout = BufReader::new(child.stdout.take().context("no pipe from the other process")?);
        let mut line = String::new();
        stdout.read_line(&mut line).context("cannot read from the other process")?;
        let address: SocketAddr = line.trim().parse().context("the other process does not listen")?;
        let samples = runtime()?.block_on(measure(&identity, address, count))?;
        let used = i32::try_from(child.id()).ok().and_then(quiet::process_used).unwrap_or_default();
        Ok((Quantiles::of(samples), used))
    })();
    // It ends with its connection; if that failed, it must be told.
    let _ = child.kill();
    let _ = child.wait();
    measured
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot make a runtime")
}

async fn measure(identity: &Identity, address: SocketAddr, count: u32) -> anyhow::Result<Vec<Duration>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(identity.ca_cert.as_bytes())?)?;
    let client = ClientConfig::with_root_certificates(Arc::new(roots))?;
    let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
    let connection = endpoint.connect_with(client, address, &node_name(NODE))?.await?;
    let packet = Bytes::from(vec![7; MAD_PACKET_SIZE]);
    let warm_up = count / 10;
    let mut samples = Vec::new();
    for round in 0..count + warm_up {
        let sent = Instant::now();
        connection.send_datagram(packet.clone())?;
        connection.read_datagram().await?;
        if round >= warm_up {
            samples.push(sent.elapsed());
        }
    }
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(samples)
}

/// `weft bench-echo`: reads its identity from standard input, says where it listens, echoes one connection.
pub(in crate::verbs) fn echo() -> anyhow::Result<()> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let identity: Identity = serde_json::from_str(&line)?;
    runtime()?.block_on(async {
        let chain = vec![CertificateDer::from_pem_slice(identity.cert_chain.as_bytes())?];
        let key = PrivateKeyDer::from_pem_slice(identity.private_key.as_bytes())?;
        let server = ServerConfig::with_single_cert(chain, key)?;
        let endpoint = Endpoint::server(server, (Ipv4Addr::LOCALHOST, 0).into())?;
        crate::output::print(&format!("{}\n", endpoint.local_addr()?))?;
        let connection = endpoint.accept().await.context("the endpoint closed")?.await?;
        while let Ok(packet) = connection.read_datagram().await {
            connection.send_datagram(packet)?;
        }
        Ok(())
    })
}
