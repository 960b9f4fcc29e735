//! `weft up --hosts` and `weft up --part`.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Signal, getpid, kill_process};
use weft_bundle::config::hub::HubConfig;
use weft_bundle::config::run::RunOptions;
use weft_bundle::failure::Failure;
use weft_bundle::folder::absolute;
use weft_bundle::folder::bundle::Bundle;
use weft_bundle::part::Part;
use weft_bundle::place::hosts::{Hosts, is_local};
use weft_bundle::plan::vfs;
use weft_bundle::plan::wanted::Wanted;
use weft_bundle::record::LabRecord;
use weft_control::hub::RestartPolicy;
use weft_lab::progress::Goal;
use weft_lab::site::hosts::Ssh;
use weft_lab::start::{self, From, OnHosts, goal};
use weft_managers::opensm;
use weft_topology::Fabric;

use super::Started;
use crate::cli::plan::UpArgs;
use crate::output::StdoutClosed;

/// What stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Plans a laboratory for other hosts, and starts each one's share there.
pub(super) fn over(name: &str, mut wanted: Wanted<'_>, hosts: &Hosts, args: &UpArgs) -> anyhow::Result<()> {
    refuse(hosts, &wanted, args)?;
    wanted.hosted = Some(hosts.clone());
    let config = args.spread.ssh_config.as_deref();
    if let Some(missing) = config.filter(|path| !path.is_file()) {
        return Err(Failure::bad_input(format!("--ssh-config: {} is no file", missing.display())).into());
    }
    let ssh = Ssh { config: config.map(absolute).transpose()?, weft: args.spread.remote_weft.clone() };
    let mut arguments = vec!["--patience".to_owned(), args.patience.to_string()];
    if args.hub.restart == RestartPolicy::OnFailure {
        arguments.extend(["--restart", "on-failure"].map(str::to_owned));
    }
    let hub = HubConfig { http: args.hub.hub_metrics, door: args.hub.hub_door, ..HubConfig::default() };
    crate::verbs::hub::tell_of_http(&hub, &crate::front::base().lab(name)?.bundle());
    let summary = |said: &str| match super::print_summary_of(said, args.json) {
        // The summary's reader is gone; the laboratory runs all the same.
        Err(error) if error.is::<StdoutClosed>() => Ok(()),
        printed => printed,
    };
    let patience = Duration::from_secs(args.patience);
    let (keep, foreground) = (args.keep, args.foreground);
    let asked = OnHosts { ssh, hub, patience, arguments, keep, foreground, summary: &summary };
    start::on_hosts(&crate::front::base(), name, &wanted, &asked)
}

fn refuse(hosts: &Hosts, wanted: &Wanted<'_>, args: &UpArgs) -> anyhow::Result<()> {
    let refused = |what: &str, hint: &str| Err(Failure::bad_input(what).hint(hint));
    let Hosts::Listed(listed) = hosts else {
        return refused("`up` reaches hosts by their names", "list them: --hosts a,b,c");
    };
    let local = listed.iter().filter(|host| is_local(host)).count();
    if local > 0 && local < listed.len() {
        return refused(
            "localhost is another machine on each host",
            "give this machine the name that others have for it",
        );
    }
    if wanted.ibsim.is_some() {
        return refused(
            "programs under ibsim's library find agents of their own machine, and --hosts puts them on others",
            "leave out --ibsim-socket and --ibsim-udp; on a host, `weft shell -- PROGRAM` runs programs under libibumad",
        );
    }
    if args.record.is_some() || args.guid2lid.is_some() || args.history.is_some() {
        return refused(
            "--record, --guid2lid and --history name files of this machine, and processes run on others",
            "leave them out; with `weft up --part` on a host they can be given",
        );
    }
    Ok(())
}

/// Starts what of a bundle runs on one host.
pub(super) fn share(
    name: Option<&str>,
    host: &str,
    args: &UpArgs,
    mut run: RunOptions,
    begun: Instant,
) -> anyhow::Result<()> {
    let folder = args.file.as_deref().unwrap_or(Path::new(""));
    let part = match folder.as_os_str() == STANDARD_INPUT {
        true => Part::receive(std::io::stdin().lock(), host)?,
        false => Part::read(&Bundle::at(folder), host)?,
    };
    let lab = &part.record.lab;
    if let Some(other) = name.filter(|name| name != lab) {
        let message = format!("this is the bundle of the laboratory `{lab}`, not `{other}`");
        return Err(Failure::bad_input(message).hint("leave out --lab"));
    }
    if args.bound {
        end_with_input()?;
    }
    run.doors = part.doors(host);
    if !part.record.opensms.is_empty() {
        opensm::check(&crate::front::program()?)?;
    }
    let whole = part.fabric()?;
    // As in a laboratory of one machine: empty slots are unplugged at first.
    let slots = part.whole.slots().filter(|_| part.whole.empty_slots);
    let fabric = vfs::unplugged(&whole, slots.filter_map(|(_, slot)| whole.by_guid(slot.guid)));
    super::manager_files(args, part.record.sm.is_some(), &mut run)?;
    let goal = goal(&fabric, part.record.leaders_in(&fabric), Duration::from_secs(args.patience));
    let goal = Goal { cable_ends: cable_ends(&part.record, &fabric), ..goal };
    let (from, whole) = (&From::Part(&part), Some(&part.whole));
    super::bring_up(Started { name: lab, from, fabric: &fabric, whole, goal }, args, &run, begun)
}

/// Ends of cables at the devices of a share.
fn cable_ends(part: &LabRecord, fabric: &Fabric) -> u64 {
    let devices = part.agents.iter().flat_map(|agent| &agent.devices);
    let nodes = devices.filter_map(|device| fabric.by_guid(device.guid));
    nodes.map(|node| fabric.node(node).cabled_ports().count() as u64).sum()
}

/// Takes the end of standard input for an interrupt: whoever started the share is gone.
fn end_with_input() -> anyhow::Result<()> {
    let watch = || {
        let ended = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        // What cannot be read any more has ended, too.
        drop(ended);
        let _ = kill_process(getpid(), Signal::TERM);
    };
    std::thread::Builder::new().name("input".into()).spawn(watch).context("cannot start a thread").map(drop)
}
