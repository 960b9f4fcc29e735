//! Whatever comes in, the device goes on, and what it counts adds up.

use proptest::collection::vec;
use proptest::prelude::*;
use weft_device::{ClientId, Device, DeviceConfig, DeviceOptions, Frame, Input, Output, PortConfig, Unsent};
use weft_machine::{Machine, Time};
use weft_wire::{
    AddressedMad, AttributeId, DirectedSmp, Guid, Lid, LinkParameters, Mad, MadRoute, Method, MethodMask,
    MgmtClass, NodeType, Packet, PortNum, Registration, Smp, VirtualLane,
};

const LINK: LinkParameters = LinkParameters { width: 3, speed: 7, speed_ext: 1 };
const PORTS: u8 = 3;
const NOTHING: Unsent = Unsent { lane: VirtualLane(0), words: 0, multicast: false };

fn device(kind: NodeType, processing: Time) -> Device {
    let port = |number: u8| PortConfig { guid: Guid(0x10 + u64::from(number)), link: LINK };
    let options =
        DeviceOptions { smp_processing: processing, vl15_buffer_packets: 4, ..DeviceOptions::default() };
    let mut device = Device::new(&DeviceConfig {
        kind,
        guid: Guid(1),
        system_image_guid: Guid(2),
        description: "property".to_owned(),
        vendor_id: 1,
        device_id: 2,
        enhanced_port0: true,
        ports: (1..=PORTS).map(port).collect(),
        options,
    });
    for port in 1..=PORTS {
        feed(&mut device, Time::ZERO, Input::LinkUp { port: PortNum(port), peer: LINK });
    }
    device
}

fn feed(device: &mut Device, now: Time, input: Input) -> Vec<Output> {
    device.handle_input(now, input);
    std::iter::from_fn(|| device.poll_output()).collect()
}

/// Bytes in which the interesting fields often have interesting values.
fn mad() -> impl Strategy<Value = Mad> {
    let classes = prop_oneof![Just(0x01u8), Just(0x81), Just(0x04), Just(0x03), any::<u8>()];
    let methods = prop_oneof![Just(1u8), Just(2), Just(5), Just(7), Just(0x81), any::<u8>()];
    let attributes = prop_oneof![0x10u16..0x21, 0u16..4, any::<u16>()];
    let modifiers = prop_oneof![0u32..5, Just(0x3_0000), any::<u32>(), (0u32..5).prop_map(|n| n << 16 | 1)];
    (vec(any::<u8>(), 256), classes, methods, attributes, modifiers, 0u8..5, 0u8..5, any::<bool>()).prop_map(
        |(bytes, class, method, attribute, modifier, pointer, count, tame)| {
            let mut mad = Mad::try_from(bytes.as_slice()).expect("256 bytes");
            Smp::mgmt_class.set(&mut mad.0, MgmtClass::from_code(class));
            Smp::method.set(&mut mad.0, Method::from_code(method));
            Smp::attribute_id.set(&mut mad.0, AttributeId::from_code(attribute));
            Smp::attribute_modifier.set(&mut mad.0, modifier);
            if tame {
                (mad.0[0], mad.0[2]) = (1, 1);
                DirectedSmp::hop_pointer.set(&mut mad.0, pointer);
                DirectedSmp::hop_count.set(&mut mad.0, count);
                DirectedSmp::dr_dlid.set(&mut mad.0, Lid::PERMISSIVE);
                DirectedSmp::m_key.set(&mut mad.0, weft_wire::MKey(0));
            }
            mad
        },
    )
}

fn lid() -> impl Strategy<Value = Lid> {
    prop_oneof![Just(Lid::PERMISSIVE), (0u16..70).prop_map(Lid), any::<u16>().prop_map(Lid)]
}

