//! The tables: a main path for every destination, and everybody else towards it.

use weft_wire::Lid;

use super::choose::{Chooser, NoPort, Objective, State};
use super::kept::Kept;
use super::order::{Guest, order};
use super::tenants::{Membership, Tenants};
use super::traffic::{Marks, Users};
use crate::engines::ftree::Named;
use crate::input::Input;
use crate::options::PftreeOrder;
use crate::partitions::Isolation;
use crate::sorted;
use crate::tables::{ForwardingTable, Routes};
use crate::tree::detours::Detours;
use crate::tree::reach::{Link, NO_LINK, Reach, Shape, UNREACHED};
use crate::tree::{Group, Tree};

/// What routing comes to.
pub(super) struct Routed {
    pub(super) routes: Routes,
    /// By link: whose traffic it carries.
    pub(super) users: Users,
    /// From how many switches a LID is not reached by going up and then down, those of switches counted only from
    /// switches with hosts.
    pub(super) detours: u64,
    /// What is odd about the operator's order.
    pub(super) notes: Vec<String>,
}

/// Routes all destinations: the hosts in the order of their partitions (Zahid 2016, algorithm 1), then those that
/// receive nothing from other switches, then the switches. Fails with a sentence that names two switches when hosts
/// on them cannot reach each other by going up and then down, or when a host and a switch cannot without risking a
/// deadlock.
///
/// With policies, all hosts of the partitions with links of their own come first, on whichever leaf they are, so
/// that no other has spread over their switches by then; then those with lanes of their own, then the others.
pub(super) fn route(
    input: &Input<'_>,
    tree: &Tree,
    shape: &Shape,
    tenants: &Tenants,
    objective: Objective,
    weights: &[u64],
    kept: &mut Kept,
) -> Result<Routed, String> {
    let guids = tree.graph.nodes.iter().map(|node| input.fabric.node(*node).guid).collect();
    let chooser = Chooser::new(tree, shape, tenants, objective, guids);
    let mut router = Router::new(input, tree, shape, tenants, &chooser, kept);
    let (named, notes) = Named::new(input, tree);
    let orders: Vec<(u32, Vec<Guest>)> =
        sites(tree).into_iter().map(|at| (at, router.guests(at, weights, &named))).collect();
    for isolation in [Isolation::Phy, Isolation::Vlane, Isolation::Def] {
        for (at, guests) in &orders {
            let mut guests = guests.iter().filter(|guest| guest.isolation == isolation).peekable();
            if guests.peek().is_some() {
                router.turn_to(*at);
                guests.try_for_each(|guest| router.host(guest.end, Some(guest.tenant), guest.weight))?;
            }
        }
    }
    for (at, _) in &orders {
        router.rest(*at, weights)?;
    }
    shape.from_roots.iter().try_for_each(|at| router.switch(*at))?;
    Ok(Routed { notes, ..router.finish() })
}

/// The switches with hosts: the leaves in their order, then any others.
fn sites(tree: &Tree) -> Vec<u32> {
    let mut is_leaf = vec![false; tree.graph.len()];
    tree.leaves.iter().for_each(|leaf| is_leaf[*leaf as usize] = true);
    let has_hosts = |at: &u32| tree.has_hosts(*at);
    let mut others: Vec<u32> =
        (0..tree.graph.len() as u32).filter(|at| !is_leaf[*at as usize] && has_hosts(at)).collect();
    sorted::numbers(&mut others, |at| tree.tuples[at as usize]);
    tree.leaves.iter().copied().chain(others).collect()
}

/// What there is to keep of the ways to a destination.
#[derive(Debug, Default)]
struct Found {
    /// Switches whose link depends on the LID.
    turned: Vec<u32>,
    /// Whether a load has decided between cables, or something else that is of this run alone.
    is_chosen: bool,
}

struct Router<'a> {
    input: &'a Input<'a>,
    tree: &'a Tree,
    shape: &'a Shape,
    tenants: &'a Tenants,
    chooser: &'a Chooser<'a>,
    state: State,
    tables: Vec<ForwardingTable>,
    /// Ways of earlier runs, and of this one for later ones.
    kept: &'a mut Kept,
    reach: Reach,
    /// Whether `reach` is that of the target at hand.
    is_searched: bool,
    found: Found,
    /// Where the ways to the destination at hand are kept, if they are not in `next`.
    way: Option<u32>,
    /// The LIDs whose ways are kept, with the places of those.
    rows: Vec<(Lid, u32)>,
    /// Whether switches are connected with the target but do not reach it by going up and then down.
    has_strays: bool,
    detours: Detours,
    /// How many pairs of a switch and a LID take a detour.
    detour_count: u64,
    /// By switch: whether it has hosts.
    has_hosts: Vec<bool>,
    /// By switch: the link to the destination at hand.
    next: Vec<Link>,
    /// The switches of its main path, the target first.
    main: Vec<u32>,
    /// The target, and the links of its main path.
    key: Vec<u32>,
    /// By switch: when it was last passed, in a count of destinations and partitions.
    passed: Vec<u32>,
    now: u32,
    queue: Vec<u32>,
}

