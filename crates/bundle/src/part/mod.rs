//! One host's share of a bundle: the files of its own processes, and those that hold no secret.

pub mod archive;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::SocketAddr;

use anyhow::Context;
use weft_topology::Fabric;

use crate::failure::Failure;
use crate::folder;
use crate::folder::bundle::{Bundle, opensm_options};
use crate::part::archive::Files;
use crate::place::hosts::listen_at;
use crate::record::LabRecord;

/// The record of the whole laboratory, which tells a host which part is its own.
const RECORD: &str = "lab.json";
/// The cabling.
const TOPOLOGY: &str = "topology";
/// The identities that are revoked; a bundle need not have it.
const REVOKED: &str = "revoked.pem";
/// The partitions, for the hosts of subnet managers; a bundle need not have them.
const PARTITIONS: &str = "partitions.conf";
/// What of a bundle every host may read.
const PUBLIC: [&str; 3] = [RECORD, TOPOLOGY, "ca.pem"];

/// A host's part of a bundle.
pub struct Part {
    /// The whole laboratory.
    pub whole: LabRecord,
    /// What of it runs on this host.
    pub record: LabRecord,
    /// Its files by their paths in the bundle.
    files: Files,
}

impl Part {
    /// A host's part of the bundle in a folder, which holds all of it or at least this part.
    pub fn read(bundle: &Bundle, host: &str) -> anyhow::Result<Self> {
        let read = |file: &str| {
            let path = bundle.path().join(file);
            crate::input::read(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        let whole = LabRecord::parse(&read(RECORD)?)?;
        let record = own(&whole, host)?;
        let mut files = Files::new();
        for file in files_of(&record) {
            let bytes = read(&file).map_err(|error| {
                Failure::bad_input(format!("the bundle {} is not whole: {error:#}", bundle.path().display()))
                    .hint("copy it again, or plan it again with `weft plan`")
            })?;
            files.insert(file, bytes);
        }
        if bundle.revoked().exists() {
            files.insert(REVOKED.to_owned(), read(REVOKED)?);
        }
        if record.subnet_managers().next().is_some() && bundle.partitions().exists() {
            files.insert(PARTITIONS.to_owned(), read(PARTITIONS)?);
        }
        Ok(Self { whole, record, files })
    }

    /// Where its managers answer over the network, by name: as the plan of the whole has it.
    pub fn doors(&self, host: &str) -> BTreeMap<String, SocketAddr> {
        let at = |name: String| {
            let port = self.whole.doors.get(&name)?.port();
            Some((name, (listen_at(host), port).into()))
        };
        self.record.others().filter_map(|(name, _)| at(name)).collect()
    }

    /// The same from a tar archive. Reads no further than its end.
    pub fn receive(from: impl Read, host: &str) -> anyhow::Result<Self> {
        let broken = |why: String| {
            Failure::new(format!("the part of {host} did not come whole: {why}"))
                .hint("it is a tar archive of files of a bundle, as `weft up --hosts` sends it")
        };
        let mut files = archive::unpack(from).map_err(|error| broken(error.to_string()))?;
        let record = files.get(RECORD).ok_or_else(|| broken(format!("{RECORD} is missing")))?;
        let whole = LabRecord::parse(record)?;
        let record = own(&whole, host)?;
        let wanted = files_of(&record);
        if let Some(missing) = wanted.iter().find(|file| !files.contains_key(*file)) {
            return Err(broken(format!("{missing} is missing")));
        }
        // What else was sent is none of this host's.
        files.retain(|file, _| wanted.contains(file) || file == REVOKED || file == PARTITIONS);
        Ok(Self { whole, record, files })
    }

    /// Sends it as a tar archive.
    pub fn send(&self, to: impl Write) -> std::io::Result<()> {
        archive::pack(&self.files, to)
    }

    /// Writes the bundle of this host's processes into a folder that is there.
    pub fn write_to(&self, bundle: &Bundle) -> anyhow::Result<()> {
        bundle.make_folders()?;
        for (file, bytes) in self.files.iter().filter(|(file, _)| *file != RECORD) {
            folder::write(&bundle.path().join(file), bytes)?;
        }
        self.record.store(bundle)
    }

    /// The cabling of the whole laboratory.
    pub fn fabric(&self) -> anyhow::Result<Fabric> {
        let text = self.files.get(TOPOLOGY).map(Vec::as_slice).unwrap_or_default();
        weft_topology::parse(TOPOLOGY, &String::from_utf8_lossy(text))
            .context("the bundle's topology is invalid")
    }
}

/// What of a laboratory runs on a host.
fn own(whole: &LabRecord, host: &str) -> anyhow::Result<LabRecord> {
    whole.part(host).ok_or_else(|| {
        Failure::bad_input(format!("nothing of the laboratory `{}` runs on `{host}`", whole.lab))
            .hint(format!("its hosts: {}", whole.hosts().join(", ")))
    })
}

/// The files of a part, by their paths in the bundle.
fn files_of(part: &LabRecord) -> Vec<String> {
    let mut files: Vec<String> = PUBLIC.map(str::to_owned).to_vec();
    for agent in &part.agents {
        files.extend([format!("agents/{}.json", agent.name), format!("identities/{}.pem", agent.name)]);
    }
    let others = [&part.pms, &part.vmms, &part.opensms].into_iter().flatten();
    let managers = part.subnet_managers().map(|(name, _)| name);
    let managers: Vec<String> = managers.chain(others.map(|place| place.name.clone())).collect();
    files.extend(part.opensms.iter().map(|place| opensm_options(&place.name)));
    for name in &managers {
        files.extend([format!("managers/{name}.json"), format!("identities/{name}.pem")]);
    }
    if !managers.is_empty() {
        files.push("identities/keys.json".to_owned());
    }
    files
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use super::*;

    #[test]
    fn an_archive_that_is_cut_short_or_foreign_is_refused() {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(700);
        archive.append_data(&mut header, "topology", [b'x'; 700].as_slice()).unwrap();
        let whole = archive.into_inner().unwrap();
        for (bytes, why) in [
            (&whole[..], "lab.json is missing"),
            (&whole[..1000], "topology is cut short"),
            (&whole[..0], "lab.json is missing"),
            (
                b"no archive at all, but long enough to be taken for a header".repeat(20).as_slice(),
                "did not come whole",
            ),
        ] {
            let refused = Part::receive(bytes, "a").err().unwrap().to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
