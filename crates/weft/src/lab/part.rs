//! What of a bundle one host gets: the files of its own processes, and those that hold no secret.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Component, Path};

use anyhow::Context;
use weft_topology::Fabric;

use super::bundle::Bundle;
use super::folder;
use super::names::PM;
use super::record::LabRecord;
use crate::failure::Failure;

/// The record of the whole laboratory, which tells a host which part is its own.
const RECORD: &str = "lab.json";
/// The cabling.
const TOPOLOGY: &str = "topology";
/// The identities that are revoked; a bundle need not have it.
const REVOKED: &str = "revoked.pem";
/// What of a bundle every host may read.
const PUBLIC: [&str; 3] = [RECORD, TOPOLOGY, "ca.pem"];
/// What a part comes to at most.
const PART_BYTES_MAX: u64 = 512 << 20;

/// A host's part of a bundle.
pub(crate) struct Part {
    /// The whole laboratory.
    pub(crate) whole: LabRecord,
    /// What of it runs on this host.
    pub(crate) record: LabRecord,
    /// Its files by their paths in the bundle.
    files: BTreeMap<String, Vec<u8>>,
}

impl Part {
    /// A host's part of the bundle in a folder, which holds all of it or at least this part.
    pub(crate) fn read(bundle: &Bundle, host: &str) -> anyhow::Result<Self> {
        let read = |file: &str| {
            let path = bundle.path().join(file);
            crate::input::read(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        let whole = parse(&read(RECORD)?)?;
        let record = own(&whole, host)?;
        let mut files = BTreeMap::new();
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
        Ok(Self { whole, record, files })
    }

    /// The same from a tar archive. Reads no further than its end.
    pub(crate) fn receive(from: impl Read, host: &str) -> anyhow::Result<Self> {
        let broken = |why: String| {
            Failure::new(format!("the part of {host} did not come whole: {why}"))
                .hint("it is a tar archive of files of a bundle, as `weft up --hosts` sends it")
        };
        let mut archive = tar::Archive::new(from.take(PART_BYTES_MAX));
        let mut files = BTreeMap::new();
        let entries = archive.entries().map_err(|error| broken(error.to_string()))?;
        for entry in entries {
            let mut entry = entry.map_err(|error| broken(error.to_string()))?;
            let path = entry.path().map_err(|error| broken(error.to_string()))?.into_owned();
            let name = name_of(&path).filter(|_| entry.header().entry_type().is_file());
            let name = name.ok_or_else(|| broken(format!("{} is no file of a bundle", path.display())))?;
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(|error| broken(format!("{name}: {error}")))?;
            if bytes.len() as u64 != entry.size() {
                return Err(broken(format!("{name} is cut short")).into());
            }
            files.insert(name, bytes);
        }
        let record = files.get(RECORD).ok_or_else(|| broken(format!("{RECORD} is missing")))?;
        let whole = parse(record)?;
        let record = own(&whole, host)?;
        let wanted = files_of(&record);
        if let Some(missing) = wanted.iter().find(|file| !files.contains_key(*file)) {
            return Err(broken(format!("{missing} is missing")).into());
        }
        // What else was sent is none of this host's.
        files.retain(|file, _| wanted.contains(file) || file == REVOKED);
        Ok(Self { whole, record, files })
    }

    /// Sends it as a tar archive.
    pub(crate) fn send(&self, to: impl Write) -> std::io::Result<()> {
        let mut archive = tar::Builder::new(to);
        for (file, bytes) in &self.files {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o600);
            header.set_size(bytes.len() as u64);
            archive.append_data(&mut header, file, bytes.as_slice())?;
        }
        archive.into_inner()?.flush()
    }

    /// Writes the bundle of this host's processes into a folder that is there.
    pub(crate) fn write_to(&self, bundle: &Bundle) -> anyhow::Result<()> {
        bundle.make_folders()?;
        for (file, bytes) in self.files.iter().filter(|(file, _)| *file != RECORD) {
            folder::write(&bundle.path().join(file), bytes)?;
        }
        self.record.store(bundle)
    }

    /// The cabling of the whole laboratory.
    pub(crate) fn fabric(&self) -> anyhow::Result<Fabric> {
        let text = self.files.get(TOPOLOGY).map(Vec::as_slice).unwrap_or_default();
        weft_topology::parse(TOPOLOGY, &String::from_utf8_lossy(text))
            .context("the bundle's topology is invalid")
    }
}

fn parse(record: &[u8]) -> anyhow::Result<LabRecord> {
    let record: LabRecord = serde_json::from_slice(record).map_err(|error| {
        Failure::bad_input(format!("{RECORD} is invalid: {error}"))
            .hint("it is of another version of weft, or was cut short: plan it again with `weft plan`")
    })?;
    let (planned, own) = (&record.version, env!("CARGO_PKG_VERSION"));
    if planned != own {
        return Err(Failure::new(format!(
            "`{}` was planned by weft {planned}, and this is weft {own}",
            record.lab
        ))
        .hint(format!("install weft {planned} here, or plan it again with weft {own}"))
        .into());
    }
    Ok(record)
}

/// What of a laboratory runs on a host.
fn own(whole: &LabRecord, host: &str) -> anyhow::Result<LabRecord> {
    whole.part(host).ok_or_else(|| {
        Failure::bad_input(format!("nothing of the laboratory `{}` runs on `{host}`", whole.lab))
            .hint(format!("its hosts: {}", whole.hosts().join(", ")))
            .into()
    })
}

/// The files of a part, by their paths in the bundle.
fn files_of(part: &LabRecord) -> Vec<String> {
    let mut files: Vec<String> = PUBLIC.map(str::to_owned).to_vec();
    for agent in &part.agents {
        files.extend([format!("agents/{}.json", agent.name), format!("identities/{}.pem", agent.name)]);
    }
    let managers = part.subnet_managers().map(|(name, _)| name).chain(part.pm.iter().map(|_| PM.to_owned()));
    let managers: Vec<String> = managers.collect();
    for name in &managers {
        files.extend([format!("managers/{name}.json"), format!("identities/{name}.pem")]);
    }
    if !managers.is_empty() {
        files.push("identities/keys.json".to_owned());
    }
    files
}

/// The path of a file in a bundle: below its folder, and at most one folder deep.
fn name_of(path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = path
        .components()
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    let parts = parts.filter(|parts| (1..=2).contains(&parts.len()))?;
    Some(parts.join("/"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use super::*;

    #[test]
    fn no_name_in_an_archive_leads_out_of_the_bundle() {
        for (path, name) in [("lab.json", Some("lab.json")), ("agents/a0.json", Some("agents/a0.json"))] {
            assert_eq!(name_of(Path::new(path)).as_deref(), name);
        }
        for path in ["", "/etc/passwd", "../x", "a/../x", "a/b/c"] {
            assert_eq!(name_of(Path::new(path)), None, "{path}");
        }
    }

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
