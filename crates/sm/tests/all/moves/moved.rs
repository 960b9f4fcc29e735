//! Moves that succeed.

use super::client::one;
use super::site::{Site, options, tree, with};
use weft_machine::Time;
use weft_sm::{Activity, Event, Input};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_wire::*;

/// From a leaf to another of a tree of two levels: both leaves and the spines, the tops of the tree (vSwitch paper of 2017,
/// 6.2). Within a leaf: the leaf.
const ACROSS: u32 = 2 + 2;

#[test]
fn a_swap_across_the_tree_writes_spines_and_vswitches() {
    let mut site = tree();
    let (from, to) = ((1, 0), (9, 1));
    let ask = site.swap(from, to);
    let (planned, writes) = site.plan(&ask);
    let (tables, sets) = (site.tables(), site.lft_sets());
    let lids = (site.lid(from), site.lid(to));
    assert_eq!((planned.physical, planned.vswitches, planned.hypervisor_smps), (ACROSS, 2, 3));
    let listed = |is_vswitch| writes.iter().filter(|write| write.is_vswitch == is_vswitch).count() as u32;
    assert_eq!((listed(0), listed(1)), (planned.physical_smps, planned.vswitch_smps));
    assert_eq!(
        writes.first().map(|write| write.switch),
        Some(site.vswitch_guid(9)),
        "the destination's first"
    );
    assert_eq!(writes.last().map(|write| write.switch), Some(site.vswitch_guid(1)), "the source's last");
    assert!(writes.is_sorted_by_key(|write| write.round) && planned.rounds <= 2 * 2 + 1);

    let done = site.done(&ask);
    assert_eq!((done.physical, done.vswitches, done.rounds), (ACROSS, 2, planned.rounds));
    assert_eq!((done.lid, done.partner_lid), lids);
    assert_eq!(site.lft_sets() - sets, u64::from(done.physical_smps + done.vswitch_smps));
    assert_eq!(site.differing(&tables), (ACROSS as usize, 2));
    // One round trip for each round.
    assert!(u64::from(done.took_us) >= u64::from(done.rounds) * 100, "{done:?}");

    let heavy = site.heavy_sweeps();
    site.exchange(from, to);
    site.world.run_for(Time::from_secs(2));
    assert_eq!((site.lid(to), site.lid(from)), lids, "LIDs are where their GUIDs are");
    site.world.check();
    assert_eq!(site.heavy_sweeps(), heavy, "no one looked at everything");
    assert_eq!(site.lft_sets() - sets, u64::from(done.physical_smps + done.vswitch_smps));
    assert_eq!(
        site.events(|event| matches!(event, Event::MoveDone { physical: ACROSS, vswitches: 2, .. })),
        1
    );
}

#[test]
fn a_move_in_a_leaf_writes_one_switch_and_in_a_host_none() {
    let mut site = tree();
    for (from, to, physical, vswitches) in [((1, 0), (2, 0), 1, 2), ((5, 0), (5, 1), 0, 1)] {
        let (tables, sets) = (site.tables(), site.lft_sets());
        let done = site.done(&site.swap(from, to));
        assert_eq!((done.physical, done.vswitches), (physical, vswitches), "{from:?} {to:?}");
        assert_eq!(site.differing(&tables), (physical as usize, vswitches as usize));
        assert_eq!(site.lft_sets() - sets, u64::from(done.physical_smps + done.vswitch_smps));
        site.exchange(from, to);
        site.world.run_for(Time::from_secs(2));
        site.world.check();
    }
}

#[test]
fn a_copy_takes_the_path_of_the_physical_function() {
    let physical = xgft(&[4, 4], &[1, 2], &GenerateOptions::default()).unwrap();
    let mut site = Site::without(&physical, 2, options("ftree"), &[(9, 1)]);
    let (from, to) = ((1, 0), (9, 1));
    let (lid, tables) = (site.lid(from), site.tables());
    let done = site.done(&site.ask(VmMoveKind::Copy, from, to));
    let pf = super::client::lid_of(&site.world, site.adapters[9].pf, PortNum(1));
    assert_eq!((done.lid, done.partner_lid, done.hypervisor_smps), (lid, pf, 3));
    assert_eq!((done.physical, done.vswitches), (ACROSS, 2));
    assert_eq!(site.differing(&tables), (ACROSS as usize, 2));
    let identity = site.world.fake.identity(site.vf(from));
    site.unplug(from);
    site.plug(to, identity);
    site.world.run_for(Time::from_secs(2));
    assert_eq!(site.lid(to), lid);
    site.world.check();
}

