//! Somebody else's dissector reads what this crate writes: each structure goes into a packet with a different
//! value in every field, and tshark must find each value under its own name for the field.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use weft_wire::*;

/// Bytes in which neighbouring fields differ, so that a field read from the wrong place shows.
fn noise<const N: usize>(seed: u32) -> [u8; N] {
    let mut state = seed | 1;
    std::array::from_fn(|_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    })
}

/// A capture of these packets.
fn capture(packets: &[Packet]) -> Vec<u8> {
    let mut file = erf::file_header().to_vec();
    for (packet, second) in packets.iter().zip(1..) {
        let time_ns = second * 1_000_000_000;
        let packet = packet.bytes();
        erf::Record { time_ns, sent: false, damaged: false, lost: 0, port: None, packet }
            .encode_into(&mut file);
    }
    file
}

/// What tshark says of one field in one packet, one value a line of its JSON.
fn dissect(packet: &Packet, fields: &[&str]) -> BTreeMap<String, Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-r", "-", "-T", "fields", "-E", "separator=;", "-E", "aggregator=,"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("tshark must be installed: apt-get install tshark");
    child
        .stdin
        .take()
        .expect("piped")
        .write_all(&capture(std::slice::from_ref(packet)))
        .expect("tshark reads");
    let output = child.wait_with_output().expect("tshark ends");
    let line = String::from_utf8(output.stdout).expect("tshark writes text");
    let columns: Vec<&str> = line.trim_end_matches('\n').split(';').collect();
    assert_eq!(columns.len(), fields.len(), "tshark answered {line:?}");
    let values = columns.iter().map(|column| column.split(',').map(str::to_owned).collect());
    fields.iter().map(|field| (*field).to_owned()).zip(values).collect()
}

fn number(text: &str) -> u64 {
    let digits = text.trim_start_matches("0x");
    u64::from_str_radix(digits, if digits.len() == text.len() { 10 } else { 16 })
        .unwrap_or_else(|_| panic!("{text:?} is no number"))
}

/// Checks that tshark finds `want` under each name.
fn agree(packet: &Packet, prefix: &str, want: &[(&str, u64)]) {
    let names: Vec<String> = want.iter().map(|(name, _)| format!("infiniband.{prefix}{name}")).collect();
    let found = dissect(packet, &names.iter().map(String::as_str).collect::<Vec<_>>());
    for (name, (_, value)) in names.iter().zip(want) {
        assert_eq!(number(&found[name][0]), *value, "{name}");
    }
}

fn smp(method: Method, attribute_id: AttributeId, modifier: u32, data: &[u8]) -> Packet {
    let mut mad = Mad::default();
    mad.set_header(&MadHeader {
        base_version: 1,
        mgmt_class: MgmtClass::SubnLid,
        class_version: 1,
        method,
        transaction_id: TransactionId(0x1122_3344_5566_7788),
        attribute_id,
        attribute_modifier: modifier,
        ..MadHeader::default()
    });
    mad.set_smp_data(data);
    Packet::from_mad(&MadRoute::smp(Lid(0x0102), Lid(0x0304)), &mad)
}

macro_rules! fields {
    ($value:expr, $($name:literal = $field:ident),* $(,)?) => {
        &[$(($name, Bits::to_bits($value.$field))),*]
    };
}

// After the macro, which it uses.
mod details;
mod rmpp;
mod sa;

