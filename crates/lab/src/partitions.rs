//! The partitions of a running laboratory: who is in which, and changes of the file that every manager reads.
//!
//! ```text
//!   lock ─▶ read ─▶ edit ─▶ judge ─▶ write and rename ─▶ every subnet manager reads it again ─▶ ports have their keys
//! ```

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_bundle::folder::{self, LabFile};
use weft_bundle::partitions::{PartitionsSource, manager};
use weft_control::{Answer, Error, ErrorCode, KeyBlock, PartitionsTaken, PlannedRoutes, Request};
use weft_process::lock::ProcessLock;
use weft_process::{Client, ClientError};
use weft_routing::files::partitions::{Membership, PartitionEdit, PartitionsFile};
use weft_routing::{DEFAULT_PKEY, Isolation, Partition, Partitions, Strictness};
use weft_topology::PortRef;
use weft_wire::{Guid, PortNum};

use crate::check::Ears;
use crate::managers::{SubnetManager, subnet_managers};
use crate::site;
use crate::view::Lab;

/// Longer than a subnet manager's process waits for its machine.
const PATIENCE: Duration = Duration::from_secs(70);

/// How long a manager may sweep, or none be in charge, before that is an error.
const SWEEP_PATIENCE: Duration = Duration::from_secs(10);

/// What a file begins with that a laboratory did not have: the same as no file.
const FIRST: &str = "Default=0x7fff, ipoib : ALL=full ;\n";

/// A change of the partitions, as the user names things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A partition without members.
    Add {
        /// Its name.
        name: String,
        /// Its P_Key; the lowest free one without it.
        pkey: Option<u16>,
        /// Whether it is to have a broadcast group for IP.
        ipoib: bool,
    },
    /// A partition goes.
    Remove {
        /// Its name.
        name: String,
    },
    /// A host comes into a partition, or has another membership there.
    Join {
        /// The partition's name.
        name: String,
        /// The host, `HOST:PORT` or `vm:NAME`.
        host: String,
        /// Whom it talks to.
        membership: Membership,
    },
    /// A partition is to be isolated this well from now on.
    Isolate {
        /// The partition's name.
        name: String,
        /// How well.
        isolation: Isolation,
    },
    /// A host leaves a partition.
    Leave {
        /// The partition's name.
        name: String,
        /// The host, `HOST:PORT` or `vm:NAME`.
        host: String,
    },
}

/// A member of a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemberRow {
    /// The port's GUID.
    pub guid: String,
    /// Its node; none where the cabling has no such port, as that of a virtual machine that is away.
    pub node: Option<String>,
    /// `full` or `limited`.
    pub membership: &'static str,
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartitionRow {
    /// Its name; may be empty.
    pub name: String,
    /// The lower 15 bits of its P_Key.
    pub p_key: String,
    /// Full members.
    pub full: usize,
    /// Limited members.
    pub limited: usize,
    /// Its members, in order of their GUIDs.
    pub members: Vec<MemberRow>,
}

/// What a manager has made of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Heard {
    /// The manager's name.
    pub manager: String,
    /// What it has done; none of one that does not run or did not say.
    pub taken: Option<PartitionsTaken>,
    /// Why it did not say.
    pub silent: Option<String>,
}

/// What a change would write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// Blocks of P_Keys.
    pub writes: Vec<KeyBlock>,
    /// Forwarding tables, by each manager in charge whose engine reads partitions.
    pub routes: Vec<PlannedRoutes>,
}

impl Preview {
    /// Why an engine would refuse to route with it, if one would.
    pub fn refusal(&self) -> Option<&str> {
        self.routes.iter().find_map(|routes| routes.refused.as_deref())
    }
}

/// The partitions of a laboratory, with their file.
pub struct Tenants<'a> {
    lab: &'a Lab,
    source: PartitionsSource,
}

/// A file that is to be written.
pub struct Edited {
    /// Its text.
    pub text: String,
    /// The text that was edited; none where there was no file.
    before: Option<String>,
    /// Whether it is the laboratory's first one.
    pub is_first: bool,
    /// Whether it says what the one before says.
    pub is_same: bool,
    /// Whether an engine is to refuse where a policy cannot be met.
    pub is_strict: bool,
}

impl<'a> Tenants<'a> {
    /// Those of a laboratory that weft's subnet manager manages.
    ///
    /// # Errors
    /// Where it has none.
    pub fn of(lab: &'a Lab) -> anyhow::Result<Self> {
        if lab.record.sm.is_none() {
            return Err(Failure::bad_input(
                "this laboratory has no subnet manager of weft's, which reads partitions",
            )
            .hint("OpenSM has a partitions file of its own: see `man opensm`, -P"));
        }
        Ok(Self { lab, source: PartitionsSource::of(&lab.folder.bundle()) })
    }

