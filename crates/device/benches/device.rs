//! What one packet costs in a switch.

use divan::counter::ItemsCount;
use weft_device::{ClientId, Device, DeviceConfig, DeviceOptions, Input, Output, PortConfig};
use weft_machine::{Machine, Time};
use weft_wire::{
    AddressedMad, AttributeId, DirectedSmp, Guid, Lid, LinearForwardingTable, LinkParameters, Mad, MadHeader,
    MadRoute, Method, MgmtClass, NodeType, Packet, PortNum, SwitchInfo,
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
    std::iter::from_fn(|| device.poll_output()).filter(|o| matches!(o, Output::Transmit { .. })).count()
}

/// A 36-port switch that sends LIDs 1 to 63 out of port 2.
fn switch() -> Device {
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
        options: DeviceOptions::default(),
    });
    for port in 1..=36 {
        device.handle_input(Time::ZERO, Input::LinkUp { port: PortNum(port), peer: link });
    }
    let client = ClientId(1);
    device.handle_input(Time::ZERO, Input::Attach { client, port: PortNum(0), registrations: Vec::new() });
    let table = LinearForwardingTable { ports: [PortNum(2); 64] }.encode();
    let info = SwitchInfo { linear_fdb_top: 63, ..SwitchInfo::default() }.encode();
    for mad in [
        smp(Method::Set, AttributeId::LinearForwardingTable, &table, &[]),
        smp(Method::Set, AttributeId::SwitchInfo, &info, &[]),
    ] {
        let mad = AddressedMad::smp(Lid::PERMISSIVE, mad);
        device.handle_input(Time::ZERO, Input::Send { client, mad });
    }
    drain(&mut device);
    device
}

fn run(bencher: divan::Bencher<'_, '_>, packet: &Packet) {
    bencher
        .counter(ItemsCount::new(PACKETS))
        .with_inputs(|| (switch(), vec![packet.clone(); PACKETS]))
        .bench_local_values(|(mut device, packets)| {
            let mut sent = 0;
            for packet in packets {
                device.handle_input(Time::ZERO, Input::Receive { port: PortNum(1), packet });
                sent += drain(&mut device);
            }
            assert_eq!(sent, PACKETS);
            device
        });
}

/// A packet with a MAD, by LID from port 1 to port 2.
#[divan::bench]
fn forward_by_lid(bencher: divan::Bencher<'_, '_>) {
    run(bencher, &Packet::from_mad(&MadRoute::smp(Lid(7), Lid(3)), &Mad::default()));
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
