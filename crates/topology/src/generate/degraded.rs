//! A fabric of which parts are missing.

use std::collections::BTreeSet;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::GenerateError;
use crate::{Cable, Fabric, NodeIndex};

/// Missing parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// How many cables between switches, parallel ones counted each.
    pub cables: usize,
    /// How many switches, with all their cables; hosts on them stay, without one.
    pub switches: usize,
}

/// `fabric` without random cables and switches, or without all where there are fewer. Names, GUIDs and port numbers
/// stay. The seed decides what is missing.
pub fn degraded(fabric: &Fabric, damage: Damage, seed: u64) -> Result<Fabric, GenerateError> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut switches: Vec<NodeIndex> = fabric.switches().map(|(index, _)| index).collect();
    switches.shuffle(&mut random);
    switches.truncate(damage.switches);
    let gone: BTreeSet<NodeIndex> = switches.into_iter().collect();
    let stays = |cable: &Cable| !gone.contains(&cable.a.node) && !gone.contains(&cable.b.node);
    let (mut between, mut cables): (Vec<Cable>, Vec<Cable>) = fabric
        .cables()
        .filter(stays)
        .partition(|cable| [cable.a, cable.b].iter().all(|end| fabric.node(end.node).is_switch()));
    between.shuffle(&mut random);
    cables.extend(between.into_iter().skip(damage.cables));
    Ok(fabric.part(|index| !gone.contains(&index), cables)?)
}
