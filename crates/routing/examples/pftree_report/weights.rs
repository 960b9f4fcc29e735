//! pFTree against pFTree-Wt: receivers that meet on links, and partitions that do.

use weft_routing::Isolation;
use weft_routing::quality::{Directions, contention, hosts, interference};
use weft_wire::Lid;

use crate::setting::{Range, Scene, Setting, TOPOLOGIES, Topology};

const ENGINES: [&str; 2] = ["pftree", "pftree-wt"];

/// What is counted, by engine.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    total_down: Range,
    total_up: Range,
    contended_down: Range,
    contended_up: Range,
    interference: Range,
}

/// Figures 13 to 15: one to all of the victims on a leaf are receivers.
pub(crate) fn figures(setting: &Setting) {
    let all: Vec<[Counts; 2]> = TOPOLOGIES.iter().map(|topology| counts(setting, topology)).collect();
    let show = |what: fn(&Counts) -> &Range| {
        for (topology, counts) in TOPOLOGIES.iter().zip(&all) {
            let cells = counts.each_ref().map(|counts| what(counts).three()).join(" | ");
            println!("| {} | {cells} |", topology.name());
        }
        println!();
    };
    println!(
        "### Weights: contention of receivers and interference (figures 13 to 15)\n\nOne to all of the victims on a leaf \
         are receivers of weight 100; least / mean / greatest over all of them. All hosts send. The paper has 0 downwards \
         for pFTree-Wt everywhere and means of 2 (32 hosts) to 8.6 (1024 hosts) for pFTree with a greatest of 192, up to 41.1 \
         contended links (greatest 64), and an interference that grows from 192 to 293 on 32 hosts and by 86.76 % on \
         1024.\n"
    );
    let head = |title: &str| println!("{title}\n\n| topology | pftree | pftree-wt |\n|---|---|---|");
    head("Total contention downwards (figure 13 a)");
    show(|counts| &counts.total_down);
    head("Total contention upwards (figure 13 b)");
    show(|counts| &counts.total_up);
    head("Contended links downwards (figure 14 a)");
    show(|counts| &counts.contended_down);
    head("Contended links upwards (figure 14 b)");
    show(|counts| &counts.contended_up);
    head("Inter-partition interference (figure 15)");
    show(|counts| &counts.interference);
}

fn counts(setting: &Setting, topology: &Topology) -> [Counts; 2] {
    let mut counts = [Counts::default(); 2];
    for draw in 0..setting.draws {
        let scene = Scene::new(topology, topology.victims, setting.seed + u64::from(draw));
        let senders = hosts(&scene.fabric, &scene.lids);
        for each in 1..=topology.victims as usize {
            let receivers: Vec<Lid> =
                scene.by_leaf.iter().flat_map(|leaf| leaf.iter().take(each)).copied().collect();
            for (engine, counts) in ENGINES.iter().zip(&mut counts) {
                let routing = scene.route(engine, Isolation::Def, &receivers);
                let paths = scene.paths(&routing);
                let directions = Directions::new(&paths, routing.ranks.as_ref());
                let found = contention(&paths, &senders, &receivers, &directions).expect("all have LIDs");
                counts.total_down.one(found.down.total as f64);
                counts.total_up.one(found.up.total as f64);
                counts.contended_down.one(found.down.contended as f64);
                counts.contended_up.one(found.up.contended as f64);
                let found = interference(&paths, &scene.parts).expect("all have LIDs");
                counts.interference.one(found.occurrences as f64);
            }
        }
    }
    counts
}
