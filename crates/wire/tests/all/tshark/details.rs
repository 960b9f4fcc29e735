//! Notice details, class port information and blocks of keys. tshark 4.0 finds no field of a GUIDInfo block, and it
//! takes any trap 259 for malformed, so these two rest on the hand-written bytes of `golden_fields.rs` alone.

use std::net::Ipv6Addr;

use super::*;

fn trap(number: TrapNumber, details: &[u8; 54]) -> Packet {
    let notice =
        Notice { is_generic: true, trap_number: number, data_details: *details, ..Notice::default() };
    smp(Method::Trap, AttributeId::Notice, 0, &notice.to_smp_data())
}

/// tshark shows a GID as an IPv6 address.
fn agree_gid(packet: &Packet, name: &str, want: Gid) {
    let name = format!("infiniband.{name}");
    let found = dissect(packet, &[&name]);
    let address: Ipv6Addr = found[&name][0].parse().expect("an address");
    assert_eq!(address.octets()[..8], want.prefix.0.to_be_bytes(), "{name}");
    assert_eq!(address.octets()[8..], want.guid.0.to_be_bytes(), "{name}");
}

#[test]
fn details_with_a_gid() {
    let details = GidDetails::decode(&noise(20));
    for number in [64, 65, 66, 67] {
        agree_gid(&trap(TrapNumber(number), &details.encode()), "trap.gidaddr", details.gid);
    }
}

#[test]
fn details_of_link_and_port() {
    let details = SwitchDetails::decode(&noise(21));
    agree(&trap(TrapNumber(128), &details.encode()), "trap.", fields!(details, "lidaddr" = lid));
    let details = PortDetails::decode(&noise(22));
    for number in [129, 130, 131] {
        let packet = trap(TrapNumber(number), &details.encode());
        agree(&packet, "trap.", fields!(details, "lidaddr" = lid, "portno" = port_num));
    }
}

#[test]
fn details_of_local_changes() {
    // One flag set at a time, among bytes that stay.
    let before = LocalChangesDetails::decode(&noise(23));
    for flag in 0..4 {
        let details = LocalChangesDetails {
            other_local_changes: flag == 0,
            link_speed_enabled_change: flag == 1,
            link_width_enabled_change: flag == 2,
            node_description_change: flag == 3,
            ..before
        };
        agree(
            &trap(TrapNumber(144), &details.encode()),
            "trap.",
            fields!(
                details,
                "lidaddr" = lid,
                "otherlocalchanges" = other_local_changes,
                "capabilitymask" = capability_mask,
                "linkspeecenabledchange" = link_speed_enabled_change,
                "linkwidthenabledchange" = link_width_enabled_change,
                "nodedescriptionchange" = node_description_change
            ),
        );
    }
    let details = SystemImageGuidDetails::decode(&noise(31));
    agree(
        &trap(TrapNumber(145), &details.encode()),
        "trap.",
        fields!(details, "lidaddr" = lid, "systemimageguid" = system_image_guid),
    );
}

#[test]
fn details_of_wrong_keys() {
    let details = MKeyDetails::decode(&noise(32));
    let packet = trap(TrapNumber(256), &details.encode());
    agree(
        &packet,
        "trap.",
        fields!(
            details,
            "lidaddr" = lid,
            "drslid" = dr_slid,
            "method" = method,
            "attributeid" = attribute_id,
            "attributemodifier" = attribute_modifier,
            "mkey" = m_key,
            "drnotice" = dr_notice,
            "drpathtruncated" = dr_path_truncated,
            "drhopcount" = dr_hop_count
        ),
    );
    let name = "infiniband.trap.drnoticereturnpath";
    let path: String = details.dr_return_path.iter().map(|port| format!("{:02x}", port.0)).collect();
    assert_eq!(dissect(&packet, &[name])[name][0].replace(':', ""), path);

    let details = KeyDetails::decode(&noise(33));
    for number in [257, 258] {
        let packet = trap(TrapNumber(number), &details.encode());
        agree(
            &packet,
            "trap.",
            fields!(
                details,
                "lidaddr1" = lid1,
                "lidaddr2" = lid2,
                "key" = key,
                "sl" = service_level,
                "qp1" = qp1,
                "qp2" = qp2
            ),
        );
        agree_gid(&packet, "trap.gidaddr1", details.gid1);
        agree_gid(&packet, "trap.gidaddr2", details.gid2);
    }
}

#[test]
fn class_port_info() {
    let info = ClassPortInfo::decode(&noise(34));
    let packet = perf(AttributeId::ClassPortInfo, &info.encode());
    agree(
        &packet,
        "classportinfo.",
        fields!(
            info,
            "baseversion" = base_version,
            "classversion" = class_version,
            "capabilitymask" = capability_mask,
            "capabilitymask2" = capability_mask2,
            "resptimevalue" = resp_time_value,
            "redirecttc" = redirect_tc,
            "redirectsl" = redirect_sl,
            "redirectfl" = redirect_fl,
            "redirectlid" = redirect_lid,
            "redirectpkey" = redirect_p_key,
            "redirectqp" = redirect_qp,
            "redirectqkey" = redirect_q_key,
            "traptc" = trap_tc,
            "trapsl" = trap_sl,
            "trapfl" = trap_fl,
            "traplid" = trap_lid,
            "trappkey" = trap_p_key,
            "trapqp" = trap_qp,
            "trapqkey" = trap_q_key
        ),
    );
    agree_gid(&packet, "classportinfo.redirectgid", info.redirect_gid);
    agree_gid(&packet, "classportinfo.trapgid", info.trap_gid);
    // tshark calls the hop limit reserved, as it does the byte before the queue pair of the redirection.
    let bytes = [info.reserved_256.into(), info.trap_hl.into()];
    agree_list(&packet, "infiniband.classportinfo.reserved", &bytes);
}

#[test]
fn partition_keys() {
    let table = PKeyTable::decode(&noise(35));
    let packet = smp(Method::GetResp, AttributeId::PKeyTable, 0, &table.encode());
    let keys = table.p_keys.iter().map(|key| u64::from(key.0));
    let (members, bases): (Vec<u64>, Vec<u64>) = keys.map(|key| (key >> 15, key & 0x7fff)).unzip();
    agree_list(&packet, "infiniband.p_keytable.membershiptype", &members);
    agree_list(&packet, "infiniband.p_keytable.p_keybase", &bases);
}
