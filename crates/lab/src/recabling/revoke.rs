//! The identity of a node that was removed is revoked: whoever has copied it could go on as that node.

use std::path::Path;

use anyhow::Context;
use weft_bundle::folder::LabFolder;
use weft_bundle::folder::bundle::Bundle;
use weft_bundle::identity::issue::{self, Issuer};
use weft_bundle::record::LabRecord;
use weft_control::Request;
use weft_process::ClientError;

use crate::agents::ask_each;

/// Revokes the identity of an agent that the laboratory, which is this now, does not have any more. Where the authority's key is
/// not at hand it says how long the identity is valid. `authority`: a bundle that has the key; without one the laboratory's own.
pub(crate) fn of_removed(
    lab: &LabFolder,
    record: &LabRecord,
    removed: &str,
    authority: Option<&Path>,
) -> anyhow::Result<()> {
    let own = lab.bundle();
    let path = own.identity(removed);
    // An earlier process has got further than this.
    if !path.exists() {
        return Ok(());
    }
    let serial =
        issue::read(&own, &path)?.serial().with_context(|| format!("cannot use {}", path.display()))?;
    let bundle = authority.map_or_else(|| own.clone(), Bundle::at);
    let list = Issuer::resume(&bundle, &record.lab).and_then(|issuer| {
        issuer.of_same_authority(&own)?.revoke(std::slice::from_ref(&serial), authority.map(|_| &own))
    });
    let list = match list {
        Ok(list) => list,
        Err(error) => {
            lab.say(&format!(
                "warning: the identity of {removed} stays valid until it expires ({error:#}); where the authority's key is, \
                 revoke it with `weft identity revoke --serial {serial} --in DIR`"
            ));
            return Ok(());
        }
    };
    let request = Request::Revoke { list: list.pem().to_owned() };
    let names = issue::holders(record);
    let processes =
        names.iter().filter(|name| !issue::is_persons(name)).map(|name| (name.as_str(), &request));
    let untold = ask_each(lab, processes, |_, _| None)?;
    // One that does not run reads the list when it begins.
    let is_there = |(_, error): &(&str, ClientError)| !matches!(error, ClientError::Connect { .. });
    for (process, error) in untold.into_iter().filter(is_there) {
        lab.say(&format!(
            "warning: {process} does not know that the identity of {removed} is revoked ({error}); tell it with \
             `weft identity revoke --serial {serial}`"
        ));
    }
    Ok(())
}
