//! Partitions files: OpenSM's grammar (doc/partition-config.txt), with an isolation policy per partition.
//!
//! ```text
//! # What OpenSM reads, with a flag that it does not know and passes over
//! Default=0x7fff, ipoib : ALL=limited, SELF=full ;
//! tenant=0x0002, defmember=full, isolation=phy : 0x0002484300000001, 0x0002484300000101 ;
//! storage=0x0003, ipoib, mtu=5 :
//!   mgid=ff12:401b::707, sl=1      # a group takes the rest of its line
//!   ALL_CAS, ALL_SWITCHES=full ;
//! strict ;                         # or best-effort, once in a file: what to do when a policy cannot be kept
//! ```
//!
//! A definition stands on one line up to its `:`; what follows goes on over lines to the `;`. Of words that are cut
//! short `full`, `limited` and `both` are known, as to OpenSM. What OpenSM would skip with a line in its log is an
//! error here.

mod edit;
mod parse;
mod write;

pub use edit::PartitionEdit;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use weft_topology::{Fabric, NodeType};
use weft_wire::{Gid, Guid};

use crate::partitions::{DEFAULT_PKEY, Isolation, Member, Partition, Partitions, Strictness};

/// A partitions file, rule by rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionsFile {
    /// In the order of the file.
    pub rules: Vec<PartitionRule>,
    /// What happens when a policy cannot be kept, where the file says so.
    pub strictness: Option<Strictness>,
}

/// One rule: a definition and who is in it. Several may speak of one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionRule {
    /// The partition's name; may be empty.
    pub name: String,
    /// The lower 15 bits of its P_Key; found from the name, or made up, where it is `None`.
    pub pkey: Option<u16>,
    /// Whether the P_Key is to be the first in tables.
    pub index0: bool,
    /// Whether it is to have a broadcast group for IP.
    pub ipoib: bool,
    /// What its groups are like.
    pub flags: GroupFlags,
    /// The membership of those in `ports` that have none of their own; limited where nothing is said.
    pub defmember: Option<Membership>,
    /// How well it is to be isolated, where the rule says so.
    pub isolation: Option<Isolation>,
    /// Who belongs to it.
    pub ports: Vec<PortRule>,
    /// Multicast groups that exist from the start.
    pub groups: Vec<Group>,
}

/// A multicast group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Its address; the first byte is 0xff.
    pub mgid: Gid,
    /// What it is like; what is not said is as in the partition.
    pub flags: GroupFlags,
}

/// What a multicast group is like. MTU, rate and scope are codes (IBA 15.2.5.17); `None` where nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupFlags {
    /// The rate's code.
    pub rate: Option<u8>,
    /// The MTU's code.
    pub mtu: Option<u8>,
    /// The service level.
    pub sl: Option<u8>,
    /// The codes of the scopes, each with a group of its own.
    pub scopes: BTreeSet<u8>,
    /// The Q_Key.
    pub q_key: Option<u32>,
    /// The traffic class.
    pub traffic_class: Option<u8>,
    /// The flow label, 20 bits.
    pub flow_label: Option<u32>,
}

/// One entry of a rule's list of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortRule {
    /// Which ports.
    pub who: Who,
    /// Their membership, where the entry says so.
    pub membership: Option<Membership>,
}

/// Which ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Who {
    /// `ALL`: every end port.
    All,
    /// `ALL_CAS`: the ports of channel adapters.
    AllCas,
    /// `ALL_SWITCHES`: port 0 of every switch.
    AllSwitches,
    /// `ALL_ROUTERS`: the ports of routers.
    AllRouters,
    /// `SELF`: the port of the subnet manager.
    SubnetManager,
    /// The port with this PortGUID.
    Port(Guid),
}

weft_wire::worded! {
    /// Whom a member talks to.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Membership {
        /// To all members.
        Full => ("full"),
        /// To full members.
        #[default]
        Limited => ("limited"),
        /// To all: it has both P_Keys.
        Both => ("both"),
    }
}

