//! Real packets along the paths that the tables promise, from many hosts at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use weft_mgmt::{Request, SmpRoute, Window};
use weft_routing::trace;
use weft_sm::Surveyed;
use weft_topology::PortRef;
use weft_wire::{AttributeId, Guid, Lid, NodeInfo};

use crate::check::machines::Machines;
use crate::check::{Clock, Options, Read, Report, Sample};
use crate::survey::{Session, limits, several};
use crate::view::Lab;

/// Up to this many hosts every path is tried with a packet.
const SMALL_HOSTS_MAX: usize = 128;

/// Packets under way at once from one host.
const WINDOW: Window = Window::Fixed(16);

/// Hosts that send at once.
const SENDERS_MAX: usize = 8;

/// A host's port that takes part.
struct Host {
    name: String,
    node: Guid,
    port: PortRef,
    lid: Lid,
    /// For management alone: such nodes need not reach each other.
    management: bool,
    /// Whether it may send SMPs, which the packets are.
    sends: bool,
}

impl Host {
    fn talks_to(&self, other: &Self) -> bool {
        self.sends && self.node != other.node && !(self.management && other.management)
    }
}

/// What came of one host's packets.
#[derive(Default)]
struct Sent {
    /// Packets that were answered, or given up after their retries.
    ended: usize,
    /// What is wrong, each with the nodes that it is about.
    problems: Vec<(String, Vec<Guid>)>,
}

/// A LID-routed packet along each path, and its answer back. No packet goes where the tables are proved broken.
pub(crate) fn packets(
    lab: &Lab,
    read: &Read,
    options: &Options,
    clock: &mut Clock,
    machines: &mut Machines<'_>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let hosts = hosts(lab, read);
    let silent = hosts.iter().filter(|host| !host.sends).count();
    if silent > 0 {
        report
            .notes
            .push(format!("{silent} virtual functions answer, but may send no packet (--vf-qp0 deny)"));
    }
    let pairs = hosts.len() * hosts.len().saturating_sub(1);
    let sampled = !options.all && hosts.len() > SMALL_HOSTS_MAX && (options.sample as usize) < pairs;
    if sampled {
        report.sampled = Some(Sample { seed: options.seed, of: pairs });
    }
    let mut chosen = if sampled { sample(&hosts, options) } else { every_pair(&hosts) };
    report.packets_withheld = withhold(&read.live, &hosts, &mut chosen);
    let chosen: Vec<(usize, Vec<usize>)> = chosen.into_iter().collect();
    let all: usize = chosen.iter().map(|(_, targets)| targets.len()).sum();
    let (until, ended) = (clock.until, AtomicUsize::new(0));
    let send = |(source, targets): &(usize, Vec<usize>)| {
        (*source, from_one(lab, &hosts, *source, targets, until, &ended))
    };
    let mut results = BTreeMap::new();
    several(SENDERS_MAX, &chosen, send, |sent| {
        results.extend(sent);
        clock.work.is_at(&|| format!("{} of {all} packets", ended.load(Ordering::Relaxed)));
        Ok(())
    })?;
    report.packets = results.values().map(|sent: &Sent| sent.ended).sum();
    report.packets_not_tried = all - report.packets;
    let problems: Vec<_> = results.into_values().flat_map(|sent| sent.problems).collect();
    machines.look();
    let under_way =
        if problems.is_empty() { BTreeSet::new() } else { machines.nodes(lab, &read.live.fabric) };
    for (problem, nodes) in problems {
        // A frozen machine answers nothing, wherever its packets go.
        match nodes.iter().any(|node| under_way.contains(node)) {
            true => report.packets_under_way += 1,
            false => report.problems.push(problem),
        }
    }
    if report.packets_not_tried > 0 && Instant::now() >= until {
        report.problems.push(format!(
            "{} of {all} packets were not tried within {} s (--limit)",
            report.packets_not_tried, clock.limit
        ));
    }
    Ok(())
}

