//! The RMPP header, as tshark reads it.

use super::*;

fn packet(header: &RmppHeader) -> Packet {
    let mut mad = smp(Method::GetTableResp, NodeRecord::ATTRIBUTE, 0, &[]).mad().expect("a MAD");
    SaMad::mgmt_class.set(&mut mad.0, MgmtClass::SubnAdm);
    SaMad::class_version.set(&mut mad.0, SA_CLASS_VERSION);
    mad.set_rmpp(header);
    let (qp, q_key) = (QpNum::GSI, QKey::GSI);
    let route =
        MadRoute { vl: VirtualLane(0), dest_qp: qp, src_qp: qp, q_key, ..MadRoute::smp(Lid(1), Lid(2)) };
    Packet::from_mad(&route, &mad)
}

fn header(kind: RmppType) -> RmppHeader {
    RmppHeader {
        version: RMPP_VERSION,
        kind,
        resp_time: 0x14,
        last: false,
        first: true,
        active: true,
        status: 0,
        segment: 0x0102_0304,
        length: 0x0506_0708,
    }
}

#[test]
fn data() {
    // tshark gives RRespTime four of its five bits and the flags the fifth; an even time looks the same to both.
    let common =
        [("rmpp.rmppversion", 1), ("rmpp.rresptime", 0x14 >> 1), ("rmpp.segmentnumber", 0x0102_0304)];
    for (first, last, flags) in [(true, false, 3), (false, true, 5), (false, false, 1), (true, true, 7)] {
        let packet = packet(&RmppHeader { first, last, ..header(RmppType::Data) });
        agree(&packet, "", &common);
        agree(
            &packet,
            "",
            &[("rmpp.rmpptype", 1), ("rmpp.rmppflags", flags), ("rmpp.payloadlength", 0x0506_0708)],
        );
    }
}

#[test]
fn acknowledgement() {
    agree(
        &packet(&header(RmppType::Ack)),
        "",
        &[
            ("rmpp.rmpptype", 2),
            ("rmpp.rmppstatus", 0),
            ("rmpp.segmentnumber", 0x0102_0304),
            ("rmpp.newwindowlast", 0x0506_0708),
        ],
    );
}

#[test]
fn ends() {
    for (kind, code, status) in
        [(RmppType::Stop, 3, rmpp_status::RESOURCES), (RmppType::Abort, 4, rmpp_status::BAD_LENGTH)]
    {
        let packet = packet(&RmppHeader { status, ..header(kind) });
        agree(&packet, "", &[("rmpp.rmpptype", code), ("rmpp.rmppstatus", u64::from(status))]);
    }
}
