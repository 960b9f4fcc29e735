//! Settings of a file for the nodes after a line: ids of vendor and device, GUIDs, widths and speeds.

use std::ops::RangeInclusive;

use weft_wire::Guid;

use super::line::{Line, LineError};
use crate::{LinkMasks, LinkRate, Node, NodeType};

/// What a port is of which nothing is said, as in ibsim: 4x and SDR.
pub(super) const UNSAID: LinkMasks = LinkMasks { width: 2, speed: 1, speed_ext: 0, fdr10: false };

weft_wire::defaults! {
    /// What a line sets for the nodes after it.
    pub(super) struct Settings {
        vendor_id: u32 = 0,
        device_id: u16 = 0,
        system_image_guid: Option<Guid> = None,
        switch_port_guid: Option<Guid> = None,
        // As in ibsim, except that its routers begin at 0, which is no GUID.
        switches: GuidSource = GuidSource::from(0x20_0000),
        hosts: GuidSource = GuidSource::from(0x10_0000),
        routers: GuidSource = GuidSource::from(0x30_0000),
        pub(super) masks: Option<LinkMasks> = None,
        pub(super) module: String = String::new(),
    }
}

/// Where a kind of node gets its GUIDs where the file does not give each its own.
struct GuidSource {
    base: u64,
    next: u64,
    /// Whether the line before gave this very GUID, not one to count from.
    given: bool,
}

impl GuidSource {
    const fn from(base: u64) -> Self {
        Self { base, next: base, given: false }
    }
}

impl Settings {
    /// A `name=value` line; `None` when there is no such name.
    pub(super) fn read(&mut self, name: &str, line: &mut Line<'_>) -> Option<Result<(), LineError>> {
        Some(match name {
            "vendid" => equals(line, "a vendor id", 0..=0xff_ffff)
                .map(|id| self.vendor_id = u32::try_from(id).unwrap_or_default()),
            "devid" => equals(line, "a device id", 0..=0xffff)
                .map(|id| self.device_id = u16::try_from(id).unwrap_or_default()),
            "sysimgguid" => {
                equals(line, "a GUID", 0..=u64::MAX).map(|guid| self.system_image_guid = Some(Guid(guid)))
            }
            "switchguid" | "switchguids" => {
                guid_source(line, &mut self.switches).map(|port| self.switch_port_guid = port)
            }
            "caguid" | "caguids" | "hcaguid" | "hcaguids" => guid_source(line, &mut self.hosts).map(|_| ()),
            "rtguid" | "rtguids" => guid_source(line, &mut self.routers).map(|_| ()),
            "width" => equals(line, "a link width mask", 1..=31).map(|mask| self.masks().width = mask as u8),
            "speed" => equals(line, "a link speed mask", 1..=7).map(|mask| self.masks().speed = mask as u8),
            "extspeed" => equals(line, "an extended link speed mask", 0..=31)
                .map(|mask| self.masks().speed_ext = mask as u8),
            "pdebug" => equals(line, "a number", 0..=u64::from(u32::MAX)).map(|_| ()),
            _ => return None,
        })
    }

    /// The masks that `width=`, `speed=` and `extspeed=` set.
    fn masks(&mut self) -> &mut LinkMasks {
        self.masks.get_or_insert(UNSAID)
    }

    /// The next node of a kind, and what it uses up.
    pub(super) fn node(&mut self, kind: NodeType, id: &str, ports: u8) -> Node {
        let source = match kind {
            NodeType::Switch => &mut self.switches,
            NodeType::Router => &mut self.routers,
            _ => &mut self.hosts,
        };
        let said = Guid(source.next);
        let given = std::mem::take(&mut source.given);
        let used = if kind == NodeType::Switch { 1 } else { u64::from(ports) + 1 };
        source.next = source.next.wrapping_add(used);
        // Some switches and adapters say their system's GUID there; ibnetdiscover's id still holds the node's own.
        let systems = given && self.system_image_guid == Some(said);
        let guid = guid_in_id(id).filter(|_| systems).unwrap_or(said);
        let mut node = Node::new(kind, guid, ports, LinkRate::default());
        node.vendor_id = std::mem::take(&mut self.vendor_id);
        node.device_id = self.device_id;
        node.system_image_guid = self.system_image_guid.take().unwrap_or(guid);
        if kind == NodeType::Switch
            && let Some(port_guid) = self.switch_port_guid.take()
        {
            let port_guid = if systems && port_guid == said { guid } else { port_guid };
            for port in &mut node.ports {
                port.guid = port_guid;
            }
        }
        node
    }
}

/// `=value`, and nothing after it.
fn equals(line: &mut Line<'_>, what: &'static str, range: RangeInclusive<u64>) -> Result<u64, LineError> {
    line.skip_spaces();
    line.expect("=", "`=`")?;
    line.skip_spaces();
    let value = line.number(what, range)?;
    line.end()?;
    Ok(value)
}

/// `=base(port guid)` or `+offset`.
fn guid_source(line: &mut Line<'_>, source: &mut GuidSource) -> Result<Option<Guid>, LineError> {
    line.skip_spaces();
    let relative = line.take("+");
    if !relative {
        line.expect("=", "`=` or `+`")?;
    }
    line.skip_spaces();
    let value = line.guid_number()?;
    let port = line.guid_in_parentheses()?;
    line.end()?;
    source.given = !relative;
    if !relative {
        source.base = value;
    }
    source.next = if relative { source.base.wrapping_add(value) } else { value };
    Ok(port)
}

/// The GUID in an id of ibnetdiscover's form, `S-0008f1050010851e`.
pub(crate) fn guid_in_id(id: &str) -> Option<Guid> {
    let digits = id.strip_prefix("S-").or_else(|| id.strip_prefix("H-")).or_else(|| id.strip_prefix("R-"))?;
    let value = (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok()).flatten()?;
    (value != 0).then_some(Guid(value))
}