impl<'a> Router<'a> {
    fn new(
        input: &'a Input<'a>,
        tree: &'a Tree,
        shape: &'a Shape,
        tenants: &'a Tenants,
        chooser: &'a Chooser<'a>,
        kept: &'a mut Kept,
    ) -> Self {
        let (switches, cables) = (tree.graph.len(), tree.cables.len());
        let has_hosts = (0..switches as u32).map(|at| tree.has_hosts(at)).collect();
        Self {
            input,
            tree,
            shape,
            tenants,
            chooser,
            state: State {
                count: vec![0; 2 * cables],
                weight: vec![0; 2 * cables],
                marks: Marks::new(switches),
                users: Users::new(2 * cables, tenants.list.len()),
                owed: Vec::new(),
            },
            tables: vec![ForwardingTable::new(input.lids.top()); switches],
            kept,
            reach: Reach::default(),
            is_searched: false,
            found: Found::default(),
            way: None,
            rows: Vec::new(),
            has_strays: false,
            detours: Detours::default(),
            detour_count: 0,
            has_hosts,
            next: vec![NO_LINK; switches],
            main: Vec::new(),
            key: Vec::new(),
            passed: vec![0; switches],
            now: 0,
            queue: Vec::new(),
        }
    }

    /// The hosts of a switch that receive from other switches, in order.
    fn guests(&self, at: u32, weights: &[u64], named: &Named) -> Vec<Guest> {
        let guest = |end: usize| {
            let tenant = self.tenants.key(end)?;
            let (isolation, weight) = (self.chooser.isolation(tenant), weights[end]);
            let named = named.place(self.input, &self.tree.ends[end]);
            Some(Guest { end, named, tenant, isolation, weight })
        };
        let guests = self.tree.end_places(at).filter_map(guest).collect();
        let options = self.input.options;
        // Algorithm 2 has the first two hosts of a partition share a cable, whoever an operator names first.
        let by = match options.pftree_order {
            PftreeOrder::Interleaved if !options.order.is_empty() => PftreeOrder::Fabric,
            by => by,
        };
        order(guests, self.shape.cables_up[at as usize], by)
    }

    /// Routes the hosts of a switch that receive nothing from other switches but management.
    fn rest(&mut self, at: u32, weights: &[u64]) -> Result<(), String> {
        let receives = |end: &usize| self.tenants.key(*end).is_some();
        let is_host = |end: &usize| self.tree.ends[*end].kind.is_host();
        let rest: Vec<usize> =
            self.tree.end_places(at).filter(is_host).filter(|end| !receives(end)).collect();
        if !rest.is_empty() {
            self.turn_to(at);
        }
        rest.into_iter().try_for_each(|end| self.host(end, None, weights[end]))
    }

    /// Looks how a switch is reached.
    fn turn_to(&mut self, at: u32) {
        (self.reach.target, self.is_searched) = (at, false);
        self.has_strays = match self.kept.strays.get(&at) {
            Some(has_strays) => *has_strays,
            None => {
                self.search();
                let has_strays = Detours::find(self.shape, &self.reach, |_| true).is_some();
                self.kept.strays.insert(at, has_strays);
                has_strays
            }
        };
    }

    fn search(&mut self) {
        if !std::mem::replace(&mut self.is_searched, true) {
            self.reach.search(self.tree, self.shape, self.reach.target);
        }
    }

    /// Routes the LIDs of a host; the target is its switch.
    fn host(&mut self, end: usize, tenant: Option<u32>, weight: u64) -> Result<(), String> {
        if self.has_strays {
            self.search();
        }
        let has_hosts = |at: u32| self.has_hosts[at as usize];
        let stray = if self.has_strays { Detours::find(self.shape, &self.reach, has_hosts) } else { None };
        if let Some(stray) = stray {
            let (a, b) = (self.name(self.reach.target), self.name(stray));
            return Err(format!("{a} and {b} have hosts and no switch above both"));
        }
        let end = (&self.tree.ends[end], self.tenants.of(end));
        for lid in &end.0.lids {
            self.destination(*lid, tenant, weight, false)?;
            self.carry(end.1, tenant);
            self.tables[end.0.at as usize].set(*lid, end.0.exit);
        }
        Ok(())
    }

