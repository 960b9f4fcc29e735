//! Settings of an agent's links.

/// How an agent's links behave.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The laboratory's name; peers of another are refused.
    pub lab: String,
    /// How long a link may be silent before it is down. Both ends of a cable should agree. A peer that dies without a
    /// word is noticed when between four fifths and the whole of this has passed, or at once where the kernel tells of
    /// its process.
    pub link_timeout_ms: u64,
    /// How long a handshake may take. A busy peer is dialled again only after it.
    pub handshake_timeout_ms: u64,
    /// A number that no other process of this agent has had, such as its start time.
    pub incarnation: u64,
    /// What the jitter of the back-off is drawn from.
    pub jitter_seed: u64,
    /// How many management packets wait, beyond QUIC's own buffer, before one is dropped.
    pub vl15_queue_packets: usize,
    /// How many frames of a data lane wait at most; one more takes the link down. A peer's credit is less than 2048
    /// blocks (IBA 7.9.4) and no packet is shorter than one, so that credits bind first.
    pub lane_queue_frames: usize,
    /// QUIC's own buffer for management packets.
    pub datagram_send_bytes: usize,
    /// The size of UDP payloads between machines: what an MTU of 1280, the least that IPv6 allows (RFC 8200, section 5), leaves
    /// beside the headers of IPv6 and UDP. Agents that listen on a loopback address use larger ones.
    pub udp_payload_bytes: u16,
}

impl LinkConfig {
    /// The defaults for a laboratory; `incarnation` must differ from process to process.
    pub fn new(lab: &str, incarnation: u64) -> Self {
        Self {
            lab: lab.to_owned(),
            link_timeout_ms: 2000,
            handshake_timeout_ms: 30_000,
            incarnation,
            jitter_seed: incarnation,
            vl15_queue_packets: 1024,
            lane_queue_frames: 4096,
            datagram_send_bytes: 256 << 10,
            udp_payload_bytes: 1232,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LinkConfig;

    /// The least MTU (RFC 8200, section 5), without the headers of IPv6 and UDP; QUIC wants 1200 bytes (RFC 9000, section 14).
    #[test]
    fn payloads_between_machines_fit_the_least_mtu() {
        let payload = LinkConfig::new("test", 1).udp_payload_bytes;
        assert!((1200..=1280 - 40 - 8).contains(&payload), "{payload}");
    }
}
