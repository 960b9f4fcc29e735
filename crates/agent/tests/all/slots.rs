//! Slots of virtual machines in agents, by their control protocol.

use common::{Fabric, HCA_A, HCA_B, HCA_C, PATIENCE, Running, SWITCH, end, node_at, port_end};
use weft_agent_config::SlotConfig;
use weft_control::traffic::{Command, Destination, FlowId, FlowSpec, PathSource, Transport, Work};
use weft_control::vm::{Departed, ImagePart, Slot, SlotState, VmIdentity, VmOrder, VmStep};
use weft_control::{Answer, Error, ErrorCode, HexBytes, HexGuid, Incarnation, Page, Request};
use weft_host::stack::StackOptions;
use weft_umad::ServerMessage;
use weft_wire::Guid;

use crate::common;

const VM: Guid = Guid(0x77);
const VM_PORT: Guid = Guid(0x78);

/// One agent with an adapter: a host at A, a vSwitch, and two empty slots at B and C.
fn fabric() -> Fabric {
    let mut fabric = Fabric::new(&[&[HCA_A, SWITCH, HCA_B, HCA_C]], 500);
    let part = &mut fabric.agents[0].part;
    part.hosts = Some(StackOptions::default());
    part.slots = [HCA_B, HCA_C].map(|guid| SlotConfig { guid, empty: true }).to_vec();
    fabric
}

fn start(fabric: &Fabric) -> Running {
    let agent = fabric.start().remove(0);
    agent.await_link(end(HCA_A, 1), true);
    agent
}

fn incarnation(agent: &Running) -> Incarnation {
    match agent.ask(Request::Hello) {
        Answer::Hello(hello) => hello.identity.incarnation,
        other => panic!("{other:?}"),
    }
}

fn slots(agent: &Running) -> Vec<Slot> {
    match agent.ask(Request::Slots(Page::default())) {
        Answer::Slots { slots, more: false, .. } => slots,
        other => panic!("{other:?}"),
    }
}

fn order(agent: &Running, slot: Guid, epoch: u64, step: VmStep) -> VmOrder {
    let (incarnation, slot) = (incarnation(agent), HexGuid(slot));
    VmOrder { incarnation, generation: 1, manager: String::new(), slot, vm: "web".to_owned(), epoch, step }
}

fn try_step(
    agent: &Running,
    slot: Guid,
    epoch: u64,
    step: VmStep,
) -> Result<(Slot, Option<ImagePart>), Error> {
    match agent.try_ask(Request::Vm(Box::new(order(agent, slot, epoch, step))))? {
        Answer::Vm { slot, image } => Ok((*slot, image)),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn step(agent: &Running, slot: Guid, epoch: u64, step: VmStep) -> Slot {
    try_step(agent, slot, epoch, step).unwrap().0
}

fn identity() -> VmIdentity {
    VmIdentity {
        node: HexGuid(VM),
        port: HexGuid(VM_PORT),
        description: "web".to_owned(),
        p_keys: Vec::new(),
        rate_mbps: 0,
        weight: 1,
    }
}

fn boot() -> VmStep {
    VmStep::Boot { identity: identity() }
}

fn import(image_bytes: u32) -> VmStep {
    VmStep::Import { identity: identity(), from_epoch: 1, image_bytes }
}

/// A flow of the virtual machine, so that there is something to move.
fn open_flow(agent: &Running) {
    let spec = FlowSpec {
        flow: FlowId(7),
        to: Destination::One(Guid(HCA_A.0 + 1)),
        transport: Transport::ReliableConnection,
        work: Work::Stream,
        message_bytes: 4096,
        packet_bytes: 2048,
        bytes_per_second: None,
        bytes_max: None,
        paths: PathSource::PathRecord,
        move_by: Default::default(),
    };
    let command = Command::Open(spec);
    assert_eq!(agent.ask(Request::Host { end: port_end(end(VM, 1)), command }), Answer::Done);
}

/// The whole image of the frozen virtual machine, in parts.
fn exported(agent: &Running, slot: Guid) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let offset = u32::try_from(bytes.len()).unwrap();
        let part = try_step(agent, slot, 1, VmStep::Export { offset }).unwrap().1.unwrap();
        assert_eq!(part.offset, offset);
        bytes.extend(part.bytes.0);
        if bytes.len() == part.total as usize {
            return bytes;
        }
    }
}

