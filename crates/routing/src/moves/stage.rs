//! The blocks of moves that are carried out at the same time, and the rounds that they make.

use std::collections::BTreeMap;

use weft_wire::{Lid, PortNum};

use super::draft::{Draft, place};
use super::plan::{Plan, Round, Write};
use super::request::UpdateOrder;

use crate::sorted;

/// A block of a switch's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BlockAt {
    pub(super) switch: u32,
    pub(super) block: u16,
}

/// What is written to each block.
pub(super) type Items = BTreeMap<BlockAt, Item>;

/// What is written to a block.
#[derive(Debug, Default)]
pub(super) struct Item {
    pub(super) round: usize,
    pub(super) is_active: bool,
    pub(super) rows: Vec<(Lid, PortNum)>,
    /// The LIDs that packets are on the way to.
    pub(super) live: Vec<Lid>,
}

/// What is carried out at the same time.
#[derive(Debug, Default)]
pub(super) struct Stage {
    pub(super) items: Items,
    /// Whether packets of earlier stages are gone before it begins.
    pub(super) after_drain: bool,
    /// Whether packets that are dropped first have time to be gone before new rows are written.
    pub(super) drains_drops: bool,
}

impl Stage {
    /// Writes it into the draft and adds its rounds to the plan; where packets are dropped first, that is a round of its own.
    pub(super) fn finish(&self, draft: &mut Draft<'_>, plan: &mut Plan) {
        let from = plan.rounds.len();
        let drops_first = plan.order == UpdateOrder::DropFirst;
        if drops_first {
            for (key, item) in self.items.iter().filter(|(_, item)| !item.live.is_empty()) {
                let drops: Vec<_> = item.live.iter().map(|lid| (*lid, PortNum::NONE)).collect();
                write(plan, draft, from, *key, &drops, item.is_active);
            }
        }
        for (key, item) in &self.items {
            write(
                plan,
                draft,
                from + item.round + usize::from(drops_first),
                *key,
                &item.rows,
                item.is_active,
            );
        }
        for round in &mut plan.rounds[from..] {
            // Stable: by switch and block otherwise.
            sorted::by_key(&mut round.writes, |write| !write.is_active);
        }
        if let Some(first) = plan.rounds.get_mut(from) {
            first.after_drain = self.after_drain;
        }
        if let Some(second) = plan.rounds.get_mut(from + 1).filter(|_| self.drains_drops) {
            second.after_drain = true;
        }
    }
}

fn write(
    plan: &mut Plan,
    draft: &mut Draft<'_>,
    round: usize,
    key: BlockAt,
    rows: &[(Lid, PortNum)],
    is_active: bool,
) {
    let mut ports = draft.block(key.switch, key.block);
    for (lid, port) in rows {
        ports[place(*lid).1] = *port;
    }
    draft.write(key.switch, key.block, ports);
    let switch = draft.node(key.switch);
    plan.rounds.resize_with(plan.rounds.len().max(round + 1), Round::default);
    plan.rounds[round].writes.push(Write { switch, block: key.block, ports, is_active });
}