    /// Routes the LIDs of a switch and of the nodes on it that serve management alone.
    fn switch(&mut self, at: u32) -> Result<(), String> {
        let tree = self.tree;
        for end in tree.ends(at).iter().filter(|end| !end.kind.is_host()) {
            self.turn_to(at);
            for lid in &end.lids {
                self.destination(*lid, None, 0, true)?;
                self.tables[at as usize].set(*lid, end.exit);
            }
        }
        Ok(())
    }

    /// Finds the way to the target from everywhere and writes it into the tables, at once or with all others that are kept.
    fn destination(
        &mut self,
        lid: Lid,
        tenant: Option<u32>,
        weight: u64,
        is_switch: bool,
    ) -> Result<(), String> {
        self.descend(tenant, weight).map_err(|(at, NoPort)| self.no_port(at, lid))?;
        self.way = self.kept.place(&self.key);
        if let Some(place) = self.way {
            self.rows.push((lid, place));
            self.state.owe(place, weight);
            return Ok(());
        }
        self.find(lid, tenant, weight, is_switch)?;
        for (table, link) in self.tables.iter_mut().zip(&self.next) {
            if let Some(port) = self.tree.port(*link) {
                table.entries_mut()[usize::from(lid.0)] = port;
            }
        }
        Ok(())
    }

    /// Finds the ways of everyone else to the main path.
    fn find(&mut self, lid: Lid, tenant: Option<u32>, weight: u64, is_switch: bool) -> Result<(), String> {
        self.search();
        self.next.fill(NO_LINK);
        for (at, link) in self.main[1..].iter().zip(&self.key[1..]) {
            self.next[*at as usize] = *link;
        }
        self.found.is_chosen = false;
        self.found.turned.clear();
        self.ascend(tenant, weight);
        self.go_down(tenant);
        self.go_up(lid, tenant, weight);
        if self.has_strays {
            // What switches say to each other need not be free of deadlock.
            let free = |at: u32| is_switch && !self.has_hosts[at as usize];
            // Detours that take turns follow from all that have taken some before. Hosts on the target have other detours than it has.
            let takes_turns = self.detours.fill(self.tree, self.shape, &self.reach, &mut self.next, free);
            self.found.is_chosen |= takes_turns || self.has_hosts[self.reach.target as usize];
            self.count_strays(is_switch)?;
        }
        if !self.found.is_chosen {
            self.kept.keep(&self.key, &self.next, &self.found.turned);
        }
        Ok(())
    }

    /// Counts the pairs with a host whose switches do not reach each other by going up and then down. Fails when they
    /// do not at all.
    fn count_strays(&mut self, is_switch: bool) -> Result<(), String> {
        for (at, link) in (0..).zip(&self.next) {
            let together = self.shape.pieces[at as usize] == self.shape.pieces[self.reach.target as usize];
            if self.reach.hops[at as usize] == UNREACHED && together {
                let has_host = !is_switch || self.has_hosts[at as usize];
                self.detour_count += u64::from(has_host);
                if *link == NO_LINK {
                    let (from, to) = (self.name(at), self.name(self.reach.target));
                    return Err(format!(
                        "{from} reaches {to} by no path that is sure to be free of deadlock"
                    ));
                }
            }
        }
        Ok(())
    }

    fn no_port(&self, at: u32, lid: Lid) -> String {
        let cure = match self.input.options.leave_one {
            true => ", and there is none to leave to the others",
            false => "; --leave-one leaves one to the others, and so does the engine without --literal",
        };
        format!(
            "algorithm 3 as printed never ends at {} for LID {lid}: stricter partitions have all switches above{cure}",
            self.name(at)
        )
    }

    fn name(&self, at: u32) -> &str {
        &self.input.fabric.node(self.tree.node(at)).id
    }

    /// Chooses the main path: from a root down to the target (algorithm 3).
    fn descend(&mut self, tenant: Option<u32>, weight: u64) -> Result<(), (u32, NoPort)> {
        let mut at = self.reach.target;
        self.main.clear();
        self.key.clear();
        self.main.push(at);
        self.key.push(at);
        while let Some(cable) = self.chooser.down(&self.state, at, tenant).map_err(|no_port| (at, no_port))? {
            let link = 2 * cable as Link;
            self.state.add(link, weight);
            at = self.shape.ends[cable].1;
            self.main.push(at);
            self.key.push(link);
            if let Some(tenant) = tenant {
                let isolation = self.tenants.list[tenant as usize].isolation;
                self.state.marks.add(at, tenant, isolation, 1);
            }
        }
        Ok(())
    }

