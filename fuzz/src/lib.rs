//! One function per fuzz target. Each takes any bytes, must not panic, and asserts what must hold of them.
//!
//! `cargo fuzz run TARGET --features libfuzzer` searches for new inputs; `tests/replay.rs` replays those that were
//! kept in `corpus/TARGET/`, so the usual test run covers them too. `cargo xtask fuzz --minutes N` searches with all of them.

mod administration;
mod control;
mod files;
mod http;
mod ibsim;
mod mads;
mod routes;

pub use administration::administration;
pub use control::control;
pub use files::{experiment, journal, partitions, schedule};
pub use http::http_query;
pub use ibsim::{control as ibsim_control, data as ibsim_data};
pub use mads::{mad_layer, rmpp};
pub use routes::routes;

use weft_device::{Device, DeviceConfig, DeviceOptions, Frame, Input, Output, PortConfig};
use weft_host::stack::Image;
use weft_machine::{Machine, Time};
use weft_sm::GuidToLid;
use weft_wire::{
    AttributeId, Bth, ClassPortInfo, Details, Deth, DirectedSmp, FlowControl, GidDetails, Guid, GuidInfo,
    GuidInfoRecord, InformInfo, InformInfoRecord, KeyDetails, Lid, LinearForwardingTable,
    LinearForwardingTableRecord, LinkParameters, LinkRecord, LocalChangesDetails, Lrh, MAD_PACKET_SIZE,
    MKeyDetails, Mad, MadHeader, MadRoute, Method, MgmtClass, MlnxExtPortInfo, Mtu, MulticastForwardingTable,
    MulticastForwardingTableRecord, NodeDescription, NodeInfo, NodeRecord, NodeType, Notice, PKeyTable,
    PKeyTableRecord, Packet, PathRecord, PerfMad, PortCounters, PortCountersExtended, PortDetails,
    PortFlowCtlCounters, PortInfo, PortInfoExtended, PortInfoRecord, PortNum, PortOpRcvCounters,
    PortRcvErrorDetails, PortSamplesControl, PortSamplesResult, PortSamplesResultExtended, PortState,
    PortVlOpData, PortVlOpPackets, PortVlXmitFlowCtlUpdateErrors, PortVlXmitWaitCounters,
    PortXmitDiscardDetails, QKey, QpNum, ReceivedData, RmppHeader, SaMad, ServiceRecord, SlToVlTable,
    SlToVlTableRecord, SmInfo, SmInfoRecord, Smp, SwitchDetails, SwitchInfo, SwitchInfoRecord,
    SwitchKeyDetails, SystemImageGuidDetails, TrapNumber, VendorMad, VirtualLane, VlArbitrationRecord,
    VlArbitrationTable, VmMove, VmMoveWrite,
};

/// A fuzz target: its name, which is its corpus' folder, and what it does with an input.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("administration", administration),
    ("bundle", bundle),
    ("control", control),
    ("decode", decode),
    ("device", device),
    ("experiment", experiment),
    ("gmp", gmp),
    ("guid2lid", guid2lid),
    ("http_query", http_query),
    ("ibsim_control", ibsim::control),
    ("ibsim_data", ibsim::data),
    ("image", image),
    ("journal", journal),
    ("link", link),
    ("mad_layer", mad_layer),
    ("notice", notice),
    ("packet", packet),
    ("partitions", partitions),
    ("rmpp", rmpp),
    ("routes", routes),
    ("schedule", schedule),
    ("topology_parse", topology_parse),
    ("umad", umad),
    ("umad_reply", umad_reply),
    ("user_mad", user_mad),
];

macro_rules! inverse {
    ($bytes:expr, $($name:ident)*) => {$(
        if let Some(bytes) = $bytes.first_chunk::<{ $name::SIZE }>() {
            assert_eq!(&$name::decode(bytes).encode(), bytes, stringify!($name));
        }
    )*};
}

/// Every structure: decoding and encoding any bytes gives the same bytes.
pub fn decode(bytes: &[u8]) {
    inverse!(bytes,
        MadHeader Smp DirectedSmp PerfMad NodeDescription NodeInfo SwitchInfo GuidInfo PortInfo PKeyTable
        SlToVlTable VlArbitrationTable LinearForwardingTable MulticastForwardingTable SmInfo Notice GidDetails
        SwitchDetails PortDetails LocalChangesDetails SystemImageGuidDetails MKeyDetails KeyDetails
        SwitchKeyDetails ClassPortInfo PortCounters PortCountersExtended PortRcvErrorDetails
        PortXmitDiscardDetails PortOpRcvCounters PortFlowCtlCounters PortVlOpPackets PortVlOpData
        PortVlXmitFlowCtlUpdateErrors PortVlXmitWaitCounters PortSamplesControl PortSamplesResult
        PortSamplesResultExtended PortInfoExtended MlnxExtPortInfo VendorMad Lrh Bth Deth RmppHeader SaMad
        NodeRecord PortInfoRecord SwitchInfoRecord GuidInfoRecord LinkRecord SmInfoRecord
        LinearForwardingTableRecord MulticastForwardingTableRecord PKeyTableRecord SlToVlTableRecord
        VlArbitrationRecord InformInfo InformInfoRecord ServiceRecord PathRecord VmMove VmMoveWrite
        ReceivedData);
    if let Some(bytes) = bytes.first_chunk::<64>() {
        let _ = NodeDescription::decode(bytes).to_text();
    }
}