#[test]
fn subnet_administration_answers_for_the_new_place() {
    let mut site = tree();
    let (from, to) = ((1, 0), (9, 1));
    let (guid, lid) = (site.port_guid(from), site.lid(from));
    site.done(&site.swap(from, to));
    site.exchange(from, to);
    site.world.run_for(Time::from_secs(2));
    let query = |attribute| super::client::Asked {
        key: super::site::KEY,
        ..super::client::Asked::new(Method::Get, attribute)
    };
    let wanted = PortInfoRecord { lid, ..PortInfoRecord::default() };
    let asked =
        query(PortInfoRecord::ATTRIBUTE).with(super::client::component::<PortInfoRecord>("lid"), &wanted);
    let info = one::<PortInfoRecord>(&mut site.world, &asked).expect("a port").port_info;
    assert_eq!((info.lid, info.port_state), (lid, PortState::Active));
    let wanted = NodeRecord { lid, ..NodeRecord::default() };
    let asked = query(NodeRecord::ATTRIBUTE).with(super::client::component::<NodeRecord>("lid"), &wanted);
    let node = one::<NodeRecord>(&mut site.world, &asked).expect("a node").node_info;
    assert_eq!(node.port_guid, guid);
    // The cable from the vSwitch leads to it.
    let vswitch = super::client::lid_of(&site.world, site.adapters[9].vswitch, PortNum(0));
    let wanted = LinkRecord { from_lid: vswitch, from_port: PortNum(4), ..LinkRecord::default() };
    let asked = query(LinkRecord::ATTRIBUTE).with(0b11, &wanted);
    assert_eq!(one::<LinkRecord>(&mut site.world, &asked).expect("a cable").to_lid, lid);
    let paths = site.world.sm.paths_from(guid);
    assert_eq!(paths.len(), 69, "to all others");
    assert!(paths.iter().all(|path| path.slid == lid));
}

/// A move every 6 s and a light sweep every 10 s; what a manager before may have left on the wire is gone after 5 s.
#[test]
fn moves_in_a_row_delay_no_sweep_and_only_the_first_is_read() {
    let options = weft_sm::Options {
        sweeps: weft_sm::SweepOptions {
            sweep_interval_ms: 10_000,
            audit_smps: 0,
            ..weft_sm::SweepOptions::default()
        },
        ..options("ftree")
    };
    let mut site = with(options);
    let (gets, mut read) = (std::rc::Rc::new(std::cell::Cell::new(0)), Vec::new());
    let seen = gets.clone();
    site.world.watch = Some(Box::new(move |_, request| {
        let mad = &request.mad;
        let is_read = mad.method() == Method::Get && mad.attribute_id() == AttributeId::LinearForwardingTable;
        seen.set(seen.get() + u32::from(is_read));
    }));
    let (a, b) = ((1, 0), (9, 1));
    for epoch in 1..=12 {
        let before = gets.get();
        let done = site.done(&VmMove { epoch, ..site.swap(a, b) });
        read.push((gets.get() - before, done.physical_smps + done.vswitch_smps));
        site.exchange(a, b);
        site.world.run_for(Time::from_secs(6));
    }
    let (first, others) = read.split_first().expect("twelve");
    assert_eq!(first.0, first.1, "all blocks of the first");
    assert!(others.iter().all(|(gets, _)| *gets == 0), "{read:?}");
    let is_light =
        |event: &Event| matches!(event, Event::SweepStarted { kind: weft_sm::SweepKind::Light, .. });
    assert!(site.events(is_light) >= 6, "{} light sweeps in 72 s", site.events(is_light));
    site.world.check();
}

#[test]
fn a_new_manager_writes_nothing_after_a_move() {
    let mut site = tree();
    let (from, to) = ((1, 0), (9, 1));
    site.done(&site.swap(from, to));
    site.exchange(from, to);
    site.world.run_for(Time::from_secs(2));
    let tables = site.tables();
    let file = site.world.persisted.clone().expect("LIDs on file");
    site.world.restart_sm(options("ftree"), &file);
    site.world.run_until(Activity::Up);
    assert_eq!((site.lft_sets(), site.tables()), (0, tables));
    site.world.check();
}

#[test]
fn a_heavy_sweep_after_a_move_writes_nothing() {
    let mut site = tree();
    let (from, to) = ((1, 0), (9, 1));
    site.done(&site.swap(from, to));
    site.exchange(from, to);
    site.world.run_for(Time::from_secs(2));
    let (tables, sets) = (site.tables(), site.lft_sets());
    site.world.command(Input::PortChanged { up: true });
    site.world.run_for(Time::from_secs(1));
    assert_eq!((site.lft_sets(), site.tables()), (sets, tables));
    site.world.check();
}

