//! Latency of a message from host to host: links, switches, cables and its cost at its hosts, beside closed forms and the papers'
//! ping-pong.

use weft_device::{CABLE_NS_PER_M, Profile};
use weft_host::traffic::{
    Command, Destination, FlowId, FlowSpec, Latency, MoveBy, PathSource, Transport, Work,
};
use weft_machine::Time;
use weft_sim::{SimOptions, Simulation, bring_up};
use weft_topology::{Fabric, PortRef, parse};
use weft_wire::PortNum;

const DILATION: u64 = 1000;
/// HPCC's latency is that of 8 bytes; a packet of them has 34.
const MESSAGE: u32 = 8;
const PACKET_BITS: f64 = (8.0 + 26.0) * 8.0;
/// LRH and BTH, which a switch that cuts through waits for.
const HEADER_BITS: f64 = 20.0 * 8.0;

fn tree() -> Fabric {
    parse("dftree-1", include_str!("../../../../topologies/dftree-1.topo")).unwrap()
}

fn options(profile: &Profile) -> SimOptions {
    let mut options = SimOptions { hosts: true, ..SimOptions::default() };
    options.device.data.shaped = true;
    options.device.data.dilation = DILATION as u32;
    options.device.data.host_limit_mbps = profile.host_limit_mbps;
    options.device.data.crossbar = profile.crossbar;
    options.device.data.cut_through = profile.cut_through;
    if profile.host_limit_mbps == 0 {
        options.device.data.crossbar.host_bus_percent = 0;
    }
    options.host.dilation = DILATION as u32;
    options.host.message_overhead_ns = profile.message_overhead_ns;
    options.data_link_delay = Some(machine(profile.cable_m * CABLE_NS_PER_M));
    options
}

/// Nanoseconds of fabric time.
fn machine(nanos: u32) -> Time {
    Time::from_nanos(u64::from(nanos) * DILATION)
}

/// Half of a round trip between two hosts by their numbers, the least and the mean, in nanoseconds of fabric time.
fn ping_pong(options: SimOptions, (from, to): (u32, u32)) -> (f64, f64) {
    let mut simulation = Simulation::new(&tree(), options, 1);
    simulation.run_until_quiet(Time::from_secs(100)).unwrap();
    let [from, to] = [from, to].map(|host| simulation.fabric().find(&format!("host-{host}")).unwrap());
    let guid = |node| simulation.fabric().port(PortRef::new(node, PortNum(1))).unwrap().guid;
    let (flow, transport, work) = (FlowId(1), Transport::ReliableConnection, Work::PingPong);
    let expect = Command::Expect { flow, from: Some(guid(from)), transport, work, message_bytes: MESSAGE };
    let open = Command::Open(FlowSpec {
        flow,
        to: Destination::One(guid(to)),
        transport,
        work,
        message_bytes: MESSAGE,
        packet_bytes: 2048,
        bytes_per_second: None,
        bytes_max: None,
        paths: PathSource::PathRecord,
        move_by: MoveBy::Drain,
    });
    simulation.host_command(to, expect);
    simulation.host_command(from, open);
    simulation.run_until(simulation.now() + Time::from_secs(1));
    let report = simulation.host_reports(from).into_iter().find(|report| report.sender).unwrap();
    let Latency { count, min_ns, sum_ns, .. } = report.latency;
    assert!(count > 20, "{report:?}");
    let scale = 2.0 * DILATION as f64;
    (min_ns as f64 / scale, sum_ns as f64 / count as f64 / scale)
}

/// What hosts, cables and switches take, and the bits on each link and the receiver's bus.
fn closed_form(profile: &Profile, switches: u32, link_gbps: f64) -> f64 {
    let links = f64::from(switches + 1);
    let bus =
        if profile.host_limit_mbps == 0 { f64::INFINITY } else { f64::from(profile.host_limit_mbps) / 1e3 };
    2.0 * f64::from(profile.message_overhead_ns)
        + links * f64::from(profile.cable_m * CABLE_NS_PER_M)
        + f64::from(switches) * f64::from(profile.crossbar.latency_ns)
        + if profile.cut_through {
            (PACKET_BITS + f64::from(switches) * HEADER_BITS) / link_gbps
        } else {
            PACKET_BITS * links / link_gbps
        }
        + PACKET_BITS / bus
}

