//! A laboratory on three machines with a rough way between them: packets of at most 1280 bytes, one of twenty lost each way, 40 ms there
//! and back. Everything takes this way: ssh, the hubs, links, and the verbs.
//!
//! Passing means, on any machine:
//!
//! * The subnet comes up, and `check` finds nothing.
//! * Once each link between machines has measured the loss (its timeout is longer than that of a near one), no link is lost while all
//!   of them together have asked [`QUESTIONS`] times whether their peers live. `liveness.rs` bounds the chance that all questions of a
//!   link timeout are lost by a millionth, so the whole run loses one with a chance of at most [`QUESTIONS`] millionths.
//! * After an agent was killed the fabric heals.
//! * No IP packet had to be cut into pieces. One that may not be cut is refused by the kernel: with larger payloads on links the subnet
//!   does not come up.
//!
//! Long tier: `cargo nextest run --profile long -p weft-judges rough::`, as root. `WEFT_SEED` gives another seed to chance.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use weft_judges::{Carried, HERE, Roughness, SshSite, is_root, output_of, wait_until, wait_within};

const MACHINES: usize = 3;
const MTU: u16 = 1280;
const LOST_PER_MILLE: u32 = 50;
const DELAY: Duration = Duration::from_millis(20);
/// A link timeout that holds eight round trips many times.
const LINK_TIMEOUT_MS: u64 = 2000;
/// Of all links together. A quiet link asks within 800 ms after its last word, so this takes a minute or two.
const QUESTIONS: u64 = 300;
/// Each waits for many answers over the rough way.
const PATIENCE: Duration = Duration::from_secs(300);

/// On which machine each node is, by GUIDs.
fn places(site: &SshSite) -> BTreeMap<u64, String> {
    let record = std::fs::read(site.path("w/three/lab.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    let agents = record["agents"].as_array().unwrap().iter().flat_map(|agent| {
        let machine = agent["address"].as_str().unwrap().rsplit_once(':').unwrap().0;
        let nodes = agent["devices"].as_array().unwrap().iter();
        nodes.map(move |node| (node["guid"].as_u64().unwrap(), machine.to_owned()))
    });
    agents.collect()
}

/// The ends of links between machines.
fn ends(site: &SshSite) -> Vec<Value> {
    let places = places(site);
    let machine = |end: &Value| {
        let guid = end["guid"].as_str().unwrap().trim_start_matches("0x");
        &places[&u64::from_str_radix(guid, 16).unwrap()]
    };
    let links = site.json(&["links", "--json"]);
    let links = links.as_array().unwrap().iter().map(|link| [link["a"].clone(), link["b"].clone()]);
    links.filter(|[a, b]| machine(a) != machine(b)).flatten().collect()
}

fn is_sound(site: &SshSite) -> bool {
    site.weft(&["check"]).output().unwrap().status.success()
}

/// How often links between machines were lost, and how often peers were asked whether they live.
fn lost_and_asked(site: &SshSite) -> (u64, u64) {
    let lost = ends(site).iter().map(|end| end["totals"]["link_downed"].as_u64().unwrap()).sum();
    let running = site.json(&["ps", "--json"]);
    let asked = running.as_array().unwrap().iter();
    (lost, asked.filter_map(|process| process["counts"]["link_peers_asked"].as_u64()).sum())
}

/// What the kernel of a machine had to cut into pieces, or could not send because it must not.
fn cut_into_pieces(site: &SshSite, machine: usize) -> u64 {
    let counts = output_of(site.machines.command(machine, "cat").arg("/proc/net/snmp"));
    let mut lines = counts.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let (names, values) = (lines.next().unwrap().split(' '), lines.next().unwrap().split(' '));
    let fragments = names.zip(values).filter(|(name, _)| ["FragCreates", "FragFails"].contains(name));
    fragments.map(|(_, count)| count.parse::<u64>().unwrap()).sum()
}

/// The share of frames that were lost is as rough as was wanted, within five standard deviations.
fn was_rough(Carried { frames, lost, .. }: Carried) {
    let (frames, share) = (frames as f64, f64::from(LOST_PER_MILLE) / 1000.0);
    let deviation = (frames * share * (1.0 - share)).sqrt();
    assert!((lost as f64 - frames * share).abs() <= 5.0 * deviation, "{lost} of {frames} lost");
}

#[test]
fn a_lab_survives_a_slow_lossy_path_with_a_small_mtu() {
    if !is_root() {
        return;
    }
    let seed = std::env::var("WEFT_SEED").ok().map_or(1, |seed| seed.parse().unwrap());
    println!("WEFT_SEED={seed} has the same chance, though not the same frames");
    let roughness = Roughness { mtu: MTU, lost_per_mille: LOST_PER_MILLE, delay: DELAY, seed };
    let site = SshSite::far_apart(roughness);
    let timeout = LINK_TIMEOUT_MS.to_string();
    output_of(&mut site.up(&site.all(), &["--pack", "leaf", "--link-timeout-ms", &timeout]));
    wait_within(PATIENCE, "`check` finds nothing", || is_sound(&site));

    wait_within(PATIENCE, "every link has measured the loss", || {
        let ends = ends(&site);
        let is_far = |end: &Value| end["round_trip_us"].as_u64() >= Some(2 * DELAY.as_micros() as u64);
        let is_stretched = |end: &Value| end["link_timeout_ms"].as_u64() > Some(LINK_TIMEOUT_MS);
        !ends.is_empty() && ends.iter().all(|end| is_far(end) && is_stretched(end))
    });
    let (lost, asked) = lost_and_asked(&site);
    wait_within(PATIENCE, "peers are asked often", || lost_and_asked(&site).1 >= asked + QUESTIONS);
    assert_eq!(lost_and_asked(&site).0, lost, "links were lost");
    wait_within(PATIENCE, "`check` finds nothing", || is_sound(&site));

    output_of(&mut site.weft(&["fault", "kill", "S3"]));
    wait_until("S3 is missed", || site.nodes() < 8);
    output_of(&mut site.weft(&["fault", "restart", "S3"]));
    wait_within(PATIENCE, "all nodes are back", || site.nodes() == 8 && is_sound(&site));

    for machine in HERE..=MACHINES {
        assert_eq!(cut_into_pieces(&site, machine), 0, "on machine {machine}");
    }
    let carried = site.machines.carried();
    println!("{carried:?}");
    was_rough(carried);
    output_of(&mut site.weft(&["down"]));
    (1..=MACHINES).for_each(|machine| site.is_gone_from(machine));
}
