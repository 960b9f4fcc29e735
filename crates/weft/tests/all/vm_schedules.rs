//! Random schedules with real processes: machines are created, moved and destroyed while agents, physical switches, the subnet manager
//! and the VM manager die, hosts stop, and cables are cut. The VM manager also dies at steps by name. Moves are asked for by every method
//! and in every order, vSwitches have LIDs of their own or those of their hosts, and moves may be carried out without a proof.
//!
//! Always: a machine runs in one slot at most. When every fault has ended: each machine runs in exactly one slot, or is lost with proof
//! that its host's agent died; no other slot is used; LIDs are unique; tables lead everywhere, for physical ports they are those of
//! the fresh start, and every row equals the subnet manager's log of cablings and moves replayed, over the deaths of managers too.
//!
//! `WEFT_SCHEDULES` says how many (8 if not said), `WEFT_AT_ONCE` how many of each part at the same time, `WEFT_SEED` makes one again. A seed draws the same steps in the same order; what they meet,
//! and so what there is to mend, depends on the machine. `WEFT_LIDS=prepopulated` gives every slot a LID from the start.

use common::machines::Slots;
use common::{Home, text};
use counts::Counts;
use schedule::{ROWS, Schedule};
use seeds::run_part;
use serde_json::json;
use weft_sim::TraceMode;

use crate::common;
use crate::counts;
use crate::schedule;
use crate::seeds;

const SCHEDULES: u64 = 8;

/// How many seeds a part has at least for moves to be made, undone and replayed, machines to be lost and switches to die in one of them.
const ALL_KINDS: u64 = 25;

/// Steps of one schedule.
const STEPS: u32 = 60;

/// What is wrong, if anything is; else what happened. Processes leave no trace that could be the same twice.
fn run(seed: u64, _: TraceMode) -> Result<(Counts, u64), String> {
    let mut schedule = Schedule::new(seed);
    for _ in 0..STEPS {
        schedule.step();
    }
    schedule.end_faults();
    schedule.rest();
    let found = schedule.report().map_err(|wrong| format!("WEFT_SEED={seed}: {wrong}\n"))?;
    Ok((found, 0))
}

/// The seeds of one of four parts, so that they run beside each other.
fn part(part: u64) {
    let Some((counts, seeds)) = run_part(part, (SCHEDULES, 0), run, Counts::sum) else { return };
    assert!(seeds == 0 || counts.get(ROWS) > 0, "nothing was compared with the log: {counts:?}");
    if seeds >= ALL_KINDS {
        counts.all_happened();
    }
}

seeds::four_parts!(part);

/// Links that moves have left unevenly loaded: a rebalance is made, packets go through meanwhile, and its rows are in the log.
#[test]
fn rows_become_fresh_while_packets_flow() {
    Schedule::uneven().rebalances();
}

/// The judge of all this: a machine that agents were ordered to start in two places is seen.
#[test]
fn a_machine_that_runs_twice_is_seen() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--vfs", "2", "--lids", "dynamic", "--no-vmm"]).succeeds();
    let mut slots = Slots::of(&home);
    for host in ["host-1", "host-2"] {
        assert_eq!(slots.twice(), None);
        let (free, hello) = (slots.of_host(host).remove(0).slot, home.json(&["ask", host, "hello"]));
        let guids = ["0x02aa000000000001", "0x02aa000000000101"];
        let identity = json!({"node": guids[0], "port": guids[1], "description": "web"});
        let order = json!({
            "incarnation": hello["incarnation"], "generation": 1, "slot": free.slot, "vm": "web", "epoch": 1,
            "step": {"boot": {"identity": identity}},
        });
        home.weft(&["ask", host, "vm", &order.to_string()]).succeeds();
    }
    let wrong = slots.twice().unwrap();
    assert!(wrong.contains("0x02aa000000000101 runs twice"), "{wrong}");
    home.weft(&["down"]).succeeds();
}

/// The judge of rows: one that was set behind the subnet manager's back is seen.
#[test]
fn a_row_that_the_log_has_not_is_seen() {
    let mut schedule = Schedule::new(1);
    schedule.rows_are_the_logs("the start").unwrap();
    schedule.spoil_a_row();
    let wrong = schedule.rows_are_the_logs("a row was set").unwrap_err();
    assert!(wrong.contains("for LID 1, and"), "{wrong}");
}
