//! `[partition.NAME]`, `partitions` and `policies` of `[engine]`, and `[engine.weights]`.

use std::collections::BTreeMap;

use weft_routing::{DEFAULT_PKEY, Isolation, Strictness, WEIGHTS};

use super::error::Wrong;
use super::reader::{Role, Table, wrong_kind};
use super::tree::Kind;
use crate::{PartitionSpec, PartitionsSpec, WeightSpec};

/// How well a partition can be isolated, by the words of the paper's table 1, cut as in partitions files.
const POLICIES: [(&str, Isolation); 3] =
    [("phy", Isolation::Phy), ("vlane", Isolation::Vlane), ("def", Isolation::Def)];
/// What happens where a policy cannot be met.
const STRICTNESS: [(&str, Strictness); 2] =
    [("best-effort", Strictness::BestEffort), ("strict", Strictness::Strict)];
/// The name of the default partition.
const DEFAULT: &str = "Default";

/// The partitions of a file. `engine` is its table `[engine]`.
pub(super) fn partitions(
    top: &mut Table<'_>,
    engine: &mut Table<'_>,
) -> Result<Option<PartitionsSpec>, Wrong> {
    let file = engine.name_of("partitions", Role::Topology)?;
    let policies = engine.word("policies", &STRICTNESS.map(|(word, _)| word))?;
    let tables = top.named("partition")?;
    let first = tables.first().map(|(_, table)| table.at);
    if let (Some(_), Some(at)) = (&file, first) {
        let wrong =
            Wrong::new(at, "`partitions` of [engine] names a file, and here is a partition beside it");
        return Err(wrong.allowed("write it into that file, or all partitions as [partition.NAME]"));
    }
    if let (Some(_), None, Some(value)) = (policies, first, engine.get("policies")) {
        let wrong =
            Wrong::new(value.at, "`policies` of [engine] is about [partition.NAME], and there is none");
        return Err(wrong.allowed("a partitions file says `strict ;` or `best-effort ;` itself"));
    }
    if let Some(file) = file {
        return Ok(Some(PartitionsSpec::File(file)));
    }
    let mut taken = BTreeMap::new();
    let list = tables.into_iter().map(|(name, table)| one(name, table, &mut taken));
    let list = list.collect::<Result<Vec<_>, _>>()?;
    let policies = policies.map(|nth| STRICTNESS[nth].1).unwrap_or_default();
    Ok((!list.is_empty()).then_some(PartitionsSpec::Tables { list, policies }))
}

fn one(
    name: String,
    mut table: Table<'_>,
    taken: &mut BTreeMap<u16, String>,
) -> Result<PartitionSpec, Wrong> {
    let at = table.at;
    let p_key = table.number("p_key", 1..=i64::from(DEFAULT_PKEY))?;
    let (members, limited) = (table.names_of("members", Role::Host)?, table.names_of("limited", Role::Host)?);
    let policy = table.word("policy", &POLICIES.map(|(word, _)| word))?;
    let policy = policy.map(|nth| POLICIES[nth].1).unwrap_or_default();
    table.finish(())?;
    if (p_key == Some(DEFAULT_PKEY) && name != DEFAULT)
        || (name == DEFAULT && p_key.is_some_and(|key| key != DEFAULT_PKEY))
    {
        let wrong = Wrong::new(at, format!("`p_key` of [partition.{name}] cannot be that"));
        return Err(wrong.allowed(format!("{DEFAULT_PKEY:#06x} is the P_Key of [partition.{DEFAULT}] alone")));
    }
    if members.is_empty() {
        let message = match limited.is_empty() {
            true => format!("[partition.{name}] has no members"),
            false => format!("[partition.{name}] has limited members alone, who can talk to no one"),
        };
        return Err(Wrong::new(at, message).allowed("write `members = [\"host-1\", \"host-2\"]`"));
    }
    if let Some(p_key) = p_key
        && let Some(other) = taken.insert(p_key, name.clone())
    {
        let message = format!("[partition.{name}] has the P_Key {p_key:#06x} of [partition.{other}]");
        return Err(Wrong::new(at, message).allowed("leave `p_key` out: the lowest free one is taken"));
    }
    Ok(PartitionSpec { name, p_key, members, limited, policy })
}

/// `[engine.weights]`: `host-1 = 100`.
pub(super) fn weights(engine: &mut Table<'_>) -> Result<Vec<WeightSpec>, Wrong> {
    let mut table = engine.table("weights")?;
    let mut weights = Vec::new();
    for entry in table.all() {
        let weight = match entry.value.kind {
            Kind::Integer(weight) => u32::try_from(weight).ok().filter(|weight| WEIGHTS.contains(weight)),
            _ => None,
        };
        let wanted = || format!("a weight from {} to {}", WEIGHTS.start(), WEIGHTS.end());
        let weight = weight.ok_or_else(|| wrong_kind(&entry.value, &entry.key, &wanted()))?;
        table.place(Role::Host, &entry.key, entry.value.at);
        weights.push(WeightSpec { hosts: entry.key.clone(), weight });
    }
    Ok(weights)
}
