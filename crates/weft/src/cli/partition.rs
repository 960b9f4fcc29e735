//! The arguments of `partition`.

use clap::{Args, Subcommand};
use weft_routing::Isolation;
use weft_routing::files::partitions::Membership;

use super::choice::{Word, choice};

/// Verbs for partitions.
#[derive(Debug, Subcommand)]
pub(crate) enum PartitionVerb {
    /// List partitions, and with --members who is in them
    Ls(PartitionLsArgs),
    /// Add a partition without members
    Add(PartitionAddArgs),
    /// Remove a partition; all its members leave
    Rm(PartitionRmArgs),
    /// Let a host into a partition, or change its membership
    Join(PartitionJoinArgs),
    /// Take a host out of a partition
    Leave(PartitionLeaveArgs),
    /// Set how well a partition is isolated by engines that read partitions
    Policy(PartitionPolicyArgs),
}

/// `partition ls`
#[derive(Debug, Args)]
pub(crate) struct PartitionLsArgs {
    /// List the members, too
    #[arg(long)]
    pub(crate) members: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a change is made.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ChangeArgs {
    /// Show which SMPs the subnet manager would send, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// `partition add`
#[derive(Debug, Args)]
pub(crate) struct PartitionAddArgs {
    /// Name, and the lower 15 bits of the P_Key [default: the lowest free P_Key]
    #[arg(value_name = "NAME[=0xKEY]", value_parser = named)]
    pub(crate) partition: Named,
    /// Have the subnet manager make a broadcast group for IP
    #[arg(value_parser = ["ipoib"])]
    pub(crate) ipoib: Option<String>,
    /// How the change is made
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// `partition rm`
#[derive(Debug, Args)]
pub(crate) struct PartitionRmArgs {
    /// Partition: its name, or its P_Key with 0x
    pub(crate) name: String,
    /// How the change is made
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// `partition join`
#[derive(Debug, Args)]
pub(crate) struct PartitionJoinArgs {
    /// Partition: its name, or its P_Key with 0x
    pub(crate) name: String,
    /// Host as `weft ps` lists it, HOST:PORT, or vm:NAME
    pub(crate) host: String,
    /// Whom it talks to
    #[arg(value_parser = choice(MEMBERSHIPS), default_value = "full")]
    pub(crate) membership: Membership,
    /// How the change is made
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// `partition leave`
#[derive(Debug, Args)]
pub(crate) struct PartitionLeaveArgs {
    /// Partition: its name, or its P_Key with 0x
    pub(crate) name: String,
    /// Host as `weft ps` lists it, HOST:PORT, or vm:NAME
    pub(crate) host: String,
    /// How the change is made
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// `partition policy`
#[derive(Debug, Args)]
pub(crate) struct PartitionPolicyArgs {
    /// Partition: its name, or its P_Key with 0x
    pub(crate) name: String,
    /// How well it is isolated
    #[arg(value_parser = choice(POLICIES))]
    pub(crate) policy: Isolation,
    /// How the change is made
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

const POLICIES: &[Word<Isolation>] = &[
    ("phy", "Its links carry no other partition", Isolation::Phy),
    ("vlane", "Where it shares links, it has lanes of its own", Isolation::Vlane),
    ("def", "As well as is left over", Isolation::Def),
];

const MEMBERSHIPS: &[Word<Membership>] =
    &[("full", "To all members", Membership::Full), ("limited", "To full members", Membership::Limited)];

/// A name with a P_Key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) pkey: Option<u16>,
}

fn named(text: &str) -> Result<Named, String> {
    let Some((name, key)) = text.split_once('=') else {
        return Ok(Named { name: text.to_owned(), pkey: None });
    };
    let digits = key.strip_prefix("0x").or_else(|| key.strip_prefix("0X"));
    let pkey = digits.map_or_else(|| key.parse(), |digits| u16::from_str_radix(digits, 16));
    let pkey =
        pkey.map_err(|_| "a P_Key is a number of 16 bits, in hex with 0x, such as 0x0008".to_owned())?;
    Ok(Named { name: name.to_owned(), pkey: Some(pkey) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_bring_its_p_key() {
        let named = |text| named(text).map(|named| (named.name, named.pkey));
        assert_eq!(named("web"), Ok(("web".into(), None)));
        assert_eq!(named("web=0x8"), Ok(("web".into(), Some(8))));
        assert_eq!(named("web=16"), Ok(("web".into(), Some(16))));
        assert!(named("web=0x10000").is_err() && named("web=").is_err());
    }
}
