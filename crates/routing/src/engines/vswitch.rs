//! Fat-tree routing with a weight per virtual machine.

use std::collections::BTreeMap;

use weft_wire::Lid;

use super::ftree::{self, Named, Plan};
use super::{Engine, Input};
use crate::options::WEIGHT_OF_A_HOST;
use crate::routing::Routing;
use crate::sorted;
use crate::tree::{End, Tree};

pub(crate) const ENGINE: Engine = Engine {
    name: "vswitch-ftree",
    about: "ftree, balanced by the weights of virtual machines",
    options: &["roots", "compute_nodes", "io_nodes", "max_reverse_hops", "order", "vm_weights"],
    deadlock_free: true,
    run: |input| vswitch(input),
};

/// Routes virtual machines by their weights (vSwitch paper, algorithm 1), and then the hosts' own LIDs and the
/// switches' as [`ftree`] does, with counters that begin again: what a virtual machine is moved to is balanced whether
/// machines run there or not.
fn vswitch(input: &Input<'_>) -> Result<Routing, String> {
    let tree = Tree::new(input)?;
    let (named, notes) = Named::new(input, &tree);
    let mut routing = ftree::routing(ENGINE.name, input, &tree, &plan(input, &tree, &named)?)?;
    routing.report.notes.extend(notes);
    Ok(routing)
}

/// Those that the operator names first, then leaf by leaf, and on each the hosts with the fewest virtual machines first, because
/// those weigh most.
fn plan(input: &Input<'_>, tree: &Tree, named: &Named) -> Result<Plan, String> {
    check_weights(input, tree)?;
    let mut hosts: Vec<&End> = tree.ends.iter().filter(|end| end.kind.is_host()).collect();
    let place = |end: &&End| named.place(input, end);
    sorted::by_key(&mut hosts, |end| {
        (place(end), tree.tuples[end.at as usize], machines(end).len(), end.exit)
    });
    let mut plan = Plan::default();
    for end in &hosts {
        for (lid, weight) in weights(input, end)? {
            plan.add_one(end, lid, weight, None);
        }
    }
    plan.reset();
    sorted::by_key(&mut hosts, |end| (place(end), end.kind, tree.tuples[end.at as usize], end.exit));
    plan.add(&hosts, |end| &end.lids[..end.own]);
    plan.add_switches(tree);
    Ok(plan)
}

/// The LIDs of the virtual machines on a host.
fn machines(end: &End) -> &[Lid] {
    &end.lids[end.own..]
}

/// The virtual machines of a host with their weights: as given, and equal shares of what is left.
fn weights(input: &Input<'_>, end: &End) -> Result<Vec<(Lid, u32)>, String> {
    let given = |lid: &Lid| input.options.vm_weights.get(lid).copied();
    let sum: u64 = machines(end).iter().filter_map(given).map(u64::from).sum();
    let Some(left) = u64::from(WEIGHT_OF_A_HOST).checked_sub(sum) else {
        return Err(format!(
            "the virtual machines of {} weigh {sum} together, more than {WEIGHT_OF_A_HOST}",
            input.fabric.port_name(end.port),
        ));
    };
    let others = machines(end).iter().filter(|lid| given(lid).is_none()).count();
    // One that nothing is left for still counts a little, so that such machines are spread too.
    let share = (left / others.max(1) as u64).max(1) as u32;
    Ok(machines(end).iter().map(|lid| (*lid, given(lid).unwrap_or(share))).collect())
}

/// Every weight is one of a virtual machine and in range.
fn check_weights(input: &Input<'_>, tree: &Tree) -> Result<(), String> {
    let weights: &BTreeMap<Lid, u32> = &input.options.vm_weights;
    if weights.is_empty() {
        return Ok(());
    }
    let known: std::collections::BTreeSet<Lid> = tree.ends.iter().flat_map(machines).copied().collect();
    for (lid, weight) in weights {
        if !(1..=WEIGHT_OF_A_HOST).contains(weight) {
            return Err(format!("the weight of LID {lid} must be 1 to {WEIGHT_OF_A_HOST}, not {weight}"));
        }
        if !known.contains(lid) {
            let owner = input.lids.owner(*lid).map(|port| input.fabric.port_name(port).to_string());
            let owner = owner.unwrap_or_else(|| "nobody".to_owned());
            return Err(format!(
                "LID {lid} has a weight, but it is no virtual machine's; it belongs to {owner}"
            ));
        }
    }
    Ok(())
}
