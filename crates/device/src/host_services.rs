//! Services of every host without a program of its own: the OpenIB ping and system-status services (vendor classes
//! 0x32 and 0x33 of range 2). A program that registers for one of them takes its place.

use weft_wire::{
    AttributeId, Mad, Method, MgmtClass, NodeDescription, OPENIB_OUI, VendorMad, status, sysstat,
};

/// Bytes of a vendor MAD's data.
const DATA: usize = 216;

/// The services of a host. A switch is no host, and has none that anybody reaches.
#[derive(Debug)]
pub(crate) struct HostServices {
    /// What the host says of its processors.
    processors: String,
}

impl HostServices {
    pub(crate) fn new(processors: String) -> Self {
        Self { processors }
    }

    /// The host's answer, if this is a request to one of its services. It is known by its node's text.
    pub(crate) fn answer(&self, node: &NodeDescription, request: &Mad) -> Option<Mad> {
        let class = request.class();
        let served = matches!(class, MgmtClass::OpenIbPing | MgmtClass::OpenIbSysstat);
        if !served || VendorMad::oui.get(&request.0) != OPENIB_OUI {
            return None;
        }
        let answers = request.method().response()?;
        let mut answer = *request;
        let result = self.data(node, request);
        if let Ok(Some(data)) = result {
            VendorMad::data.set(&mut answer.0, data);
        }
        VendorMad::method.set(&mut answer.0, answers);
        VendorMad::status.set(&mut answer.0, result.err().unwrap_or(status::OK));
        // One MAD holds it all, whatever the request said of more.
        VendorMad::rmpp_header.set(&mut answer.0, [0; 12]);
        Some(answer)
    }

    /// What the answer says; `None` is what the request said.
    fn data(&self, node: &NodeDescription, request: &Mad) -> Result<Option<[u8; DATA]>, u16> {
        let header = request.header();
        if header.base_version != 1 || header.class_version != 1 {
            return Err(status::BAD_VERSION);
        }
        match (header.method, header.mgmt_class, header.attribute_id) {
            (Method::Get, MgmtClass::OpenIbPing, AttributeId::NONE) => Ok(Some(text(&node.to_text()))),
            (Method::Get, MgmtClass::OpenIbSysstat, sysstat::PING) => Ok(None),
            (Method::Get, MgmtClass::OpenIbSysstat, sysstat::HOST_INFO) => Ok(Some(text(&node.to_text()))),
            (Method::Get, MgmtClass::OpenIbSysstat, sysstat::CPU_INFO) => Ok(Some(text(&self.processors))),
            (Method::Get | Method::Set, ..) => Err(status::BAD_METHOD_ATTRIBUTE),
            _ => Err(status::BAD_METHOD),
        }
    }
}

/// Text with a zero behind it, cut at a character's border.
fn text(text: &str) -> [u8; DATA] {
    let end = text.floor_char_boundary(DATA - 1);
    let mut data = [0; DATA];
    data[..end].copy_from_slice(&text.as_bytes()[..end]);
    data
}

#[cfg(test)]
mod tests;
