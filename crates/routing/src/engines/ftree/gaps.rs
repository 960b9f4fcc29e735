//! What paths that go up and then down do not connect, and what becomes of it.

use super::detours::Detours;
use super::turns::Turns;
use crate::engines::Input;
use crate::routing::TURNS;
use crate::tree::{End, EndKind, Tree};

/// What is odd about a routing, in sentences.
pub(super) struct Gaps {
    /// What goes down before it goes up.
    pub(super) detours: Vec<String>,
    /// What has no path.
    pub(super) unserved: Vec<String>,
}

/// Looks at all switches with hosts. Fails with a sentence when two hosts have no path.
pub(super) fn find(input: &Input<'_>, tree: &Tree, turns: &Turns, detours: &Detours) -> Result<Gaps, String> {
    let name = |at: u32| input.fabric.node(tree.node(at)).id.as_str();
    let (mut detoured, mut unserved) = (Tally::default(), Tally::default());
    let in_order = |mut list: Vec<u32>| {
        list.sort_unstable_by_key(|at| tree.tuples[*at as usize]);
        list
    };
    for from in in_order((0..tree.graph.len() as u32).filter(|at| detours.has_hosts(*at)).collect()) {
        for to in in_order(detours.cut_off(turns, from).collect()) {
            let there_and_back = detours.for_hosts(from, to).zip(detours.for_hosts(to, from));
            if detours.has_hosts(to) {
                check_hosts(input, tree, from, to, there_and_back.map(|(there, back)| there.max(back)))?;
            }
            let tally = if there_and_back.is_some() { &mut detoured } else { &mut unserved };
            tally.add(|| (name(from).to_owned(), name(to).to_owned()));
        }
    }
    let detours = detoured.sentence(|count, from, to| {
        format!(
            "{count} pairs of switches have no path up and down between them; {TURNS}, as from {from} to {to}"
        )
    });
    let unserved = unserved.sentence(|count, from, to| {
        format!(
            "{count} pairs of switches have no path between them that hosts may use without the risk of a \
             deadlock, such as {from}, which has hosts, and {to}, which has none"
        )
    });
    Ok(Gaps { detours, unserved })
}

/// Fails unless the hosts of two switches that no path up and down connects may go down first. I/O nodes may not by more
/// cables down than the operator allows; others may wherever it is safe, because such a tree is a broken one.
fn check_hosts(input: &Input<'_>, tree: &Tree, from: u32, to: u32, depth: Option<u8>) -> Result<(), String> {
    let hosts = |at: u32| tree.ends(at).iter().filter(|end| end.kind != EndKind::Switch);
    let allowed = input.options.max_reverse_hops;
    for one in hosts(from) {
        for other in hosts(to) {
            let io = [one, other].iter().any(|end| end.kind == EndKind::Io);
            if depth.is_some_and(|depth| depth <= allowed || !io) {
                continue;
            }
            let name = |end: &End| input.fabric.port_name(end.port).to_string();
            let mut reason =
                format!("no path goes up and then down between {} and {}", name(one), name(other));
            if let Some(depth) = depth.filter(|_| io) {
                reason.push_str(&format!("; it takes {depth} reverse hops, and {allowed} are allowed"));
            }
            return Err(reason);
        }
    }
    Ok(())
}

/// How many pairs there are, and the first.
#[derive(Default)]
struct Tally {
    count: usize,
    first: Option<(String, String)>,
}

impl Tally {
    fn add(&mut self, names: impl FnOnce() -> (String, String)) {
        self.count += 1;
        self.first.get_or_insert_with(names);
    }

    fn sentence(self, sentence: impl Fn(usize, &str, &str) -> String) -> Vec<String> {
        self.first.map(|(from, to)| sentence(self.count, &from, &to)).into_iter().collect()
    }
}
