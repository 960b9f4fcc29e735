//! A fabric of processes is recabled by chance, from a seed: `WEFT_SEED=… cargo nextest run -p weft recabling_by_chance::`
//! runs one again.

use std::collections::{BTreeMap, BTreeSet};

use common::{Home, text, wait_until};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde_json::Value;

use crate::common;

const STEPS: usize = 10;
const SWITCHES: usize = 4;
const RADIX: u8 = 8;

type Port = (String, u8);

fn name((node, port): &Port) -> String {
    format!("{node}:{port}")
}

/// What the fabric should be.
struct Model {
    /// Ports of each switch.
    switches: BTreeMap<String, u8>,
    hosts: BTreeSet<String>,
    /// Both ways.
    cables: BTreeMap<Port, Port>,
    added: u32,
}

impl Model {
    fn ring() -> Self {
        let switch = |number: usize| format!("switch-{}", number % SWITCHES);
        let mut model = Self {
            switches: (0..SWITCHES).map(|number| (switch(number), RADIX)).collect(),
            hosts: (0..SWITCHES).map(|number| format!("host-{number}")).collect(),
            cables: BTreeMap::new(),
            added: 0,
        };
        for number in 0..SWITCHES {
            model.put_in((format!("host-{number}"), 1), (switch(number), 1));
            model.put_in((switch(number), 2), (switch(number + 1), 3));
        }
        model
    }

    fn put_in(&mut self, a: Port, b: Port) {
        self.cables.insert(a.clone(), b.clone());
        self.cables.insert(b, a);
    }

    fn take_out(&mut self, port: &Port) -> Port {
        let peer = self.cables.remove(port).unwrap();
        self.cables.remove(&peer);
        peer
    }

    fn free(&self, random: &mut Pcg64, of: Option<&str>) -> Option<Port> {
        let switches = self.switches.iter().filter(|(switch, _)| of.is_none_or(|of| of == **switch));
        let ports = switches.flat_map(|(switch, ports)| (1..=*ports).map(move |port| (switch.clone(), port)));
        pick(random, ports.filter(|port| !self.cables.contains_key(port)))
    }

    /// Whether every host reaches every other.
    fn is_whole(&self) -> bool {
        let mut reached: BTreeSet<&str> = BTreeSet::new();
        let mut todo: Vec<&str> = self.switches.keys().take(1).map(String::as_str).collect();
        while let Some(node) = todo.pop() {
            if reached.insert(node) {
                todo.extend(
                    self.cables
                        .iter()
                        .filter(|((own, _), _)| own == node)
                        .map(|(_, (peer, _))| peer.as_str()),
                );
            }
        }
        self.switches.keys().chain(&self.hosts).all(|node| reached.contains(node.as_str()))
    }

    fn all(&self) -> BTreeSet<(String, String)> {
        self.cables.iter().filter(|(a, b)| a < b).map(|(a, b)| (name(a), name(b))).collect()
    }

    /// Draws a step, and gives the arguments of its verb.
    fn step(&mut self, random: &mut Pcg64) -> Option<Vec<String>> {
        let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
        match random.random_range(0..10u32) {
            0..2 => {
                let (a, b) = (self.free(random, None)?, self.free(random, None)?);
                if a == b {
                    return None;
                }
                self.put_in(a.clone(), b.clone());
                words(&["connect", &name(&a), &name(&b)])
            }
            2..4 => {
                let between =
                    self.cables.keys().filter(|(node, _)| self.switches.contains_key(node)).cloned();
                let port = pick(random, between)?;
                let peer = self.take_out(&port);
                if !self.is_whole() {
                    self.put_in(port, peer);
                    return None;
                }
                words(&["disconnect", &name(if random.random_bool(0.5) { &port } else { &peer })])
            }
            4..7 => {
                let stays = pick(random, self.cables.keys().cloned())?;
                let (to, from) = (self.free(random, None)?, self.take_out(&stays));
                self.put_in(stays.clone(), to.clone());
                if !self.is_whole() || self.hosts.contains(&from.0) {
                    self.take_out(&stays);
                    self.put_in(stays, from);
                    return None;
                }
                words(&["move", &name(&stays), &name(&to)])
            }
            7 => {
                let at = self.free(random, None)?;
                self.added += 1;
                let host = format!("new-{}", self.added);
                self.hosts.insert(host.clone());
                self.put_in((host.clone(), 1), at.clone());
                words(&["add-host", &host, "--at", &name(&at)])
            }
            8 => {
                let first = self.free(random, Some("switch-0"))?;
                let second = self.free(random, None).filter(|second| *second != first)?;
                self.added += 1;
                let switch = format!("new-{}", self.added);
                self.switches.insert(switch.clone(), 6);
                let mut said = vec!["add-switch".to_owned(), switch.clone(), "--ports".into(), "6".into()];
                for (port, peer) in [(1, first), (4, second)] {
                    said.extend(["--connect".to_owned(), format!("{port}={}", name(&peer))]);
                    self.put_in((switch.clone(), port), peer);
                }
                Some(said)
            }
            _ => {
                let added =
                    self.hosts.iter().chain(self.switches.keys()).filter(|node| node.starts_with("new-"));
                let node = pick(random, added.cloned())?;
                let before = (self.switches.clone(), self.hosts.clone(), self.cables.clone());
                self.switches.remove(&node);
                self.hosts.remove(&node);
                self.cables.retain(|(a, _), (b, _)| *a != node && *b != node);
                if !self.is_whole() {
                    (self.switches, self.hosts, self.cables) = before;
                    return None;
                }
                words(&["remove", &node])
            }
        }
    }
}

