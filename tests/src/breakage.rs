//! Docker's commands to the containers of a laboratory, and their traces in the event log.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "in a test a panic is the report")]

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use weft_control::Utc;
use weft_topology::{Fabric, NodeIndex};

use crate::{Containers, Image, first_host, output_of, pause, wait_for_success};

/// Nothing that is waited for takes longer, or it does not come.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often the hub takes note that it lives, and as much again for a machine that is late.
const HUB_BEAT_NS: u64 = 2_000_000_000;
/// Events that are shown where the hub does not tell what a fault cost.
const SIGNS: [&str; 7] =
    ["fault-cost", "fault-set", "fault-cleared", "link-down", "link-up", "subnet-up", "process-ended"];

fn docker(arguments: &[&str]) -> String {
    output_of(Command::new("docker").args(arguments))
}

/// This machine's clock, which its containers have too, in nanoseconds since 1970.
pub fn now_ns() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap()
}

/// Ordered pairs of this many hosts.
pub fn pairs_of(hosts: u64) -> u64 {
    hosts * hosts.saturating_sub(1)
}

/// A container that does nothing; it is removed when this is dropped, so that its network can be, too.
struct Idle(String);

impl Idle {
    fn start(network: &str, image: &Image) -> Self {
        let id = docker(&["run", "--detach", "--network", network, image.name(), "sleep", "infinity"]);
        Self(id.trim().to_owned())
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rm", "--force", &self.0]).output();
    }
}

/// An agent's container that Docker breaks and mends, and how many nodes and pairs of hosts are left without it.
pub struct Breakable<'a> {
    lab: &'a Containers,
    agent: String,
    container: String,
    whole: u64,
    left: u64,
    pairs_lost: u64,
}

impl<'a> Breakable<'a> {
    /// The container with the agent of a node. What is left is what cables lead to from the subnet manager's host.
    pub fn of(lab: &'a Containers, fabric: &Fabric, node: &str) -> Self {
        let (agent, devices) = lab.devices_with(node);
        let gone = devices.iter().map(|id| fabric.by_id(id).unwrap()).collect();
        let left = reached_without(fabric, &gone);
        let hosts_left = fabric.hosts().filter(|(host, _)| left.contains(host)).count() as u64;
        Self {
            lab,
            container: lab.container(&agent),
            agent,
            whole: fabric.nodes().len() as u64,
            left: left.len() as u64,
            pairs_lost: pairs_of(fabric.hosts().count() as u64) - pairs_of(hosts_left),
        }
    }

    /// `docker kill`, and `docker start`.
    pub fn dies(&self) {
        self.takes("kill", "start");
    }

    /// `docker pause`, and `docker unpause`.
    pub fn stops(&self) {
        self.takes("pause", "unpause");
    }

    fn takes(&self, begin: &str, end: &str) {
        let tell = |word: &str| drop(docker(&[word, &self.container]));
        self.breaks(&format!("docker {begin}"), || tell(begin), || tell(end));
    }

    /// `docker network disconnect` for as long as this at least, and `connect`: it comes back at another address, since another
    /// container has got its own meanwhile.
    pub fn is_cut_off(&self, lasts: Duration) {
        let network = format!("{}_fabric", self.lab.project);
        let (before, timeout) = (self.address(&network), self.longest_link_timeout());
        // The image goes after its container.
        let idle = Image::idle();
        let mut taker = None;
        let began = Instant::now();
        let cost = self.breaks(
            "docker network disconnect",
            || drop(docker(&["network", "disconnect", &network, &self.container])),
            || {
                self.stays_away(began, lasts);
                // Docker gives the next address or the lowest one, so this takes the one that is free or makes it not the next.
                taker = Some(Idle::start(&network, &idle));
                docker(&["network", "connect", "--alias", &self.agent, &network, &self.container]);
                assert_ne!(self.address(&network), before);
            },
        );
        drop(taker);
        // It begins with the first link that is missed, at the latest when its timeout is over.
        let lasted = Duration::from_nanos(cost["lasted_ns"].as_u64().unwrap());
        assert!(lasted + timeout >= lasts, "cut off for {lasts:?}, links time out in {timeout:?}: {cost}");
    }

    fn breaks(&self, how: &str, begin: impl FnOnce(), end: impl FnOnce()) -> Value {
        let from = now_ns();
        begin();
        self.lab.wait_for_subnet(&format!("after {how}"), self.left);
        end();
        self.lab.heals(&format!("after the end of {how}"), self.whole);
        let cost = self.lab.cost_since(from, &format!("{how} of {}", self.agent), |cost| {
            let is_known = cost["rerouted_after_ns"].is_u64() && cost["restored_after_ns"].is_u64();
            is_known && cost["pairs_lost"] == self.pairs_lost
        });
        // Such faults come from outside: when they really began is not known.
        assert!(cost["detected_after_ns"].is_null(), "{cost}");
        cost
    }

