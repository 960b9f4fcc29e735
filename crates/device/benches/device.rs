//! Cost of one packet in a switch: on lane 15, and on a data lane with its buffer, wake-up and credits.

use divan::counter::ItemsCount;
use weft_device::{
    ClientId, DataPathOptions, Device, DeviceConfig, DeviceOptions, Frame, Input, Output, PortConfig,
};
use weft_machine::{Machine, Time};
use weft_wire::{
    AddressedMad, AttributeId, DataPacket, DirectedSmp, FlowControl, Guid, Lid, LinearForwardingTable,
    LinkParameters, Mad, MadHeader, MadRoute, Method, MgmtClass, NodeType, PKey, Packet, PhysState, PortInfo,
    PortNum, PortState, Smp, SwitchInfo, TransactionId, VirtualLane, opcode,
};

const PACKETS: usize = 1000;

fn main() {
    divan::main();
}

fn smp(method: Method, attribute_id: AttributeId, data: &[u8], path: &[u8]) -> Mad {
    let mut mad = Mad::default();
    mad.set_header(&MadHeader {
        base_version: 1,
        mgmt_class: MgmtClass::SubnDirected,
        class_version: 1,
        method,
        attribute_id,
        ..MadHeader::default()
    });
    DirectedSmp::dr_slid.set(&mut mad.0, Lid::PERMISSIVE);
    DirectedSmp::dr_dlid.set(&mut mad.0, Lid::PERMISSIVE);
    DirectedSmp::hop_count.set(&mut mad.0, path.len() as u8);
    mad.0[129..129 + path.len()].copy_from_slice(path);
    mad.set_smp_data(data);
    mad
}

fn drain(device: &mut Device) -> usize {
    std::iter::from_fn(|| device.poll_output())
        .filter(|o| matches!(o, Output::Transmit { frame: Frame::Packet(_), .. }))
        .count()
}

/// A 36-port switch that sends LIDs 1 to 63 out of port 2.
fn switch() -> Device {
    switch_with(DataPathOptions::default(), LinearForwardingTable { ports: [PortNum(2); 64] })
}

fn switch_with(data: DataPathOptions, table: LinearForwardingTable) -> Device {
    let link = LinkParameters { width: 2, speed: 4, speed_ext: 0 };
    let mut device = Device::new(&DeviceConfig {
        kind: NodeType::Switch,
        guid: Guid(1),
        system_image_guid: Guid(1),
        description: "bench".into(),
        vendor_id: 1,
        device_id: 1,
        enhanced_port0: false,
        ports: vec![PortConfig { guid: Guid(1), link }; 36],
        options: DeviceOptions { data, ..DeviceOptions::default() },
    });
    for port in 1..=36 {
        device.handle_input(Time::ZERO, Input::LinkUp { port: PortNum(port), peer: link });
    }
    let client = ClientId(1);
    device.handle_input(Time::ZERO, Input::Attach { client, port: PortNum(0), registrations: Vec::new() });
    let table = table.encode();
    let info = SwitchInfo { linear_fdb_top: 63, life_time_value: 20, ..SwitchInfo::default() }.encode();
    for mad in [
        smp(Method::Set, AttributeId::LinearForwardingTable, &table, &[]),
        smp(Method::Set, AttributeId::SwitchInfo, &info, &[]),
    ] {
        let mad = AddressedMad::smp(Lid::PERMISSIVE, mad);
        device.handle_input(Time::ZERO, Input::Send { client, mad: Box::new(mad) });
    }
    drain(&mut device);
    device
}

fn run(bencher: divan::Bencher<'_, '_>, packet: &Packet) {
    run_all(bencher, &vec![packet.clone(); PACKETS]);
}

fn run_all(bencher: divan::Bencher<'_, '_>, packets: &[Packet]) {
    bencher
        .counter(ItemsCount::new(packets.len()))
        .with_inputs(|| (switch(), packets.to_vec()))
        .bench_local_values(|(mut device, packets)| {
            let mut sent = 0;
            for packet in packets {
                device.handle_input(
                    Time::ZERO,
                    Input::Arrive { port: PortNum(1), frame: Frame::Packet(packet) },
                );
                sent += drain(&mut device);
            }
            assert_eq!(sent, PACKETS);
            device
        });
}

/// Packets with a MAD each, by LID from port 1 to port 2: all different, as the same one over and over would be taken for one that goes round.
#[divan::bench]
fn forward_by_lid(bencher: divan::Bencher<'_, '_>) {
    let packets = (0..PACKETS as u64).map(|transaction| {
        let mut mad = Mad::default();
        Smp::transaction_id.set(&mut mad.0, TransactionId(transaction));
        Packet::from_mad(&MadRoute::smp(Lid(7), Lid(3)), &mad)
    });
    run_all(bencher, &packets.collect::<Vec<_>>());
}