fn packet() -> impl Strategy<Value = Option<Packet>> {
    let whole = (mad(), lid(), lid(), prop_oneof![Just(15u8), 0u8..16], any::<bool>()).prop_map(
        |(mad, dlid, slid, vl, gsi)| {
            let mut route = MadRoute { vl: VirtualLane(vl), ..MadRoute::smp(dlid, slid) };
            if gsi {
                route.dest_qp = weft_wire::QpNum::GSI;
                route.q_key = weft_wire::QKey::GSI;
            }
            Some(Packet::from_mad(&route, &mad))
        },
    );
    let wild = vec(any::<u8>(), 0..400).prop_map(|mut bytes| {
        // Right lengths and checks, so that the bytes get past the link.
        if bytes.len() >= 26 {
            let words = (bytes.len() - 2) / 4;
            bytes.truncate(words * 4 + 2);
            bytes[0] &= 0xf0;
            (bytes[4], bytes[5]) = ((words >> 8) as u8, words as u8);
            let end = bytes.len() - 2;
            let check = weft_wire::vcrc(&bytes[..end]);
            bytes[end..].copy_from_slice(&check);
        }
        Packet::parse(bytes).ok()
    });
    prop_oneof![4 => whole, 1 => wild]
}

fn input() -> impl Strategy<Value = Option<Input>> {
    let port = || (0u8..6).prop_map(PortNum);
    let client = || (0u16..4).prop_map(ClientId);
    let registration = (0u8..5, vec(0u8..8, 0..3)).prop_map(|(class, methods)| {
        let methods: MethodMask = methods.into_iter().map(Method::from_code).collect();
        Registration::new(MgmtClass::from_code(class), 1, methods)
    });
    prop_oneof![
        10 => (port(), packet()).prop_map(|(port, packet)| packet.map(|packet| Input::Arrive { port, frame: Frame::Packet(packet) })),
        1 => (port(), any::<[u8; 3]>()).prop_map(|(port, [width, speed, speed_ext])| {
            Some(Input::LinkUp { port, peer: LinkParameters { width, speed, speed_ext } })
        }),
        1 => port().prop_map(|port| Some(Input::LinkUp { port, peer: LINK })),
        1 => port().prop_map(|port| Some(Input::LinkDown { port })),
        // What was not sent is put in when it is known.
        1 => port().prop_map(|port| Some(Input::TransmitDropped { port, unsent: NOTHING })),
        1 => (port(), any::<bool>()).prop_map(|(port, physical)| Some(Input::ReceiveError { port, physical })),
        1 => (client(), port(), vec(registration, 0..3)).prop_map(|(client, port, registrations)| {
            Some(Input::Attach { client, port, registrations })
        }),
        1 => client().prop_map(|client| Some(Input::Detach { client })),
        4 => (client(), lid(), mad()).prop_map(|(client, lid, mad)| {
            Some(Input::Send { client, mad: Box::new(AddressedMad::smp(lid, mad)) })
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// No input panics, nothing piles up, and every packet is counted once where it comes in or goes out.
    #[test]
    fn any_inputs(
        is_switch: bool,
        processing in 0u64..3,
        inputs in vec(input(), 0..60),
    ) {
        let kind = if is_switch { NodeType::Switch } else { NodeType::Hca };
        let mut device = device(kind, Time::from_micros(processing));
        let mut now = Time::from_secs(1);
        let (mut sent, mut words) = (0u64, 0u64);
        let mut refused = 0u64;
        let mut taken = None;
        for mut input in inputs.into_iter().flatten() {
            let dropping = matches!(input, Input::TransmitDropped { .. });
            if let Input::TransmitDropped { port, unsent } = &mut input {
                let Some(last) = taken.take() else { continue };
                (*port, *unsent) = last;
            }
            now += Time::from_micros(1);
            let before = device.snapshot();
            for output in feed(&mut device, now, input) {
                if let Output::Transmit { port, frame: Frame::Packet(packet) } = output {
                    prop_assert!((1..=PORTS).contains(&port.0));
                    let copy = Packet::parse(packet.bytes().to_vec());
                    prop_assert_eq!(copy.as_ref(), Ok(&packet), "what leaves is a right packet");
                    sent += 1;
                    words += u64::from(packet.words());
                    taken = Some((port, Unsent::from(&packet)));
                }
            }
            if dropping {
                let counted = |s: &weft_device::Snapshot| -> (u64, u64) {
                    let xmit = s.ports.iter().map(|p| (p.counters.port_xmit_pkts, p.counters.port_xmit_data));
                    xmit.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
                };
                let (then, after) = (counted(&before), counted(&device.snapshot()));
                refused += then.0.saturating_sub(after.0);
                words -= then.1.saturating_sub(after.1);
            }
            if device.poll_timeout().is_some_and(|due| due <= now) {
                device.handle_timeout(now);
                while let Some(output) = device.poll_output() {
                    if let Output::Transmit { frame: Frame::Packet(packet), .. } = output {
                        sent += 1;
                        words += u64::from(packet.words());
                    }
                }
            }
        }
        let ports = device.snapshot().ports;
        // A Set of counters over queue pair 1 needs an active port, which these inputs hardly reach.
        if device.statistics().gmps_answered == 0 {
            let counted: u64 = ports.iter().map(|port| port.counters.port_xmit_pkts).sum();
            let counted_words: u64 = ports.iter().map(|port| port.counters.port_xmit_data).sum();
            prop_assert_eq!(counted, sent - refused);
            prop_assert_eq!(counted_words, words);
        }
    }

    /// What a Set answers is what a Get answers afterwards; a Set that is refused changes nothing.
    #[test]
    fn a_get_shows_what_a_set_did(
        is_switch: bool,
        attribute in prop_oneof![
            Just(AttributeId::SwitchInfo), Just(AttributeId::GuidInfo), Just(AttributeId::PKeyTable),
            Just(AttributeId::SlToVlTable), Just(AttributeId::VlArbitrationTable),
            Just(AttributeId::LinearForwardingTable), Just(AttributeId::MulticastForwardingTable),
            Just(AttributeId::PortInfo),
        ],
        modifier in prop_oneof![0u32..6, (1u32..5, 0u32..4).prop_map(|(part, port)| part << 16 | port)],
        data in vec(any::<u8>(), 64),
        valid: bool,
    ) {
        let kind = if is_switch { NodeType::Switch } else { NodeType::Hca };
        let mut device = device(kind, Time::ZERO);
        let client = ClientId(1);
        let port = PortNum(u8::from(!is_switch));
        feed(&mut device, Time::ZERO, Input::Attach { client, port, registrations: Vec::new() });
        let mut ask = |method, data: &[u8]| {
            let mut mad = Mad::default();
            (mad.0[0], mad.0[1], mad.0[2]) = (1, 0x81, 1);
            Smp::method.set(&mut mad.0, method);
            Smp::attribute_id.set(&mut mad.0, attribute);
            Smp::attribute_modifier.set(&mut mad.0, modifier);
            DirectedSmp::dr_slid.set(&mut mad.0, Lid::PERMISSIVE);
            DirectedSmp::dr_dlid.set(&mut mad.0, Lid::PERMISSIVE);
            mad.set_smp_data(data);
            let sent = AddressedMad::smp(Lid::PERMISSIVE, mad);
            let outputs = feed(&mut device, Time::ZERO, Input::Send { client, mad: Box::new(sent) });
            outputs.into_iter().find_map(|output| match output {
                Output::Deliver { mad, .. } => Some((mad.mad.status(), *mad.mad.smp_data())),
                _ => None,
            })
        };
        let before = ask(Method::Get, &[]).expect("nothing protects the node yet");
        let mut data = data;
        if valid && attribute == AttributeId::PortInfo {
            // From what is there, with harmless changes, so that the Set is taken.
            data[..32].copy_from_slice(&before.1[..32]);
            data[32..].copy_from_slice(&before.1[32..]);
            (data[32], data[33], data[0], data[41]) = (0, 0, 0, data[41]);
        }
        let Some(set) = ask(Method::Set, &data) else { return Ok(()) };
        let Some(after) = ask(Method::Get, &[]) else { return Ok(()) };
        if set.0 == 0 && after.0 == 0 {
            // A Set for all ports at once has no Get of its own. PortInfo hides its key from those who have not got it.
            let from = if attribute == AttributeId::PortInfo { 8 } else { 0 };
            prop_assert_eq!(&set.1[from..], &after.1[from..]);
        } else if set.0 != 0 {
            prop_assert_eq!(before, after);
        }
    }
}
