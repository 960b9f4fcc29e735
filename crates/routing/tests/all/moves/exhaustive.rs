//! FTreeMinRC against all sets of switches, on trees of up to 12.

use weft_routing::Ranks;
use weft_routing::moves::Method;
use weft_topology::generate::{GenerateOptions, kary_ntree, pgft, xgft};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::Lid;

use super::common::Site;

/// A tree of up to 16 switches and the rows for one LID; sets of switches are bits.
struct Small {
    /// By switch: those below it that it has cables to, and those above.
    below: Vec<u16>,
    above: Vec<u16>,
    /// By switch: the one that its row leads to.
    next: Vec<u16>,
}

impl Small {
    fn new(site: &Site, ranks: &Ranks, lid: Lid) -> Self {
        let switches: Vec<NodeIndex> = site.fabric.switches().map(|(index, _)| index).collect();
        let bit = |node: NodeIndex| switches.iter().position(|other| *other == node).map_or(0, |at| 1 << at);
        let beside = |node: &NodeIndex, is_below: bool| {
            let peers = site.fabric.node(*node).cabled_ports().map(|(_, peer)| peer.node);
            let fits = |peer: &NodeIndex| {
                ranks.of(*peer).is_some() && (ranks.of(*peer) > ranks.of(*node)) == is_below
            };
            peers.filter(fits).fold(0, |set, peer| set | bit(peer))
        };
        let row =
            |node: &NodeIndex| site.fabric.peer(PortRef::new(*node, site.routing.routes.port(*node, lid)));
        Self {
            below: switches.iter().map(|node| beside(node, true)).collect(),
            above: switches.iter().map(|node| beside(node, false)).collect(),
            next: switches.iter().map(|node| row(node).map_or(0, |peer| bit(peer.node))).collect(),
        }
    }

    /// Whether there are rows for the switches of a set, whatever they are, so that packets for the LID arrive at `leaf` from
    /// everywhere by going up and then down, if all other switches keep theirs.
    fn serves(&self, leaf: u16, set: u16) -> bool {
        let count = self.next.len();
        let gather = |mut reached: u16, to: &[u16], from: u16| {
            loop {
                let may = |at: usize| if set & 1 << at != 0 { to[at] } else { to[at] & self.next[at] };
                let leads = |at: &usize| may(*at) & (reached | from) != 0;
                let more = (0..count).filter(leads).fold(reached, |all, at| all | 1 << at);
                if more == reached {
                    return reached;
                }
                reached = more;
            }
        };
        let down = gather(leaf, &self.below, 0);
        let up = gather(0, &self.above, down);
        (down | up).count_ones() as usize == count
    }
}

/// The least number of switches that must be written: by trying every set that has the leaf of the new place and, as packets
/// at the old one have nowhere else to go, the old one's.
fn least(site: &Site, lid: Lid, from: NodeIndex, to: NodeIndex) -> usize {
    let small = Small::new(site, site.routing.ranks.as_ref().expect("a tree engine ranks switches"), lid);
    let bit = |node| 1u16 << site.fabric.switches().position(|(index, _)| index == node).expect("a switch");
    let both = bit(from) | bit(to);
    let sets = (0..1u16 << small.next.len()).filter(|set| set & both == both);
    let sets = sets.filter(|set| small.serves(bit(to), *set));
    sets.map(u16::count_ones).min().expect("all switches do") as usize
}

#[test]
fn ftreeminrc_writes_no_more_than_the_least_of_all_sets() {
    let options = GenerateOptions::default();
    let trees: [Fabric; 6] = [
        xgft(&[2, 2, 2], &[1, 2, 2], &options).unwrap(),
        xgft(&[2, 4], &[1, 4], &options).unwrap(),
        xgft(&[2, 8], &[1, 3], &options).unwrap(),
        kary_ntree(2, 3, &options).unwrap(),
        pgft(&[2, 4], &[1, 2], &[1, 2], &options).unwrap(),
        xgft(&[1, 2, 3], &[1, 1, 2], &options).unwrap(),
    ];
    for fabric in trees {
        let counts = fabric.counts();
        assert!(counts.switches <= 12, "{} are too many to try", counts.switches);
        let site = Site::new(fabric, "ftree", 1);
        for from in [0, counts.hosts / 2] {
            for to in (0..counts.hosts).filter(|to| *to != from) {
                let lid = site.lids_of(from)[1];
                let plan = site.plan(&[site.copy(1, from, to)], Method::FtreeMinrc);
                assert!(plan.fallbacks.is_empty());
                let least = least(&site, lid, site.leaf(from), site.leaf(to));
                assert_eq!(plan.physical as usize, least, "{counts:?} from {from} to {to}");
            }
        }
    }
}
