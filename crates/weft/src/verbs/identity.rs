//! `weft identity`: renews and revokes identities at the authority's key, and informs processes.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_bundle::folder::bundle::Bundle;
use weft_bundle::identity::issue::{self, Issuer};
use weft_bundle::record::LabRecord;
use weft_control::{ErrorCode, Request};
use weft_lab::looks;
use weft_lab::site;
use weft_lab::survey::several;
use weft_link::{IdentityError, Serial};
use weft_process::{Client, ClientError};

use crate::cli::identity::{
    AuthorityArgs, IdentityLsArgs, IdentityRenewArgs, IdentityRevokeArgs, IdentityVerb,
};
use crate::output::{print, print_json, say};

/// Processes that are informed at the same time.
const TOLD_AT_ONCE: usize = 8;
/// How long a process has to take a word.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause before one that was cut off is asked again.
const LOOK: Duration = Duration::from_millis(100);

/// `lab`: the running laboratory, if there is one.
pub(super) fn run(lab: anyhow::Result<LabFolder>, verb: &IdentityVerb) -> anyhow::Result<()> {
    match verb {
        IdentityVerb::Ls(args) => list(&Place::find(lab, &args.authority)?, args),
        IdentityVerb::Renew(args) => renew(&Place::find(lab, &args.authority)?, args),
        IdentityVerb::Revoke(args) => revoke(&Place::find(lab, &args.authority)?, args),
        IdentityVerb::Take => {
            let taken = site::hosts::take(&lab?, std::io::stdin().lock())?;
            say(&format!("took {}", count(taken.len())));
            Ok(())
        }
    }
}

/// Where the authority is, and whom to tell.
struct Place {
    bundle: Bundle,
    record: LabRecord,
    /// The laboratory of that bundle, if it runs.
    lab: Option<LabFolder>,
}

impl Place {
    fn find(lab: anyhow::Result<LabFolder>, args: &AuthorityArgs) -> anyhow::Result<Self> {
        let Some(folder) = &args.folder else {
            let lab = lab?;
            let bundle = lab.bundle();
            return Ok(Self { record: LabRecord::read(&bundle.record())?, bundle, lab: Some(lab) });
        };
        let bundle = Bundle::at(folder);
        let record = LabRecord::read(&bundle.record())?;
        // One without a bundle here was named on purpose. Of the others it is the one with the same authority, if any runs.
        let same = |lab: &LabFolder| {
            let is_same = |own: Bundle| authority(&own) == authority(&bundle);
            site::of(lab).is_ok_and(|site| site.bundle().is_none_or(is_same))
        };
        let lab = match lab {
            Ok(lab) => same(&lab).then_some(lab),
            Err(_) => crate::front::base().labs()?.into_iter().find(same),
        };
        Ok(Self { bundle, record, lab })
    }

    /// All that have an identity.
    fn names(&self) -> Vec<String> {
        issue::holders(&self.record)
    }

    /// An error where a name is not known.
    fn know(&self, names: &[String]) -> anyhow::Result<()> {
        let known: BTreeSet<String> = self.names().into_iter().collect();
        names.iter().try_for_each(|name| match known.contains(name) {
            true => Ok(()),
            false => Err(Failure::bad_input(format!("no process is called `{name}`"))
                .hint("`weft identity ls` lists them")),
        })
    }

    /// The bundle that the laboratory's processes or its hub read, if it is another than the authority's.
    fn other_bundle(&self) -> anyhow::Result<Option<Bundle>> {
        let own = self.lab.as_ref().map(|lab| site::of(lab).map(|site| site.bundle())).transpose()?;
        let place = |bundle: &Bundle| bundle.path().canonicalize().ok();
        Ok(own.flatten().filter(|own| place(own) != place(&self.bundle)))
    }

    fn serial(&self, name: &str) -> anyhow::Result<Serial> {
        let path = self.bundle.identity(name);
        issue::read(&self.bundle, &path)?.serial().with_context(|| format!("cannot use {}", path.display()))
    }

    /// Sends a request to processes; returns how many took it, and those that could not.
    fn tell(&self, names: &[String], request: &Request) -> anyhow::Result<(usize, Vec<String>)> {
        let Some(lab) = &self.lab else { return Ok((0, Vec::new())) };
        let (mut told, mut untold) = (0, Vec::new());
        let tell = |name: &String| (name.clone(), tell_one(lab, name, request));
        several(TOLD_AT_ONCE, names, tell, |done| {
            match done {
                Some((_, Ok(true))) => told += 1,
                Some((name, Err(error))) => untold.push(format!("{name} ({error:#})")),
                Some((_, Ok(false))) | None => {}
            }
            Ok(())
        })?;
        untold.sort_unstable();
        Ok((told, untold))
    }
}

fn authority(bundle: &Bundle) -> Option<String> {
    weft_bundle::input::read_to_string(&bundle.authority()).ok()
}

