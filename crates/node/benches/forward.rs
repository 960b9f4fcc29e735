//! Cost of a packet that crosses a node: over cables that the node knows of, as an agent's are, and without, as in the simulator.
//!
//! A node asks for each packet that comes over a cable whether anything is wrong with that. Nowhere else is there less work beside it.

use divan::counter::ItemsCount;
use weft_device::{DeviceConfig, DeviceOptions, PortConfig};
use weft_machine::{Machine, Time};
use weft_node::{
    Answer, Client, Frame, Input, NewDevice, Node, NodeOptions, Output, PortId, Request, RequestId,
};
use weft_wire::{
    AddressedMad, AttributeId, DirectedSmp, Guid, Lid, LinearForwardingTable, LinkParameters, Mad, MadHeader,
    MadRoute, Method, MgmtClass, NodeType, Packet, PortNum, Smp, SwitchInfo, TransactionId,
};

const LINK: LinkParameters = LinkParameters { width: 2, speed: 4, speed_ext: 0 };
const PORTS: u8 = 36;
const PACKETS: usize = 10_000;

fn main() {
    divan::main();
}

/// By LID from port 1 to port 2, each with a cable to another agent.
#[divan::bench]
fn over_cables(bencher: divan::Bencher<'_, '_>) {
    forward(bencher, true);
}

/// The same where the node knows of no cable.
#[divan::bench]
fn without_cables(bencher: divan::Bencher<'_, '_>) {
    forward(bencher, false);
}

fn forward(bencher: divan::Bencher<'_, '_>, is_cabled: bool) {
    // All different: the same one over and over would be taken for one that goes round.
    let packets = (0..PACKETS as u64).map(|transaction| {
        let mut mad = Mad::default();
        Smp::transaction_id.set(&mut mad.0, TransactionId(transaction));
        Frame::Packet(Packet::from_mad(&MadRoute::smp(Lid(7), Lid(3)), &mad))
    });
    let packets: Vec<Frame> = packets.collect();
    let inputs = || {
        let (node, at) = switch(is_cabled);
        (node, at, packets.clone())
    };
    bencher.counter(ItemsCount::new(PACKETS)).with_inputs(inputs).bench_local_values(
        |(mut node, at, frames)| {
            let mut sent = 0;
            for frame in frames {
                node.handle_input(Time::ZERO, Input::Arrived { at, frame });
                while let Some(output) = node.poll_output() {
                    sent += usize::from(matches!(output, Output::Transmit { .. }));
                }
            }
            assert_eq!(sent, PACKETS);
            node
        },
    );
}

/// A 36-port switch that sends LIDs 1 to 63 out of port 2, and its port 1.
fn switch(is_cabled: bool) -> (Node, PortId) {
    let mut node = Node::new(NodeOptions::default());
    let new = NewDevice { config: config(), incarnation: 1, hosts: Vec::new(), stack: None };
    let Answer::Device(device) = ask(&mut node, Request::AddDevice(new)) else { panic!("a device") };
    let at = |port| PortId::new(device, PortNum(port));
    for port in 1..=PORTS {
        if is_cabled {
            ask(&mut node, Request::Lead { at: at(port), delay: Time::ZERO });
        }
        feed(&mut node, Input::LinkUp { at: at(port), peer: LINK });
    }
    let program = Request::Attach { at: at(0), registrations: Vec::new(), is_sm: false };
    let Answer::Client(client) = ask(&mut node, program) else { panic!("a client") };
    let table = LinearForwardingTable { ports: [PortNum(2); 64] }.encode();
    let info = SwitchInfo { linear_fdb_top: 63, life_time_value: 20, ..SwitchInfo::default() }.encode();
    set(&mut node, client, AttributeId::LinearForwardingTable, &table);
    set(&mut node, client, AttributeId::SwitchInfo, &info);
    (node, at(1))
}

fn config() -> DeviceConfig {
    DeviceConfig {
        kind: NodeType::Switch,
        guid: Guid(1),
        system_image_guid: Guid(1),
        description: "bench".into(),
        vendor_id: 1,
        device_id: 1,
        enhanced_port0: false,
        ports: vec![PortConfig { guid: Guid(1), link: LINK }; usize::from(PORTS)],
        options: DeviceOptions::default(),
    }
}

fn set(node: &mut Node, client: Client, attribute_id: AttributeId, data: &[u8]) {
    let mut mad = Mad::default();
    mad.set_header(&MadHeader {
        base_version: 1,
        mgmt_class: MgmtClass::SubnDirected,
        class_version: 1,
        method: Method::Set,
        attribute_id,
        ..MadHeader::default()
    });
    DirectedSmp::dr_slid.set(&mut mad.0, Lid::PERMISSIVE);
    DirectedSmp::dr_dlid.set(&mut mad.0, Lid::PERMISSIVE);
    mad.set_smp_data(data);
    let mad = Box::new(AddressedMad::smp(Lid::PERMISSIVE, mad));
    feed(node, Input::Send { client, mad });
}

fn feed(node: &mut Node, input: Input) -> Vec<Output> {
    node.handle_input(Time::ZERO, input);
    std::iter::from_fn(|| node.poll_output()).collect()
}

fn ask(node: &mut Node, request: Request) -> Answer {
    let outputs = feed(node, Input::Request { id: RequestId(1), request: Box::new(request) });
    let answer = outputs.into_iter().find_map(|output| match output {
        Output::Answer { outcome, .. } => outcome.ok(),
        _ => None,
    });
    answer.expect("what is asked can be done")
}
