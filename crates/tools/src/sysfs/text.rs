//! Numbers as the kernel writes them under /sys/class/infiniband.

use weft_control::agent::PortTotals;
use weft_wire::{Gid, Guid, LinkSpeed, NodeType, PathRate, PhysState, PortInfo, PortState};

pub(super) fn node_type(kind: NodeType) -> String {
    let name = match kind {
        NodeType::Hca => "CA",
        NodeType::Switch => "switch",
        NodeType::Router => "router",
        _ => "<unknown>",
    };
    format!("{}: {name}", kind.code())
}

pub(super) fn state(state: PortState) -> String {
    let name = match state {
        PortState::NoChange => "NOP",
        PortState::Down => "DOWN",
        PortState::Initialize => "INIT",
        PortState::Armed => "ARMED",
        PortState::Active => "ACTIVE",
        PortState::ActiveDefer => "ACTIVE_DEFER",
        _ => "UNKNOWN",
    };
    format!("{}: {name}", state.code())
}

pub(super) fn phys_state(state: PhysState) -> String {
    let name = match state {
        PhysState::Sleep => "Sleep",
        PhysState::Polling => "Polling",
        PhysState::Disabled => "Disabled",
        PhysState::Training => "PortConfigurationTraining",
        PhysState::LinkUp => "LinkUp",
        PhysState::ErrorRecovery => "LinkErrorRecovery",
        PhysState::PhyTest => "Phy Test",
        _ => "<unknown>",
    };
    format!("{}: {name}", state.code())
}

/// Four groups of four digits.
pub(super) fn eui64(guid: Guid) -> String {
    let [a, b, c, d] = [48, 32, 16, 0].map(|shift| guid.0 >> shift & 0xffff);
    format!("{a:04x}:{b:04x}:{c:04x}:{d:04x}")
}

/// Eight groups of four digits, none left out.
pub(super) fn gid(gid: Gid) -> String {
    format!("{}:{}", eui64(Guid(gid.prefix.0)), eui64(gid.guid))
}

/// Such as `56 Gb/sec (4X FDR)`. The kernel counts what the lanes signal, and rounds it.
pub(super) fn rate(info: &PortInfo, fdr10: bool) -> String {
    let speed = LinkSpeed::active(info, fdr10).unwrap_or(LinkSpeed::Sdr);
    let lanes = info.lanes();
    // In units of 100 Mb/s.
    let all = PathRate::of_link(info).megabits().unwrap_or(0) / 100;
    let fraction = if all.is_multiple_of(10) { "" } else { ".5" };
    format!("{}{fraction} Gb/sec ({lanes}X {speed})", all / 10)
}

/// The files of `counters`.
pub(super) fn counters(totals: &PortTotals) -> [(&'static str, u64); 21] {
    [
        ("symbol_error", totals.symbol_errors),
        ("link_error_recovery", totals.link_error_recovery),
        ("link_downed", totals.link_downed),
        ("port_rcv_errors", totals.rcv_errors),
        ("port_rcv_remote_physical_errors", totals.rcv_remote_physical_errors),
        ("port_rcv_switch_relay_errors", totals.rcv_switch_relay_errors),
        ("port_xmit_discards", totals.xmit_discards),
        ("port_xmit_constraint_errors", totals.xmit_constraint_errors),
        ("port_rcv_constraint_errors", totals.rcv_constraint_errors),
        ("local_link_integrity_errors", totals.local_link_integrity_errors),
        ("excessive_buffer_overrun_errors", totals.excessive_buffer_overrun_errors),
        ("VL15_dropped", totals.vl15_dropped),
        ("port_xmit_data", totals.xmit_words),
        ("port_rcv_data", totals.rcv_words),
        ("port_xmit_packets", totals.xmit_packets),
        ("port_rcv_packets", totals.rcv_packets),
        ("port_xmit_wait", totals.xmit_wait),
        ("unicast_xmit_packets", totals.unicast_xmit_packets),
        ("unicast_rcv_packets", totals.unicast_rcv_packets),
        ("multicast_xmit_packets", totals.multicast_xmit_packets),
        ("multicast_rcv_packets", totals.multicast_rcv_packets),
    ]
}

#[cfg(test)]
mod tests {
    use weft_wire::GidPrefix;

    use super::*;

    #[test]
    fn rates_are_written_as_the_kernel_does() {
        let rate = |width, speed, speed_ext, fdr10| {
            let info = PortInfo {
                link_width_active: width,
                link_speed_active: speed,
                link_speed_ext_active: speed_ext,
                ..PortInfo::default()
            };
            super::rate(&info, fdr10)
        };
        assert_eq!(rate(1, 1, 0, false), "2.5 Gb/sec (1X SDR)");
        assert_eq!(rate(2, 1, 0, false), "10 Gb/sec (4X SDR)");
        assert_eq!(rate(2, 4, 0, false), "40 Gb/sec (4X QDR)");
        assert_eq!(rate(2, 4, 0, true), "40 Gb/sec (4X FDR10)");
        assert_eq!(rate(2, 4, 1, false), "56 Gb/sec (4X FDR)");
        assert_eq!(rate(2, 4, 2, false), "100 Gb/sec (4X EDR)");
        assert_eq!(rate(8, 4, 0, false), "120 Gb/sec (12X QDR)");
        assert_eq!(rate(2, 4, 8, false), "400 Gb/sec (4X NDR)");
        let active = weft_wire::LinkSpeedExt2 { active: 1, ..Default::default() };
        let xdr = PortInfo { link_width_active: 2, link_speed_ext2: active, ..PortInfo::default() };
        assert_eq!(super::rate(&xdr, false), "800 Gb/sec (4X XDR)");
    }

    #[test]
    fn names_have_all_their_digits() {
        let guid = Guid(0x0008_f105_0020_0b50);
        assert_eq!(eui64(guid), "0008:f105:0020:0b50");
        assert_eq!(gid(Gid { prefix: GidPrefix::DEFAULT, guid }), "fe80:0000:0000:0000:0008:f105:0020:0b50");
        assert_eq!(state(PortState::Active), "4: ACTIVE");
        assert_eq!(phys_state(PhysState::LinkUp), "5: LinkUp");
        assert_eq!(node_type(NodeType::Hca), "1: CA");
    }
}