fn hosts(lab: &Lab, read: &Read) -> Vec<Host> {
    let live = &read.live;
    let hosts = live.fabric.hosts().flat_map(|(index, node)| {
        node.end_ports().map(move |(port, end)| (node, PortRef::new(index, port), end))
    });
    hosts
        .filter(|(_, _, end)| end.peer.is_some() && end.lid.is_unicast())
        .map(|(node, port, end)| Host {
            name: live.fabric.label(port.node),
            node: node.guid,
            port,
            lid: end.lid,
            management: read.management.contains(port.node),
            sends: !lab.record.denies_qp0(node.guid),
        })
        .collect()
}

fn every_pair(hosts: &[Host]) -> BTreeMap<usize, Vec<usize>> {
    let others =
        |source: usize| (0..hosts.len()).filter(|target| hosts[source].talks_to(&hosts[*target])).collect();
    (0..hosts.len()).map(|source| (source, others(source))).collect()
}

/// Pairs drawn with a generator whose numbers are the same for ever, and so the meaning of a seed.
fn sample(hosts: &[Host], options: &Options) -> BTreeMap<usize, Vec<usize>> {
    let mut random = Pcg64::seed_from_u64(options.seed);
    let wanted = options.sample as usize;
    let mut draw = |below: usize| ((u128::from(random.next_u64()) * below as u128) >> 64) as usize;
    let mut pairs = BTreeSet::new();
    // More draws than pairs wanted, because some come twice; bounded in any case.
    for _ in 0..wanted.saturating_mul(4) {
        let (source, target) = (draw(hosts.len()), draw(hosts.len()));
        if hosts[source].talks_to(&hosts[target]) {
            pairs.insert((source, target));
        }
        if pairs.len() >= wanted {
            break;
        }
    }
    let mut chosen: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (source, target) in pairs {
        chosen.entry(source).or_default().push(target);
    }
    chosen
}

/// Takes out the pairs whose packet or whose answer does not arrive by the tables, and says how many there were. They
/// are problems of the tables already, and each would cost all its retries.
fn withhold(live: &Surveyed, hosts: &[Host], chosen: &mut BTreeMap<usize, Vec<usize>>) -> usize {
    let Ok(lids) = &live.lids else { return 0 }; // Then nothing is proved.
    let arrives = |from: &Host, to: &Host| trace(&live.fabric, lids, &live.routes, from.port, to.lid).is_ok();
    let mut withheld = 0;
    for (source, targets) in chosen.iter_mut() {
        let (here, before) = (&hosts[*source], targets.len());
        targets.retain(|there| arrives(here, &hosts[*there]) && arrives(&hosts[*there], here));
        withheld += before - targets.len();
    }
    chosen.retain(|_, targets| !targets.is_empty());
    withheld
}

fn from_one(
    lab: &Lab,
    hosts: &[Host],
    source: usize,
    targets: &[usize],
    until: Instant,
    ended: &AtomicUsize,
) -> Sent {
    let source = &hosts[source];
    let mut sent = Sent::default();
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return sent;
    }
    let request = |target: &usize| {
        let route = SmpRoute::Lid(hosts[*target].lid);
        (*target, Request::get(AttributeId::NodeInfo, 0).by(&route))
    };
    let attached = Session::attach_within(left, &lab.folder, &lab.record, source.node, source.port.port);
    let exchanged = attached.and_then(|mut session| {
        let requests = targets.iter().map(request).collect();
        session.exchange(Some(until), limits(WINDOW), requests, |target, answer, _| {
            sent.ended += 1;
            ended.fetch_add(1, Ordering::Relaxed);
            let target = &hosts[target];
            let problem = match answer {
                None => "no answer".to_owned(),
                Some(answer) => match NodeInfo::decode(answer.mad.smp_attribute()).node_guid {
                    guid if guid == target.node => return,
                    guid => format!("answered by {guid}, not by {}", target.node),
                },
            };
            let (from, to, lid) = (&source.name, &target.name, target.lid);
            let problem = format!("a packet from `{from}` to `{to}` (LID {lid}): {problem}");
            sent.problems.push((problem, vec![source.node, target.node]));
        })
    });
    if let Err(error) = exchanged {
        sent.problems.push((format!("`{}`: {error:#}", source.name), vec![source.node]));
    }
    sent
}