/// A directed-route SMP on its way from port 1 to port 2.
#[divan::bench]
fn directed_hop(bencher: divan::Bencher<'_, '_>) {
    let mut mad = smp(Method::Get, AttributeId::NodeInfo, &[], &[9, 2, 9]);
    DirectedSmp::hop_pointer.set(&mut mad.0, 1);
    run(bencher, &Packet::from_mad(&MadRoute::smp(Lid::PERMISSIVE, Lid::PERMISSIVE), &mad));
}

/// A Get(PortInfo) answered to where it came from.
#[divan::bench]
fn answer_port_info(bencher: divan::Bencher<'_, '_>) {
    let mut mad = smp(Method::Get, AttributeId::PortInfo, &[], &[9]);
    DirectedSmp::hop_pointer.set(&mut mad.0, 1);
    run(bencher, &Packet::from_mad(&MadRoute::smp(Lid::PERMISSIVE, Lid::PERMISSIVE), &mad));
}

/// Packets in flight towards each port.
const DEPTH: usize = 4;

/// A switch whose ports are all Active and have credit, LID n behind port n, and its shaped links.
fn data_switch() -> Device {
    let mut table = LinearForwardingTable { ports: [PortNum::NONE; 64] };
    (1..=36).for_each(|port| table.ports[usize::from(port)] = PortNum(port));
    let data = DataPathOptions { shaped: true, dilation: 1000, ..DataPathOptions::default() };
    let mut device = switch_with(data, table);
    let client = ClientId(1);
    for port in 1..=36u8 {
        for port_state in [PortState::Armed, PortState::Active] {
            let mut info = *device.own_port_info(PortNum(port)).expect("a port");
            (info.port_state, info.port_physical_state) = (port_state, PhysState::NoChange);
            let mut mad = smp(Method::Set, AttributeId::PortInfo, &PortInfo::encode(&info), &[]);
            weft_wire::Smp::attribute_modifier.set(&mut mad.0, port.into());
            let mad = Box::new(AddressedMad::smp(Lid::PERMISSIVE, mad));
            device.handle_input(Time::ZERO, Input::Send { client, mad });
        }
        credit(&mut device, Time::ZERO, port, 2048);
    }
    drain(&mut device);
    device
}

fn credit(device: &mut Device, now: Time, port: u8, fccl: u16) {
    let flow_control = FlowControl { op: 0, fctbs: 0, vl: VirtualLane(0), fccl: fccl % 4096 };
    device.handle_input(now, Input::Arrive { port: PortNum(port), frame: Frame::Credit(flow_control) });
}

/// Data packets through a switch whose 36 ports are all busy: each packet comes in, waits, leaves at its moment, and its
/// successor's credit comes back. In every round each port sends one packet and gets another one.
#[divan::bench]
fn saturated_switch_hop(bencher: divan::Bencher<'_, '_>) {
    const ROUNDS: usize = 100;
    let inputs = || {
        let mut device = data_switch();
        for depth in 0..DEPTH {
            for port in 1..=36 {
                device.handle_input(
                    Time::ZERO,
                    Input::Arrive { port: PortNum(port), frame: Frame::Data(hop(port, depth)) },
                );
            }
        }
        drain(&mut device);
        (device, [BLOCKS * DEPTH as u16; 37], [0u16; 37])
    };
    bencher.counter(ItemsCount::new(36 * ROUNDS)).with_inputs(inputs).bench_local_values(
        |(mut device, mut received, mut sent)| {
            let mut packets = 0;
            while packets < 36 * ROUNDS {
                let now = device.poll_timeout().expect("a packet is on its way out");
                device.handle_timeout(now);
                while let Some(output) = device.poll_output() {
                    let Output::Transmit { port, frame: Frame::Data(packet) } = output else { continue };
                    packets += 1;
                    let at = usize::from(port.0);
                    // What leaves at the other end makes room for the next one.
                    let from = packet.slid.0 as u8;
                    sent[at] += BLOCKS;
                    let vl = VirtualLane(0);
                    let fccl = (sent[at] + 1056) % 4096;
                    let flow_control = FlowControl { op: 0, fctbs: received[at], vl, fccl };
                    device.handle_input(now, Input::Arrive { port, frame: Frame::Credit(flow_control) });
                    let next = Input::Arrive { port: PortNum(from), frame: Frame::Data(hop(from, packets)) };
                    received[usize::from(from)] = (received[usize::from(from)] + BLOCKS) % 4096;
                    device.handle_input(now, next);
                }
            }
            device
        },
    );
}

/// Of 2074 bytes, in blocks of 64.
const BLOCKS: u16 = 33;

/// From behind `port` to behind some other one, a different one each time.
fn hop(port: u8, number: usize) -> DataPacket {
    let dlid = Lid(1 + (u16::from(port) + (number % 35) as u16) % 36);
    let (p_key, opcode) = (PKey::DEFAULT_FULL, opcode::RC_SEND_ONLY);
    DataPacket { slid: Lid(port.into()), dlid, p_key, opcode, payload: 2048, ..DataPacket::default() }
}