    /// The partitions with their members; none where there is no file.
    ///
    /// # Errors
    /// When the file is invalid.
    pub fn rows(&self) -> anyhow::Result<Option<Vec<PartitionRow>>> {
        let Some(text) = self.source.text()? else { return Ok(None) };
        let partitions = self.resolve(&self.source.parse(&text)?);
        Ok(Some(partitions.list.iter().map(|partition| self.row(partition)).collect()))
    }

    fn row(&self, partition: &Partition) -> PartitionRow {
        let fabric = &self.lab.fabric;
        let member = |member: &weft_routing::Member| MemberRow {
            guid: member.guid.to_string(),
            node: fabric.by_port_guid(member.guid).map(|node| fabric.label(node)),
            membership: if member.full { "full" } else { "limited" },
        };
        let full = partition.members.iter().filter(|member| member.full).count();
        PartitionRow {
            name: partition.name.clone(),
            p_key: format!("{:#06x}", partition.pkey),
            full,
            limited: partition.members.len() - full,
            members: partition.members.iter().map(member).collect(),
        }
    }

    fn resolve(&self, file: &PartitionsFile) -> Partitions {
        file.resolve(&self.lab.fabric, manager(&self.lab.fabric, &self.lab.record))
    }

    /// Takes the lock of those who change the file: no one else does until it is dropped.
    ///
    /// # Errors
    /// When it cannot be locked.
    pub fn lock(&self) -> anyhow::Result<ProcessLock> {
        let path = self.lab.folder.place(LabFile::PartitionsLock);
        folder::touch(&path)?;
        Ok(ProcessLock::wait(&path)?)
    }

    /// The file after a change. `is_sure`: also where a partition loses its last full member.
    ///
    /// # Errors
    /// When the change makes no sense, in one line.
    pub fn edited(&self, change: &Change) -> anyhow::Result<Edited> {
        let before = self.source.text()?;
        if before.is_none() && !matches!(change, Change::Add { .. }) {
            return Err(Failure::bad_input("this laboratory has no partitions file")
                .hint("`weft partition add NAME` starts one; `weft up --partitions FILE` brings one"));
        }
        let is_first = before.is_none();
        let text = before.clone().unwrap_or_else(|| FIRST.to_owned());
        let file = self.source.parse(&text)?;
        let text_after = match change {
            Change::Add { name, pkey, ipoib } => self.add(&file, &text, name, *pkey, *ipoib)?,
            Change::Remove { name } => {
                let pkey = self.tenant(&file, name)?;
                file.edited(&text, &PartitionEdit::Remove { pkey })
            }
            Change::Join { name, host, membership } => {
                let (pkey, membership) = (self.pkey(&file, name)?, *membership);
                let join = |port| PartitionEdit::Join { pkey, port, membership };
                self.edit_ports(text.clone(), host, join)?
            }
            Change::Isolate { name, isolation } => {
                let (pkey, isolation) = (self.pkey(&file, name)?, *isolation);
                file.edited(&text, &PartitionEdit::Isolate { pkey, isolation })
            }
            Change::Leave { name, host } => self.leave(&file, text.clone(), name, host)?,
        };
        let after = self.source.parse(&text_after)?;
        let is_same = !is_first && self.resolve(&after) == self.resolve(&file);
        let is_strict = after.strictness == Some(Strictness::Strict);
        Ok(Edited { text: text_after, before, is_first, is_same, is_strict })
    }

    fn add(
        &self,
        file: &PartitionsFile,
        text: &str,
        name: &str,
        pkey: Option<u16>,
        ipoib: bool,
    ) -> anyhow::Result<String> {
        check_name(name)?;
        let known = self.resolve(file).list;
        if known.iter().any(|partition| partition.name == name) {
            return Err(Failure::bad_input(format!("there is a partition `{name}` already"))
                .hint("`weft partition ls` lists them"));
        }
        let pkey = match pkey {
            Some(pkey) => check_pkey(pkey)?,
            None => file.free_pkey().ok_or_else(|| Failure::new("no P_Key is left"))?,
        };
        if let Some(other) = known.iter().find(|partition| partition.pkey == pkey) {
            let other = if other.name.is_empty() { "another partition" } else { &other.name };
            return Err(Failure::bad_input(format!("P_Key {pkey:#06x} is that of {other}"))
                .hint("leave out the key: the lowest free one is taken"));
        }
        Ok(file.edited(text, &PartitionEdit::Add { name: name.to_owned(), pkey, ipoib }))
    }