    /// Sends everybody below the main path up to it, where that takes the fewest cables (algorithm 4).
    fn ascend(&mut self, tenant: Option<u32>, weight: u64) {
        self.queue.clear();
        self.queue.extend(&self.main);
        let mut next = 0;
        while let Some(at) = self.queue.get(next).copied() {
            next += 1;
            let hops = self.reach.hops[at as usize] + 1;
            for (_, group) in self.tree.down(at) {
                let lower = group.lower as usize;
                let waits = self.next[lower] == NO_LINK && !self.reach.above[lower];
                if !waits || self.reach.hops[lower] != hops {
                    continue;
                }
                let mut cables = self.tree.cables(group).map(|(cable, _)| 2 * cable as Link + 1);
                let link = match cables.clone().nth(1) {
                    None => cables.next(),
                    Some(_) => {
                        self.found.is_chosen = true;
                        self.state.settle(self.kept);
                        self.chooser.parallel(&self.state, cables, tenant)
                    }
                };
                let Some(link) = link else { continue };
                self.state.add(link, weight);
                self.next[lower] = link;
                self.queue.push(group.lower);
            }
        }
    }

    /// The other switches above the target go down, to the main path where they can.
    fn go_down(&mut self, tenant: Option<u32>) {
        for at in &self.reach.ancestors {
            if self.next[*at as usize] != NO_LINK {
                continue;
            }
            let groups =
                || self.reach.down[*at as usize].iter().map(|place| &self.tree.groups[*place as usize]);
            let joins = groups().any(|group| self.main.contains(&group.lower));
            let useful = groups().filter(|group| !joins || self.main.contains(&group.lower));
            let mut links =
                useful.flat_map(|group| self.tree.cables(group)).map(|(cable, _)| 2 * cable as Link);
            let link = match links.clone().nth(1) {
                None => links.next(),
                Some(_) => {
                    self.found.is_chosen = true;
                    self.state.settle(self.kept);
                    self.chooser.parallel(&self.state, links, tenant)
                }
            };
            self.next[*at as usize] = link.unwrap_or(NO_LINK);
        }
    }

    /// Those that are below none of the main path go up to one of those. In a whole tree they have no hosts, and
    /// what only switches send takes any cable that is as short.
    fn go_up(&mut self, lid: Lid, tenant: Option<u32>, weight: u64) {
        self.now += 1;
        for at in self.shape.from_roots.iter().rev() {
            let hops = self.reach.hops[*at as usize];
            if self.next[*at as usize] != NO_LINK || self.reach.above[*at as usize] || hops == UNREACHED {
                continue;
            }
            let nearer = |group: &&Group| self.reach.hops[group.upper as usize] == hops - 1;
            let groups = self.tree.up(*at).map(|(_, group)| group);
            if !self.has_hosts[*at as usize] && self.passed[*at as usize] != self.now {
                let count = groups.clone().count();
                if groups.clone().all(|group| nearer(&group)) {
                    self.found.turned.push(*at);
                } else {
                    // The LID decides between some of them.
                    self.found.is_chosen = true;
                }
                let turned = groups.clone().chain(groups).skip(usize::from(lid.0) % count);
                let first = turned.take(count).find(nearer).and_then(|group| self.tree.cables(group).next());
                self.next[*at as usize] = first.map_or(NO_LINK, |(cable, _)| 2 * cable as Link + 1);
                continue;
            }
            let links = groups
                .filter(nearer)
                .flat_map(|group| self.tree.cables(group))
                .map(|(cable, _)| 2 * cable as Link + 1);
            if links.clone().nth(1).is_some() {
                self.found.is_chosen = true;
                self.state.settle(self.kept);
            }
            if let Some(link) = self.chooser.parallel(&self.state, links, tenant) {
                self.next[*at as usize] = link;
                self.state.add(link, weight);
                self.passed[self.shape.to(link) as usize] = self.now;
            }
        }
    }

    /// Marks the links and the switches that traffic for the destination passes.
    fn carry(&mut self, memberships: &[Membership], key: Option<u32>) {
        if let Some(place) = self.way.filter(|_| key.is_some()) {
            self.kept.read(place, &mut self.next);
        }
        for (tenant, full) in memberships.iter().filter(|_| key.is_some()) {
            let partition = &self.tenants.list[*tenant as usize];
            self.now += 1;
            self.passed[self.reach.target as usize] = self.now;
            for site in partition.sites.iter().filter(|site| *full || site.full) {
                let mut at = site.switch;
                while self.passed[at as usize] != self.now && self.next[at as usize] != NO_LINK {
                    self.passed[at as usize] = self.now;
                    let link = self.next[at as usize];
                    let is_new = self.state.users.add(link, *tenant);
                    at = self.shape.to(link);
                    if is_new && at != self.reach.target {
                        self.state.marks.add(at, *tenant, partition.isolation, 0);
                    }
                }
            }
        }
    }

    fn finish(mut self) -> Routed {
        self.kept.write(self.tree, &mut self.rows, &mut self.tables);
        let routes = Routes { tables: self.tree.graph.by_node(self.tables) };
        Routed { routes, users: self.state.users, detours: self.detour_count, notes: Vec::new() }
    }
}
