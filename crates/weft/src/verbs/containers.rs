//! The common part of `weft compose` and `weft k8s`: planning a laboratory whose processes run in containers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use weft_bundle::failure::Failure;
use weft_bundle::folder;
use weft_bundle::folder::bundle::{Bundle, Draft, SCRAPE};
use weft_bundle::names::{HUB, PM, SM, VMM, numbered};
use weft_bundle::place::hosts::Hosts;
use weft_bundle::plan::wanted::{Attach, Wanted};
use weft_bundle::ports::DOOR_PORT;
use weft_bundle::record::{LabRecord, standby_name};
use weft_deploy::is_for_containers;
use weft_deploy::watch;
use weft_lab::site::metrics::prometheus_yml;
use weft_link::PeerAddress;
use weft_topology::{Fabric, PortRef};
use weft_wire::Guid;

use super::{plan, up};
use crate::cli::compose::ContainerArgs;
use crate::output::say;

/// The link timeout without `--link-timeout-ms`: containers start one after the other, and meanwhile nothing is quick.
const LINK_TIMEOUT_MS: u64 = 5000;
/// The TCP port of each container that serves metrics where none is named.
const METRICS_PORT: u16 = 9100;

/// The bundle that the command line names, or one that is planned now: its folder, and what it consists of. A laboratory of more
/// services than this is refused.
pub(super) fn bundle(
    name: Option<&str>,
    args: &ContainerArgs,
    services_max: Option<usize>,
) -> anyhow::Result<(PathBuf, LabRecord)> {
    if args.prometheus.is_some() && args.bundle.is_none() && args.plan.metrics.is_none() {
        return Err(nothing_to_scrape());
    }
    let (folder, record) = match &args.bundle {
        Some(folder) => (folder.clone(), LabRecord::of_bundle(&Bundle::at(folder))?),
        None => plan_bundle(name, args, services_max)?,
    };
    if !is_for_containers(&record) {
        return Err(Failure::bad_input(format!("{} was not planned for containers", folder.display()))
            .hint("`weft compose FILE` or `weft k8s FILE` plans a bundle for them"));
    }
    if args.prometheus.is_some() && record.metrics_port().is_none() {
        return Err(nothing_to_scrape());
    }
    if args.grafana.is_some() && !watch::has_dashboards(&Bundle::at(&folder)) {
        let message = format!("{} has no dashboards for Grafana", folder.display());
        return Err(Failure::bad_input(message).hint("an earlier version wrote it: plan it again"));
    }
    Ok((folder, record))
}

fn nothing_to_scrape() -> anyhow::Error {
    Failure::bad_input("--prometheus has nothing to scrape").hint("plan the laboratory with --metrics")
}

/// Plans the laboratory for containers of its processes' names.
fn plan_bundle(
    name: Option<&str>,
    args: &ContainerArgs,
    services_max: Option<usize>,
) -> anyhow::Result<(PathBuf, LabRecord)> {
    let file = args.file.as_deref().unwrap_or(Path::new(""));
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let lab = crate::front::base().lab(name.or(stem.as_deref()).unwrap_or(up::DEFAULT_NAME))?;
    let cabling = up::cabling(file, &args.plan)?;
    let mut wanted = up::wanted(&cabling, file, &args.plan)?;
    for_containers(&mut wanted)?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(lab.name()));
    let draft = Draft::begin(&out)?;
    let record = plan::into(&draft, lab.name(), &wanted)?;
    let services = record.processes().count() + 1;
    if services_max.is_some_and(|max| services > max) {
        let message = format!("{services} services are more than a network of containers takes");
        return Err(Failure::bad_input(message).hint("run several devices per agent: --pack leaf"));
    }
    if record.metrics_port().is_some() {
        let hub = record.metrics_port().map(|port| (Ipv4Addr::UNSPECIFIED, port).into());
        let scrape = prometheus_yml(lab.name(), &record, hub) + watch::RULE_FILES;
        folder::write(&draft.bundle().path().join(SCRAPE), scrape.as_bytes())?;
        watch::write(draft.bundle())?;
    }
    let bundle = draft.finish()?;
    say(&format!("wrote {}: the bundle of {services} containers", bundle.path().display()));
    let fabric = weft_bundle::topology_file::load(&bundle.topology())?;
    if let Some(note) = neighbours_note(neighbours(&record, &fabric), room()) {
        say(&note);
    }
    Ok((out, record))
}