    fn leave(&self, file: &PartitionsFile, text: String, name: &str, host: &str) -> anyhow::Result<String> {
        let pkey = self.tenant(file, name)?;
        let ports = self.ports(host)?;
        let members = |text: &str| -> anyhow::Result<BTreeMap<Guid, bool>> {
            let list = self.resolve(&self.source.parse(text)?).list;
            let of = list.into_iter().filter(|partition| partition.pkey == pkey);
            Ok(of.flat_map(|partition| partition.members).map(|member| (member.guid, member.full)).collect())
        };
        let before = members(&text)?;
        if !ports.iter().any(|port| before.contains_key(port)) {
            return Err(Failure::bad_input(format!("`{host}` is not in {name}"))
                .hint(format!("`weft partition ls --members` lists who is in {name}")));
        }
        let after_text = self.edit_ports(text, host, |port| PartitionEdit::Leave { pkey, port })?;
        let after = members(&after_text)?;
        if ports.iter().any(|port| after.contains_key(port)) {
            return Err(Failure::bad_input(format!("`{host}` is in {name} by ALL or the like, not by name"))
                .hint(format!("name its members in {}, then run SIGHUP", self.source.path().display())));
        }
        if before.values().any(|full| *full) && !after.is_empty() && !after.values().any(|full| *full) {
            return Err(Failure::bad_input(format!(
                "`{host}` is the last full member of {name}: the limited ones could talk to no one"
            ))
            .hint(format!("`weft partition join {name} OTHER full` first, or `weft partition rm {name}`")));
        }
        Ok(after_text)
    }

    /// Edits a file for each port of a host.
    fn edit_ports(
        &self,
        mut text: String,
        host: &str,
        edit: impl Fn(Guid) -> PartitionEdit,
    ) -> anyhow::Result<String> {
        for port in self.ports(host)? {
            text = self.source.parse(&text)?.edited(&text, &edit(port));
        }
        Ok(text)
    }

    /// How many keys the ports of a host have no room for, as the managers in charge say.
    ///
    /// # Errors
    /// When there is no such host, or a manager cannot be asked.
    pub fn left_out(&self, host: &str) -> anyhow::Result<u32> {
        let ports: Vec<String> = self.ports(host)?.iter().map(Guid::to_string).collect();
        let managers = subnet_managers(&self.lab.folder, &self.lab.record)?;
        let of = |manager: &SubnetManager| -> u32 {
            let named = manager.told.status().map(|status| &status.p_keys_left_out);
            ports.iter().filter_map(|port| named?.get(port)).sum()
        };
        Ok(managers.iter().map(of).sum())
    }

    /// The ports that the user means: one, or all of a node that have a cable.
    fn ports(&self, host: &str) -> anyhow::Result<Vec<Guid>> {
        let live;
        let lab = if host.starts_with("vm:") {
            live = Lab::load_live(&self.lab.folder)?;
            &live
        } else {
            self.lab
        };
        let (node, port) = lab.find_seat(host)?;
        let found = lab.fabric.node(node);
        let is_meant = |number: PortNum| match port {
            Some(port) => number == port,
            None => found.is_switch() || lab.fabric.peer(PortRef::new(node, number)).is_some(),
        };
        let ports: Vec<Guid> =
            found.end_ports().filter(|(number, _)| is_meant(*number)).map(|(_, port)| port.guid).collect();
        if ports.is_empty() {
            return Err(Failure::bad_input(format!("`{host}` has no cabled port, so it is in no fabric"))
                .hint("`weft topo connect` puts a cable in"));
        }
        Ok(ports)
    }

    /// The P_Key of a partition by its name, or by the key itself.
    fn pkey(&self, file: &PartitionsFile, name: &str) -> anyhow::Result<u16> {
        let list = self.resolve(file).list;
        let by_name = list.iter().find(|partition| partition.name == name && !name.is_empty());
        let key = name.strip_prefix("0x").and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let by_key =
            || list.iter().find(|partition| key.is_some_and(|key| key & DEFAULT_PKEY == partition.pkey));
        by_name.or_else(by_key).map(|partition| partition.pkey).ok_or_else(|| {
            let names: Vec<&str> = list.iter().map(|partition| &*partition.name).collect();
            Failure::bad_input(format!("no partition is called `{name}`; there are {}", names.join(", ")))
                .hint(format!("`weft partition add {name}` makes one"))
        })
    }

    /// The same of one that is not the default partition.
    fn tenant(&self, file: &PartitionsFile, name: &str) -> anyhow::Result<u16> {
        match self.pkey(file, name)? {
            DEFAULT_PKEY => Err(Failure::bad_input(
                "every port is in the default partition: it reaches the subnet manager by it",
            )
            .hint(format!(
                "`weft partition join {name} HOST limited` lets a host talk to full members alone"
            ))),
            pkey => Ok(pkey),
        }
    }

