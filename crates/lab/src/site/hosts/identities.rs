//! New identities for processes on other hosts: ssh carries them there, and the share there writes them where its processes read them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_bundle::folder::bundle::Bundle;
use weft_bundle::folder::{self, LabFolder};
use weft_bundle::identity::issue;
use weft_bundle::part::archive::{self, Files};
use weft_bundle::record::LabRecord;
use weft_link::Identity;

use crate::site::host_of;
use crate::site::hosts::Shares;
use crate::site::hosts::errand::run_on;

/// The folder of identities in a bundle.
const FOLDER: &str = "identities/";

/// Gives processes on other hosts the identities that a bundle has for them. Returns the hosts that did not take theirs, and why.
pub(in crate::site) fn hand_over(
    shares: &Shares,
    bundle: &Bundle,
    record: &LabRecord,
    names: &[String],
) -> anyhow::Result<Vec<(String, anyhow::Error)>> {
    let mut of_host: BTreeMap<String, Files> = BTreeMap::new();
    for name in names {
        // The hub and people use what lies here.
        let Some(host) = host_of(record, name) else { continue };
        let issued = issue::read(bundle, &bundle.identity(name))?;
        let file = format!("{FOLDER}{name}.pem");
        of_host.entry(host).or_default().insert(file, issued.pem().as_bytes().to_vec());
    }
    let mut failed = Vec::new();
    for (host, files) in of_host {
        let mut archive = Vec::new();
        archive::pack(&files, &mut archive).context("cannot pack identities")?;
        let arguments = ["--lab", &record.lab, "identity", "take"];
        if let Err(error) = run_on(shares, &host, &arguments, &archive) {
            failed.push((host, error));
        }
    }
    Ok(failed)
}

/// Writes identities of a share's processes where these read them; gives their names.
pub fn take(lab: &LabFolder, from: impl Read) -> anyhow::Result<Vec<String>> {
    let broken = |why: String| {
        Failure::bad_input(format!("these are no identities of this part: {why}"))
            .hint("`weft identity renew` where the laboratory was started sends them")
    };
    let (bundle, record) = (lab.bundle(), LabRecord::load(lab)?);
    let known: BTreeSet<String> = issue::holders(&record).into_iter().collect();
    let authority = weft_bundle::input::text(&bundle.authority())?;
    let mut taken = Vec::new();
    for (file, bytes) in archive::unpack(from).map_err(|error| broken(error.to_string()))? {
        let name = file.strip_prefix(FOLDER).and_then(|file| file.strip_suffix(".pem"));
        let name = name.filter(|name| known.contains(*name)).ok_or_else(|| broken(file.clone()))?;
        let text = String::from_utf8(bytes).map_err(|_| broken(format!("{file} is no text")))?;
        let identity = Identity::from_pem(&authority, text);
        identity.check().map_err(|error| broken(format!("{file}: {error}")))?;
        taken.push((name.to_owned(), identity));
    }
    // All or none: what is wrong was found before.
    for (name, identity) in &taken {
        folder::replace(&bundle.identity(name), identity.pem().as_bytes())?;
    }
    Ok(taken.into_iter().map(|(name, _)| name).collect())
}
