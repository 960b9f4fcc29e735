//! Time to write a large fabric's routing in the shapes of OpenSM's files, and to read it.

use std::fmt::{self, Write};

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use weft_routing::files::{Dump, parse_fdbs, parse_lfts};
use weft_routing::{Lids, Routing, minhop};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, rlft};

fn main() {
    divan::main();
}

/// Levels of trees of 36-port switches: 648 and 11664 hosts.
const LEVELS: [u32; 2] = [2, 3];

fn routed(levels: u32) -> (Fabric, Lids, Routing) {
    let fabric = rlft(36, levels, &GenerateOptions::default()).expect("the parameters are sound");
    let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    let routing = Routing::on_one_lane("minhop", minhop(&fabric, &lids));
    (fabric, lids, routing)
}

/// Counts, and keeps nothing.
#[derive(Default)]
struct Counted(usize);

impl Write for Counted {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += black_box(text).len();
        Ok(())
    }
}

fn write(
    bencher: Bencher<'_, '_>,
    levels: u32,
    file: impl Fn(&Dump<'_>, &mut dyn Write) -> fmt::Result + Sync,
) {
    let (fabric, lids, routing) = routed(levels);
    let dump = Dump::new(&fabric, &lids, &routing);
    let run = || {
        let mut counted = Counted::default();
        file(&dump, &mut counted).expect("it takes everything");
        counted.0
    };
    bencher.counter(BytesCount::new(run())).bench(run);
}

#[divan::bench(args = LEVELS, sample_count = 3)]
fn write_fdbs(bencher: Bencher<'_, '_>, levels: u32) {
    write(bencher, levels, |dump, out| dump.fdbs(out));
}

#[divan::bench(args = LEVELS, sample_count = 3)]
fn write_lfts(bencher: Bencher<'_, '_>, levels: u32) {
    write(bencher, levels, |dump, out| dump.lfts(out));
}

#[divan::bench(args = LEVELS, sample_count = 3)]
fn write_lid_matrix(bencher: Bencher<'_, '_>, levels: u32) {
    write(bencher, levels, |dump, out| dump.lid_matrix(out));
}

#[divan::bench(args = LEVELS, sample_count = 3)]
fn read_fdbs(bencher: Bencher<'_, '_>, levels: u32) {
    let (fabric, lids, routing) = routed(levels);
    let mut text = String::new();
    Dump::new(&fabric, &lids, &routing).fdbs(&mut text).expect("a text takes everything");
    bencher.counter(BytesCount::of_str(&text)).bench(|| parse_fdbs("opensm.fdbs", black_box(&text), &fabric));
}

#[divan::bench(args = LEVELS, sample_count = 3)]
fn read_lfts(bencher: Bencher<'_, '_>, levels: u32) {
    let (fabric, lids, routing) = routed(levels);
    let mut text = String::new();
    Dump::new(&fabric, &lids, &routing).lfts(&mut text).expect("a text takes everything");
    bencher
        .counter(BytesCount::of_str(&text))
        .bench(|| parse_lfts("opensm-lfts.dump", black_box(&text), &fabric));
}
