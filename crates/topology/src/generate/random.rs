//! Irregular fabrics from a seed.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::{GenerateError, GenerateOptions, Generator, end, in_range};
use crate::{Fabric, NodeIndex};

/// What a random fabric is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomFabric {
    /// How many switches; a random tree connects them all.
    pub switches: u32,
    /// How many hosts, each on a random switch that has a free port.
    pub hosts: u32,
    /// How many cables between random switches besides those of the tree.
    pub extra_cables: u32,
    /// How many cables beside random ones of those.
    pub parallel_cables: u32,
}

/// The ports of switches whose radix is not given.
const RADIX_DEFAULT: u8 = 36;

/// A random connected fabric. The seed decides all of it.
pub fn random(
    parameters: &RandomFabric,
    seed: u64,
    options: &GenerateOptions,
) -> Result<Fabric, GenerateError> {
    let count = in_range("the number of switches", u64::from(parameters.switches), 1, 49_151)?;
    let radix = options.radix.unwrap_or(RADIX_DEFAULT);
    let options = GenerateOptions { radix: Some(radix), ..*options };
    let mut generator = Generator::new(&options, count, u64::from(parameters.hosts))?;
    let mut random = Pcg64::seed_from_u64(seed);
    let mut switches = Switches { nodes: Vec::new(), used: Vec::new(), radix: u64::from(radix) };
    for index in 0..count {
        let node = generator.switch(format!("switch-{index}"), 1)?;
        switches.nodes.push(node);
        switches.used.push(0);
    }
    let mut cables = Vec::new();
    for index in 1..switches.nodes.len() {
        // Any switch before this one with two free ports, so that the tree can go on growing.
        let room = if index + 1 == switches.nodes.len() { 1 } else { 2 };
        let other = switches.pick(&mut random, |at, free| at < index && free >= room)?;
        cables.push((index, other));
        switches.cable(&mut generator, index, other)?;
    }
    for _ in 0..parameters.extra_cables {
        let first = switches.pick(&mut random, |_, free| free > 0)?;
        let second = switches.pick(&mut random, |at, free| at != first && free > 0)?;
        cables.push((first, second));
        switches.cable(&mut generator, first, second)?;
    }
    for _ in 0..parameters.parallel_cables {
        let used = &switches.used;
        let both_free = |at: &usize| used[*at] < u64::from(radix);
        let free: Vec<_> = cables.iter().filter(|(a, b)| both_free(a) && both_free(b)).copied().collect();
        let (first, second) = *free.get(below(&mut random, free.len())).ok_or(full(radix))?;
        switches.cable(&mut generator, first, second)?;
    }
    for _ in 0..parameters.hosts {
        let at = switches.pick(&mut random, |_, free| free > 0)?;
        let host = generator.host(1)?;
        let port = switches.take(at);
        generator.cable(end(host, 0), end(switches.nodes[at], port))?;
    }
    Ok(generator.finish())
}

struct Switches {
    nodes: Vec<NodeIndex>,
    used: Vec<u64>,
    radix: u64,
}

impl Switches {
    /// A random switch among those that `wanted` takes by place and free ports.
    fn pick(&self, random: &mut Pcg64, wanted: impl Fn(usize, u64) -> bool) -> Result<usize, GenerateError> {
        let fits = |at: &usize| wanted(*at, self.radix - self.used[*at]);
        let candidates: Vec<usize> = (0..self.used.len()).filter(fits).collect();
        candidates.get(below(random, candidates.len())).copied().ok_or(full(self.radix as u8))
    }

    fn take(&mut self, at: usize) -> u64 {
        self.used[at] += 1;
        self.used[at] - 1
    }

    fn cable(&mut self, generator: &mut Generator, a: usize, b: usize) -> Result<(), GenerateError> {
        let (port_a, port_b) = (self.take(a), self.take(b));
        generator.cable(end(self.nodes[a], port_a), end(self.nodes[b], port_b))
    }
}

/// All ports are in use, and one more is needed.
fn full(radix: u8) -> GenerateError {
    GenerateError::Radix { needed: u64::from(radix) + 1, radix }
}

/// A random number below `count`, or 0 where there is none.
fn below(random: &mut Pcg64, count: usize) -> usize {
    if count == 0 { 0 } else { random.random_range(0..count as u64) as usize }
}
