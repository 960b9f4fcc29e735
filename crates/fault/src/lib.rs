//! One vocabulary of faults: the simulator, experiments, `weft fault` and the events of a laboratory all use it.
//!
//! A [`Fault`] says what is done, and to what: to a [`Process`], or to the cable in a port. How nodes and ports are named
//! is the user's choice: names in files, commands and events; indices in a simulation. [`Fault::try_map`] turns one into the
//! other. A fault that lasts until it is cleared has a [`FaultId`] and leaves [`Damage`].
//!
//! Its text is a [`Word`] and a name, with amounts between them for an [`Impairment`]; in TOML and JSON the word is the key,
//! or `impair` and `clear` with a table:
//!
//! ```
//! use weft_fault::{Fault, Process};
//!
//! let fault: Fault<String, String> = "kill sm".parse().unwrap();
//! assert_eq!(fault, Fault::Kill(Process::Sm));
//! assert_eq!("link-down S-1:4".parse(), Ok(Fault::<String, String>::LinkDown("S-1:4".to_owned())));
//! let loss: Fault<String, String> = "loss 5% in seed 7 at S-1:4".parse().unwrap();
//! assert!(matches!(loss, Fault::Impair(impaired) if impaired.at == "S-1:4" && impaired.seed == 7));
//! ```

mod amount;
mod id;
mod identity;
mod impair;
mod link;
mod nodes;
mod process;
mod text;
mod times;
mod word;

use std::convert::Infallible;

use serde::{Deserialize, Serialize};

pub use amount::{BadAmount, Lag, Rate, Share};
pub use id::{BadFaultId, FaultId};
pub use identity::{BadIdentity, BadIdentityName, Presented};
pub use impair::{Impaired, Impairment, Way};
pub use link::{BadLink, Signalling, Width};
pub use nodes::{BadNodes, Nodes};
pub use process::{Kind, Process};
pub use text::BadFault;
pub use times::{FaultClock, FaultCost, FaultTimes, Sign, fault_times};
pub use word::Word;

/// Something that goes wrong, or is put right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", bound(serialize = "Node: std::fmt::Display + Serialize, Port: Serialize"))]
#[serde(bound(deserialize = "Node: std::str::FromStr + Deserialize<'de>, Port: Deserialize<'de>"))]
pub enum Fault<Node, Port> {
    /// A process ends without warning, and what it held in memory is lost.
    Kill(Process<Node>),
    /// A process starts again with what it keeps on disk; one that still runs is killed first.
    Restart(Process<Node>),
    /// The cable in this port is unplugged. Both ends see it.
    LinkDown(Port),
    /// The cable in this port is plugged back in.
    LinkUp(Port),
    /// A process does nothing any more, and forgets nothing. Of an agent it is one node: its links go down and its programs hear
    /// nothing.
    Freeze(Process<Node>),
    /// The process, or the node, goes on.
    Thaw(Process<Node>),
    /// All cables between these nodes and the others are unplugged.
    Partition(Nodes<Node>),
    /// The same partition ends.
    Heal(Nodes<Node>),
    /// The node's agent proves itself with an identity that no peer takes: its links go down, and do not come up.
    BadIdentity(Presented<Node>),
    /// It has its own identity again.
    GoodIdentity(Node),
    /// Packets on the cable in this port are lost, late, out of order, twice there or damaged from now on; or the port's link
    /// flaps or is slow, or its host.
    Impair(Impaired<Port>),
    /// The same impairment ends.
    Clear(Impaired<Port>),
}

impl<Node, Port> Fault<Node, Port> {
    /// What is done.
    pub const fn word(&self) -> Word {
        match self {
            Self::Kill(_) => Word::Kill,
            Self::Restart(_) => Word::Restart,
            Self::LinkDown(_) => Word::LinkDown,
            Self::LinkUp(_) => Word::LinkUp,
            Self::Freeze(_) => Word::Freeze,
            Self::Thaw(_) => Word::Thaw,
            Self::Partition(_) => Word::Partition,
            Self::Heal(_) => Word::Heal,
            Self::BadIdentity(_) => Word::BadIdentity,
            Self::GoodIdentity(_) => Word::GoodIdentity,
            Self::Impair(impaired) => impaired.how.word(),
            Self::Clear(_) => Word::Clear,
        }
    }

    /// Whether links or routes go with it, so that devices or a subnet manager may notice.
    pub const fn takes_links(&self) -> bool {
        match self {
            Self::Kill(process) | Self::Restart(process) | Self::Freeze(process) | Self::Thaw(process) => {
                matches!(
                    process,
                    Process::Agent(_)
                        | Process::Sm
                        | Process::Standby(_)
                        | Process::Opensm
                        | Process::Further(Kind::Opensm, _)
                )
            }
            _ => self.word().takes_links(),
        }
    }

