//! Slots of virtual machines: which steps follow from which, and what they do to devices, cables and programs.

use weft_host::stack::{Notices, StackOptions};
use weft_machine::Time;
use weft_node::{
    Answer, DeviceId, LinkLoss, Output, PortId, Refusal, Request, SlotState, VmCommand, VmDone, VmIdentity,
    VmRefusal, VmStep,
};
use weft_wire::{Guid, NodeType, PKey, PortNum, PortState};
use world::World;

use crate::world;

fn identity(number: u64) -> VmIdentity {
    VmIdentity {
        guid: Guid(0xa000 + number),
        port_guid: Guid(0xb000 + number),
        description: format!("vm {number}"),
        p_keys: vec![PKey(0xffff)],
        rate_mbps: 0,
        weight: 1,
    }
}

/// A vSwitch with two slots behind ports 1 and 2.
fn adapter(empty: bool, has_host: bool) -> (World, DeviceId, [DeviceId; 2]) {
    let mut world = World::new(4096);
    let vswitch = world.add(NodeType::Switch);
    let slots = [world.add_slot(empty, has_host), world.add_slot(empty, has_host)];
    for (slot, port) in slots.iter().zip(1..) {
        world.connect((vswitch, port), (*slot, 1));
    }
    assert_eq!(world.ask(Request::Begin).0, Ok(Answer::Done));
    (world, vswitch, slots)
}

fn command(vm: &str, epoch: u64, step: VmStep) -> Box<VmCommand> {
    Box::new(VmCommand { vm: vm.to_owned(), epoch, step })
}

