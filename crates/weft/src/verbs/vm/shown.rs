//! Plans and migrations in words.

use std::collections::BTreeSet;

use serde::Serialize;
use weft_control::vmm::{VmMigration, VmMoveCounts, VmPlanWrite, VmSilent, VmWay};
use weft_lab::view::Lab;
use weft_routing::vswitches;
use weft_wire::count_of;

use crate::output::Table;

/// Hosts that are named at most.
const HOSTS_MAX: usize = 8;

/// A host that hears nothing of a machine for a time after its move.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Peer {
    /// A name that finds it.
    host: String,
    /// For how long after the machine runs, at most.
    silence_ns: u64,
    /// From the command to freeze until it is served, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    downtime_ns: Option<u64>,
}

/// The hosts at silent switches: of a vSwitch the one that it is in.
pub(super) fn peers(lab: &Lab, silent: &[VmSilent]) -> Vec<Peer> {
    let vswitches = vswitches(&lab.fabric, &[]);
    let mut peers = Vec::new();
    for one in silent {
        let peer = |host: String| Peer { host, silence_ns: one.silence.as_nanos(), downtime_ns: None };
        let Some(switch) = lab.fabric.by_guid(one.switch) else {
            peers.push(peer(format!("hosts at {}", one.name)));
            continue;
        };
        let ends = lab.fabric.node(switch).cabled_ports().map(|(_, end)| end.node);
        let hosts = ends.filter(|node| !lab.fabric.node(*node).is_switch());
        let hosts = hosts.map(|node| peer(lab.fabric.label(node)));
        let is_vswitch = vswitches.binary_search_by_key(&switch, |vswitch| vswitch.node).is_ok();
        // The first is the physical function.
        peers.extend(hosts.take(if is_vswitch { 1 } else { usize::MAX }));
    }
    peers
}

/// Whether these are the same hosts.
pub(super) fn are_the_same(some: &[Peer], others: &[Peer]) -> bool {
    let names = |peers: &[Peer]| peers.iter().map(|peer| peer.host.clone()).collect::<BTreeSet<_>>();
    names(some) == names(others)
}

