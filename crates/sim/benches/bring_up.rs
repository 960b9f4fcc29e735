//! Processor time of a whole bring-up: the 648-host tree, from switching on to SUBNET UP.

use weft_machine::Time;
use weft_mgmt::Window;
use weft_sim::{SimOptions, Simulation, bring_up};
use weft_topology::generate::{GenerateOptions, xgft};

fn main() {
    divan::main();
}

/// 54 switches and 648 hosts, by window.
#[divan::bench(args = [4, 64], sample_count = 10)]
fn tree_of_648_hosts(bencher: divan::Bencher<'_, '_>, max_wire_smps: u32) {
    let fabric = xgft(&[18, 36], &[1, 18], &GenerateOptions::default()).expect("a tree that fits its radix");
    let mut options = SimOptions::default();
    options.sm.smps.max_wire_smps = Window::Fixed(max_wire_smps);
    bencher.bench_local(|| {
        let up = bring_up(&fabric, options.clone(), 1, Time::from_secs(600)).expect("it comes up");
        assert_eq!(up.checked.lids, 702);
        up
    });
}

/// Making and dropping the devices alone.
#[divan::bench]
fn making_702_devices(bencher: divan::Bencher<'_, '_>) {
    let fabric = xgft(&[18, 36], &[1, 18], &GenerateOptions::default()).expect("a tree that fits its radix");
    bencher.bench_local(|| Simulation::new(&fabric, SimOptions::default(), 1));
}