#[test]
fn headers() {
    let route = MadRoute {
        vl: VirtualLane(3),
        service_level: ServiceLevel(9),
        dlid: Lid(0x1234),
        slid: Lid(0x4321),
        p_key: PKey(0x8abc),
        dest_qp: QpNum::GSI,
        src_qp: QpNum(0x00ab_cdef),
        q_key: QKey::GSI,
    };
    let packet =
        Packet::from_mad(&route, &smp(Method::Get, AttributeId::NodeInfo, 0, &[]).mad().expect("a MAD"));
    agree(
        &packet,
        "",
        &[
            ("lrh.vl", 3),
            ("lrh.lver", 0),
            ("lrh.sl", 9),
            ("lrh.lnh", 2),
            ("lrh.dlid", 0x1234),
            ("lrh.pktlen", 72),
            ("lrh.slid", 0x4321),
            ("bth.opcode", 0x64),
            ("bth.p_key", 0x8abc),
            ("bth.destqp", 1),
            ("bth.psn", 0),
            ("deth.q_key", 0x8001_0000),
            ("deth.srcqp", 0x00ab_cdef),
            ("mad.baseversion", 1),
            ("mad.mgmtclass", 1),
            ("mad.method", 1),
            ("mad.transactionid", 0x1122_3344_5566_7788),
            ("mad.attributeid", 0x11),
        ],
    );
    let icrc = u32::from_be_bytes(*packet.bytes()[284..].first_chunk().expect("six bytes are left"));
    let vcrc = u16::from_be_bytes(*packet.bytes()[288..].first_chunk().expect("two bytes are left"));
    agree(&packet, "", &[("invariant.crc", icrc.into()), ("variant.crc", vcrc.into())]);
}

#[test]
fn directed_route() {
    let mut packet = smp(Method::Get, AttributeId::NodeInfo, 0, &[]).mad().expect("a MAD");
    DirectedSmp::mgmt_class.set(&mut packet.0, MgmtClass::SubnDirected);
    DirectedSmp::direction.set(&mut packet.0, true);
    DirectedSmp::hop_pointer.set(&mut packet.0, 5);
    DirectedSmp::hop_count.set(&mut packet.0, 7);
    DirectedSmp::dr_slid.set(&mut packet.0, Lid(0x0708));
    DirectedSmp::dr_dlid.set(&mut packet.0, Lid(0x090a));
    DirectedSmp::m_key.set(&mut packet.0, MKey(0xfeed_f00d));
    let packet = Packet::from_mad(&MadRoute::smp(Lid::PERMISSIVE, Lid::PERMISSIVE), &packet);
    agree(
        &packet,
        "smpdirected.",
        &[("hoppointer", 5), ("hopcount", 7), ("drslid", 0x0708), ("drdlid", 0x090a), ("smpstatus", 0x8000)],
    );
}

#[test]
fn node_info() {
    let info = NodeInfo::decode(&noise(1));
    agree(
        &smp(Method::GetResp, AttributeId::NodeInfo, 0, &info.encode()),
        "nodeinfo.",
        fields!(
            info,
            "baseversion" = base_version,
            "classversion" = class_version,
            "nodetype" = node_type,
            "numports" = num_ports,
            "systemimageguid" = system_image_guid,
            "nodeguid" = node_guid,
            "portguid" = port_guid,
            "partitioncap" = partition_cap,
            "deviceid" = device_id,
            "revision" = revision,
            "localportnum" = local_port_num,
            "vendorid" = vendor_id
        ),
    );
}

#[test]
fn switch_info() {
    let info = SwitchInfo::decode(&noise(2));
    agree(
        &smp(Method::GetResp, AttributeId::SwitchInfo, 0, &info.encode()),
        "switchinfo.",
        fields!(
            info,
            "linearfdbcap" = linear_fdb_cap,
            "randomfdbcap" = random_fdb_cap,
            "multicastfdbcap" = multicast_fdb_cap,
            "linearfdbtop" = linear_fdb_top,
            "defaultport" = default_port,
            "defaultmulticastprimaryport" = default_multicast_primary_port,
            "defaultmulticastnotprimaryport" = default_multicast_not_primary_port,
            "lifetimevalue" = life_time_value,
            "portstatechange" = port_state_change,
            "optimizedsltovlmappingprogramming" = optimized_sl_to_vl_mapping,
            "lidsperport" = lids_per_port,
            "partitionenforcementcap" = partition_enforcement_cap,
            "inboundenforcementcap" = inbound_enforcement_cap,
            "outboundenforcementcap" = outbound_enforcement_cap,
            "filterrawinboundcap" = filter_raw_inbound_cap,
            "filterrawoutboundcap" = filter_raw_outbound_cap,
            "enhancedportzero" = enhanced_port0
        ),
    );
}

