//! The combinations of table 4.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateError, GenerateOptions, xgft};

/// How many virtual functions each host has.
pub const VFS: usize = 4;

/// How much of all virtual functions have a machine, in percent.
pub const OCCUPANCIES: [u32; 3] = [25, 50, 75];

/// A fat-tree of table 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tree {
    /// The paper's name.
    pub name: &'static str,
    /// The children of a node, from the leaves upwards; the paper has them from the roots downwards.
    pub children: &'static [u32],
    /// The parents of a node, from the hosts upwards.
    pub parents: &'static [u32],
    /// The number of hosts.
    pub hosts: usize,
    /// The number of switches.
    pub switches: usize,
}

/// The trees of table 4, in its order.
pub const TREES: [Tree; 6] = [
    tree("4-ary-2-full", &[4, 8], &[1, 4], 32, 12),
    tree("8-ary-2", &[8, 8], &[1, 8], 64, 16),
    tree("4-ary-3-full", &[4, 4, 8], &[1, 4, 4], 128, 80),
    tree("16-ary-2", &[16, 16], &[1, 16], 256, 32),
    tree("8-ary-3", &[8, 8, 8], &[1, 8, 8], 512, 192),
    tree("8-ary-3-full", &[8, 8, 16], &[1, 8, 8], 1024, 320),
];

const fn tree(
    name: &'static str,
    children: &'static [u32],
    parents: &'static [u32],
    hosts: usize,
    switches: usize,
) -> Tree {
    Tree { name, children, parents, hosts, switches }
}

impl Tree {
    /// The cabling.
    ///
    /// # Errors
    ///
    /// When a tree cannot be built, which none of [`TREES`] is.
    pub fn fabric(&self) -> Result<Fabric, GenerateError> {
        xgft(self.children, self.parents, &GenerateOptions::default())
    }

    /// The hosts in the smallest sub-trees: in a leaf, in a pod, and so on up to the whole tree.
    fn subtrees(&self) -> impl Iterator<Item = usize> {
        self.children.iter().scan(1, |hosts, children| {
            *hosts *= *children as usize;
            Some(*hosts)
        })
    }

    /// How many switches stand between two hosts, numbered from the left: all tops of the sub-trees that have one of them alone,
    /// and of the smallest that has both (6.2).
    pub fn skyline(&self, a: usize, b: usize) -> usize {
        let mut tops = 1;
        let mut skyline = 0;
        for (level, hosts) in self.subtrees().enumerate() {
            // A sub-tree of the next level has as many tops for each of those below as a switch has parents.
            tops *= self.parents[level] as usize;
            if a / hosts == b / hosts {
                return skyline + tops;
            }
            skyline += 2 * tops;
        }
        skyline
    }

    /// The mean of [`skyline`](Self::skyline) over all pairs of different hosts: figure 8a's FTreeMinRC if every migration were
    /// to any other host alike.
    pub fn mean_skyline(&self) -> f64 {
        // All hosts see the same tree.
        let sum: usize = (1..self.hosts).map(|to| self.skyline(0, to)).sum();
        sum as f64 / (self.hosts - 1) as f64
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

/// The name is no topology's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("table 4 has no topology `{0}`; its topologies are {known}", known = TREES.map(|tree| tree.name).join(", "))]
pub struct UnknownTree(String);

impl FromStr for Tree {
    type Err = UnknownTree;

    fn from_str(text: &str) -> Result<Self, UnknownTree> {
        let found = TREES.into_iter().find(|tree| tree.name == text);
        found.ok_or_else(|| UnknownTree(text.to_owned()))
    }
}

weft_wire::named! {
    /// Where virtual machines are at first.
    #[derive(PartialOrd, Ord)]
    pub enum Start {
        /// On virtual functions drawn at random.
        Random = "random",
        /// As many on every host.
        Uniform = "uniform",
    }
}

weft_wire::named! {
    /// How virtual machines migrate.
    #[derive(PartialOrd, Ord)]
    pub enum Pattern {
        /// Twice as many times as there are hosts: a random machine to another random host with a free function.
        Random = "random",
        /// To the left, onto as few hosts as can have them all.
        Consolidate = "consolidate",
        /// The same for two groups of machines, each on hosts of its own.
        Grouping = "grouping",
        /// Until every host has as many.
        ToUniform = "to-uniform",
    }
}

/// One combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Case {
    /// The topology.
    pub topology: Tree,
    /// Where machines are at first.
    pub start: Start,
    /// How they migrate.
    pub pattern: Pattern,
    /// How much of all virtual functions have one, in percent.
    pub occupancy: u32,
}

impl Case {
    /// How many virtual machines there are.
    pub fn machines(&self) -> usize {
        self.topology.hosts * VFS * self.occupancy as usize / 100
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topology, start, pattern, occupancy } = self;
        write!(f, "{topology}, {start} to {pattern}, {occupancy} %")
    }
}

/// All combinations: of each topology and occupancy four patterns from a random start, and three from a uniform one, which cannot
/// become more uniform (note to table 4). That is 21 for each topology, 126 in all.
pub fn cases() -> impl Iterator<Item = Case> {
    let fits = |case: &Case| case.start == Start::Random || case.pattern != Pattern::ToUniform;
    let of_pattern = |topology, start, pattern| {
        OCCUPANCIES.into_iter().map(move |occupancy| Case { topology, start, pattern, occupancy })
    };
    let of_start = move |topology, start| {
        Pattern::ALL.into_iter().flat_map(move |pattern| of_pattern(topology, start, pattern))
    };
    let of_topology = move |topology| Start::ALL.into_iter().flat_map(move |start| of_start(topology, start));
    TREES.into_iter().flat_map(of_topology).filter(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_126_combinations_21_of_each_topology() {
        assert_eq!(cases().count(), 126);
        for tree in TREES {
            assert_eq!(cases().filter(|case| case.topology == tree).count(), 21, "{tree}");
        }
        // "counting as many as 3072 VMs" (section 7.2); "only has 32 VMs" (the same).
        let machines = || cases().map(|case| case.machines());
        assert_eq!((machines().min(), machines().max()), (Some(32), Some(3072)));
    }

    #[test]
    fn the_trees_are_those_of_table_4() {
        for tree in TREES {
            let counts = tree.fabric().unwrap().counts();
            assert_eq!((counts.hosts, counts.switches), (tree.hosts, tree.switches), "{tree}");
            assert_eq!(tree.name.parse(), Ok(tree));
        }
        assert!("8-ary-4".parse::<Tree>().unwrap_err().to_string().contains("16-ary-2"));
    }

    #[test]
    fn skylines_are_those_that_the_shape_of_a_tree_gives() {
        // Across, in a pod, in a leaf: virtual-machines.md, section 3.
        let expected = [(6, 6), (10, 10), (26, 6), (18, 18), (82, 10), (82, 10)];
        for (tree, (across, pod)) in TREES.into_iter().zip(expected) {
            let leaf = tree.children[0] as usize;
            assert_eq!(tree.skyline(0, tree.hosts - 1), across, "{tree}");
            assert_eq!(tree.skyline(0, leaf), pod, "{tree}");
            assert_eq!(tree.skyline(0, leaf - 1), 1, "{tree}");
        }
        let means = TREES.map(|tree| (tree.mean_skyline() * 10.0).round() / 10.0);
        assert_eq!(means, [5.5, 9.0, 23.5, 17.0, 73.0, 77.5]);
    }
}