fn pick<T>(random: &mut Pcg64, from: impl Iterator<Item = T>) -> Option<T> {
    let mut from: Vec<T> = from.collect();
    if from.is_empty() { None } else { Some(from.swap_remove(random.random_range(0..from.len()))) }
}

fn links(home: &Home) -> BTreeSet<(String, String)> {
    let links = home.json(&["links", "--json"]);
    let end = |end: &Value| (end["node"].as_str().unwrap().to_owned(), end["port"].as_u64().unwrap() as u8);
    let both = links.as_array().unwrap().iter().map(|link| {
        let mut ends = [end(&link["a"]), end(&link["b"])];
        ends.sort();
        (name(&ends[0]), name(&ends[1]))
    });
    both.collect()
}

/// Another program's view of the fabric, through MADs: what `ibnetdiscover` prints.
fn discovered(home: &Home) -> Option<String> {
    let library = std::path::Path::new(env!("CARGO_BIN_EXE_weft")).with_file_name("libweft_umad.so");
    let found = std::process::Command::new("ibnetdiscover").arg("-V").output().is_ok();
    if !found || !library.exists() {
        let in_ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty());
        assert!(!in_ci, "ibnetdiscover and {} are to be there", library.display());
        eprintln!("ibnetdiscover or {} is not there: its view is not compared", library.display());
        return None;
    }
    let seen = home.weft(&["shell", "--", "ibnetdiscover"]);
    Some(seen.succeeds().stdout.clone())
}

#[test]
fn a_randomly_recabled_fabric_is_correct_after_every_step() {
    let seed = std::env::var("WEFT_SEED").ok().map_or_else(rand::random, |seed| seed.parse().unwrap());
    eprintln!("WEFT_SEED={seed} replays this");
    let mut random = Pcg64::seed_from_u64(seed);
    let home = Home::new();
    let file = home.base().with_file_name("ring.topo");
    let radix = RADIX.to_string();
    let options = ["--switches", "4", "--hosts", "1", "--radix", &radix, "-o", text(&file)];
    home.weft(&[&["topo", "gen", "ring"][..], &options].concat()).succeeds();
    home.weft(&["up", text(&file)]).succeeds();
    let mut model = Model::ring();
    assert_eq!(links(&home), model.all());
    let mut done = 0;
    while done < STEPS {
        let Some(step) = model.step(&mut random) else { continue };
        done += 1;
        eprintln!("weft topo {}", step.join(" "));
        let arguments: Vec<&str> = std::iter::once("topo").chain(step.iter().map(String::as_str)).collect();
        let said = home.weft(&arguments);
        said.succeeds();
        assert!(!said.stderr.contains("warning"), "{}", said.stderr);
        assert_eq!(links(&home), model.all());
        let diff = home.weft(&["topo", "diff"]);
        assert_eq!((diff.code, diff.stdout.as_str()), (0, ""), "{}", diff.stderr);
        wait_until("every host reaches every other", || home.weft(&["check"]).code == 0);
        if let Some(seen) = discovered(&home) {
            let seen = home.write("seen.topo", &seen);
            let lab = home.lab("default").join("topology");
            let diff = home.weft(&["topo", "diff", text(&lab), text(&seen)]);
            assert_eq!((diff.code, diff.stdout.as_str()), (0, ""), "{}", diff.stderr);
        }
    }
    // All begin again from what was written down.
    for node in model.switches.keys().chain(&model.hosts) {
        home.weft(&["fault", "restart", node]).succeeds();
    }
    wait_until("the cabling is as it was", || home.weft(&["topo", "diff"]).code == 0);
    wait_until("every host reaches every other", || home.weft(&["check"]).code == 0);
}