fn try_step(
    world: &mut World,
    slot: DeviceId,
    vm: &str,
    epoch: u64,
    step: VmStep,
) -> Result<VmDone, VmRefusal> {
    let before = world.node().slot(slot);
    match world.ask(Request::Vm { device: slot, command: command(vm, epoch, step) }).0 {
        Ok(Answer::Vm(done)) => Ok(*done),
        Err(Refusal::Vm(refusal)) => {
            assert_eq!(world.node().slot(slot), before, "a refusal changes nothing: {refusal}");
            assert!(!refusal.hint().is_empty());
            Err(refusal)
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn step(world: &mut World, slot: DeviceId, epoch: u64, step: VmStep) -> VmDone {
    try_step(world, slot, "web", epoch, step).unwrap()
}

fn state(world: &World, slot: DeviceId) -> SlotState {
    world.node().slot(slot).unwrap().state
}

fn at(device: DeviceId, port: u8) -> PortId {
    PortId::new(device, PortNum(port))
}

/// Takes `web` in an empty slot to a state, in epoch 1, or 2 where it is imported.
fn bring_to(world: &mut World, slot: DeviceId, wanted: SlotState) {
    match wanted {
        SlotState::Empty | SlotState::Free => {}
        SlotState::Reserved => {
            step(world, slot, 2, VmStep::Reserve);
        }
        SlotState::Running | SlotState::Frozen => {
            step(world, slot, 2, VmStep::Boot(identity(1)));
        }
        SlotState::Imported => {
            let import = VmStep::Import { identity: identity(1), from_epoch: 1, image: None };
            step(world, slot, 2, import);
        }
    }
    if wanted == SlotState::Frozen {
        step(world, slot, 2, VmStep::Freeze);
    }
    assert_eq!(state(world, slot), wanted);
}

#[test]
fn a_rate_comes_and_goes_with_the_virtual_machine() {
    for empty in [true, false] {
        let (mut world, _, slots) = adapter(empty, true);
        let limit = |world: &World, slot: DeviceId| world.node().device(slot).unwrap().host_limit_mbps();
        let own = world.node().slot(slots[0]).unwrap().identity;
        let limited = |rate_mbps| VmIdentity { rate_mbps, ..if empty { identity(1) } else { own.clone() } };
        // A free slot has the identity already, and its device another limit: it is made again.
        let booted = step(&mut world, slots[0], 1, VmStep::Boot(limited(2500)));
        assert_eq!((booted.slot.identity.rate_mbps, limit(&world, slots[0])), (2500, 2500), "empty: {empty}");
        assert!(booted.removed.is_some(), "empty: {empty}");
        step(&mut world, slots[0], 2, VmStep::Freeze);
        let image = step(&mut world, slots[0], 2, VmStep::Export).image;
        let import = VmStep::Import { identity: limited(2500), from_epoch: 2, image };
        step(&mut world, slots[1], 3, import);
        assert_eq!((limit(&world, slots[0]), limit(&world, slots[1])), (2500, 2500));
        step(&mut world, slots[0], 4, VmStep::Release { leave: None });
        step(&mut world, slots[1], 4, VmStep::Activate);
        assert_eq!((limit(&world, slots[0]), limit(&world, slots[1])), (0, 2500), "it has moved");
    }
}

/// Every step in every state: what it leads to, or that it is refused.
#[test]
fn steps_follow_from_states() {
    use SlotState::{Empty, Frozen, Imported, Reserved, Running};
    let import = || VmStep::Import { identity: identity(1), from_epoch: 1, image: None };
    let (release, unplug) = (|| VmStep::Release { leave: None }, || VmStep::Unplug { leave: None });
    type Make<'a> = &'a dyn Fn() -> VmStep;
    let steps: [(Make<'_>, [Option<SlotState>; 5]); 9] = [
        // From                          empty           running        frozen         imported        reserved
        (&|| VmStep::Boot(identity(1)), [Some(Running), Some(Running), Some(Frozen), Some(Imported), None]),
        (&|| VmStep::Reserve, [Some(Reserved), None, None, None, Some(Reserved)]),
        (&|| VmStep::Freeze, [None, Some(Frozen), Some(Frozen), None, None]),
        (&|| VmStep::Export, [None, None, Some(Frozen), None, None]),
        (&import, [Some(Imported), Some(Running), Some(Frozen), Some(Imported), Some(Imported)]),
        (&|| VmStep::Activate, [None, Some(Running), None, Some(Running), None]),
        (&release, [None, None, Some(Empty), None, None]),
        (&|| VmStep::Resume, [None, Some(Running), Some(Running), None, None]),
        (&unplug, [None, Some(Empty), Some(Empty), Some(Empty), Some(Empty)]),
    ];
    for (make, outcomes) in steps {
        for (from, wanted) in [Empty, Running, Frozen, Imported, Reserved].into_iter().zip(outcomes) {
            let (mut world, _, [slot, _]) = adapter(true, false);
            bring_to(&mut world, slot, from);
            let name = make().name();
            let got = try_step(&mut world, slot, "web", 2, make());
            assert_eq!(got.as_ref().ok().map(|done| done.slot.state), wanted, "{name} from {from}: {got:?}");
            if let Ok(got) = got {
                // Once more it is done already.
                let again = try_step(&mut world, slot, "web", 2, make());
                let again = again.unwrap_or_else(|refusal| panic!("{name} twice from {from}: {refusal}"));
                assert_eq!((again.slot, again.removed), (got.slot, None), "{name} twice from {from}");
            }
        }
    }
}

#[test]
fn an_empty_slot_is_down_and_an_identity_is_seen_at_its_port() {
    let (mut world, vswitch, [slot, other]) = adapter(true, true);
    assert_eq!(world.node().inner_links_up(), 0);
    let port = world.node().device(vswitch).unwrap().port_snapshot(PortNum(1)).unwrap();
    assert_eq!(port.state, PortState::Down);
    assert!(!world.node().is_plugged(at(slot, 1)));
    let (answer, outputs) =
        world.ask(Request::Vm { device: slot, command: command("web", 1, VmStep::Boot(identity(1))) });
    assert!(matches!(answer, Ok(Answer::Vm(_))), "{answer:?}");
    assert!(outputs.contains(&Output::LinkUp { at: at(vswitch, 1) }));
    assert_eq!(world.node().unplugged_slots(), 1);
    let seen = world.node().device(slot).unwrap().snapshot();
    assert_eq!((seen.guid, seen.description.as_str()), (Guid(0xa001), "vm 1"));
    assert_eq!(world.node().device(slot).unwrap().port_snapshot(PortNum(1)).unwrap().guid, Guid(0xb001));
    assert!(!world.node().is_link_up(at(other, 1)));

    // A fault that ends does not plug in what is not there.
    for plugged in [false, true] {
        world.ask(Request::Plug { at: at(other, 1), plugged }).0.unwrap();
    }
    assert!(!world.node().is_link_up(at(other, 1)));

    // A program in the virtual machine hears that it leaves, and the vSwitch that the link goes.
    let client = world.attach(slot);
    let (_, outputs) =
        world.ask(Request::Vm { device: slot, command: command("web", 1, VmStep::Unplug { leave: None }) });
    assert!(outputs.contains(&Output::Detached { client }));
    let down = |output: &Output| matches!(output, Output::LinkDown { at: end, cause: LinkLoss::CutByPeer } if *end == at(vswitch, 1));
    assert!(outputs.iter().any(down), "{outputs:?}");
    assert_eq!(world.node().inner_links_up(), 0);
    assert_eq!(world.node().slot(slot).unwrap().left, Some(("web".to_owned(), 1)));
}

#[test]
fn a_free_slot_with_the_identity_stays_plugged_in() {
    let (mut world, vswitch, [slot, other]) = adapter(false, true);
    assert_eq!(world.node().inner_links_up(), 2);
    let client = world.attach(slot);
    let own = world.node().slot(slot).unwrap().identity;
    let (answer, outputs) =
        world.ask(Request::Vm { device: slot, command: command("web", 1, VmStep::Boot(own.clone())) });
    let Ok(Answer::Vm(done)) = answer else { panic!("{answer:?}") };
    assert_eq!((done.slot.state, done.removed), (SlotState::Running, None));
    assert!(!outputs.contains(&Output::Detached { client }) && world.node().is_link_up(at(vswitch, 1)));
    // A move swaps its identity with that of a free slot.
    let free = world.node().slot(other).unwrap().identity;
    step(&mut world, slot, 1, VmStep::Freeze);
    assert!(world.node().is_link_up(at(vswitch, 1)), "a frozen function drains what arrives");
    let image = step(&mut world, slot, 1, VmStep::Export).image;
    assert!(!world.node().is_link_up(at(vswitch, 1)), "an exported one is unplugged");
    let import = VmStep::Import { identity: own.clone(), from_epoch: 1, image };
    step(&mut world, other, 2, import);
    // It is alive in one slot at most.
    let twice = try_step(&mut world, slot, "web", 3, VmStep::Resume).unwrap_err();
    assert_eq!(twice, VmRefusal::Elsewhere { vm: "web".to_owned(), state: SlotState::Imported });
    step(&mut world, other, 2, VmStep::Activate);
    step(&mut world, slot, 3, VmStep::Release { leave: Some(free.clone()) });
    assert_eq!(world.node().slot(slot).unwrap().identity, free);
    assert_eq!(world.node().slot(other).unwrap().identity, own);
    assert_eq!((state(&world, slot), state(&world, other)), (SlotState::Free, SlotState::Running));
    assert_eq!(world.node().inner_links_up(), 2);
}

#[test]
fn invalid_vm_steps_are_refused_with_a_reason() {
    let (mut world, vswitch, [slot, other]) = adapter(true, true);
    let boot = |number| VmStep::Boot(identity(number));
    let mut refused = |slot, vm: &str, epoch, step| try_step(&mut world, slot, vm, epoch, step).unwrap_err();
    assert_eq!(refused(vswitch, "web", 1, boot(1)), VmRefusal::NoSlot);
    for name in ["", "a\nb", &"x".repeat(65)] {
        assert_eq!(refused(slot, name, 1, boot(1)), VmRefusal::Name, "{name:?}");
    }
    assert_eq!(refused(slot, "web", 0, boot(1)), VmRefusal::Epoch);
    let zero = VmIdentity { guid: Guid(0), ..identity(1) };
    assert_eq!(refused(slot, "web", 1, VmStep::Boot(zero)), VmRefusal::Guid(Guid(0)));
    let taken = VmIdentity { port_guid: Guid(0x100), ..identity(1) };
    let owner = "device 0".to_owned();
    let taken = refused(slot, "web", 1, VmStep::Boot(taken));
    assert_eq!(taken, VmRefusal::GuidTaken { guid: Guid(0x100), owner });
    let many = VmIdentity { p_keys: vec![PKey(0xffff); 65], ..identity(1) };
    assert_eq!(refused(slot, "web", 1, VmStep::Boot(many)), VmRefusal::Partitions(65, 64));
    let backwards = VmStep::Import { identity: identity(1), from_epoch: 2, image: None };
    assert!(matches!(refused(slot, "web", 2, backwards), VmRefusal::OldEpoch { .. }));
    let text = refused(slot, "web", 1, VmStep::Freeze).to_string();
    assert_eq!(text, "virtual machine web is not in it: it is empty");

    step(&mut world, slot, 3, boot(1));
    let mut refused = |slot, vm: &str, epoch, step| try_step(&mut world, slot, vm, epoch, step).unwrap_err();
    let occupied = VmRefusal::Occupied { vm: "web".to_owned(), state: SlotState::Running };
    assert_eq!(refused(slot, "db", 3, boot(2)), occupied);
    assert_eq!(refused(other, "db", 1, boot(1)), {
        VmRefusal::GuidTaken { guid: Guid(0xa001), owner: "web".to_owned() }
    });
    let elsewhere = VmRefusal::Elsewhere { vm: "web".to_owned(), state: SlotState::Running };
    assert_eq!(refused(other, "web", 4, boot(1)), elsewhere);
    assert_eq!(refused(slot, "web", 3, boot(2)), VmRefusal::OtherIdentity { vm: "web".to_owned() });
    assert_eq!(refused(slot, "web", 2, VmStep::Freeze), VmRefusal::OldSlotEpoch { given: 2, known: 3 });
    let text = refused(slot, "web", 3, VmStep::Export).to_string();
    assert_eq!(text, "virtual machine web is running, and export needs it frozen");
    // Its epochs outlive it.
    step(&mut world, slot, 3, VmStep::Unplug { leave: None });
    let again = try_step(&mut world, other, "web", 3, boot(1)).unwrap_err();
    assert_eq!(again, VmRefusal::OldEpoch { vm: "web".to_owned(), given: 3, known: 3 });
    step(&mut world, other, 4, boot(1));
}

/// A foreign image, and one of another epoch, change nothing.
/// Partitions of its identity, whether it has used them or not, and whether it has host software or not.
#[test]
fn an_imported_vm_runs_only_with_its_partitions() {
    for has_host in [true, false] {
        let (mut world, _, slots) = adapter(true, has_host);
        let identity = VmIdentity { p_keys: vec![PKey(0xffff), PKey(0x8001)], ..identity(1) };
        step(&mut world, slots[0], 2, VmStep::Import { identity, from_epoch: 1, image: None });
        let refused = try_step(&mut world, slots[0], "web", 3, VmStep::Activate).unwrap_err();
        assert_eq!(refused, VmRefusal::Partition { vm: "web".to_owned(), p_key: PKey(0x8001) });
    }
}

#[test]
fn an_image_for_another_place_is_refused() {
    let (mut world, _, [slot, other]) = adapter(true, true);
    step(&mut world, slot, 1, VmStep::Boot(identity(1)));
    step(&mut world, slot, 1, VmStep::Freeze);
    let image = step(&mut world, slot, 1, VmStep::Export).image.unwrap();
    assert_eq!(step(&mut world, slot, 1, VmStep::Export).image.as_ref(), Some(&image), "asked for again");
    let import = |number, from_epoch| VmStep::Import {
        identity: identity(number),
        from_epoch,
        image: Some(image.clone()),
    };
    let mut refused = |epoch, step| try_step(&mut world, other, "web", epoch, step).unwrap_err().to_string();
    assert!(refused(2, import(2, 1)).contains("the image is of port 0x000000000000b001"));
    assert!(refused(4, import(1, 3)).contains("the image is of epoch 1, and the move is from epoch 3"));
    assert_eq!(state(&world, other), SlotState::Empty);
    step(&mut world, other, 2, import(1, 1));
    assert!(world.node().stack(at(other, 1)).unwrap().is_suspended());
    assert_eq!(world.node().stack(at(other, 1)).unwrap().epoch(), 2);
}

/// A slot remembers the highest epoch, whoever was in it: what is late does nothing.
#[test]
fn a_late_command_is_refused_by_the_epoch_of_the_slot() {
    let (mut world, _, [slot, _]) = adapter(true, true);
    step(&mut world, slot, 1, VmStep::Boot(identity(1)));
    step(&mut world, slot, 5, VmStep::Freeze);
    step(&mut world, slot, 7, VmStep::Resume);
    let old = |given, known| VmRefusal::OldSlotEpoch { given, known };
    assert_eq!(try_step(&mut world, slot, "web", 5, VmStep::Freeze).unwrap_err(), old(5, 7));
    step(&mut world, slot, 8, VmStep::Unplug { leave: None });
    assert_eq!(try_step(&mut world, slot, "db", 6, VmStep::Boot(identity(2))).unwrap_err(), old(6, 8));
    assert_eq!(try_step(&mut world, slot, "db", 6, VmStep::Reserve).unwrap_err(), old(6, 8));
    let booted = try_step(&mut world, slot, "db", 9, VmStep::Boot(identity(2))).unwrap();
    assert_eq!((booted.slot.state, booted.slot.epoch), (SlotState::Running, 9));
}

/// A manager clears a slot without knowing what is in it, and lays an identity there; one that is there stays plugged in.
#[test]
fn a_slot_is_cleared_whatever_is_in_it() {
    let (mut world, vswitch, [slot, other]) = adapter(false, true);
    let clear = |leave| VmStep::Unplug { leave };
    let own = world.node().slot(slot).unwrap().identity;
    let client = world.attach(slot);
    let (answer, outputs) =
        world.ask(Request::Vm { device: slot, command: command("", 2, clear(Some(own.clone()))) });
    let Ok(Answer::Vm(done)) = answer else { panic!("{answer:?}") };
    assert_eq!((done.slot.state, done.slot.epoch, done.removed), (SlotState::Free, 2, None));
    assert!(!outputs.contains(&Output::Detached { client }) && world.node().is_link_up(at(vswitch, 1)));
    // The identities of two free slots change places.
    let free = world.node().slot(other).unwrap().identity;
    try_step(&mut world, slot, "", 3, clear(None)).unwrap();
    assert_eq!(state(&world, slot), SlotState::Empty);
    try_step(&mut world, other, "", 3, clear(Some(own.clone()))).unwrap();
    try_step(&mut world, slot, "", 4, clear(Some(free.clone()))).unwrap();
    assert_eq!(world.node().slot(slot).unwrap().identity, free);
    assert_eq!(world.node().slot(other).unwrap().identity, own);
    try_step(&mut world, slot, "web", 5, VmStep::Reserve).unwrap();
    assert!(world.node().is_link_up(at(vswitch, 1)), "a slot that is kept stays as it is");
    try_step(&mut world, slot, "", 6, clear(Some(free.clone()))).unwrap();
    assert_eq!((state(&world, slot), world.node().slot(slot).unwrap().vm), (SlotState::Free, None));
    // Once more it is done already.
    let again = try_step(&mut world, slot, "", 6, clear(None)).unwrap();
    assert_eq!(again.slot.state, SlotState::Free);
}

/// A host that begins with its machine's first flow has the options of its slot, also where the machine moves to.
#[test]
fn a_host_that_began_late_keeps_its_options() {
    let options =
        StackOptions { notices: Notices::None, ack_timeout: Time::from_secs(7), ..Default::default() };
    let mut world = World::new(4096);
    let vswitch = world.add(NodeType::Switch);
    let [slot, other] = [world.add_late_slot(&options), world.add_late_slot(&options)];
    world.connect((vswitch, 1), (slot, 1));
    world.connect((vswitch, 2), (other, 1));
    assert_eq!(world.ask(Request::Begin).0, Ok(Answer::Done));
    step(&mut world, slot, 1, VmStep::Boot(identity(1)));
    assert!(world.node().stack(at(slot, 1)).is_none(), "no flow has begun");
    let start = Request::StartHost { at: at(slot, 1), options: options.clone() };
    assert_eq!(world.ask(start).0, Ok(Answer::Done));
    step(&mut world, slot, 1, VmStep::Freeze);
    let image = step(&mut world, slot, 1, VmStep::Export).image;
    step(&mut world, other, 2, VmStep::Import { identity: identity(1), from_epoch: 1, image });
    let arrived = world.node().stack(at(other, 1)).expect("its host comes along").options();
    assert_eq!((arrived.notices, arrived.ack_timeout), (options.notices, options.ack_timeout));
}

/// A machine that was shut down has no image: it begins again where it is activated.
#[test]
fn a_cold_machine_arrives_without_an_image() {
    let (mut world, _, [slot, _]) = adapter(true, true);
    step(&mut world, slot, 1, VmStep::Reserve);
    step(&mut world, slot, 2, VmStep::Import { identity: identity(1), from_epoch: 1, image: None });
    assert!(world.node().stack(at(slot, 1)).unwrap().is_suspended());
    step(&mut world, slot, 3, VmStep::Activate);
    let stack = world.node().stack(at(slot, 1)).unwrap();
    assert_eq!((stack.is_suspended(), stack.epoch()), (false, 3));
}