#[test]
fn a_virtual_machine_boots_moves_to_another_agent_and_leaves() {
    let fabrics = [fabric(), fabric()];
    let [here, there] = fabrics.each_ref().map(start);
    let first = slots(&here);
    assert_eq!(first.iter().map(|slot| slot.slot.0).collect::<Vec<_>>(), [HCA_B, HCA_C]);
    assert!(first.iter().all(|slot| slot.state == SlotState::Empty && !slot.plugged && slot.epoch == 0));
    assert_eq!((first[0].vswitch.0, first[0].vswitch_port), (SWITCH, 2));
    let status = here.status();
    assert_eq!((status.links_up, status.cable_ends), (2, 2), "cables of empty slots are not waited for");

    let slot = step(&here, HCA_B, 1, boot());
    assert_eq!(
        (slot.state, slot.vm.as_deref(), slot.identity),
        (SlotState::Running, Some("web"), identity())
    );
    here.await_link(end(VM, 1), true);
    let port = here.port(end(SWITCH, 2));
    assert_eq!((port.peer, port.link_up), (Some(port_end(end(VM, 1))), true));
    let port = here.port(end(VM, 1)).slot.unwrap();
    assert_eq!((port.slot.0, port.state), (HCA_B, SlotState::Running));
    // Programs find it by its GUID, and by the slot's.
    let mut inside = here.attach(VM, 1);
    assert_eq!(node_at(&mut here.attach(HCA_B, 1), &[]), VM);
    assert_eq!(node_at(&mut here.attach(HCA_A, 1), &[1, 2]), VM, "seen over the vSwitch");
    open_flow(&here);

    assert_eq!(step(&here, HCA_B, 1, VmStep::Freeze).state, SlotState::Frozen);
    here.await_link(end(VM, 1), true);
    let image = exported(&here, HCA_B);
    assert!(!here.port(end(VM, 1)).link_up, "an exported function is unplugged");
    assert_eq!(exported(&here, HCA_B), image, "and can be exported again");
    let part = VmStep::Part { offset: 0, bytes: HexBytes(image.clone()) };
    assert_eq!(step(&there, HCA_C, 2, part).state, SlotState::Empty);
    let total = u32::try_from(image.len()).unwrap();
    assert_eq!(step(&there, HCA_C, 2, import(total)).state, SlotState::Imported);
    assert_eq!(step(&there, HCA_C, 2, import(total)).state, SlotState::Imported, "once more");
    assert_eq!(step(&there, HCA_C, 2, VmStep::Activate).state, SlotState::Running);
    let Answer::Flows { hosts, .. } = there.ask(Request::Flows(Page::default())) else { panic!() };
    let moved = hosts.iter().find(|host| host.end == port_end(end(VM, 1))).unwrap();
    assert_eq!(
        moved.flows.iter().map(|flow| flow.flow).collect::<Vec<_>>(),
        [FlowId(7)],
        "its flows came along"
    );

    let slot = step(&here, HCA_B, 1, VmStep::Release { leave: None });
    let left = Some(Departed { vm: "web".to_owned(), epoch: 1 });
    assert_eq!((slot.state, slot.identity.node.0, slot.left), (SlotState::Empty, HCA_B, left));
    // What was attached to it hears that it has left.
    let gone = loop {
        match inside.recv(PATIENCE).unwrap().expect("a word before the end") {
            ServerMessage::Refused { reason } => break reason,
            _ => continue,
        }
    };
    assert_eq!(gone, "the node is gone");
    let account = |agent: &Running| match agent.ask(Request::Account(Page::default())) {
        Answer::Account { devices, .. } => devices,
        other => panic!("{other:?}"),
    };
    assert!([&here, &there].into_iter().flat_map(account).all(|device| device.sound));
    [here, there].into_iter().for_each(Running::stop);
}

