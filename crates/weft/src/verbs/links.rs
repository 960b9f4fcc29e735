//! `weft links`

use std::collections::BTreeMap;

use serde::Serialize;
use weft_bundle::folder::LabFolder;
use weft_control::HexGuid;
use weft_control::agent::{PortEnd, PortStatus, PortTotals};
use weft_control::vm::SlotState;
use weft_lab::agents::read_ports;
use weft_lab::check::if_cut;
use weft_lab::view::Lab;
use weft_topology::{Fabric, LinkRate, PortRef};

use crate::cli::LinksArgs;
use crate::output::{Table, or_dash, print, print_json};

#[derive(Serialize)]
struct Link {
    a: End,
    b: End,
    /// As it is; null without a link.
    rate: Option<String>,
    /// The best that is enabled at both ends, and that both can do; null as long as an end does not say.
    rate_enabled: Option<String>,
    rate_possible: Option<String>,
    /// As the topology file has it.
    rate_planned: String,
    /// The link runs at a lower rate than both ends can do.
    degraded: bool,
    state: String,
}

/// The rates of a link.
#[derive(Debug, Default)]
struct Rates {
    active: Option<LinkRate>,
    enabled: Option<LinkRate>,
    possible: Option<LinkRate>,
}

impl Rates {
    /// By what its two ends say.
    fn of(a: &PortStatus, b: &PortStatus) -> Self {
        let lower = |a: &str, b: &str| {
            let (a, b): (LinkRate, LinkRate) = (a.parse().ok()?, b.parse().ok()?);
            Some(LinkRate::new(a.width.min(b.width), a.speed.min(b.speed)))
        };
        Self {
            active: lower(&a.rate, &b.rate).filter(|_| a.link_up && b.link_up),
            enabled: lower(&a.rate_enabled, &b.rate_enabled),
            possible: lower(&a.rate_supported, &b.rate_supported),
        }
    }

    fn is_degraded(&self) -> bool {
        self.possible.zip(self.active).is_some_and(|(possible, active)| possible.exceeds(active))
    }
}

#[derive(Serialize)]
struct End {
    /// The node's name.
    node: String,
    /// Its id in the topology file.
    id: String,
    #[serde(skip)]
    label: String,
    guid: weft_wire::Guid,
    port: u8,
    lid: Option<u16>,
    state: Option<String>,
    phys_state: Option<String>,
    plugged: Option<bool>,
    /// How long the other end's agent may be silent until this end is down.
    link_timeout_ms: Option<u64>,
    round_trip_us: Option<u64>,
    totals: Option<PortTotals>,
}

/// How many links run below what both of their ends can do, as agents say.
pub(super) fn degraded(folder: &LabFolder) -> anyhow::Result<usize> {
    Ok(links(folder)?.iter().filter(|link| link.degraded).count())
}

/// All links as agents say; those that are dead say nothing.
fn links(folder: &LabFolder) -> anyhow::Result<Vec<Link>> {
    let lab = Lab::load(folder)?;
    let told = read_ports(folder, lab.record.agents.iter().map(|agent| agent.name.as_str()))?.told;
    // The cabling names slots of virtual machines by the GUIDs that they began with.
    let place = |port: &PortStatus| match port.slot {
        Some(slot) => PortEnd { node: slot.slot, ..port.end },
        None => port.end,
    };
    let ports = told.into_values().map(|port| (place(&port), port)).collect();
    let links = lab
        .fabric
        .cables()
        .map(|cable| {
            let (a, b) = (status(&lab.fabric, &ports, cable.a), status(&lab.fabric, &ports, cable.b));
            let state = match (a, b) {
                (Some(a), Some(b)) if is_empty(a) || is_empty(b) => "empty slot".to_owned(),
                (Some(a), Some(b)) if a.state == b.state => a.state.to_string(),
                (Some(a), Some(b)) => format!("{}/{}", a.state, b.state),
                _ => "agent dead".to_owned(),
            };
            let rates = a.zip(b).map(|(a, b)| Rates::of(a, b)).unwrap_or_default();
            let text = |rate: Option<LinkRate>| rate.map(|rate| rate.to_string());
            Link {
                a: end(&lab.fabric, cable.a, a),
                b: end(&lab.fabric, cable.b, b),
                degraded: rates.is_degraded(),
                rate: text(rates.active),
                rate_enabled: text(rates.enabled),
                rate_possible: text(rates.possible),
                rate_planned: cable.rate.to_string(),
                state,
            }
        })
        .collect();
    Ok(links)
}

