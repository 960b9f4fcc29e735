//! The measures of pFTree-Wt: contention of receivers, and interference of partitions.

use serde::Serialize;
use weft_wire::Lid;

use super::UnknownLid;
use super::paths::Paths;
use super::survey::{Direction, Directions, survey};

/// How receivers share links between switches, in one direction (Zahid 2016, section 7.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Contended {
    /// How many links lead there.
    pub links: u64,
    /// How many of them are contended: routes to more than one receiver pass them.
    pub contended: u64,
    /// The contention of all together; that of a link is the number of receivers reached by it, less one.
    pub total: u64,
    /// The greatest contention of a link.
    pub worst: u64,
}

/// How receivers share links between switches. Links from and to hosts are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Contention {
    /// Towards the roots.
    pub up: Contended,
    /// Towards the hosts.
    pub down: Contended,
    /// Between switches of one rank.
    pub level: Contended,
}

/// Counts on every link between switches the receivers that senders reach by it.
///
/// # Errors
///
/// When a sender or receiver has a LID that no one has.
pub fn contention(
    paths: &Paths<'_>,
    senders: &[Lid],
    receivers: &[Lid],
    directions: &Directions,
) -> Result<Contention, UnknownLid> {
    let survey = survey(paths, senders, receivers)?;
    let mut contention = Contention::default();
    for (receivers, direction) in survey.routes().iter().zip(directions.iter()) {
        let Some(direction) = direction else { continue };
        let side = match direction {
            Direction::Up => &mut contention.up,
            Direction::Down => &mut contention.down,
            Direction::Level => &mut contention.level,
        };
        let own = u64::from(receivers.saturating_sub(1));
        side.links += 1;
        side.contended += u64::from(own > 0);
        side.total += own;
        side.worst = side.worst.max(own);
    }
    Ok(contention)
}

/// How partitions share links between switches when in each of them everyone sends to everyone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Interference {
    /// How many times a flow is on a link together with any flow of another partition, up and down together: the total
    /// inter-partition interference of Zahid 2016, section 7.1.
    pub occurrences: u64,
    /// By partition: how many of those are of its own flows.
    pub by_partition: Vec<u64>,
    /// How many links carry more than one partition.
    pub links: u64,
}

/// Counts the flows of partitions that share links between switches with other partitions. Who is in two partitions
/// sends in both.
///
/// # Errors
///
/// When a member has a LID that no one has.
pub fn interference(paths: &Paths<'_>, partitions: &[Vec<Lid>]) -> Result<Interference, UnknownLid> {
    let surveys = partitions.iter().map(|members| survey(paths, members, members));
    let surveys: Vec<_> = surveys.collect::<Result<_, _>>()?;
    let mut found = Interference { by_partition: vec![0; partitions.len()], ..Interference::default() };
    for link in 0..paths.link_count() {
        let flows = || surveys.iter().map(|survey| survey.flows()[link]);
        if flows().filter(|flows| *flows > 0).count() < 2 {
            continue;
        }
        found.links += 1;
        for (total, flows) in found.by_partition.iter_mut().zip(flows()) {
            *total += flows;
        }
    }
    found.occurrences = found.by_partition.iter().sum();
    Ok(found)
}
