//! Trees with several roots.

use super::{GenerateError, GenerateOptions, Generator, end, in_range, product};
use crate::{Fabric, NodeIndex};

const LEVELS_MAX: u64 = 16;

/// An extended generalised fat tree in Öhring's notation, the hosts' level first: a node of level i + 1 has
/// `children[i]` below it, a node of level i has `parents[i]` above it.
///
/// `xgft(&[18, 36], &[1, 18], …)` is the tree of 648 hosts and 54 switches with 36 ports.
pub fn xgft(children: &[u32], parents: &[u32], options: &GenerateOptions) -> Result<Fabric, GenerateError> {
    pgft(children, parents, &vec![1; children.len()], options)
}

/// The largest tree of `levels` levels of switches with `radix` ports, half of them up, all of them down at the
/// roots, at full bisection bandwidth: `rlft(36, 3, …)` has 11664 hosts and 1620 switches.
pub fn rlft(radix: u8, levels: u32, options: &GenerateOptions) -> Result<Fabric, GenerateError> {
    in_range("the radix", u64::from(radix), 2, 254)?;
    let levels = in_range("the number of levels", u64::from(levels), 1, LEVELS_MAX)? as usize;
    let half = u32::from(radix / 2);
    let (mut children, mut parents) = (vec![half; levels], vec![half; levels]);
    children[levels - 1] = u32::from(radix);
    parents[0] = 1;
    let options = GenerateOptions { radix: Some(options.radix.unwrap_or(radix)), ..*options };
    xgft(&children, &parents, &options)
}

/// A k-ary n-tree: k^n hosts under n levels of k^(n-1) switches.
pub fn kary_ntree(k: u32, n: u32, options: &GenerateOptions) -> Result<Fabric, GenerateError> {
    let levels = in_range("the number of levels", u64::from(n), 1, LEVELS_MAX)? as usize;
    let mut parents = vec![k; levels];
    parents[0] = 1;
    xgft(&vec![k; levels], &parents, options)
}

/// A tree like [`xgft`] in which `parallel[i]` cables join each node of level i to each of its parents.
pub fn pgft(
    children: &[u32],
    parents: &[u32],
    parallel: &[u32],
    options: &GenerateOptions,
) -> Result<Fabric, GenerateError> {
    let levels = children.len();
    if parents.len() != levels || parallel.len() != levels {
        return Err(GenerateError::Levels(levels, parents.len(), parallel.len()));
    }
    in_range("the number of levels", levels as u64, 1, LEVELS_MAX)?;
    for (what, list) in [
        ("a number of children", children),
        ("a number of parents", parents),
        ("a number of parallel cables", parallel),
    ] {
        for value in list {
            in_range(what, u64::from(*value), 1, 49_151)?;
        }
    }
    let wide = |list: &[u32]| list.iter().map(|value| u64::from(*value)).collect::<Vec<u64>>();
    Tree { children: wide(children), parents: wide(parents), parallel: wide(parallel) }.generate(options)
}

/// A node of level i is a pair of numbers: which subtree of that level it belongs to, out of the product of the
/// children above, and which of that subtree's roots it is, out of the product of the parents up to it.
/// A node, and its place in its level.
struct Placed {
    index: u64,
    node: NodeIndex,
}

struct Tree {
    children: Vec<u64>,
    parents: Vec<u64>,
    parallel: Vec<u64>,
}

impl Tree {
    fn subtrees(&self, level: usize) -> u64 {
        product(self.children.iter().skip(level).copied())
    }

    fn roots(&self, level: usize) -> u64 {
        product(self.parents.iter().take(level).copied())
    }

    fn nodes(&self, level: usize) -> u64 {
        self.subtrees(level).saturating_mul(self.roots(level))
    }

    fn ports_down(&self, level: usize) -> u64 {
        if level == 0 { 0 } else { self.children[level - 1].saturating_mul(self.parallel[level - 1]) }
    }

    fn ports_up(&self, level: usize) -> u64 {
        let top = self.children.len();
        if level == top { 0 } else { self.parents[level].saturating_mul(self.parallel[level]) }
    }

    /// How many hosts there are below each subtree of leaves; the first ones have the one that is left over.
    fn hosts_per_leaf(&self, hosts: u64, leaf: u64) -> u64 {
        let leaves = self.subtrees(1);
        hosts / leaves + u64::from(leaf < hosts % leaves)
    }

    fn generate(&self, options: &GenerateOptions) -> Result<Fabric, GenerateError> {
        let top = self.children.len();
        let switches = (1..=top).map(|level| self.nodes(level)).fold(0, u64::saturating_add);
        let places = self.nodes(0);
        let hosts = match options.tree_hosts {
            Some(hosts) => in_range("the number of hosts of this tree", u64::from(hosts), 0, places)?,
            None => places,
        };
        let host_ports = hosts.saturating_mul(self.ports_up(0));
        let mut generator = Generator::new(options, switches, host_ports)?;
        let mut levels: Vec<Vec<Placed>> = vec![Vec::new()];
        for level in 1..=top {
            let ports = self.ports_down(level).saturating_add(self.ports_up(level));
            let switch = |index| -> Result<_, GenerateError> {
                let node = generator.switch(format!("switch-{level}-{index}"), ports)?;
                Ok(Placed { index, node })
            };
            levels.push((0..self.nodes(level)).map(switch).collect::<Result<_, _>>()?);
        }
        for leaf in 0..self.subtrees(1) {
            // Where a leaf is not full, the ports that lead to its last places stay free.
            let first = leaf * self.children[0];
            for place in first..first + self.hosts_per_leaf(hosts, leaf) {
                levels[0].push(Placed { index: place, node: generator.host(self.ports_up(0))? });
            }
        }
        for (level, pair) in levels.windows(2).enumerate() {
            for node in &pair[0] {
                self.cable_up(&mut generator, level, node, &pair[1])?;
            }
        }
        Ok(generator.finish())
    }

    /// Cables one node to all its parents.
    fn cable_up(
        &self,
        generator: &mut Generator,
        level: usize,
        one: &Placed,
        upper: &[Placed],
    ) -> Result<(), GenerateError> {
        let Placed { index, node } = *one;
        let roots = self.roots(level);
        let (subtree, root) = (index / roots, index % roots);
        let (parent_subtree, child) = (subtree / self.children[level], subtree % self.children[level]);
        let parallel = self.parallel[level];
        for up in 0..self.parents[level] {
            let parent = parent_subtree * self.roots(level + 1) + up * roots + root;
            for cable in 0..parallel {
                let up_port = self.ports_down(level) + up * parallel + cable;
                let down_port = child * parallel + cable;
                generator.cable(end(node, up_port), end(upper[parent as usize].node, down_port))?;
            }
        }
        Ok(())
    }
}