/// Notice details of every trap number.
pub fn notice(bytes: &[u8]) {
    if let Some((number, rest)) = bytes.split_first_chunk::<2>()
        && let Some(details) = rest.first_chunk::<54>()
    {
        let number = TrapNumber(u16::from_be_bytes(*number));
        assert_eq!(&Details::decode(number, details).encode(), details);
    }
}

/// The image of a suspended stack, as an agent takes it: what is accepted is written as it was.
pub fn image(bytes: &[u8]) {
    if let Ok(image) = Image::decode(bytes) {
        let written = image.encode().expect("it was read within its bound");
        assert_eq!(Image::decode(&written), Ok(image));
    }
}

/// The files of a bundle, and an archive of them, as a laboratory's processes read them.
pub fn bundle(bytes: &[u8]) {
    weft_bundle::fuzzed::bundle(bytes);
}

/// A packet from the wire: what is accepted keeps its bytes and can be looked at.
pub fn packet(bytes: &[u8]) {
    if let Ok(packet) = Packet::parse(bytes.to_vec()) {
        let _ = (packet.mad(), packet.bth(), packet.deth(), packet.check_icrc(), format!("{packet:?}"));
        assert_eq!(packet.words() as usize * 4 + 2, bytes.len());
        assert_eq!(packet.into_bytes(), bytes);
    }
}

/// The topology reader: what it accepts, it writes so that it reads the same again.
pub fn topology_parse(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(fabric) = weft_topology::parse("fuzz", text) {
        let written = fabric.write_ibnetdiscover();
        let again = weft_topology::parse("written", &written).expect("what was written can be read");
        assert_eq!(weft_topology::diff(&fabric, &again), Vec::new(), "{written}");
    }
}

/// The attachment protocol as an agent reads it.
pub fn umad(bytes: &[u8]) {
    in_two_pieces::<weft_umad::ClientMessage>(bytes);
}

/// The attachment protocol as a program reads it.
pub fn umad_reply(bytes: &[u8]) {
    in_two_pieces::<weft_umad::ServerMessage>(bytes);
}

/// What libibumad's stand-in sends to an agent, and what an agent answers: what is accepted is written so that it reads
/// the same again.
pub fn user_mad(bytes: &[u8]) {
    use weft_umad::user_mad::{FromClient, Reply, UserMad, decode_client, flatten, unflatten};
    // A datagram that carries its file's bytes is as long as it says.
    if let Ok(datagram) = unflatten(bytes.to_vec()) {
        assert!(datagram.size() >= bytes.len());
    }
    // Without its file a long MAD is none.
    assert!(flatten(bytes, None).map_or(true, |flat| flat == bytes));
    match decode_client(bytes, None) {
        Ok(FromClient::Request(request)) => {
            assert_eq!(decode_client(&request.encode(), None), Ok(FromClient::Request(request)));
        }
        Ok(FromClient::Mad { header, data }) => {
            assert!(data.len() <= weft_wire::MAD_SIZE, "a longer one needs a file");
            assert_eq!(UserMad::decode(&header.encode()), header);
        }
        Err(_) => {}
    }
    if let Ok(reply) = Reply::decode(bytes) {
        assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
    }
}

fn in_two_pieces<M: weft_umad::Message>(bytes: &[u8]) {
    let (head, tail) = bytes.split_at(bytes.len() / 3);
    let mut decoder = weft_umad::Decoder::<M>::new();
    for piece in [head, tail] {
        decoder.feed(piece);
        while let Ok(Some(_)) = decoder.next_message() {}
    }
}

/// The file of kept LIDs: what is accepted is written so that it reads the same again.
pub fn guid2lid(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(known) = GuidToLid::parse("fuzz", text) {
        let again = GuidToLid::parse("written", &known.to_string()).expect("what was written can be read");
        assert_eq!(again, known);
    }
}

