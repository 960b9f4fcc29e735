//! Subnet administration, as tshark reads it.

use super::*;

/// A GetResp with one record.
fn record<R: SaRecord>(record: &R) -> Packet {
    let mut mad = smp(Method::GetResp, R::ATTRIBUTE, 0, &[]).mad().expect("a MAD");
    SaMad::mgmt_class.set(&mut mad.0, MgmtClass::SubnAdm);
    SaMad::class_version.set(&mut mad.0, SA_CLASS_VERSION);
    SaMad::sm_key.set(&mut mad.0, SmKey(0x0102_0304_0506_0708));
    SaMad::attribute_offset.set(&mut mad.0, R::OFFSET);
    SaMad::component_mask.set(&mut mad.0, 0x1112_1314_1516_1718);
    let mut bytes = Vec::new();
    record.append_to(&mut bytes);
    mad.0[56..56 + bytes.len()].copy_from_slice(&bytes);
    let (qp, q_key) = (QpNum::GSI, QKey::GSI);
    let route =
        MadRoute { vl: VirtualLane(0), dest_qp: qp, src_qp: qp, q_key, ..MadRoute::smp(Lid(1), Lid(2)) };
    Packet::from_mad(&route, &mad)
}

fn noisy<R: SaRecord>(seed: u32) -> R {
    R::from_bytes(&noise::<176>(seed))
}

/// Checks that tshark finds this GID under this name.
fn agree_gid(packet: &Packet, name: &str, gid: Gid) {
    let found = dissect(packet, &[name]);
    let found: std::net::Ipv6Addr = found[name][0].parse().expect("an address");
    assert_eq!(u128::from(found), u128::from(gid.prefix.0) << 64 | u128::from(gid.guid.0), "{name}");
}

#[test]
fn the_header() {
    let packet = record(&noisy::<LinkRecord>(20));
    agree(
        &packet,
        "",
        &[
            ("mad.mgmtclass", 3),
            ("mad.classversion", 2),
            ("sa.smkey", 0x0102_0304_0506_0708),
            ("sa.attributeoffset", 1),
            ("sa.componentmask", 0x1112_1314_1516_1718),
        ],
    );
}

#[test]
fn nodes_and_ports() {
    let node = noisy::<NodeRecord>(21);
    let packet = record(&node);
    agree(&packet, "sa.", fields!(node, "lid" = lid));
    agree(
        &packet,
        "nodeinfo.",
        fields!(
            node.node_info,
            "nodetype" = node_type,
            "nodeguid" = node_guid,
            "portguid" = port_guid,
            "revision" = revision,
            "vendorid" = vendor_id
        ),
    );
    let port = noisy::<PortInfoRecord>(22);
    let packet = record(&port);
    agree(&packet, "sa.", fields!(port, "endportlid" = lid, "portnum" = port_num));
    agree(
        &packet,
        "portinfo.",
        fields!(port.port_info, "m_key" = m_key, "lid" = lid, "overrunerrors" = overrun_errors),
    );
    let switch = noisy::<SwitchInfoRecord>(23);
    let packet = record(&switch);
    agree(&packet, "sa.", fields!(switch, "lid" = lid));
    agree(
        &packet,
        "switchinfo.",
        fields!(
            switch.switch_info,
            "linearfdbcap" = linear_fdb_cap,
            "linearfdbtop" = linear_fdb_top,
            "enhancedportzero" = enhanced_port0
        ),
    );
    let sm = noisy::<SmInfoRecord>(24);
    let packet = record(&sm);
    agree(&packet, "sa.", fields!(sm, "lid" = lid));
    agree(
        &packet,
        "sminfo.",
        fields!(sm.sm_info, "guid" = guid, "actcount" = act_count, "smstate" = sm_state),
    );
    let guids = noisy::<GuidInfoRecord>(25);
    agree(&record(&guids), "sa.", fields!(guids, "lid" = lid, "blocknum_eightbit" = block_num));
}

