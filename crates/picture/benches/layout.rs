//! Time to give every device of a tree its place: 702 devices, and 13 284.

use weft_picture::View;
use weft_picture::layout::layout;
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, rlft};

fn main() {
    divan::main();
}

fn tree(levels: u32) -> Fabric {
    rlft(36, levels, &GenerateOptions::default()).expect("a tree")
}

#[divan::bench(args = [2, 3])]
fn whole(bencher: divan::Bencher<'_, '_>, levels: u32) {
    let fabric = tree(levels);
    bencher.bench(|| layout(&View::new(&fabric, false)));
}

#[divan::bench(args = [2, 3])]
fn folded(bencher: divan::Bencher<'_, '_>, levels: u32) {
    let fabric = tree(levels);
    bencher.bench(|| layout(&View::new(&fabric, true)));
}