#[test]
fn port_info() {
    let info = PortInfo::decode(&noise(3));
    agree(
        &smp(Method::GetResp, AttributeId::PortInfo, 1, &info.encode()),
        "portinfo.",
        fields!(
            info,
            "m_key" = m_key,
            "guid" = gid_prefix,
            "lid" = lid,
            "mastersmlid" = master_sm_lid,
            "capabilitymask" = capability_mask,
            "diagcode" = diag_code,
            "m_keyleaseperiod" = m_key_lease_period,
            "localportnum" = local_port_num,
            "linkwidthenabled" = link_width_enabled,
            "linkwidthsupported" = link_width_supported,
            "linkwidthactive" = link_width_active,
            "linkspeedsupported" = link_speed_supported,
            "portstate" = port_state,
            "portphysicalstate" = port_physical_state,
            "linkdowndefaultstate" = link_down_default_state,
            "m_keyprotectbits" = m_key_protect_bits,
            "lmc" = lmc,
            "linkspeedactive" = link_speed_active,
            "linkspeedenabled" = link_speed_enabled,
            "neighbormtu" = neighbor_mtu,
            "mastersmsl" = master_sm_sl,
            "vlcap" = vl_cap,
            "inittype" = init_type,
            "vlhighlimit" = vl_high_limit,
            "vlarbitrationhighcap" = vl_arbitration_high_cap,
            "vlarbitrationlowcap" = vl_arbitration_low_cap,
            "inittypereply" = init_type_reply,
            "mtucap" = mtu_cap,
            "vlstallcount" = vl_stall_count,
            "hoqlife" = hoq_life,
            "operationalvls" = operational_vls,
            "partitionenforcementinbound" = partition_enforcement_inbound,
            "partitionenforcementoutbound" = partition_enforcement_outbound,
            "filterrawinbound" = filter_raw_inbound,
            "filterrawoutbound" = filter_raw_outbound,
            "m_keyviolations" = m_key_violations,
            "p_keyviolations" = p_key_violations,
            "q_keyviolations" = q_key_violations,
            "guidcap" = guid_cap,
            "clientreregister" = client_reregister,
            "subnettimeout" = subnet_timeout,
            "resptimevalue" = resp_time_value,
            "localphyerrors" = local_phy_errors,
            "overrunerrors" = overrun_errors,
            "maxcredithint" = max_credit_hint,
            "linkroundtriplatency" = link_round_trip_latency
        ),
    );
}

#[test]
fn sm_info() {
    let info = SmInfo::decode(&noise(4));
    agree(
        &smp(Method::GetResp, AttributeId::SmInfo, 0, &info.encode()),
        "sminfo.",
        fields!(
            info,
            "guid" = guid,
            "sm_key" = sm_key,
            "actcount" = act_count,
            "priority" = priority,
            "smstate" = sm_state
        ),
    );
}

/// Compares a field that repeats, such as the ports of an LFT block.
fn agree_list(packet: &Packet, name: &str, want: &[u64]) {
    let found = dissect(packet, &[name]);
    let found: Vec<u64> = found[name].iter().map(|text| number(text)).collect();
    assert_eq!(found, want, "{name}");
}

#[test]
fn tables() {
    let block = LinearForwardingTable::decode(&noise(5));
    let ports: Vec<u64> = block.ports.iter().map(|port| port.0.into()).collect();
    let packet = smp(Method::GetResp, AttributeId::LinearForwardingTable, 3, &block.encode());
    agree_list(&packet, "infiniband.linearforwardingtable.port", &ports);

    let block = MulticastForwardingTable::decode(&noise(6));
    let masks: Vec<u64> = block.port_masks.iter().map(|&mask| mask.into()).collect();
    let packet = smp(Method::GetResp, AttributeId::MulticastForwardingTable, 0, &block.encode());
    // tshark shows the first half of the block's 32 masks.
    agree_list(&packet, "infiniband.multicastforwardingtable.portmask", &masks[..16]);

    let table = VlArbitrationTable::decode(&noise(7));
    let packet = smp(Method::GetResp, AttributeId::VlArbitrationTable, 0x1_0001, &table.encode());
    let lanes: Vec<u64> = table.entries.iter().map(|entry| entry.vl.0.into()).collect();
    let weights: Vec<u64> = table.entries.iter().map(|entry| entry.weight.into()).collect();
    agree_list(&packet, "infiniband.vlarbitrationtable.vl", &lanes);
    agree_list(&packet, "infiniband.vlarbitrationtable.weight", &weights);

    let table = SlToVlTable::decode(&noise(8));
    let packet = smp(Method::GetResp, AttributeId::SlToVlTable, 0x0102, &table.encode());
    let lanes: Vec<u64> = table.lanes.iter().map(|lane| lane.0.into()).collect();
    let (high, low): (Vec<u64>, Vec<u64>) = lanes.chunks(2).map(|pair| (pair[0], pair[1])).unzip();
    agree_list(&packet, "infiniband.sltovlmappingtable.sltovlhighbits", &high);
    agree_list(&packet, "infiniband.sltovlmappingtable.sltovllowbits", &low);
}