    /// What managers would write with a file.
    ///
    /// # Errors
    /// When none is in charge, or one does not say.
    pub fn preview(&self, text: &str) -> anyhow::Result<Preview> {
        let until = Instant::now() + SWEEP_PATIENCE;
        let mut ears = Ears::of(self.lab);
        loop {
            let (mut found, mut why, mut is_busy) = (None, None, false);
            for (name, _) in self.lab.record.subnet_managers() {
                match self.asked(&name, Request::PlanPartitions { text: text.to_owned() }) {
                    Ok(Ok(Answer::PlanPartitions { writes, routes })) => {
                        let found = found.get_or_insert_with(Preview::default);
                        found.writes.extend(writes);
                        found.routes.extend(routes);
                    }
                    Ok(Ok(_)) => return Err(ClientError::Unexpected("plan-partitions").into()),
                    Ok(Err(refused)) => {
                        is_busy |= refused.code == ErrorCode::Conflict;
                        why = Some(in_words(refused));
                    }
                    Err(error) => why = why.or(Some(error)),
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            match found {
                Some(preview) => return Ok(preview),
                // It sweeps, or one is about to be in charge.
                None if is_busy && !left.is_zero() => ears.wait(self.lab, left)?,
                None => return Err(why.unwrap_or_else(|| Failure::new("no subnet manager runs").into())),
            }
        }
    }

    /// Writes the file, and has every manager read it.
    ///
    /// # Errors
    /// When it cannot be written, or when someone who takes no lock, as an editor, has changed it since it was read: their change stays,
    /// and this one is not made.
    pub fn write(&self, edited: &Edited) -> anyhow::Result<Vec<Heard>> {
        let path = self.source.path();
        if self.source.text()? != edited.before {
            let path = path.display();
            return Err(Failure::bad_input(format!(
                "{path} has changed since it was read; nothing is written"
            ))
            .hint("run the same command again: it edits the file as it is now"));
        }
        folder::replace(&path, edited.text.as_bytes())?;
        let managers = self.lab.record.subnet_managers().map(|(name, _)| name);
        let heard = managers.map(|name| match self.ask(&name, Request::ReadPartitions) {
            Ok(Answer::ReadPartitions(taken)) => Heard { manager: name, taken: Some(taken), silent: None },
            Ok(_) => {
                Heard { manager: name, taken: None, silent: Some("it answers something else".to_owned()) }
            }
            Err(error) => Heard { manager: name, taken: None, silent: Some(format!("{error:#}")) },
        });
        let heard = heard.collect();
        for place in &self.lab.record.vmms {
            // One that does not run reads it when it begins.
            drop(self.ask(&place.name, Request::ReadPartitions));
        }
        Ok(heard)
    }

    fn ask(&self, process: &str, request: Request) -> anyhow::Result<Answer> {
        self.asked(process, request)?.map_err(in_words)
    }

    /// What a process answers, or why it refuses.
    fn asked(&self, process: &str, request: Request) -> anyhow::Result<Result<Answer, Error>> {
        if site::pid(&self.lab.folder, process)?.is_none() {
            return Err(Failure::new(format!("{process} is not running"))
                .hint(format!("`weft fault restart {process}` starts it, and it reads the file then")));
        }
        let mut client = Client::connect(&self.lab.folder.control(process))?;
        match client.ask(request, PATIENCE) {
            Err(ClientError::Refused(error)) => Ok(Err(error)),
            answered => Ok(Ok(answered?)),
        }
    }
}

fn in_words(refused: Error) -> anyhow::Error {
    Failure::new(refused.message).hint_if_any(refused.hint)
}

/// A name that the file can have.
fn check_name(name: &str) -> anyhow::Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let starts_well = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if starts_well && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(Failure::bad_input(format!("`{name}` cannot be a partition's name"))
        .hint("a name is a letter or `_`, then letters, digits, `-`, `_` and `.`"))
}

/// The lower 15 bits of a P_Key that a partition can have.
fn check_pkey(pkey: u16) -> anyhow::Result<u16> {
    let hint = match pkey {
        0 | DEFAULT_PKEY | 0x8000 | 0xffff => "partitions are 0x0001 to 0x7ffe".to_owned(),
        0x8001.. => {
            format!("the highest bit is that of full members: name partition {:#06x}", pkey & DEFAULT_PKEY)
        }
        _ => return Ok(pkey),
    };
    Err(Failure::bad_input(format!("P_Key {pkey:#06x} names no partition that can be added")).hint(hint))
}