/// The first thing wrong with a partitions file. Displays as one line: place, problem, offending text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {problem}{}", shown(.text))]
pub struct PartitionsFileError {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub problem: PartitionsFileProblem,
    /// The offending text; empty where something is missing.
    pub text: String,
}

fn shown(text: &str) -> String {
    const SHOWN_MAX: usize = 80;
    let cut: String = text.chars().take(SHOWN_MAX).flat_map(char::escape_default).collect();
    if cut.is_empty() { cut } else { format!(": `{cut}`") }
}

/// What can be wrong with a partitions file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionsFileProblem {
    /// Something else stands where this should.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A definition without its colon.
    #[error("a partition is defined on one line as `name=P_Key, flags :`; there is no `:` here")]
    NoColon,
    /// The file ends within a rule.
    #[error("this partition's rule is not closed by `;`")]
    NotClosed,
    /// No such flag of a partition or a group.
    #[error("no such flag; there are {0}")]
    UnknownFlag(&'static str),
    /// A flag that wants a value.
    #[error("this flag wants a value: {0}")]
    NoValue(&'static str),
    /// A flag that takes none.
    #[error("this flag takes no value")]
    Value,
    /// A value out of its range.
    #[error("{what} must be {min:#x} to {max:#x}")]
    Range {
        /// The number.
        what: &'static str,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// Two rules that contradict each other.
    #[error("{what} was said otherwise on line {line}")]
    Contradiction {
        /// What.
        what: &'static str,
        /// Where it was said first.
        line: usize,
    },
    /// More partitions than there are P_Keys.
    #[error("no P_Key is left for this partition")]
    NoPkeyLeft,
}

impl PartitionsFile {
    /// Reads a file; `file` is how errors call it.
    pub fn parse(file: &str, text: &str) -> Result<Self, PartitionsFileError> {
        parse::parse(file, text)
    }

    /// What holds where there is no file: all ports are full members of the default partition.
    pub fn absent() -> Self {
        let all = PortRule { who: Who::All, membership: Some(Membership::Full) };
        Self { rules: vec![default_rule(vec![all])], strictness: None }
    }

    /// The partitions of a fabric: keywords become ports, rules for one P_Key become one partition by the name of
    /// the first, and where the membership of a port is said more than once, the last holds. Where no rule speaks
    /// of the default partition, all are limited members of it and the subnet manager a full one.
    ///
    /// `subnet_manager` is the PortGUID of the subnet manager's port. A GUID that the fabric does not have is kept:
    /// the host may come back.
    pub fn resolve(&self, fabric: &Fabric, subnet_manager: Option<Guid>) -> Partitions {
        let pkeys = self.pkeys();
        let mut rules: Vec<(u16, &PartitionRule)> = pkeys.iter().copied().zip(&self.rules).collect();
        let default = default_rule(vec![
            PortRule { who: Who::All, membership: Some(Membership::Limited) },
            PortRule { who: Who::SubnetManager, membership: Some(Membership::Full) },
        ]);
        if !pkeys.contains(&DEFAULT_PKEY) {
            rules.insert(0, (DEFAULT_PKEY, &default));
        }
        let mut partitions = Partitions { list: Vec::new(), strictness: self.strictness.unwrap_or_default() };
        let mut members: Vec<BTreeMap<Guid, bool>> = Vec::new();
        let mut place_of: BTreeMap<u16, usize> = BTreeMap::new();
        for (pkey, rule) in rules {
            let place = *place_of.entry(pkey).or_insert_with(|| {
                let (name, isolation) = (rule.name.clone(), Isolation::default());
                partitions.list.push(Partition { name, pkey, members: Vec::new(), isolation });
                members.push(BTreeMap::new());
                members.len() - 1
            });
            if let Some(isolation) = rule.isolation {
                partitions.list[place].isolation = isolation;
            }
            for port in &rule.ports {
                let membership = port.membership.or(rule.defmember).unwrap_or_default();
                let guids = port.who.guids(fabric, subnet_manager).into_iter();
                members[place].extend(guids.map(|guid| (guid, membership != Membership::Limited)));
            }
        }
        for (partition, members) in partitions.list.iter_mut().zip(members) {
            partition.members = members.into_iter().map(|(guid, full)| Member { guid, full }).collect();
        }
        partitions
    }

    /// The flags of the file that change nothing in weft, each once, in the order of OpenSM's documentation: it has P_Keys and paths of the
    /// partitions, and no multicast groups.
    pub fn flags_without_effect(&self) -> Vec<&'static str> {
        let any = |has: &dyn Fn(&PartitionRule) -> bool| self.rules.iter().any(has);
        let flag = |has: &dyn Fn(&GroupFlags) -> bool| {
            any(&|rule| has(&rule.flags) || rule.groups.iter().any(|group| has(&group.flags)))
        };
        let given = [
            ("indx0", any(&|rule| rule.index0)),
            ("ipoib", any(&|rule| rule.ipoib)),
            ("rate", flag(&|flags| flags.rate.is_some())),
            ("mtu", flag(&|flags| flags.mtu.is_some())),
            ("sl", flag(&|flags| flags.sl.is_some())),
            ("scope", flag(&|flags| !flags.scopes.is_empty())),
            ("Q_Key", flag(&|flags| flags.q_key.is_some())),
            ("TClass", flag(&|flags| flags.traffic_class.is_some())),
            ("FlowLabel", flag(&|flags| flags.flow_label.is_some())),
            ("mgid", any(&|rule| !rule.groups.is_empty())),
        ];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect()
    }

    /// The P_Key of each rule. One without a P_Key is of the partition that has its name, or else gets the lowest
    /// P_Key that no rule names.
    fn pkeys(&self) -> Vec<u16> {
        let named: BTreeSet<u16> = self.rules.iter().filter_map(|rule| rule.pkey).collect();
        let mut by_name: BTreeMap<&str, u16> = BTreeMap::from([(DEFAULT_NAME, DEFAULT_PKEY)]);
        let mut free = (1..DEFAULT_PKEY).filter(|pkey| !named.contains(pkey));
        let mut pkeys = Vec::with_capacity(self.rules.len());
        for rule in &self.rules {
            let known = rule.pkey.or_else(|| by_name.get(rule.name.as_str()).copied());
            // A parsed file has at most as many partitions as there are P_Keys.
            let pkey = known.or_else(|| free.next()).unwrap_or(DEFAULT_PKEY);
            if !rule.name.is_empty() {
                by_name.entry(&rule.name).or_insert(pkey);
            }
            pkeys.push(pkey);
        }
        pkeys
    }
}

/// The name by which rules without a P_Key speak of the default partition.
const DEFAULT_NAME: &str = "Default";

fn default_rule(ports: Vec<PortRule>) -> PartitionRule {
    let name = DEFAULT_NAME.to_owned();
    PartitionRule { name, pkey: Some(DEFAULT_PKEY), ports, ..PartitionRule::default() }
}

impl Who {
    /// The PortGUIDs in a fabric. Ports without a cable are not seen by a subnet manager, so `ALL` has none of
    /// them.
    fn guids(self, fabric: &Fabric, subnet_manager: Option<Guid>) -> Vec<Guid> {
        let kind = match self {
            Self::SubnetManager => return subnet_manager.into_iter().collect(),
            Self::Port(guid) => return vec![guid],
            Self::All => None,
            Self::AllCas => Some(NodeType::Hca),
            Self::AllSwitches => Some(NodeType::Switch),
            Self::AllRouters => Some(NodeType::Router),
        };
        let mut guids = Vec::new();
        for (_, node) in fabric.iter().filter(|(_, node)| kind.is_none_or(|kind| node.kind == kind)) {
            let seen = node.end_ports().filter(|(_, port)| node.is_switch() || port.peer.is_some());
            guids.extend(seen.map(|(_, port)| port.guid));
        }
        guids
    }
}
