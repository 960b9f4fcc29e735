//! A captured packet as a line for people, and as an object for programs.

use std::fmt::Write as _;

use serde::Serialize;
use weft_control::agent::Captured;
use weft_control::{HexGuid, Utc};
use weft_wire::{DirectedSmp, Lid, Mad, MgmtClass, Packet, QpNum, ServiceLevel, VirtualLane, printable_json};

/// A packet with all that is printed of it.
#[derive(Debug, Serialize)]
pub struct Shown {
    time: String,
    node: String,
    guid: HexGuid,
    port: u8,
    direction: &'static str,
    bytes: usize,
    #[serde(skip_serializing_if = "is_zero")]
    lost_before: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    damaged: bool,
    #[serde(flatten)]
    headers: Option<Headers>,
    #[serde(flatten)]
    mad: Option<ShownMad>,
}

#[derive(Debug, Serialize)]
struct Headers {
    vl: VirtualLane,
    sl: ServiceLevel,
    slid: Lid,
    dlid: Lid,
    dest_qp: Option<QpNum>,
    src_qp: Option<QpNum>,
}

#[derive(Debug, Serialize)]
struct ShownMad {
    name: String,
    /// The numbers as they stand in the packet.
    class: u8,
    method: u8,
    attribute: u16,
    attribute_modifier: u32,
    /// In hexadecimal digits: JSON numbers of 64 bits are not safe with every reader.
    tid: String,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    directed: Option<Directed>,
}

#[derive(Debug, Serialize)]
struct Directed {
    hop_pointer: u8,
    hop_count: u8,
    returning: bool,
    path: Vec<u8>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Shown {
    /// Reads a packet that was captured at a port of the node with this name.
    pub fn new(captured: &Captured, node: &str) -> Self {
        let packet = Packet::parse(captured.packet.0.clone()).ok();
        Self {
            time: Utc::from_nanos(captured.time_ns).rfc3339(9),
            node: node.to_owned(),
            guid: captured.end.node,
            port: captured.end.port.0,
            direction: if captured.sent { "sent" } else { "received" },
            bytes: captured.packet.0.len(),
            lost_before: captured.lost,
            damaged: captured.damaged,
            headers: packet.as_ref().map(headers),
            mad: packet.as_ref().and_then(Packet::mad).map(|mad| shown_mad(&mad)),
        }
    }

    /// One line with its end: time, port, direction, what it is, and how it travels.
    pub fn line(&self) -> String {
        let mut line = String::new();
        if self.lost_before > 0 {
            let _ = writeln!(line, "… {} packets lost", self.lost_before);
        }
        // To the microsecond is enough for people.
        let time = self.time.get(..26).unwrap_or(&self.time);
        let arrow = if self.direction == "sent" { '>' } else { '<' };
        let _ = write!(line, "{time}Z {}:{} {arrow} ", self.node, self.port);
        match (&self.mad, &self.headers) {
            (Some(mad), Some(headers)) => {
                let _ = write!(line, "{} tid {} ", mad.name, mad.tid);
                let _ = match &mad.directed {
                    Some(directed) => write!(line, "{directed}"),
                    None => write!(line, "LID {} to {}", headers.slid, headers.dlid),
                };
                if mad.attribute_modifier != 0 {
                    let _ = write!(line, " modifier {:#x}", mad.attribute_modifier);
                }
                if mad.status != 0 {
                    let _ = write!(line, " status {:#06x}", mad.status);
                }
            }
            (None, Some(headers)) => {
                let _ = write!(
                    line,
                    "{} bytes LID {} to {} VL {}",
                    self.bytes, headers.slid, headers.dlid, headers.vl
                );
            }
            _ => {
                let _ = write!(line, "{} bytes that are no packet", self.bytes);
            }
        }
        line.push('\n');
        line
    }

    /// One line of JSON with its end.
    ///
    /// # Errors
    /// Never, unless serde has one.
    pub fn json(&self) -> anyhow::Result<String> {
        let value = serde_json::to_value(self)?;
        Ok(format!("{}\n", printable_json(&value.to_string())))
    }
}

impl std::fmt::Display for Directed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path: Vec<String> =
            std::iter::once(0).chain(self.path.iter().copied()).map(|port| port.to_string()).collect();
        let back = if self.returning { " back" } else { "" };
        write!(f, "path {} hop {}/{}{back}", path.join(","), self.hop_pointer, self.hop_count)
    }
}

fn headers(packet: &Packet) -> Headers {
    Headers {
        vl: packet.vl(),
        sl: packet.service_level(),
        slid: packet.slid(),
        dlid: packet.dlid(),
        dest_qp: packet.bth().map(|bth| bth.dest_qp),
        src_qp: packet.deth().map(|deth| deth.src_qp),
    }
}

fn shown_mad(mad: &Mad) -> ShownMad {
    ShownMad {
        name: mad.name().to_string(),
        class: mad.class().code(),
        method: mad.method().code(),
        attribute: mad.attribute_id().code(),
        attribute_modifier: mad.attribute_modifier(),
        tid: mad.transaction_id().to_string(),
        status: mad.status(),
        directed: (mad.class() == MgmtClass::SubnDirected).then(|| directed(mad)),
    }
}

fn directed(mad: &Mad) -> Directed {
    let hop_count = DirectedSmp::hop_count.get(&mad.0);
    let ports = DirectedSmp::initial_path.get(&mad.0);
    Directed {
        hop_pointer: DirectedSmp::hop_pointer.get(&mad.0),
        hop_count,
        returning: DirectedSmp::direction.get(&mad.0),
        // Element 0 is not used (IBA 14.2.1.2).
        path: ports.iter().skip(1).take(usize::from(hop_count)).map(|port| port.0).collect(),
    }
}
