//! pFTree against pFTree-Wt: receivers that meet on links, and partitions that do.

use weft_routing::quality::{Directions, contention, hosts, interference};
use weft_wire::Lid;

use crate::setting::{
    LITERAL, PFTREE, PFTREE_EXT, PFTREE_WT, Range, Router, Scene, Setting, TOPOLOGIES, Topology,
};

const ROUTERS: [Router; 4] = [PFTREE, PFTREE_WT, PFTREE_EXT, LITERAL];

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
    let all: Vec<[Counts; 4]> = TOPOLOGIES.iter().map(|topology| counts(setting, topology)).collect();
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
         1024. It has no numbers for pFTree-Ext here; ours keeps the victims to themselves, with and without \
         `--literal`.\n"
    );
    let head = |title: &str| {
        println!(
            "{title}\n\n| topology | pftree | pftree-wt | pftree-ext | pftree-ext --literal |\n|---|---|---|---|---|"
        );
    };
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

fn counts(setting: &Setting, topology: &Topology) -> [Counts; 4] {
    let mut counts = [Counts::default(); 4];
    for draw in 0..setting.draws {
        let scene = Scene::new(topology, topology.victims, setting.seed + u64::from(draw));
        let senders = hosts(&scene.fabric, &scene.lids);
        for each in 1..=topology.victims as usize {
            let receivers: Vec<Lid> =
                scene.by_leaf.iter().flat_map(|leaf| leaf.iter().take(each)).copied().collect();
            for (router, counts) in ROUTERS.iter().zip(&mut counts) {
                let Some(routing) = scene.route(router, &receivers) else { continue };
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