/// Whether the process runs, and has taken the word. A process that was reached by what is revoked now is cut off under the
/// question, and comes back with what was issued since.
fn tell_one(lab: &LabFolder, name: &str, request: &Request) -> anyhow::Result<bool> {
    let is_cut_off = |error: &anyhow::Error| {
        matches!(error.downcast_ref(), Some(ClientError::Closed | ClientError::Io(_)))
    };
    let mut told = Ok(false);
    looks::until(PATIENCE, LOOK, || {
        told = tell_once(lab, name, request);
        !told.as_ref().is_err_and(is_cut_off)
    });
    told
}

fn tell_once(lab: &LabFolder, name: &str, request: &Request) -> anyhow::Result<bool> {
    let path = lab.control(name);
    if !path.exists() {
        return Ok(false);
    }
    let mut client = match Client::connect(&path) {
        Ok(client) => client,
        // It has ended, and reads what there is when it begins again.
        Err(ClientError::Connect { .. }) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    match client.ask(request.clone(), PATIENCE) {
        Ok(_) => Ok(true),
        Err(ClientError::Refused(error)) if error.code == ErrorCode::Stopping => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// An identity as it is shown.
#[derive(Serialize)]
struct Row {
    name: String,
    serial: String,
    state: String,
}

fn list(place: &Place, args: &IdentityLsArgs) -> anyhow::Result<()> {
    let revoked = issue::revoked(&place.bundle)?;
    let row = |name: String| -> anyhow::Result<Row> {
        let identity = issue::read(&place.bundle, &place.bundle.identity(&name))?;
        let serial = identity.serial()?;
        let since = revoked.as_ref().and_then(|list| list.since(&serial));
        let state = match (since, identity.check()) {
            (Some(since), _) => format!("revoked on {}", since.date()),
            (None, Ok(())) => "valid".to_owned(),
            (None, Err(IdentityError::Expired(date))) => format!("expired on {date}"),
            (None, Err(error)) => error.to_string(),
        };
        Ok(Row { name, serial: serial.to_string(), state })
    };
    let rows: Vec<Row> = place.names().into_iter().map(row).collect::<anyhow::Result<_>>()?;
    if args.json {
        return print_json(&rows);
    }
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max("NAME".len());
    let mut text = format!("{:width$}  {:40}  STATE\n", "NAME", "SERIAL");
    for Row { name, serial, state } in rows {
        text += &format!("{name:width$}  {serial:40}  {state}\n");
    }
    print(&text)
}

fn renew(place: &Place, args: &IdentityRenewArgs) -> anyhow::Result<()> {
    let site = place.lab.as_ref().map(site::of).transpose()?;
    if let Some(site) = &site {
        site.allows("identity renew")?;
    }
    let names = if args.all { place.names() } else { args.names.clone() };
    place.know(&names)?;
    let before: Vec<Serial> = match args.revoke_old {
        true => names.iter().map(|name| place.serial(name)).collect::<anyhow::Result<_>>()?,
        false => Vec::new(),
    };
    Issuer::resume(&place.bundle, &place.record.lab)?.again(&place.record, names.iter())?;
    let not_taken = site.map(|site| site.hand_over(&place.bundle, &place.record, &names));
    let not_taken = not_taken.transpose()?.unwrap_or_default();
    let told = place.tell(&names, &Request::RenewIdentity);
    say(&format!("issued {} in {}", count(names.len()), place.bundle.path().display()));
    // Old identities may be in wrong hands: processes that were not informed are cut off too.
    let revoked = if args.revoke_old { publish(place, &before) } else { Ok(()) };
    let (told, untold) = told?;
    report(told, &untold, "renewed", "restart them, so that they read what was issued").and(revoked)?;
    match not_taken.first() {
        None => Ok(()),
        Some((host, why)) => Err(Failure::new(format!("{host} has not taken what was issued: {why:#}"))
            .hint("run the same command again when the host is reached")),
    }
}

fn revoke(place: &Place, args: &IdentityRevokeArgs) -> anyhow::Result<()> {
    place.know(&args.names)?;
    let mut serials: Vec<Serial> =
        args.names.iter().map(|name| place.serial(name)).collect::<anyhow::Result<_>>()?;
    serials.extend(args.serial.iter().cloned());
    publish(place, &serials)
}

/// Puts serial numbers on the authority's list, and tells all processes.
fn publish(place: &Place, serials: &[Serial]) -> anyhow::Result<()> {
    let issuer = Issuer::resume(&place.bundle, &place.record.lab)?;
    let list = issuer.revoke(serials, place.other_bundle()?.as_ref())?;
    let processes: Vec<String> = place.names().into_iter().filter(|name| !issue::is_persons(name)).collect();
    let (told, untold) = place.tell(&processes, &Request::Revoke { list: list.pem().to_owned() })?;
    say(&format!("revoked {}", count(serials.len())));
    report(told, &untold, "updated", "run the same command again")
}

fn count(identities: usize) -> String {
    if identities == 1 { "1 identity".to_owned() } else { format!("{identities} identities") }
}

fn report(told: usize, untold: &[String], what: &str, hint: &str) -> anyhow::Result<()> {
    let processes =
        if told == 1 { "1 running process".to_owned() } else { format!("{told} running processes") };
    say(&format!("{processes} {what}"));
    match untold {
        [] => Ok(()),
        untold => Err(Failure::new(format!("not told: {}", untold.join(", "))).hint(hint)),
    }
}
