//! Rates of machines: what they let pass, and what the ports of their vSwitch count and hold meanwhile.

use rest::quiet;
use vms::{identity, open, port, report, step, stream};
use weft_device::Counters;
use weft_host::traffic::FlowSpec;
use weft_machine::Time;
use weft_sim::{SimOptions, Simulation, VmIdentity, VmStep};
use weft_sm::LidScheme;
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{NodeIndex, PortRef, UPLINK, Virtualised};
use weft_wire::{Guid, PortNum};

use crate::support::rest;
use crate::support::vms;

/// Seconds of the fabric that are one of its own.
const DILATION: u32 = 1000;

struct Site {
    simulation: Simulation,
    vswitch: NodeIndex,
    vm: PortRef,
    peer: PortRef,
    guids: [Guid; 2],
}

impl Site {
    /// A machine with this rate on the first host, and a peer on another leaf; no manager sweeps meanwhile.
    fn new(rate_mbps: u32) -> Self {
        let whole = xgft(&[4, 4], &[1, 2], &GenerateOptions::default()).unwrap().virtualised(2).unwrap();
        let Virtualised { fabric, adapters } = whole;
        let (own, peer) = (adapters[0].clone(), port(adapters[9].pf));
        let mut options = SimOptions { hosts: true, recabling: true, adapters, ..SimOptions::default() };
        options.empty_slots = true;
        options.sm.routing.chain = "ftree,no_fallback".parse().unwrap();
        (options.sm.vm_lids.scheme, options.sm.sweeps.sweep_interval_ms) = (LidScheme::Dynamic, 0);
        (options.device.data.shaped, options.device.data.dilation) = (true, DILATION);
        let mut simulation = Simulation::new(&fabric, options, 1);
        quiet(&mut simulation);
        step(&mut simulation, own.vfs[0], 1, VmStep::Boot(VmIdentity { rate_mbps, ..identity(1) })).unwrap();
        quiet(&mut simulation);
        let guids = [identity(1).port_guid, simulation.fabric().port(peer).unwrap().guid];
        Self { simulation, vswitch: own.vswitch, vm: port(own.vfs[0]), peer, guids }
    }

    fn pass(&mut self, time: Time) {
        self.simulation.run_until(self.simulation.now() + time);
    }

    fn counters(&self, at: PortRef) -> Counters {
        let device = self.simulation.device(at.node).unwrap();
        device.port_snapshot_at(at.port, self.simulation.now()).unwrap().counters
    }

    fn uplink(&self) -> PortRef {
        PortRef::new(self.vswitch, UPLINK)
    }

    /// The vSwitch's port to the machine.
    fn inner(&self) -> PortRef {
        PortRef::new(self.vswitch, PortNum(3))
    }
}

/// A limit of N Gb/s lets N Gb/s pass in each direction, counted in words of four octets by ports of the vSwitch (IBA 16.1.3.5).
#[test]
fn a_machine_moves_what_its_rate_says_in_each_direction() {
    for (rate_mbps, out) in [(2_500, true), (2_500, false), (8_000, true), (8_000, false)] {
        let mut site = Site::new(rate_mbps);
        let (from, to, guid) =
            if out { (site.vm, site.peer, site.guids[1]) } else { (site.peer, site.vm, site.guids[0]) };
        open(&mut site.simulation, from, to, stream(1, guid));
        site.pass(Time::from_secs(2));
        let words = |site: &Site| match out {
            true => site.counters(site.uplink()).port_xmit_data,
            false => site.counters(site.inner()).port_xmit_data,
        };
        let (before, window) = (words(&site), Time::from_secs(20));
        site.pass(window);
        let bits = (words(&site) - before) as f64 * 32.0;
        let mbps = bits / window.as_secs_f64() / 1e6 * f64::from(DILATION);
        assert!((mbps / f64::from(rate_mbps) - 1.0).abs() < 0.01, "{mbps} of {rate_mbps} Mb/s, out: {out}");
        // The peer could send more: it waits at the port to the machine's adapter, whose buffer is full and no more than that.
        let held = site.simulation.check_traffic().unwrap_or_else(|all| panic!("{all:?}"));
        assert_eq!(held.total.gone(), 0, "nothing is lost");
        assert!(held.total.held > 0, "packets wait");
    }
}

/// All that a machine sends and gets passes the port to it and the uplink, once each. Buffers and credits are within their bounds at
/// each millisecond, those on inner cables too.
#[test]
fn ports_of_a_vswitch_count_alike_and_keep_their_credits() {
    let mut site = Site::new(2_500);
    let all = |site: &Site| [site.vm, site.inner(), site.uplink()].map(|at| site.counters(at));
    let before = all(&site);
    let bytes = 1_000_000;
    for (number, from, to, guid) in
        [(1, site.vm, site.peer, site.guids[1]), (2, site.peer, site.vm, site.guids[0])]
    {
        let spec = FlowSpec { message_bytes: 2048, bytes_max: Some(bytes), ..stream(number, guid) };
        open(&mut site.simulation, from, to, spec);
    }
    let done = |site: &Site| {
        let ends = [(site.peer, 1), (site.vm, 2)];
        ends.iter().all(|(at, flow)| report(&site.simulation, *at, *flow, false).bytes >= bytes)
    };
    let (mut held, mut ticks) = (0, 0);
    while !done(&site) {
        assert!(ticks < 60_000, "the flows have stopped");
        site.pass(Time::from_millis(1));
        let found = site.simulation.check_traffic().unwrap_or_else(|all| panic!("at tick {ticks}: {all:?}"));
        (held, ticks) = (held.max(found.total.held), ticks + 1);
    }
    site.pass(Time::from_secs(1));
    assert!(held > 0 && ticks > 1000, "{held} packets waited in {ticks} ms");
    let now = all(&site);
    let since = |at: usize, of: fn(&Counters) -> u64| of(&now[at]) - of(&before[at]);
    // The machine sends; the port to it receives; the uplink sends.
    let out = [
        since(0, |all| all.port_xmit_data),
        since(1, |all| all.port_rcv_data),
        since(2, |all| all.port_xmit_data),
    ];
    let back = [
        since(0, |all| all.port_rcv_data),
        since(1, |all| all.port_xmit_data),
        since(2, |all| all.port_rcv_data),
    ];
    assert!(out[0] * 4 > bytes && back[0] * 4 > bytes, "{out:?}, {back:?}");
    assert_eq!((out, back), ([out[0]; 3], [back[0]; 3]), "words that the machine sent, and that it got");
    let packets = [
        since(0, |all| all.port_xmit_pkts),
        since(1, |all| all.port_rcv_pkts),
        since(2, |all| all.port_xmit_pkts),
    ];
    assert_eq!(packets, [packets[0]; 3], "packets that it sent");
}
