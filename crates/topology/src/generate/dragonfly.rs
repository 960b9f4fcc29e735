//! The dragonfly of Kim, Dally, Scott and Abts.

use super::{GenerateError, GenerateOptions, Generator, end, in_range};
use crate::Fabric;

/// A dragonfly: groups of `a` switches, each cabled to every other of its group, to `p` hosts and by `h` cables to
/// other groups. There are `groups` of them, or a·h + 1, so that one cable joins each pair of groups. With fewer,
/// pairs are joined by as many cables as they can evenly have; cables left over stay away.
pub fn dragonfly(
    a: u32,
    p: u32,
    h: u32,
    groups: Option<u32>,
    options: &GenerateOptions,
) -> Result<Fabric, GenerateError> {
    let a = in_range("the number of switches in a group", u64::from(a), 1, 254)?;
    let p = in_range("the number of hosts on a switch", u64::from(p), 0, 254)?;
    let h = in_range("the number of global cables of a switch", u64::from(h), 1, 254)?;
    let channels = a * h;
    let groups = groups.map_or(channels + 1, u64::from);
    in_range("the number of groups", groups, 2, channels + 1)?;
    let count = a * groups;
    let mut generator = Generator::new(options, count, count * p)?;
    let mut switches = Vec::new();
    for index in 0..count {
        switches.push(generator.switch(format!("switch-{}-{}", index / a, index % a), p + a - 1 + h)?);
    }
    let switch = |group: u64, member: u64| switches[(group * a + member) as usize];
    for group in 0..groups {
        for low in 0..a {
            for high in low + 1..a {
                // A switch's ports within its group are in the order of the others.
                generator.cable(end(switch(group, low), p + high - 1), end(switch(group, high), p + low))?;
            }
        }
    }
    for group in 0..groups {
        for channel in 0..channels {
            let (round, ahead) = (channel / (groups - 1), channel % (groups - 1) + 1);
            let other = (group + ahead) % groups;
            let back = round * (groups - 1) + (groups - ahead - 1);
            // Each cable is seen from both of its groups; the lower one makes it.
            if group > other || back >= channels {
                continue;
            }
            let global = |group, channel| end(switch(group, channel / h), p + a - 1 + channel % h);
            generator.cable(global(group, channel), global(other, back))?;
        }
    }
    generator.hosts_on(&switches, p)?;
    Ok(generator.finish())
}