/// How many entries containers on one machine have in its kernel's table of neighbours: two for each pair that talks.
fn neighbours(record: &LabRecord, fabric: &Fabric) -> usize {
    let agents = record.agents.iter().enumerate();
    let places: BTreeMap<Guid, usize> = agents
        .flat_map(|(place, agent)| agent.devices.iter().map(move |device| (device.guid, place)))
        .collect();
    let agent = |end: PortRef| places.get(&fabric.node(end.node).guid).copied();
    let pairs: BTreeSet<(usize, usize)> = fabric
        .cables()
        .filter_map(|cable| agent(cable.a).zip(agent(cable.b)))
        .filter(|(a, b)| a != b)
        .map(|(a, b)| (a.min(b), a.max(b)))
        .collect();
    // The hub talks to everyone.
    2 * (pairs.len() + record.processes().count())
}

/// How many this machine's table takes; what kernels have by default where that cannot be read.
fn room() -> usize {
    let told = std::fs::read_to_string("/proc/sys/net/ipv4/neigh/default/gc_thresh3").ok();
    told.and_then(|text| text.trim().parse().ok()).unwrap_or(1024)
}

fn neighbours_note(needed: usize, room: usize) -> Option<String> {
    (needed > room).then(|| {
        format!(
            "warning: on one machine its containers need {needed} entries in the kernel's table of neighbours, which takes \
             {room}: links would not come up\n\
             hint: sysctl -w net.ipv4.neigh.default.gc_thresh3={}",
            (2 * needed).next_power_of_two()
        )
    })
}

fn for_containers(wanted: &mut Wanted<'_>) -> anyhow::Result<()> {
    if wanted.ibsim.take().is_some() {
        say("no server for ibsim's programs is planned: they could not reach it in a container");
    }
    wanted.hosted = Some("{}".parse::<Hosts>().map_err(|error| Failure::bad_input(error.to_string()))?);
    wanted.attach = Attach::Quic;
    wanted.link_timeout_ms = wanted.link_timeout_ms.or(Some(LINK_TIMEOUT_MS));
    wanted.metrics_port = wanted.metrics.take().map(|port| if port == 0 { METRICS_PORT } else { port });
    let standbys = (0..wanted.standbys.len()).map(standby_name);
    let mut names: Vec<String> = wanted.sm.iter().map(|_| SM.to_owned()).chain(standbys).collect();
    names.extend((0..wanted.pms.len()).map(|at| numbered(PM, at)));
    names.extend((0..wanted.vmms.len()).map(|at| numbered(VMM, at)));
    names.push(HUB.to_owned());
    let doors = names.into_iter().map(|name| Ok((name.clone(), PeerAddress::new(&name, DOOR_PORT)?)));
    wanted.doors = doors.collect::<anyhow::Result<BTreeMap<_, _>>>()?;
    Ok(())
}

/// A user and a group: `UID:GID`.
pub(super) fn user_of(text: &str) -> anyhow::Result<(u32, u32)> {
    let numbers = text.split_once(':').and_then(|(user, group)| user.parse().ok().zip(group.parse().ok()));
    numbers.ok_or_else(|| {
        Failure::bad_input(format!("`{text}` is not UID:GID")).hint("give numbers, such as --user 1000:1000")
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_neighbours_that_is_too_small_is_told() {
        assert_eq!(neighbours_note(1024, 1024), None);
        let note = neighbours_note(1406, 1024).unwrap();
        assert!(note.ends_with("gc_thresh3=4096"), "{note}");
    }
}