    /// What ends it, or for a killed process starts it again; none of what is an end itself.
    pub fn end(&self) -> Option<Self>
    where
        Self: Clone,
    {
        match self.clone() {
            Self::Kill(process) => Some(Self::Restart(process)),
            Self::LinkDown(port) => Some(Self::LinkUp(port)),
            Self::Freeze(process) => Some(Self::Thaw(process)),
            Self::Partition(nodes) => Some(Self::Heal(nodes)),
            Self::BadIdentity(presented) => Some(Self::GoodIdentity(presented.node)),
            Self::Impair(impaired) => Some(Self::Clear(impaired)),
            Self::Restart(_)
            | Self::LinkUp(_)
            | Self::Thaw(_)
            | Self::Heal(_)
            | Self::GoodIdentity(_)
            | Self::Clear(_) => None,
        }
    }

    /// The same fault with nodes and ports named in another way.
    ///
    /// # Errors
    ///
    /// What `node` or `port` fails with.
    pub fn try_map<N, P, E>(
        self,
        mut node: impl FnMut(Node) -> Result<N, E>,
        port: impl FnOnce(Port) -> Result<P, E>,
    ) -> Result<Fault<N, P>, E> {
        Ok(match self {
            Self::Kill(process) => Fault::Kill(process.try_map(node)?),
            Self::Restart(process) => Fault::Restart(process.try_map(node)?),
            Self::LinkDown(at) => Fault::LinkDown(port(at)?),
            Self::LinkUp(at) => Fault::LinkUp(port(at)?),
            Self::Freeze(process) => Fault::Freeze(process.try_map(node)?),
            Self::Thaw(process) => Fault::Thaw(process.try_map(node)?),
            Self::Partition(nodes) => Fault::Partition(nodes.try_map(node)?),
            Self::Heal(nodes) => Fault::Heal(nodes.try_map(node)?),
            Self::BadIdentity(presented) => Fault::BadIdentity(presented.try_map(node)?),
            Self::GoodIdentity(at) => Fault::GoodIdentity(node(at)?),
            Self::Impair(impaired) => Fault::Impair(impaired.try_map(port)?),
            Self::Clear(impaired) => Fault::Clear(impaired.try_map(port)?),
        })
    }

    /// The same fault with nodes and ports named in another way that always exists.
    pub fn map<N, P>(self, mut node: impl FnMut(Node) -> N, port: impl FnOnce(Port) -> P) -> Fault<N, P> {
        let Ok(fault) = self.try_map(|of| Ok::<_, Infallible>(node(of)), |at| Ok(port(at)));
        fault
    }
}

/// What a fault that lasts has done to one end of a cable, or to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Damage"))]
#[serde(rename_all = "kebab-case")]
pub enum Damage<Port> {
    /// The cable is unplugged from this port: [`Fault::LinkDown`] until [`Fault::LinkUp`].
    Unplugged(Port),
    /// A partition keeps the cable unplugged from this port: [`Fault::Partition`] until [`Fault::Heal`].
    Parted(Port),
    /// The node that this port is of does not answer; the port is its port 0: [`Fault::Freeze`] until [`Fault::Thaw`].
    Frozen(Port),
    /// The agent of the node that this port is of proves itself with a bad identity; the port is its port 0:
    /// [`Fault::BadIdentity`] until [`Fault::GoodIdentity`].
    BadIdentity {
        /// The port.
        at: Port,
        /// What it presents.
        identity: BadIdentity,
    },
    /// What arrives at this port is impaired: [`Fault::Impair`] until [`Fault::Clear`].
    Impaired {
        /// The port.
        at: Port,
        /// What happens to packets.
        how: Impairment,
        /// What chance follows from.
        seed: u32,
    },
}

impl<Port> std::fmt::Display for Damage<Port> {
    /// What is broken, without the port: `unplugged`, `loss 5% seed 7`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unplugged(_) | Self::Parted(_) | Self::Frozen(_) => f.write_str(self.name()),
            Self::BadIdentity { identity, .. } => write!(f, "{} {identity}", self.name()),
            Self::Impaired { how, seed, .. } => write!(f, "{how} seed {seed}"),
        }
    }
}

impl<Port> Damage<Port> {
    /// The same with its port named in another way.
    pub fn map<P>(self, port: impl FnOnce(Port) -> P) -> Damage<P> {
        match self {
            Self::Unplugged(end) => Damage::Unplugged(port(end)),
            Self::Parted(end) => Damage::Parted(port(end)),
            Self::Frozen(end) => Damage::Frozen(port(end)),
            Self::BadIdentity { at, identity } => Damage::BadIdentity { at: port(at), identity },
            Self::Impaired { at, how, seed } => Damage::Impaired { at: port(at), how, seed },
        }
    }

    /// The port that is damaged.
    pub const fn end(&self) -> Port
    where
        Port: Copy,
    {
        match self {
            Self::Unplugged(end) | Self::Parted(end) | Self::Frozen(end) => *end,
            Self::BadIdentity { at, .. } | Self::Impaired { at, .. } => *at,
        }
    }

    /// Its name for people and in `fault ls`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unplugged(_) => "unplugged",
            Self::Parted(_) => "partition",
            Self::Frozen(_) => "frozen",
            Self::BadIdentity { .. } => "bad-identity",
            Self::Impaired { how, .. } => how.word().name(),
        }
    }
}