#[test]
fn one_after_the_other_and_back() {
    let mut site = tree();
    let before = site.tables();
    for (epoch, (from, to)) in (1..).zip([((1, 0), (9, 1)), ((9, 1), (13, 0)), ((13, 0), (1, 0))]) {
        let ask = VmMove { epoch, ..site.swap(from, to) };
        assert_eq!(site.done(&ask).physical, ACROSS);
        site.exchange(from, to);
        site.world.run_for(Time::from_millis(500));
        site.world.check_with(&format!("{from:?} to {to:?}"));
    }
    // The machine is home; the two that made way for it have changed places.
    assert!(site.differing(&before).0 > 0);
    assert_eq!(site.heavy_sweeps(), 1);
}

#[test]
fn a_clear_undoes_the_block_a_boot_wrote_at_each_switch() {
    let physical = xgft(&[4, 4], &[1, 2], &GenerateOptions::default()).unwrap();
    let mut site = Site::without(&physical, 2, options("ftree"), &[(9, 1)]);
    let before = site.tables();
    let ask =
        VmMove { from_switch: Guid(0), from_port: PortNum(0), ..site.ask(VmMoveKind::Boot, (9, 1), (9, 1)) };
    let done = site.done(&ask);
    // All 6 physical switches and all 16 vSwitches (vSwitch paper of 2015, V-B).
    assert_eq!((done.physical, done.vswitches, done.hypervisor_smps), (6, 16, 2));
    assert!(done.lid.is_unicast());
    let clear = VmMove { epoch: 2, ..site.ask(VmMoveKind::Clear, (9, 1), (9, 1)) };
    let clear = VmMove { guid: ask.guid, to_switch: Guid(0), to_port: PortNum(0), ..clear };
    let cleared = site.done(&clear);
    assert_eq!((cleared.physical, cleared.vswitches, cleared.lid), (6, 16, done.lid));
    assert_eq!(site.tables(), before);
}

#[test]
fn one_that_has_booted_comes_up_with_its_lid() {
    let physical = xgft(&[4, 4], &[1, 2], &GenerateOptions::default()).unwrap();
    let mut site = Site::without(&physical, 2, options("ftree"), &[(9, 1)]);
    let ask =
        VmMove { from_switch: Guid(0), from_port: PortNum(0), ..site.ask(VmMoveKind::Boot, (9, 1), (9, 1)) };
    let done = site.done(&ask);
    let identity = site.world.fake.identity(site.vf((9, 1)));
    site.plug((9, 1), identity);
    site.world.run_for(Time::from_secs(2));
    assert_eq!(site.lid((9, 1)), done.lid);
    site.world.check();
}

/// The trees of the papers: 324 hosts, 36 switches (vSwitch paper of 2015, table 2). Within a leaf one of them is written, and
/// across the tree both leaves and all 18 roots, by FTreeMinRC (vSwitch paper of 2017, 6.2). As the switches count.
#[test]
fn moves_among_324_hosts_write_1_or_20_physical_switches() {
    let physical = xgft(&[18, 18], &[1, 18], &GenerateOptions::default()).unwrap();
    let mut site = Site::new(&physical, 1, options("ftree"));
    let (mut from, mut epoch) = ((3, 0), 0);
    for (to, expected) in [((4, 0), 1), ((320, 0), 20)] {
        epoch += 1;
        site.world.fake.lft_sets.clear();
        let done = site.done(&VmMove { epoch, ..site.swap(from, to) });
        let received = &site.world.fake.lft_sets;
        let written = received.iter().filter(|(_, sets)| **sets > 0).map(|(node, _)| *node);
        let is_virtual =
            |node: &weft_topology::NodeIndex| site.adapters.iter().any(|one| one.vswitch == *node);
        let (inner, outer): (Vec<_>, Vec<_>) = written.partition(is_virtual);
        assert_eq!((outer.len(), inner.len()), (expected, 2), "{from:?} to {to:?}");
        assert_eq!((done.physical as usize, done.vswitches, done.fallbacks), (expected, 2, 0));
        assert!(done.rounds <= 2 * 2 + 1);
        site.exchange(from, to);
        site.world.run_for(Time::from_secs(1));
        let (lid, end) = (site.lid(to), site.vf(to));
        for host in [0, 5, 17, 18, 100, 323] {
            let sender = weft_topology::PortRef::new(site.adapters[host].pf, PortNum(1));
            let arrived = site.world.fake.walk_lid(sender, lid).map(|at| at.node);
            assert_eq!(arrived, Some(end), "from host {host} to {to:?}");
        }
        from = to;
    }
    assert_eq!(site.heavy_sweeps(), 1);
}
