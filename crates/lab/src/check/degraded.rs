//! Links that run at a lower rate than both of their ports can do. Packets pass, so it is worth a note and no problem.

use weft_sm::Surveyed;
use weft_topology::{LinkRate, PortRef};
use weft_wire::PortInfo;

use crate::check::{Report, SHOWN_MAX};
use crate::view::Lab;

/// Notes them.
pub(crate) fn note(lab: &Lab, live: &Surveyed, report: &mut Report) {
    let info = |port: PortRef| -> Option<&PortInfo> {
        live.ports.get(port.node.index())?.get(usize::from(port.port.0))?.as_ref()
    };
    let name = |port: PortRef| {
        let node = live.fabric.node(port.node);
        format!("{}:{}", lab.label(node.guid, &node.description), port.port)
    };
    for cable in live.fabric.cables() {
        let Some((a, b)) = info(cable.a).zip(info(cable.b)) else { continue };
        let Some(better) = LinkRate::better(a, b) else { continue };
        report.cables_degraded += 1;
        if report.cables_degraded <= SHOWN_MAX {
            let (at, ends) = (LinkRate::active(a), [cable.a, cable.b].map(name).join(" - "));
            report.notes.push(format!("the cable {ends} runs at {at}, and both ends can do {better}"));
        }
    }
    if let Some(more @ 1..) = report.cables_degraded.checked_sub(SHOWN_MAX) {
        report.notes.push(format!("{more} more cables are degraded"));
    }
}