/// The hosts that hear nothing and for how long, in a line.
pub(super) fn silence(peers: &[Peer], stop_copy_ms: Option<u64>) -> String {
    let names: Vec<&str> = peers.iter().take(HOSTS_MAX).map(|peer| peer.host.as_str()).collect();
    let more = match peers.len().saturating_sub(HOSTS_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let longest = peers.iter().map(|peer| peer.silence_ns).max().unwrap_or(0);
    let hidden = match stop_copy_ms {
        Some(0) => String::new(),
        Some(copy) => format!(", of which about {} ms pass in the stop-copy", copy.min(longest / 1_000_000)),
        None => ", less the time of `--stop-copy`".to_owned(),
    };
    format!(
        "silent for up to {} ms after the move{hidden}: {}{more} (packets of the old way have to be gone there)",
        ms(longest),
        names.join(", ")
    )
}

/// The same once the machine has moved.
pub(super) fn served(migration: &VmMigration, peers: Vec<Peer>) -> Vec<Peer> {
    let Some(silence_ns) = migration.silent_after_ns else { return Vec::new() };
    let served = |peer: Peer| Peer { silence_ns, downtime_ns: migration.downtime_ns, ..peer };
    peers.into_iter().map(served).collect()
}

fn ms(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}

/// The writes of a plan, and what it costs.
pub(super) fn plan(way: &VmWay, counts: &VmMoveCounts, writes: &[VmPlanWrite], peers: &[Peer]) -> String {
    let mut table = Table::headed("round | switch | block | note");
    for write in writes {
        let VmPlanWrite { round, name, block, vswitch, active, after_drain, late, detour, .. } = write;
        let notes = [
            (*vswitch, "vSwitch"),
            (*active, "on the active path"),
            (*after_drain, "after packets are gone"),
            (*late, "late"),
            (*detour && !*late, "a detour"),
            (*detour && *late, "replaces a detour"),
        ];
        let notes: Vec<&str> = notes.into_iter().filter(|(is, _)| *is).map(|(_, note)| note).collect();
        table.row(&[&round, &name, &block, &notes.join(", ")]);
    }
    let mut text = format!("{table}{}\n", cost(counts));
    if !counts.fallbacks.is_empty() {
        let VmMoveCounts { method, update, .. } = counts;
        text += &format!("made by {method}, {update}, instead of {}, {}\n", way.method, way.update);
    }
    if !peers.is_empty() {
        text += &format!("{}\n", silence(peers, None));
    }
    text
}

/// What a move costs, in a line.
fn cost(counts: &VmMoveCounts) -> String {
    let VmMoveCounts { method, update, fallbacks, switches, rounds, physical_smps, vswitch_smps, .. } =
        counts;
    let smps = physical_smps + vswitch_smps;
    let late = match counts.late {
        0 => String::new(),
        late => {
            format!("; {} late, when packets to the old place are gone", count_of(late as usize, "switch"))
        }
    };
    let detours = match counts.detours {
        0 => String::new(),
        rows => format!("; {} until then", count_of(rows as usize, "detour")),
    };
    let fell = match (counts.held.as_nanos(), fallbacks.last()) {
        (0, why) => why.map_or_else(String::new, |why| format!("; fell back: {why}")),
        (held, why) => format!(
            "; queue pairs to it are held for {} ms before rows are written, as old levels could close a circle with new rows: {}",
            ms(held),
            why.map_or("", String::as_str)
        ),
    };
    let unproved = match counts.unproved_lanes {
        0 => String::new(),
        u16::MAX => "; nothing of it is proved".to_owned(),
        _ => {
            let lanes: Vec<String> = counts.lanes_unproved().map(|lane| lane.to_string()).collect();
            format!(
                "; not proved on VL {}, where packets can wait in a circle by today's tables",
                lanes.join(", ")
            )
        }
    };
    let switches = match switches {
        1 => "1 physical switch".to_owned(),
        count => format!("{count} physical switches"),
    };
    // The usual order goes without saying.
    let how =
        if update == "ordered" || update.is_empty() { method.clone() } else { format!("{method}, {update}") };
    format!(
        "{how}: {switches} written, {smps} LFT SMPs ({physical_smps} to switches, {vswitch_smps} to vSwitches) in {}, \
         {} SMPs to hypervisors by the papers' count{late}{detours}{unproved}{fell}",
        count_of(*rounds as usize, "round"),
        counts.hypervisor_smps,
    )
}

pub(super) fn report(migration: &VmMigration) -> String {
    let VmMigration {
        from,
        to,
        stages,
        downtime_ns,
        runs_again_ns,
        silent_after_ns,
        total_ns,
        counts,
        silent: _,
        notes,
    } = migration;
    let mut table = Table::headed("stage | took ms");
    for stage in stages {
        table.row(&[&stage.stage, &ms(stage.took_ns)]);
    }
    let mut text = table.to_string();
    let silent = counts.as_ref().map_or(0, |counts| counts.silent);
    let downtime = match (downtime_ns, runs_again_ns) {
        (Some(last), Some(first)) if silent > 0 && last > first => format!(
            "downtime up to {} ms for hosts at {}, {} ms for all others, ",
            ms(*last),
            count_of(silent as usize, "switch"),
            ms(*first)
        ),
        (Some(last), _) => format!("downtime {} ms, ", ms(*last)),
        (None, _) => String::new(),
    };
    text += &format!(
        "`{}` moved from {} vf{} to {} vf{}: {downtime}total {} ms\n",
        to.vm,
        from.host,
        from.vf,
        to.host,
        to.vf,
        ms(*total_ns)
    );
    text += &counts.as_ref().map_or_else(String::new, |counts| format!("{}\n", cost(counts)));
    if let Some(left) = silent_after_ns {
        let silence = counts.as_ref().map_or(0, |counts| counts.silence.as_nanos());
        text += &format!(
            "packets of the old way take {} ms: {} ms while the machine was stopped, {} ms after\n",
            ms(silence),
            ms(silence.saturating_sub(*left)),
            ms(*left)
        );
    }
    for note in notes {
        text += &format!("note: {note}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use weft_machine::Time;

    use super::*;

    fn counts() -> VmMoveCounts {
        VmMoveCounts {
            method: "itrc".to_owned(),
            update: "ordered-late".to_owned(),
            fallbacks: vec!["a circle".to_owned()],
            late: 1,
            silent: 1,
            silence: Time::from_nanos(1_073_741_824),
            ..VmMoveCounts::default()
        }
    }

    #[test]
    fn a_plan_says_what_it_fell_back_to_and_who_is_silent() {
        let peer = Peer { host: "host-0".to_owned(), silence_ns: 1_074_000_000, downtime_ns: None };
        let text = plan(&VmWay::default(), &counts(), &[], &[peer]);
        assert!(text.contains("made by itrc, ordered-late, instead of ftreeminrc, ordered"), "{text}");
        assert!(
            text.contains(
                "silent for up to 1074.000 ms after the move, less the time of `--stop-copy`: host-0 ("
            ),
            "{text}"
        );
    }

    #[test]
    fn a_downtime_is_until_the_last_host_is_served() {
        let migration = VmMigration {
            downtime_ns: Some(1_078_000_000),
            runs_again_ns: Some(4_500_000),
            silent_after_ns: Some(1_073_500_000),
            counts: Some(counts()),
            ..VmMigration::default()
        };
        let text = report(&migration);
        assert!(
            text.contains("downtime up to 1078.000 ms for hosts at 1 switch, 4.500 ms for all others"),
            "{text}"
        );
        let drained = "take 1073.742 ms: 0.242 ms while the machine was stopped, 1073.500 ms after";
        assert!(text.contains(drained), "{text}");
    }
}