/// A switch with a link at each port: any MAD at any port, by any lane, and the switch goes on answering.
pub fn device(bytes: &[u8]) {
    let link = LinkParameters { width: 2, speed: 4, speed_ext: 0 };
    let port = |guid| PortConfig { guid: Guid(guid), link };
    let mut device = Device::new(&DeviceConfig {
        kind: NodeType::Switch,
        guid: Guid(7),
        system_image_guid: Guid(7),
        description: "fuzzed".to_owned(),
        vendor_id: 0,
        device_id: 0,
        ports: (1..5).map(port).collect(),
        enhanced_port0: false,
        options: DeviceOptions::default(),
    });
    for number in 1..5 {
        device.handle_input(Time::ZERO, Input::LinkUp { port: PortNum(number), peer: link });
    }
    let mut now = Time::ZERO;
    for chunk in bytes.chunks(260) {
        now += Time::from_millis(1);
        let Some((address, mad)) = chunk.split_first_chunk::<4>() else { break };
        let mut padded = Mad::default();
        padded.0[..mad.len()].copy_from_slice(mad);
        let dlid = if address[1] & 1 == 0 { Lid::PERMISSIVE } else { Lid(u16::from(address[2])) };
        let route = MadRoute { vl: VirtualLane(address[3] & 15), ..MadRoute::smp(dlid, Lid::PERMISSIVE) };
        let packet = Packet::from_mad(&route, &padded);
        device
            .handle_input(now, Input::Arrive { port: PortNum(address[0] % 6), frame: Frame::Packet(packet) });
        while device.poll_output().is_some() {}
        device.handle_timeout(now);
        while device.poll_output().is_some() {}
    }
    assert_eq!(device.snapshot().ports.len(), 5);
}

/// A host in service: any MAD at queue pair 1, a second apart, and the host goes on answering.
pub fn gmp(bytes: &[u8]) {
    let link = LinkParameters { width: 2, speed: 4, speed_ext: 0 };
    let mut device = Device::new(&DeviceConfig {
        kind: NodeType::Hca,
        guid: Guid(7),
        system_image_guid: Guid(7),
        description: "fuzzed".to_owned(),
        vendor_id: 0,
        device_id: 0,
        ports: vec![PortConfig { guid: Guid(8), link }],
        enhanced_port0: false,
        options: DeviceOptions::default(),
    });
    let mut now = Time::ZERO;
    let port = PortNum(1);
    let mut feed = |device: &mut Device, input| {
        now += Time::from_secs(1);
        device.handle_input(now, input);
        let answered = std::iter::from_fn(|| device.poll_output());
        let answered = answered
            .filter(|output| matches!(output, Output::Transmit { frame: Frame::Packet(_), .. }))
            .count();
        device.handle_timeout(now);
        while device.poll_output().is_some() {}
        answered
    };
    feed(&mut device, Input::LinkUp { port, peer: link });
    let mut heard = 0_u16;
    let mut said = 0_u16;
    for state in [PortState::NoChange, PortState::Armed, PortState::Active] {
        let (lid, neighbor_mtu) = (Lid(5), Mtu::Bytes2048);
        let info = PortInfo { lid, neighbor_mtu, port_state: state, ..PortInfo::default() };
        let mut mad = Mad::default();
        mad.set_header(&MadHeader {
            base_version: 1,
            mgmt_class: MgmtClass::SubnDirected,
            class_version: 1,
            method: Method::Set,
            attribute_id: AttributeId::PortInfo,
            class_specific: 0x0101,
            ..MadHeader::default()
        });
        DirectedSmp::dr_slid.set(&mut mad.0, Lid::PERMISSIVE);
        DirectedSmp::dr_dlid.set(&mut mad.0, Lid::PERMISSIVE);
        mad.set_smp_data(&info.encode());
        let packet = Packet::from_mad(&MadRoute::smp(Lid::PERMISSIVE, Lid::PERMISSIVE), &mad);
        assert_eq!(
            feed(&mut device, Input::Arrive { port, frame: Frame::Packet(packet) }),
            1,
            "a good Set is answered"
        );
    }
    let gsi = QpNum::GSI;
    let to_host = MadRoute { dest_qp: gsi, src_qp: gsi, q_key: QKey::GSI, ..MadRoute::smp(Lid(5), Lid(9)) };
    let to_host = MadRoute { vl: VirtualLane(0), ..to_host };
    for chunk in bytes.chunks(256) {
        let mut mad = Mad::default();
        mad.0[..chunk.len()].copy_from_slice(chunk);
        let asks = mad.method().response().is_some() && !mad.is_smp();
        let packet = Packet::from_mad(&to_host, &mad);
        // The neighbour has room for every answer.
        let (vl, fctbs, fccl) = (VirtualLane(0), said % 4096, heard.wrapping_add(1024) % 4096);
        let flow_control = FlowControl { op: 0, fctbs, vl, fccl };
        assert_eq!(feed(&mut device, Input::Arrive { port, frame: Frame::Credit(flow_control) }), 0);
        said = said.wrapping_add(MAD_BLOCKS);
        let answered = feed(&mut device, Input::Arrive { port, frame: Frame::Packet(packet) });
        assert_eq!(answered, usize::from(asks), "{mad:?}");
        heard = heard.wrapping_add(MAD_BLOCKS * u16::from(asks));
    }
}

/// What a MAD's packet takes of a buffer, in blocks of 64 bytes.
const MAD_BLOCKS: u16 = MAD_PACKET_SIZE.div_ceil(64) as u16;

/// What the other end of a cable may send: control frames, or a data lane's stream.
pub fn link(bytes: &[u8]) {
    weft_link::fuzz::control(bytes);
    weft_link::fuzz::lane(bytes);
}
