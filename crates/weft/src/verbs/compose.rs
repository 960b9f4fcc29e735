//! `weft compose`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weft_link::PeerAddress;

use super::{plan, up};
use crate::cli::{Attach, ComposeArgs, Sm};
use crate::deploy::compose::{Containers, Publish, render};
use crate::door::DOOR_PORT;
use crate::failure::Failure;
use crate::lab::bundle::Draft;
use crate::lab::hosts::Hosts;
use crate::lab::names::{PM, SM, VMM};
use crate::lab::record::standby_name;
use crate::lab::wanted::Wanted;
use crate::lab::{Base, Bundle, LabRecord};
use crate::output::{print, say};

/// The link timeout without `--link-timeout-ms`: containers start one after the other, and meanwhile nothing is quick.
const LINK_TIMEOUT_MS: u64 = 5000;
/// Services on one network: a bridge of Linux has 1023 ports.
const SERVICES_MAX: usize = 1000;

pub(super) fn run(name: Option<&str>, args: &ComposeArgs) -> anyhow::Result<()> {
    let door: Publish = args.door.parse().map_err(|error: String| {
        Failure::bad_input(error).hint("give --door a port such as 7443, or an address and a port")
    })?;
    let user = user(args)?;
    let (folder, record) = match &args.bundle {
        Some(folder) => (folder.clone(), LabRecord::read(&Bundle::at(folder).record())?),
        None => plan_bundle(name, args)?,
    };
    if record.doors.is_empty() {
        return Err(Failure::bad_input(format!("{} was not planned for containers", folder.display()))
            .hint("`weft compose FILE` plans a bundle for them")
            .into());
    }
    let containers = Containers { bundle: &folder, image: &args.image, user: &user, door: &door };
    print(&render(&record, &containers))
}

/// Plans the laboratory for containers of its processes' names.
fn plan_bundle(name: Option<&str>, args: &ComposeArgs) -> anyhow::Result<(PathBuf, LabRecord)> {
    let file = args.file.as_deref().unwrap_or(Path::new(""));
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let lab = Base::locate().lab(name.or(stem.as_deref()).unwrap_or(up::DEFAULT_NAME))?;
    let cabling = up::cabling(file, &args.plan)?;
    let mut wanted = up::wanted(&cabling, file, &args.plan)?;
    for_containers(&mut wanted, args)?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(lab.name()));
    let draft = Draft::begin(&out)?;
    let record = plan::into(&draft, lab.name(), &wanted)?;
    let services = record.processes().count() + 1;
    if services > SERVICES_MAX {
        let message = format!("{services} services are more than a network of containers takes");
        return Err(Failure::bad_input(message).hint("run several devices per agent: --pack leaf").into());
    }
    let bundle = draft.finish()?;
    say(&format!("wrote {}: start {services} containers from where you keep it", bundle.path().display()));
    Ok((out, record))
}

fn for_containers(wanted: &mut Wanted<'_>, args: &ComposeArgs) -> anyhow::Result<()> {
    if args.sm == Sm::None {
        wanted.sm = None;
        wanted.standbys.clear();
    }
    if wanted.ibsim.take().is_some() {
        say("no server for ibsim's programs is planned: they could not reach it in a container");
    }
    if wanted.vmm.take().is_some() {
        say("no VM manager is planned: it talks to agents on its own machine");
    }
    wanted.hosted = Some("{}".parse::<Hosts>().map_err(Failure::bad_input)?);
    wanted.attach = Attach::Quic;
    wanted.link_timeout_ms = wanted.link_timeout_ms.or(Some(LINK_TIMEOUT_MS));
    let standbys = (0..wanted.standbys.len()).map(standby_name);
    let mut names: Vec<String> = wanted.sm.iter().map(|_| SM.to_owned()).chain(standbys).collect();
    names.extend(wanted.pm.iter().map(|_| PM.to_owned()));
    names.extend(wanted.vmm.iter().map(|_| VMM.to_owned()));
    names.push(crate::lab::names::HUB.to_owned());
    let doors = names.into_iter().map(|name| Ok((name.clone(), PeerAddress::new(&name, DOOR_PORT)?)));
    wanted.doors = doors.collect::<anyhow::Result<BTreeMap<_, _>>>()?;
    Ok(())
}

/// The user and group of processes.
fn user(args: &ComposeArgs) -> anyhow::Result<String> {
    let own = || {
        let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        format!("{user}:{group}")
    };
    let user = args.user.clone().unwrap_or_else(own);
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    match user.split_once(':') {
        Some((user_id, group)) if is_number(user_id) && is_number(group) => Ok(user),
        _ => Err(Failure::bad_input(format!("`{user}` is not UID:GID"))
            .hint("give numbers, such as --user 1000:1000")
            .into()),
    }
}
