//! Subnet managers that die while machines move: whoever takes over, a machine keeps its LID.

use weft_sim::{RandomLoss, Rule, StandbyOptions, Verdict};
use weft_wire::{AttributeId, Method, Packet};

use super::*;

/// A standby takes over within this time, and has heard of all machines.
const TAKES_OVER: Time = Time::from_secs(8);

/// Managers that poll as quickly as a laboratory does that is made for takeovers, at these hosts besides the first one.
fn managed(is_dynamic: bool, standbys: &[&str]) -> Simulation {
    fabric_with(is_dynamic, |fabric, options| {
        (options.sm.election.polling_ms, options.sm.election.polling_retries) = (500, 2);
        options.standbys = standbys
            .iter()
            .map(|host| StandbyOptions { port: port(fabric.find(host).unwrap()), priority: 0, sm_key: None })
            .collect();
    })
}

/// The manager that is in charge dies.
#[track_caller]
fn kill_master(simulation: &mut Simulation) -> Process<NodeIndex> {
    let master = simulation.master().expect("a subnet manager is in charge");
    simulation.apply(Fault::Kill(master));
    master
}

/// Lets time pass until another subnet manager is in charge.
#[track_caller]
fn until_taken_over(simulation: &mut Simulation, dead: Process<NodeIndex>) {
    let limit = simulation.now() + TAKES_OVER;
    while simulation.master().is_none_or(|master| master == dead) {
        assert!(simulation.now() < limit, "no one takes over");
        pass(simulation, Time::from_millis(1));
    }
}

fn lid_of(simulation: &Simulation, vm: &str) -> Lid {
    lid(simulation, place(simulation, vm))
}

/// The LID that the VM manager lists.
fn listed(simulation: &mut Simulation, vm: &str) -> u16 {
    let Ok(Reply::List(list)) = ask(simulation, Request::List) else { panic!("a list") };
    list.iter().find(|port| port.vm == vm).expect("it is listed").virtual_port_lid
}

/// The subnet manager dies, and at once a machine is asked to move.
#[test]
fn a_move_waits_for_the_successor_of_a_dead_manager() {
    for is_dynamic in [true, false] {
        let mut simulation = managed(is_dynamic, &["host-6"]);
        create(&mut simulation, "web", "host-0");
        let before = lid_of(&simulation, "web");
        kill_master(&mut simulation);
        pass(&mut simulation, Time::from_millis(100));
        let migration = moved(ask(&mut simulation, migrate("web", "host-15", Time::ZERO)));
        assert!(migration.counts.is_some(), "it was moved, not left to a sweep: {migration:?}");
        let downtime = migration.stages.downtime.unwrap();
        assert!(downtime < Time::from_millis(100), "it runs until someone holds its address: {downtime}");
        quiet(&mut simulation);
        assert_eq!(lid_of(&simulation, "web"), before);
    }
}

/// No one takes over: the machine runs on where it is, and the client hears why.
#[test]
fn without_a_successor_the_move_ends_with_the_reason() {
    let mut simulation = fabric(true);
    create(&mut simulation, "web", "host-0");
    let (before, there) = (lid_of(&simulation, "web"), place(&simulation, "web"));
    kill_master(&mut simulation);
    let Err(error) = ask(&mut simulation, migrate("web", "host-15", Time::ZERO)) else { panic!("it moves") };
    assert!(
        error.to_string().contains("no subnet manager runs at LID") && error.hint().is_some(),
        "{error:?}"
    );
    assert_eq!((lid_of(&simulation, "web"), place(&simulation, "web")), (before, there));
}

/// The subnet manager dies at a step of the move, with `more` dead besides, and others boot while there is none.
#[track_caller]
fn killed_within(is_dynamic: bool, step: Step, more: &[Process<NodeIndex>], after: Time) {
    let mut simulation = managed(is_dynamic, &["host-6"]);
    create(&mut simulation, "web", "host-0");
    create(&mut simulation, "db", "host-7");
    let before = [lid_of(&simulation, "web"), lid_of(&simulation, "db")];
    let id = simulation.ask_vmm(migrate("web", "host-15", Time::from_millis(20))).unwrap();
    until_said(&mut simulation, comes_to(step));
    pass(&mut simulation, after);
    let dead = kill_master(&mut simulation);
    more.iter().for_each(|process| simulation.apply(Fault::Kill(*process)));
    if more.is_empty() {
        // It boots where no one gives LIDs, and must not get the one of the machine that is away.
        let made = Create::new("late".parse().unwrap(), Some("host-3".parse().unwrap()));
        simulation.ask_vmm(Request::Create(made)).unwrap();
    }
    until_taken_over(&mut simulation, dead);
    pass(&mut simulation, Time::from_secs(5));
    more.iter().for_each(|process| simulation.apply(Fault::Restart(*process)));
    quiet(&mut simulation);
    let now = [lid_of(&simulation, "web"), lid_of(&simulation, "db")];
    assert_eq!(now, before, "{step}, {more:?}, dynamic LIDs: {is_dynamic}");
    assert_eq!(listed(&mut simulation, "web"), before[0].0, "{step}");
    if more.is_empty() {
        moved(answer(&mut simulation, id));
        let late = lid_of(&simulation, "late");
        assert!(late.is_unicast() && !before.contains(&late), "{late}");
    }
}

