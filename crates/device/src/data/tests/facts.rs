//! Facts of a port that its host learns.

use weft_wire::{DataRate, PortFacts, PortInfo};

use super::*;

fn told(outputs: &[Output]) -> Vec<PortFacts> {
    let facts = |output: &Output| match output {
        Output::HostPort { port, facts } => {
            assert_eq!(*port, ONE);
            Some((**facts).clone())
        }
        _ => None,
    };
    outputs.iter().filter_map(facts).collect()
}

/// A Set of PortInfo from over the cable, and everything that it causes.
fn set(bench: &mut Bench, change: impl FnOnce(&mut PortInfo)) -> Vec<PortFacts> {
    let mut info = bench.port_info(0);
    info.port_state = PortState::NoChange;
    info.port_physical_state = weft_wire::PhysState::NoChange;
    change(&mut info);
    let mut mad =
        direct(smp(weft_wire::Method::Set, weft_wire::AttributeId::PortInfo, 0, &info.encode()), &[9]);
    weft_wire::DirectedSmp::hop_pointer.set(&mut mad.0, 1);
    let route = weft_wire::MadRoute::smp(Lid::PERMISSIVE, Lid::PERMISSIVE);
    told(&bench.receive(ONE, weft_wire::Packet::from_mad(&route, &mad)))
}

#[test]
fn each_change_is_told_once_and_nothing_else_is() {
    let mut bench = hca(1);
    let up = told(&bench.link_up(ONE));
    assert!(up.len() <= 1 && up.iter().all(|facts| !facts.active && facts.lid == Lid(0)), "{up:?}");
    let named = set(&mut bench, |info| {
        (info.lid, info.lmc, info.master_sm_lid) = (Lid(8), 1, Lid(3));
        (info.master_sm_sl, info.neighbor_mtu) = (ServiceLevel(4), Mtu::Bytes2048);
    });
    let [facts] = &named[..] else { panic!("{named:?}") };
    assert_eq!((facts.lid, facts.lmc, facts.sm_lid, facts.sm_sl), (Lid(8), 1, Lid(3), ServiceLevel(4)));
    assert_eq!(
        (facts.mtu, facts.active, facts.reregister, facts.guid),
        (2048, false, false, weft_wire::Guid(0x101))
    );
    assert!(set(&mut bench, |info| info.subnet_timeout = 9).is_empty(), "that is nobody's business");
    assert!(set(&mut bench, |info| info.port_state = PortState::Armed).is_empty());
    let active = set(&mut bench, |info| info.port_state = PortState::Active);
    assert_eq!(active.iter().map(|facts| facts.active).collect::<Vec<_>>(), [true]);
    let again = set(&mut bench, |info| info.client_reregister = true);
    assert_eq!(again.iter().map(|facts| facts.reregister).collect::<Vec<_>>(), [true]);
    assert!(set(&mut bench, |info| info.client_reregister = false).is_empty());
    let down = told(&bench.input(Input::LinkDown { port: ONE }));
    assert_eq!(down.iter().map(|facts| (facts.active, facts.lid)).collect::<Vec<_>>(), [(false, Lid(8))]);
}

#[test]
fn the_rate_is_that_of_the_slower_of_link_and_host() {
    let fdr = weft_wire::LinkSpeed::Fdr.data_rate().times(4);
    for (data, rate) in [
        (shaped(), fdr),
        (DataPathOptions { host_limit_mbps: 12_900, ..shaped() }, DataRate::from_mbps(12_900)),
        (DataPathOptions { host_limit_mbps: 60_000, ..shaped() }, fdr),
        (DataPathOptions::default(), DataRate::INSTANT),
    ] {
        let mut config = config(NodeType::Hca, 1);
        config.options.data = data;
        let mut bench = Bench::new(&config);
        bench.link_up(ONE);
        let named = set(&mut bench, |info| info.lid = Lid(8));
        assert_eq!(named.last().map(|facts| facts.rate), Some(rate));
        bench.input(Input::LinkDown { port: ONE });
        assert_eq!(bench.device.data.told[PortNum(1)].rate, DataRate::INSTANT);
    }
}

/// A host that learns that there is room, and not that there is no link, would send for ever.
#[test]
fn a_lost_link_is_told_before_what_it_has_dropped() {
    let mut bench = data_hca(shaped());
    bench.credit(ONE, 0, 0, 2048);
    for _ in 0..3 {
        bench.input(Input::Inject { port: ONE, packet: packet(0, 9, 0) });
    }
    let outputs = bench.input(Input::LinkDown { port: ONE });
    assert_eq!(injected(&outputs), 3);
    let first = |wanted: fn(&Output) -> bool| outputs.iter().position(wanted);
    let told = first(|output| matches!(output, Output::HostPort { facts, .. } if !facts.active));
    assert!(told.is_some() && told < first(|output| matches!(output, Output::Injected { .. })));
    sound(&bench);
}

#[test]
fn a_switch_has_no_host() {
    let mut bench = switch(2);
    let mut outputs = bench.link_up(ONE);
    bench.assign(5);
    outputs.extend(bench.input(Input::LinkDown { port: ONE }));
    assert!(outputs.iter().all(|output| !matches!(output, Output::HostPort { .. })));
}

/// The part of a changed P_Key table's event (IBA 11.6.3): the host hears which keys there are, once a change.
#[test]
fn a_changed_p_key_table_is_told() {
    let mut bench = hca(1);
    bench.link_up(ONE);
    set(&mut bench, |info| info.lid = Lid(8));
    let mut write = |keys: [u16; 3]| {
        let mut table = weft_wire::PKeyTable { p_keys: [PKey(0); 32] };
        table.p_keys[..3].copy_from_slice(&keys.map(PKey));
        let mut mad =
            direct(smp(weft_wire::Method::Set, weft_wire::AttributeId::PKeyTable, 0, &table.encode()), &[9]);
        weft_wire::DirectedSmp::hop_pointer.set(&mut mad.0, 1);
        let route = weft_wire::MadRoute::smp(Lid::PERMISSIVE, Lid::PERMISSIVE);
        let told = told(&bench.receive(ONE, weft_wire::Packet::from_mad(&route, &mad)));
        told.into_iter().map(|facts| facts.p_keys).collect::<Vec<_>>()
    };
    assert_eq!(write([0x7fff, 0, 0x8009]), [[PKey(0x7fff), PKey(0x8009)]], "free places are left out");
    assert_eq!(write([0x7fff, 0, 0x8009]), [[PKey(0); 0]; 0], "nothing has changed");
    assert_eq!(write([0x7fff, 0x8008, 0x0009]), [[PKey(0x7fff), PKey(0x8008), PKey(9)]]);
}
