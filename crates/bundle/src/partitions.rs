//! The partitions file of a laboratory: the one truth about who may talk to whom. Every subnet manager reads it when it begins and
//! again on SIGHUP, and `weft partition` edits it.
//!
//! A laboratory without the file has the partitions of its plan, or none.

use std::io::ErrorKind;
use std::path::PathBuf;

use weft_routing::Partitions;
use weft_routing::files::partitions::PartitionsFile;
use weft_topology::Fabric;
use weft_vm::PortPartitions;
use weft_wire::{Guid, PKey};

use crate::failure::Failure;
use crate::folder::bundle::Bundle;
use crate::record::LabRecord;
use crate::topology_file;

/// Where a laboratory's partitions come from.
#[derive(Clone, Debug)]
pub struct PartitionsSource(Bundle);

impl PartitionsSource {
    /// That of a bundle.
    pub fn of(bundle: &Bundle) -> Self {
        Self(bundle.clone())
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.0.partitions()
    }

    /// The file's text; `None` where there is none.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn text(&self) -> anyhow::Result<Option<String>> {
        let path = self.path();
        match crate::input::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::bad_input(format!("cannot read {}: {error}", path.display())).into()),
        }
    }

    /// The partitions that the file has now, with the ports that the laboratory has; `None` where there is no file.
    ///
    /// # Errors
    /// When the file is invalid: in one line, with its place.
    pub fn read(&self) -> anyhow::Result<Option<Partitions>> {
        self.text()?.map(|text| self.resolve(&text)).transpose()
    }

    /// The partitions of a text in the file's place.
    ///
    /// # Errors
    /// When it is invalid: in one line, with its place.
    pub fn resolve(&self, text: &str) -> anyhow::Result<Partitions> {
        let file = self.parse(text)?;
        let (fabric, record) = (topology_file::load(&self.0.topology())?, LabRecord::read(&self.0.record())?);
        Ok(file.resolve(&fabric, manager(&fabric, &record)))
    }

    /// A text in the file's place.
    ///
    /// # Errors
    /// When it is invalid: in one line, with its place.
    pub fn parse(&self, text: &str) -> anyhow::Result<PartitionsFile> {
        let name = self.path().display().to_string();
        PartitionsFile::parse(&name, text).map_err(|error| Failure::bad_input(error.to_string()).into())
    }
}

/// The port of the first subnet manager: `SELF` in the file, whichever manager reads it.
pub fn manager(fabric: &Fabric, record: &LabRecord) -> Option<Guid> {
    let place = record.sm.as_ref()?;
    let node = fabric.node(fabric.by_guid(place.node)?);
    if node.is_switch() {
        return node.end_ports().next().map(|(_, port)| port.guid);
    }
    node.port(place.port).map(|port| port.guid)
}

/// The partitions of each port.
pub fn by_port(partitions: &Partitions) -> PortPartitions {
    let mut by_port = PortPartitions::default();
    for partition in &partitions.list {
        for member in &partition.members {
            by_port.add(member.guid, PKey::new(partition.pkey, member.full));
        }
    }
    by_port
}