#[test]
fn a_ping_pong_takes_what_hosts_cables_and_links_take() {
    let stored = Profile::ALL.map(|profile| Profile { cut_through: false, ..profile });
    for profile in Profile::ALL.iter().chain(&stored) {
        for (pair, switches) in [((2, 1), 1), ((2, 4), 3)] {
            let (least, mean) = ping_pong(options(profile), pair);
            let form = closed_form(profile, switches, 16.0);
            // The acknowledgement of the message before may be on each link first.
            let acknowledgement = 30.0 * 8.0 / 16.0 * f64::from(switches + 1);
            assert!(least > form - 1.0, "{}, {switches}: {least} and {form}", profile.name);
            assert!(mean < form + acknowledgement, "{}, {switches}: {mean} and {form}", profile.name);
        }
    }
}

/// The minima that the papers print for these hosts are 1.878 to 2.176 µs, and the means of their idle fabric 2.119, from
/// which the profile's message cost comes. 1.331 is the minimum beside that mean, and nothing here explains it.
#[test]
fn the_papers_hosts_take_as_long_as_the_papers_say() {
    let profile = Profile::find("connectx-ddr").unwrap();
    for pair in [(2, 1), (2, 4)] {
        let micros = ping_pong(options(profile), pair).0 / 1000.0;
        assert!((2.0 * 0.9..2.2 * 1.1).contains(&micros), "{pair:?}: {micros}");
    }
}

/// Alone of all that a ping-pong has, a switch's latency counts once for each switch.
#[test]
fn a_switchs_latency_counts_at_each_switch() {
    for cut_through in [false, true] {
        for (pair, switches) in [((2, 1), 1.0), ((2, 4), 3.0)] {
            let least = |latency_ns| {
                let crossbar = weft_device::Crossbar { latency_ns, ..Profile::ALL[0].crossbar };
                ping_pong(options(&Profile { crossbar, cut_through, ..Profile::ALL[0] }), pair).0
            };
            let none = least(0);
            for latency_ns in [50, 200, 1000] {
                let more = least(latency_ns) - none;
                let wanted = switches * f64::from(latency_ns);
                assert!((more - wanted).abs() < 1.0, "{switches} switches: {more} for {wanted}");
            }
        }
    }
}

#[test]
fn a_long_cable_takes_longer_both_ways() {
    let profile = Profile { message_overhead_ns: 0, ..Profile::ALL[0] };
    let short = ping_pong(options(&profile), (2, 4));
    let fabric = tree();
    let end = PortRef::new(fabric.find("host-4").unwrap(), PortNum(1));
    let long = SimOptions { link_delays: vec![(end, machine(5_000))], ..options(&profile) };
    let long = ping_pong(long, (2, 4));
    let more = f64::from(5_000 - profile.cable_m * CABLE_NS_PER_M);
    assert!((long.0 - short.0 - more).abs() < 1.0, "{long:?} {short:?}");
    let elsewhere = PortRef::new(fabric.find("host-6").unwrap(), PortNum(1));
    let elsewhere = SimOptions { link_delays: vec![(elsewhere, machine(5_000))], ..options(&profile) };
    assert_eq!(ping_pong(elsewhere, (2, 4)).0, short.0, "a cable that is not on the way");
}

/// Lengths are of fabric time. Management's packets take real time, so a fabric comes up at the same moment.
#[test]
fn management_takes_no_longer_over_a_long_cable() {
    let up_at = |data_link_delay| {
        let options = SimOptions { data_link_delay, ..SimOptions::default() };
        bring_up(&tree(), options, 1, Time::from_secs(300)).unwrap().up_at
    };
    assert_eq!(up_at(Some(Time::from_millis(50))), up_at(None));
}
