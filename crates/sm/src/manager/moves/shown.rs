//! Plans of moves as tables, and of moves that are carried out the switches that they left silent.

use weft_machine::Time;
use weft_topology::NodeIndex;
use weft_wire::{VmMove, VmMoveResult};

use super::super::SubnetManager;
use super::How;
use crate::knowledge::Subnet;
use crate::moves::{Asked, Want, Wish, planned, silent, writes};

impl SubnetManager {
    pub(super) fn show_plan(&mut self, now: Time, subnet: &mut Subnet, asked: &Asked, wish: &Wish, how: How) {
        match self.plan(now, subnet, std::slice::from_ref(wish), how) {
            Err(why) => self.refuse(now, asked, VmMoveResult::Unproved, &why),
            Ok((plan, _)) if asked.want == Want::List => {
                let is_vswitch = |node: u32| self.is_vswitch(node);
                let records = writes(&plan, subnet, self.waits(&plan).silence, is_vswitch);
                self.sa.answer_writes(now, &asked.request, &records);
            }
            Ok((plan, proof)) => {
                let answer = planned(&wish.ask, &plan, &proof, self.waits(&plan), VmMoveResult::Planned);
                self.answer(now, asked, answer);
            }
        }
    }

    fn is_vswitch(&self, node: u32) -> bool {
        let all = self.desk.kept().map_or(&[][..], |(_, vswitches)| vswitches);
        all.binary_search_by_key(&node, |one| one.node.0).is_ok()
    }

    /// The table for a move that is carried out: at which switches hosts hear nothing, and for how long from its answer on.
    pub(super) fn show_silent(&mut self, now: Time, subnet: &Subnet, asked: &Asked, answer: &VmMove) {
        let switches = self.desk.late.silent(asked.ask.guid);
        let nodes: Vec<NodeIndex> =
            switches.filter_map(|guid| subnet.by_guid.get(&guid)).map(|node| NodeIndex(*node)).collect();
        let silence = Time::from_micros(answer.silent_us.into());
        let records = silent(&nodes, subnet, silence, |node| self.is_vswitch(node));
        self.sa.answer_writes(now, &asked.request, &records);
    }
}