#[test]
fn notices() {
    let notice =
        Notice { is_generic: true, trap_number: trap::LINK_STATE_CHANGE, ..Notice::decode(&noise(9)) };
    agree(
        &smp(Method::Trap, AttributeId::Notice, 0, &notice.to_smp_data()),
        "notice.",
        fields!(
            notice,
            "isgeneric" = is_generic,
            "type" = notice_type,
            "producertypevendorid" = producer_type,
            "trapnumberdeviceid" = trap_number,
            "issuerlid" = issuer_lid,
            "noticetoggle" = notice_toggle,
            "noticecount" = notice_count
        ),
    );
}

fn perf(attribute_id: AttributeId, data: &[u8]) -> Packet {
    let mut mad = smp(Method::GetResp, attribute_id, 0, &[]).mad().expect("a MAD");
    PerfMad::mgmt_class.set(&mut mad.0, MgmtClass::Perf);
    mad.0[64..64 + data.len()].copy_from_slice(data);
    let qp = QpNum::GSI;
    let route = MadRoute {
        vl: VirtualLane(0),
        dest_qp: qp,
        src_qp: qp,
        q_key: QKey::GSI,
        ..MadRoute::smp(Lid(1), Lid(2))
    };
    Packet::from_mad(&route, &mad)
}

#[test]
fn counters() {
    let counters = PortCounters::decode(&noise(10));
    agree(
        &perf(AttributeId::PORT_COUNTERS, &counters.encode()),
        "portcounters.",
        fields!(
            counters,
            "portselect" = port_select,
            "counterselect" = counter_select,
            "symbolerrorcounter" = symbol_error_counter,
            "linkerrorrecoverycounter" = link_error_recovery_counter,
            "linkdownedcounter" = link_downed_counter,
            "portrcverrors" = port_rcv_errors,
            "portrcvremotephysicalerrors" = port_rcv_remote_physical_errors,
            "portrcvswitchrelayerrors" = port_rcv_switch_relay_errors,
            "portxmitdiscards" = port_xmit_discards,
            "portxmitconstrainterrors" = port_xmit_constraint_errors,
            "portrcvconstrainterrors" = port_rcv_constraint_errors,
            "locallinkintegrityerrors" = local_link_integrity_errors,
            "excessivebufferoverrunerrors" = excessive_buffer_overrun_errors,
            "vl15dropped" = vl15_dropped,
            "portxmitdata" = port_xmit_data,
            "portrcvdata" = port_rcv_data,
            "portxmitpkts" = port_xmit_pkts,
            "portrcvpkts" = port_rcv_pkts
        ),
    );
    let counters = PortCountersExtended::decode(&noise(11));
    agree(
        &perf(AttributeId::PortCountersExtended, &counters.encode()),
        "portcounters_ext.",
        fields!(
            counters,
            "portselect" = port_select,
            "counterselect" = counter_select,
            "portxmitdata" = port_xmit_data,
            "portrcvdata" = port_rcv_data,
            "portxmitpkts" = port_xmit_pkts,
            "portrcvpkts" = port_rcv_pkts,
            "portunicastxmitpkts" = port_unicast_xmit_pkts,
            "portunicastrcvpkts" = port_unicast_rcv_pkts,
            "portmulticastxmitpkts" = port_multicast_xmit_pkts,
            "portmulticastrcvpkts" = port_multicast_rcv_pkts
        ),
    );
}