pub(super) fn run(folder: &LabFolder, args: &LinksArgs) -> anyhow::Result<()> {
    if let Some(port) = &args.if_cut {
        let lab = Lab::load(folder)?;
        let cut = if_cut(&lab, lab.port(port)?)?;
        return if args.json { print_json(&cut) } else { print(&cut.to_string()) };
    }
    let links = links(folder)?;
    if args.json {
        return print_json(&links);
    }
    let mut table = Table::headed(
        "a | b | rate | enabled | possible | state | packets a>b | packets b>a | downed | dropped",
    );
    for link in links {
        let name = |end: &End| end.label.clone();
        let count = |end: &End, pick: fn(&PortTotals) -> u64| end.totals.as_ref().map_or(0, pick);
        table.row(&[
            &name(&link.a),
            &name(&link.b),
            &or_dash(link.rate),
            &or_dash(link.rate_enabled),
            &or_dash(link.rate_possible),
            &if link.degraded { format!("{}, degraded", link.state) } else { link.state },
            &count(&link.a, |totals| totals.xmit_packets),
            &count(&link.b, |totals| totals.xmit_packets),
            &count(&link.a, |t| t.link_downed).max(count(&link.b, |t| t.link_downed)),
            &(count(&link.a, |t| t.vl15_dropped + t.xmit_discards)
                + count(&link.b, |t| t.vl15_dropped + t.xmit_discards)),
        ]);
    }
    print(&table.to_string())
}

/// Whether a port is that of an empty slot of virtual machines: it is down on purpose.
fn is_empty(port: &PortStatus) -> bool {
    port.slot.is_some_and(|slot| slot.state == SlotState::Empty)
}

fn status<'a>(
    fabric: &Fabric,
    ports: &'a BTreeMap<PortEnd, PortStatus>,
    port: PortRef,
) -> Option<&'a PortStatus> {
    ports.get(&PortEnd { node: HexGuid(fabric.node(port.node).guid), port: port.port })
}

fn end(fabric: &Fabric, port: PortRef, status: Option<&PortStatus>) -> End {
    let node = fabric.node(port.node);
    End {
        node: fabric.name(port.node).to_owned(),
        id: node.id.clone(),
        label: fabric.port_label(port),
        guid: node.guid,
        port: port.port.0,
        lid: status.map(|status| status.lid.0),
        state: status.map(|status| status.state.to_string()),
        phys_state: status.map(|status| status.phys_state.to_string()),
        plugged: status.map(|status| status.plugged),
        link_timeout_ms: status.and_then(|status| status.link_timeout_ms),
        round_trip_us: status.and_then(|status| status.round_trip_us),
        totals: status.map(|status| status.totals),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_below_what_both_ends_can_do_is_degraded() {
        let end = |rate: &str, enabled: &str, supported: &str| PortStatus {
            link_up: true,
            rate: rate.into(),
            rate_enabled: enabled.into(),
            rate_supported: supported.into(),
            ..PortStatus::default()
        };
        let text = |rate: Option<LinkRate>| rate.map(|rate| rate.to_string()).unwrap_or_default();
        let (slow, fast) = (end("1xEDR", "4xHDR", "4xHDR"), end("1xEDR", "1xEDR", "4xHDR"));
        let rates = Rates::of(&slow, &fast);
        assert_eq!(
            [rates.active, rates.enabled, rates.possible].map(text),
            ["1xEDR", "1xEDR", "4xHDR"].map(str::to_owned)
        );
        assert!(rates.is_degraded());
        // An end that can do no more is no fault of the link.
        assert!(!Rates::of(&end("4xEDR", "4xHDR", "4xHDR"), &end("4xEDR", "4xEDR", "4xEDR")).is_degraded());
        let down = PortStatus { link_up: false, ..end("", "4xHDR", "4xHDR") };
        let rates = Rates::of(&down, &down);
        assert!(rates.active.is_none() && !rates.is_degraded());
        // Agents of an older version do not say.
        assert!(!Rates::of(&PortStatus::default(), &fast).is_degraded());
    }
}