#[test]
fn orders_of_other_lives_and_bad_images_are_refused_in_words() {
    let fabric = fabric();
    let agent = start(&fabric);
    let ask = |order: VmOrder| agent.try_ask(Request::Vm(Box::new(order)));
    let good = order(&agent, HCA_B, 1, boot());
    let code_of = |order: VmOrder, words: &str| {
        let error = ask(order).unwrap_err();
        assert!(error.message.contains(words), "{}", error.message);
        assert!(error.hint.is_some(), "{}", error.message);
        error.code
    };
    let other = VmOrder { incarnation: Incarnation(good.incarnation.0 - 1), ..good.clone() };
    assert_eq!(code_of(other, "another life of this agent"), ErrorCode::Conflict);
    let nowhere = VmOrder { slot: HexGuid(HCA_A), ..good.clone() };
    assert_eq!(code_of(nowhere, "there is no slot 0x00000000000000a0 here"), ErrorCode::NotFound);
    let unnamed = VmOrder { vm: String::new(), ..good.clone() };
    assert_eq!(code_of(unnamed, "1 to 64 printable bytes"), ErrorCode::InvalidRequest);
    let frozen = VmOrder { step: VmStep::Freeze, ..good.clone() };
    assert_eq!(code_of(frozen, "virtual machine web is not in it: it is empty"), ErrorCode::NotFound);
    assert!(ask(VmOrder { generation: 5, ..good.clone() }).is_ok());
    // Another piece's manager has lives of its own.
    let second = |generation| VmOrder { generation, manager: "vmm-2".to_owned(), ..good.clone() };
    assert!(ask(second(2)).is_ok());
    assert!(ask(second(1)).is_err());
    assert_eq!(code_of(good.clone(), "generation 1 of the manager"), ErrorCode::Conflict);

    // From here on by the later manager. Images come from a virtual machine of another slot.
    let by =
        |slot: Guid, epoch, step| VmOrder { generation: 5, epoch, slot: HexGuid(slot), step, ..good.clone() };
    ask(by(HCA_B, 1, VmStep::Freeze)).unwrap();
    let Answer::Vm { image: Some(part), .. } = ask(by(HCA_B, 1, VmStep::Export { offset: 0 })).unwrap()
    else {
        panic!("an image")
    };
    let beyond = by(HCA_B, 1, VmStep::Export { offset: part.total + 1 });
    assert_eq!(code_of(beyond, "byte"), ErrorCode::InvalidRequest);
    let total = part.total;
    assert_eq!(code_of(by(HCA_C, 2, import(total)), "and 0 are here"), ErrorCode::Conflict);
    let mut damaged = part.bytes.0.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let images = [
        (damaged, "damaged"),
        (vec![0xff; part.bytes.0.len()], "image"),
        (part.bytes.0[..part.bytes.0.len() - 1].to_vec(), "image is cut short or damaged"),
    ];
    for (bytes, words) in images {
        let total = u32::try_from(bytes.len()).unwrap();
        ask(by(HCA_C, 2, VmStep::Part { offset: 0, bytes: HexBytes(bytes) })).unwrap();
        code_of(by(HCA_C, 2, import(total)), words);
        assert_eq!(slots(&agent)[1].state, SlotState::Empty, "nothing has changed");
    }
    let gap = by(HCA_C, 2, VmStep::Part { offset: 1 << 20, bytes: HexBytes(vec![1]) });
    assert_eq!(code_of(gap, "the part begins at byte"), ErrorCode::Conflict);
    agent.stop();
}

/// Virtual machines end with their agent, whose slots are then as at the start.
#[test]
fn a_killed_agent_comes_back_with_empty_slots_in_another_life() {
    let fabric = fabric();
    let agent = start(&fabric);
    let before = order(&agent, HCA_B, 1, VmStep::Freeze);
    step(&agent, HCA_B, 1, boot());
    agent.kill();
    let agent = start(&fabric);
    assert!(slots(&agent).iter().all(|slot| slot.state == SlotState::Empty && slot.left.is_none()));
    let late = agent.try_ask(Request::Vm(Box::new(before))).unwrap_err();
    assert!(late.message.contains("another life of this agent"), "{}", late.message);
    agent.stop();
}

/// A slot stays empty in the agent's next life, if its own identity may run on another host.
#[test]
fn a_departed_identity_stays_away_when_its_agent_restarts() {
    let mut fabric = fabric();
    fabric.agents[0].part.slots.iter_mut().for_each(|slot| slot.empty = false);
    let agent = start(&fabric);
    let own = slots(&agent)[0].identity.clone();
    assert_eq!(slots(&agent).iter().map(|slot| slot.state).collect::<Vec<_>>(), [SlotState::Free; 2]);
    step(&agent, HCA_B, 1, VmStep::Boot { identity: own });
    agent.kill();
    let agent = start(&fabric);
    assert_eq!(slots(&agent)[0].state, SlotState::Free, "what ran here ended here");
    let own = slots(&agent)[0].identity.clone();
    step(&agent, HCA_B, 1, VmStep::Boot { identity: own });
    step(&agent, HCA_B, 1, VmStep::Freeze);
    exported(&agent, HCA_B);
    agent.kill();
    let agent = start(&fabric);
    assert_eq!(
        slots(&agent).iter().map(|slot| slot.state).collect::<Vec<_>>(),
        [SlotState::Empty, SlotState::Free]
    );
    agent.stop();
}
