//! Meshes, tori, rings and hypercubes of switches.

use super::{GenerateError, GenerateOptions, Generator, end, in_range, product};
use crate::{Fabric, NodeIndex};

const DIMENSIONS_MAX: u64 = 16;

/// A grid of switches with these side lengths.
pub fn mesh(
    sides: &[u32],
    hosts_per_switch: u32,
    options: &GenerateOptions,
) -> Result<Fabric, GenerateError> {
    grid(sides, hosts_per_switch, false, options)
}

/// A grid whose sides close to rings. A side of 2 is closed already, so it gets one cable, not two.
pub fn torus(
    sides: &[u32],
    hosts_per_switch: u32,
    options: &GenerateOptions,
) -> Result<Fabric, GenerateError> {
    grid(sides, hosts_per_switch, true, options)
}

/// A ring of switches.
pub fn ring(
    switches: u32,
    hosts_per_switch: u32,
    options: &GenerateOptions,
) -> Result<Fabric, GenerateError> {
    torus(&[switches], hosts_per_switch, options)
}

/// A hypercube of 2^`dimensions` switches.
pub fn hypercube(
    dimensions: u32,
    hosts_per_switch: u32,
    options: &GenerateOptions,
) -> Result<Fabric, GenerateError> {
    let dimensions = in_range("the number of dimensions", u64::from(dimensions), 1, DIMENSIONS_MAX)?;
    mesh(&vec![2; dimensions as usize], hosts_per_switch, options)
}

fn grid(
    sides: &[u32],
    hosts_per_switch: u32,
    closed: bool,
    options: &GenerateOptions,
) -> Result<Fabric, GenerateError> {
    in_range("the number of dimensions", sides.len() as u64, 1, DIMENSIONS_MAX)?;
    for side in sides {
        in_range("the length of a side", u64::from(*side), 1, 49_151)?;
    }
    let hosts = u64::from(hosts_per_switch);
    let count = product(sides.iter().map(|side| u64::from(*side)));
    let mut generator = Generator::new(options, count, count.saturating_mul(hosts))?;
    // A side of 1 needs no port and one of 2 needs one, which serves as the way up and the way down.
    let ports = |side: u32| u64::from(side.min(3) - 1);
    let needed = hosts + sides.iter().map(|side| ports(*side)).sum::<u64>();
    let mut switches: Vec<NodeIndex> = Vec::new();
    for index in 0..count {
        switches.push(generator.switch(name(index, sides), needed)?);
    }
    let (mut stride, mut first_port) = (1, hosts);
    for side in sides {
        let length = u64::from(*side);
        for index in 0..count {
            let at = index / stride % length;
            let last = at + 1 == length;
            if length == 1 || (last && (!closed || length == 2)) {
                continue;
            }
            let next = if last { index - at * stride } else { index + stride };
            let (here, there) = (switches[index as usize], switches[next as usize]);
            generator.cable(end(here, first_port), end(there, first_port + ports(*side) - 1))?;
        }
        stride *= length;
        first_port += ports(*side);
    }
    generator.hosts_on(&switches, hosts)?;
    Ok(generator.finish())
}

/// The coordinates of a switch.
fn name(mut index: u64, sides: &[u32]) -> String {
    let mut name = "switch".to_owned();
    for side in sides {
        name.push_str(&format!("-{}", index % u64::from(*side)));
        index /= u64::from(*side);
    }
    name
}