#[test]
fn cables() {
    let link = noisy::<LinkRecord>(26);
    agree(
        &record(&link),
        "linkrecord.",
        fields!(link, "fromlid" = from_lid, "fromport" = from_port, "toport" = to_port, "tolid" = to_lid),
    );
}

#[test]
fn tables() {
    let lft = noisy::<LinearForwardingTableRecord>(27);
    let packet = record(&lft);
    agree(&packet, "sa.", fields!(lft, "lid" = lid, "blocknum_sixteenbit" = block_num));
    let ports: Vec<u64> = lft.table.ports.iter().map(|port| port.0.into()).collect();
    agree_list(&packet, "infiniband.linearforwardingtable.port", &ports);
    let p_keys = noisy::<PKeyTableRecord>(28);
    let packet = record(&p_keys);
    agree(
        &packet,
        "sa.",
        fields!(p_keys, "lid" = lid, "blocknum_sixteenbit" = block_num, "portnum" = port_num),
    );
    let bases: Vec<u64> = p_keys.table.p_keys.iter().map(|key| u64::from(key.0 & 0x7fff)).collect();
    agree_list(&packet, "infiniband.p_keytable.p_keybase", &bases);
    let lanes = noisy::<SlToVlTableRecord>(29);
    agree(
        &record(&lanes),
        "sa.",
        fields!(lanes, "lid" = lid, "inputportnum" = input_port, "outputportnum" = output_port),
    );
    let arbitration = noisy::<VlArbitrationRecord>(30);
    let packet = record(&arbitration);
    agree(
        &packet,
        "sa.",
        fields!(arbitration, "lid" = lid, "outputportnum" = output_port, "blocknum_eightbit" = block_num),
    );
    let weights: Vec<u64> = arbitration.table.entries.iter().map(|entry| entry.weight.into()).collect();
    agree_list(&packet, "infiniband.vlarbitrationtable.weight", &weights);
}

#[test]
fn paths() {
    let path = noisy::<PathRecord>(31);
    let packet = record(&path);
    agree(
        &packet,
        "pathrecord.",
        fields!(
            path,
            "dlid" = dlid,
            "slid" = slid,
            "rawtraffic" = raw_traffic,
            "flowlabel" = flow_label,
            "hoplimit" = hop_limit,
            "tclass" = tclass,
            "reversible" = reversible,
            "numbpath" = numb_path,
            "p_key" = p_key,
            "sl" = sl,
            "mtuselector" = mtu_selector,
            "mtu" = mtu,
            "rateselector" = rate_selector,
            "rate" = rate,
            "packetlifetimeselector" = packet_life_time_selector,
            "packetlifetime" = packet_life_time,
            "preference" = preference
        ),
    );
    agree_gid(&packet, "infiniband.pathrecord.dgid", path.dgid);
    agree_gid(&packet, "infiniband.pathrecord.sgid", path.sgid);
}

#[test]
fn subscriptions_and_services() {
    let record_of = noisy::<InformInfoRecord>(32);
    let packet = record(&record_of);
    agree(&packet, "informinforecord.", fields!(record_of, "enum" = enumeration));
    agree_gid(&packet, "infiniband.informinforecord.subscribergid", record_of.subscriber_gid);
    agree_gid(&packet, "infiniband.informinfo.gid", record_of.inform_info.gid);
    agree(
        &packet,
        "informinfo.",
        fields!(
            record_of.inform_info,
            "lidrangebegin" = lid_range_begin,
            "lidrangeend" = lid_range_end,
            "isgeneric" = is_generic,
            "subscribe" = subscribe,
            "type" = notice_type,
            "trapnumberdeviceid" = trap_number,
            "qpn" = qpn,
            "resptimevalue" = resp_time_value,
            "producertypevendorid" = producer_type
        ),
    );
    let service = noisy::<ServiceRecord>(33);
    let packet = record(&service);
    agree(
        &packet,
        "linkrecord.",
        fields!(
            service,
            "serviceid" = service_id,
            "servicep_key" = service_p_key,
            "servicelease" = service_lease
        ),
    );
    agree_gid(&packet, "infiniband.linkrecord.servicegid", service.service_gid);
}