const STEPS: [Step; 5] = [Step::Reserve, Step::Freeze, Step::Import, Step::Reroute, Step::Commit];

#[test]
fn a_machine_keeps_its_lid_when_the_manager_dies_in_its_move() {
    for step in STEPS {
        killed_within(true, step, &[], Time::ZERO);
    }
}

#[test]
fn a_prepopulated_lid_stays_when_the_manager_dies_in_a_move() {
    for step in STEPS {
        killed_within(false, step, &[], Time::ZERO);
    }
}

/// Some of the move's rows are written.
#[test]
fn a_lid_stays_when_the_manager_dies_between_two_writes() {
    for micros in [510, 530, 560, 600, 650] {
        killed_within(true, Step::Reroute, &[], Time::from_micros(micros));
    }
}

#[test]
fn a_lid_stays_when_the_vm_manager_is_dead_too() {
    for step in STEPS {
        killed_within(true, step, &[Process::Vmm], Time::ZERO);
    }
}

/// The next one dies when it has swept, before it has moved anything.
#[test]
fn a_lid_stays_over_two_takeovers_in_a_row() {
    for step in STEPS {
        let mut simulation = managed(true, &["host-6", "host-11"]);
        create(&mut simulation, "web", "host-0");
        let before = lid_of(&simulation, "web");
        simulation.ask_vmm(migrate("web", "host-15", Time::from_millis(20))).unwrap();
        until_said(&mut simulation, comes_to(step));
        let first = kill_master(&mut simulation);
        until_taken_over(&mut simulation, first);
        pass(&mut simulation, Time::from_millis(20));
        let second = kill_master(&mut simulation);
        until_taken_over(&mut simulation, second);
        pass(&mut simulation, Time::from_secs(3));
        // The first one is back, with a file that is older than the move.
        simulation.apply(Fault::Restart(first));
        quiet(&mut simulation);
        assert_eq!(lid_of(&simulation, "web"), before, "{step}");
    }
}

/// The standby is switched on while the machine is on its way: it has seen it nowhere.
#[test]
fn a_lid_stays_under_a_standby_that_never_saw_the_machine() {
    let mut simulation = managed(true, &["host-6"]);
    let standby = if simulation.master() == Some(Process::Sm) { Process::Standby(0) } else { Process::Sm };
    simulation.apply(Fault::Kill(standby));
    create(&mut simulation, "web", "host-0");
    let before = lid_of(&simulation, "web");
    simulation.ask_vmm(migrate("web", "host-15", Time::from_secs(10))).unwrap();
    until_said(&mut simulation, comes_to(Step::Freeze));
    pass(&mut simulation, Time::from_secs(1));
    simulation.apply(Fault::Restart(standby));
    pass(&mut simulation, Time::from_secs(3));
    kill_master(&mut simulation);
    until_said(&mut simulation, comes_to(Step::Done));
    quiet(&mut simulation);
    assert_eq!(lid_of(&simulation, "web"), before);
}

/// A machine that the first manager has never seen got a LID that is on its file for one that is gone.
#[test]
fn a_manager_with_an_old_file_takes_lids_from_ports() {
    let mut simulation = managed(true, &["host-6"]);
    create(&mut simulation, "old", "host-3");
    let first = kill_master(&mut simulation);
    until_taken_over(&mut simulation, first);
    quiet(&mut simulation);
    let ended = ask(&mut simulation, Request::Destroy("old".parse().unwrap()));
    assert_eq!(ended, Ok(Reply::Destroyed));
    pass(&mut simulation, Time::from_secs(60));
    create(&mut simulation, "web", "host-0");
    let before = lid_of(&simulation, "web");
    kill_master(&mut simulation);
    pass(&mut simulation, Time::from_secs(1));
    simulation.apply(Fault::Restart(first));
    quiet(&mut simulation);
    assert_eq!(lid_of(&simulation, "web"), before);
}

/// Managers hear nothing of each other, and what one of them writes to switches is late. Ports of machines come after those.
struct Apart {
    late: Option<PortRef>,
}

/// How late. It is asked again meanwhile, and not given up.
const LATE: Time = Time::from_millis(2500);

impl Rule for Apart {
    fn judge(&mut self, _: Time, from: PortRef, packet: &Packet, _: &mut rand_pcg::Pcg64) -> Verdict {
        let Some(mad) = packet.mad().filter(weft_wire::Mad::is_smp) else { return Verdict::Pass };
        let is_to_switch = mad.method() == Method::Set && mad.attribute_modifier() == 0;
        if mad.attribute_id() == AttributeId::SmInfo {
            Verdict::Drop
        } else if Some(from) == self.late && is_to_switch {
            Verdict::Delay(LATE)
        } else {
            Verdict::Pass
        }
    }
}