    fn stays_away(&self, since: Instant, lasts: Duration) {
        while since.elapsed() < lasts {
            let status = self.lab.json(&["ask", "sm", "sm-status"]);
            assert!(status["nodes"].as_u64().is_some_and(|nodes| nodes <= self.left), "{status}");
            pause();
        }
    }

    fn address(&self, network: &str) -> String {
        let of = format!("{{{{(index .NetworkSettings.Networks \"{network}\").IPAddress}}}}");
        docker(&["inspect", "--format", &of, &self.container]).trim().to_owned()
    }

    fn longest_link_timeout(&self) -> Duration {
        let processes = self.lab.json(&["ps", "--json"]);
        let timeouts = processes.as_array().unwrap().iter().filter_map(|one| one["link_timeout_ms"].as_u64());
        Duration::from_millis(timeouts.max().expect("agents tell the timeouts of their links"))
    }
}

/// What cables lead to from the first host, where the subnet manager is, without these nodes.
fn reached_without(fabric: &Fabric, gone: &BTreeSet<NodeIndex>) -> BTreeSet<NodeIndex> {
    let first = first_host(fabric).0;
    let (mut found, mut next) = (BTreeSet::from([first]), vec![first]);
    while let Some(node) = next.pop() {
        for (_, peer) in fabric.node(node).cabled_ports() {
            if !gone.contains(&peer.node) && found.insert(peer.node) && fabric.node(peer.node).is_switch() {
                next.push(peer.node);
            }
        }
    }
    found
}

impl Containers {
    /// A manager's or the hub's container is killed, and started when `meanwhile` is done. Tells what that cost.
    pub fn manager_dies(&self, service: &str, meanwhile: impl FnOnce()) -> Value {
        let (mut from, container) = (now_ns(), self.container(service));
        if service == "hub" {
            // Its end counts from when it was last known to live.
            from -= HUB_BEAT_NS;
        }
        docker(&["kill", &container]);
        meanwhile();
        docker(&["start", &container]);
        wait_for_success(&format!("the hub hears all after {service} was killed"), || {
            self.verb(&["ask", service, "hello"])
        });
        let name = format!("end of {service}");
        self.cost_since(from, &name, |cost| cost["fault"] == name && cost["lasted_ns"].is_u64())
    }

    /// Waits until the hub has reported what the one such fault cost that has begun since then.
    pub fn cost_since(&self, from_ns: u64, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let told = output_of(&mut self.verb(&["events", "--json"]));
            let events = told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let signs: Vec<Value> =
                events.filter(|event| SIGNS.iter().any(|kind| event["event"] == *kind)).collect();
            let number = |cost: &Value, of: &str| cost[of].as_u64().unwrap_or_default();
            let is_cost = |sign: &&Value| {
                sign["event"] == "fault-cost" && number(sign, "began_ns") >= from_ns && is_it(sign)
            };
            let costs: Vec<&Value> = signs.iter().filter(is_cost).collect();
            assert!(costs.len() < 2, "{what} is told {} times: {}", costs.len(), json!(costs));
            if let [cost] = costs[..] {
                let parts = ["began_ns", "lasted_ns", "restored_after_ns"].map(|of| number(cost, of));
                assert!(parts.iter().sum::<u64>() <= now_ns(), "{what} is over, and ends later: {cost}");
                return cost.clone();
            }
            let time = |sign: &Value| sign["time"].as_str().unwrap().parse::<Utc>().unwrap().as_nanos();
            let shown: Vec<&Value> = signs.iter().filter(|sign| time(sign) >= from_ns).collect();
            assert!(began.elapsed() < PATIENCE, "what {what} cost: {}", json!(shown));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x5;

    #[test]
    fn losing_a_leaf_loses_only_the_leaf_and_its_hosts() {
        let fabric = x5();
        assert_eq!(reached_without(&fabric, &BTreeSet::new()).len(), fabric.nodes().len());
        let (host, node) = fabric.hosts().last().unwrap();
        let without = |gone: NodeIndex| reached_without(&fabric, &BTreeSet::from([gone])).len();
        assert_eq!(without(host), fabric.nodes().len() - 1);
        let leaf = node.cabled_ports().next().unwrap().1.node;
        let at_leaf = |peer: NodeIndex| !fabric.node(peer).is_switch();
        let hosts = fabric.node(leaf).cabled_ports().filter(|(_, peer)| at_leaf(peer.node)).count();
        assert_eq!(without(leaf), fabric.nodes().len() - 1 - hosts);
        assert_eq!(pairs_of(4) - pairs_of(3), 6);
    }
}