/// One manager has found a slot free, another one moves a machine there, and the first one goes on with its sweep.
#[test]
fn a_manager_that_others_do_not_hear_takes_no_lid() {
    let mut simulation = fabric_with(false, |fabric, options| {
        (options.sm.election.polling_ms, options.sm.election.polling_retries) = (500, 2);
        (options.sm.smps.timeout_ms, options.sm.smps.retries) = (1000, 3);
        // It is the first one that sweeps when the operator wants that.
        options.sm.election.priority = 1;
        let at = |host| port(fabric.find(host).unwrap());
        options.standbys.push(StandbyOptions { port: at("host-6"), priority: 0, sm_key: None });
        // At the first one's port it would ask that one.
        options.vmm_port = Some(at("host-9"));
    });
    create(&mut simulation, "web", "host-0");
    let before = lid_of(&simulation, "web");
    let guid = simulation.slot(place(&simulation, "web")).unwrap().identity.port_guid;
    // What leaves an adapter leaves it by its vSwitch.
    let own = simulation.sm_port().node;
    let adapter = simulation.options().adapters.iter().find(|of| of.pf == own).unwrap();
    let late = PortRef::new(adapter.vswitch, PortNum(1));
    simulation.set_rule(Apart { late: None });
    let masters =
        |simulation: &Simulation| simulation.managers().filter(|(_, manager)| manager.is_in_charge()).count();
    let limit = simulation.now() + TAKES_OVER;
    while masters(&simulation) < 2 {
        assert!(simulation.now() < limit, "the standby hears the other one");
        pass(&mut simulation, Time::from_millis(1));
    }
    pass(&mut simulation, Time::from_secs(2));
    simulation.set_rule(Apart { late: Some(late) });
    let delayed = simulation.statistics().delayed;
    simulation.order_sweep();
    let limit = simulation.now() + TAKES_OVER;
    while simulation.statistics().delayed == delayed {
        assert!(simulation.now() < limit, "it writes nothing to switches");
        pass(&mut simulation, Time::from_millis(1));
    }
    let goes_on = simulation.now() + LATE - Time::from_millis(1);
    let id = simulation.ask_vmm(migrate("web", "host-15", Time::ZERO)).unwrap();
    let mut is_there = false;
    while simulation.now() < goes_on + Time::from_secs(3) {
        pass(&mut simulation, Time::from_micros(100));
        let plugged = simulation.slots().filter(|(_, slot)| slot.plugged && slot.identity.port_guid == guid);
        for (node, _) in plugged {
            let now = lid(&simulation, node);
            assert!(
                !now.is_unicast() || now == before,
                "LID {now} instead of {before} at {}",
                simulation.now()
            );
            is_there |=
                now == before && simulation.now() < goes_on && node != function(&simulation, "host-0 vf1");
        }
    }
    assert!(is_there, "it was not moved before the sweep went on");
    assert_eq!(masters(&simulation), 2);
    moved(answer(&mut simulation, id));
    let none = RandomLoss { until: Time::ZERO, lost_per_mille: 0, late_per_mille: 0, delay_max: Time::ZERO };
    simulation.set_rule(none);
    quiet(&mut simulation);
    assert_eq!((lid_of(&simulation, "web"), masters(&simulation)), (before, 1));
}

/// Ports wait for the VM manager's word, and sweeps before it would give them nothing: moves that others ask for go first.
#[test]
fn ports_that_wait_for_the_vm_managers_word_cause_no_sweep() {
    let mut simulation = managed(true, &["host-6"]);
    create(&mut simulation, "web", "host-0");
    let before = lid_of(&simulation, "web");
    simulation.ask_vmm(migrate("web", "host-15", Time::from_secs(3))).unwrap();
    until_said(&mut simulation, comes_to(Step::Freeze));
    pass(&mut simulation, Time::from_millis(100));
    let dead = kill_master(&mut simulation);
    let made = Create::new("late".parse().unwrap(), Some("host-3".parse().unwrap()));
    simulation.ask_vmm(Request::Create(made)).unwrap();
    let limit = simulation.now() + TAKES_OVER;
    while simulation.slots().all(|(_, slot)| slot.vm.as_deref() != Some("late") || !slot.plugged) {
        assert!(simulation.now() < limit, "it does not start");
        pass(&mut simulation, Time::from_millis(1));
    }
    simulation.apply(Fault::Kill(Process::Vmm));
    until_taken_over(&mut simulation, dead);
    let taken = simulation.now();
    pass(&mut simulation, Time::from_secs(5));
    let sweeps: Vec<_> = simulation.summaries().iter().filter(|(at, _)| *at >= taken).collect();
    let waits = |summary: &weft_sm::Summary| summary.ports_without_lid;
    assert_eq!(sweeps.iter().map(|(_, summary)| waits(summary)).collect::<Vec<_>>(), [1], "{sweeps:?}");
    simulation.apply(Fault::Restart(Process::Vmm));
    quiet(&mut simulation);
    assert_eq!(lid_of(&simulation, "web"), before);
    assert!(lid_of(&simulation, "late").is_unicast());
}
