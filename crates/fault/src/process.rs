use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A process of a laboratory. As text it is its name: `sm`, `sm-2`, `pm`, `pm-2`, `vmm`, `hub`, `ibsim`, `opensm`; every other text names a
/// node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Process<Node> {
    /// The agent of this node, with every device in it.
    Agent(Node),
    /// The first subnet manager.
    Sm,
    /// A subnet manager beside the first one: 0 is `sm-2`, 1 is `sm-3`, and so on.
    Standby(u8),
    /// The performance manager.
    Pm,
    /// The VM manager.
    Vmm,
    /// The hub.
    Hub,
    /// The server for ibsim's programs.
    Ibsim,
    /// Unmodified OpenSM, with the process that started it.
    Opensm,
    /// One beside the first of its kind, which another piece of the fabric has: 0 is `pm-2`, 1 is `pm-3`, and so on.
    Further(Kind, u8),
}

weft_wire::named! {
    /// Kinds of processes of which each piece of a fabric may have one, with the name of the first.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Kind {
        /// Performance managers.
        Pm = "pm",
        /// VM managers.
        Vmm = "vmm",
        /// Unmodified OpenSM.
        Opensm = "opensm",
    }
}

/// The number in the name of the second of a kind.
const SECOND: u16 = 2;

impl<Node> Process<Node> {
    /// The same process with its node named in another way.
    ///
    /// # Errors
    ///
    /// What `node` fails with.
    pub fn try_map<N, E>(self, node: impl FnOnce(Node) -> Result<N, E>) -> Result<Process<N>, E> {
        Ok(match self {
            Self::Agent(of) => Process::Agent(node(of)?),
            Self::Sm => Process::Sm,
            Self::Standby(number) => Process::Standby(number),
            Self::Pm => Process::Pm,
            Self::Vmm => Process::Vmm,
            Self::Hub => Process::Hub,
            Self::Ibsim => Process::Ibsim,
            Self::Opensm => Process::Opensm,
            Self::Further(kind, number) => Process::Further(kind, number),
        })
    }

    /// The same process with its node named in another way that always exists.
    pub fn map<N>(self, node: impl FnOnce(Node) -> N) -> Process<N> {
        let Ok(process) = self.try_map(|of| Ok::<_, Infallible>(node(of)));
        process
    }
}

impl<Node: fmt::Display> fmt::Display for Process<Node> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(node) => node.fmt(f),
            Self::Sm => f.write_str("sm"),
            Self::Standby(number) => write!(f, "sm-{}", u16::from(*number) + SECOND),
            Self::Pm => f.write_str("pm"),
            Self::Vmm => f.write_str("vmm"),
            Self::Hub => f.write_str("hub"),
            Self::Ibsim => f.write_str("ibsim"),
            Self::Opensm => f.write_str("opensm"),
            Self::Further(kind, number) => write!(f, "{}-{}", kind.name(), u16::from(*number) + SECOND),
        }
    }
}

impl<Node: FromStr> FromStr for Process<Node> {
    type Err = Node::Err;

    fn from_str(text: &str) -> Result<Self, Node::Err> {
        Ok(match text {
            "sm" => Self::Sm,
            "pm" => Self::Pm,
            "vmm" => Self::Vmm,
            "hub" => Self::Hub,
            "ibsim" => Self::Ibsim,
            "opensm" => Self::Opensm,
            other => {
                let further = |kind: Kind| Some(Self::Further(kind, number(other, kind.name())?));
                let standby = || number(other, "sm").map(Self::Standby);
                match standby().or_else(|| Kind::ALL.into_iter().find_map(further)) {
                    Some(process) => process,
                    None => Self::Agent(other.parse()?),
                }
            }
        })
    }
}

/// Of `sm-2` to `sm-257` the number beside the first, as `Display` writes them: no sign, no leading zero.
fn number(text: &str, first: &str) -> Option<u8> {
    let digits = text.strip_prefix(first)?.strip_prefix('-')?;
    let number: u16 = digits.parse().ok()?;
    let beside = u8::try_from(number.checked_sub(SECOND)?).ok()?;
    (number.to_string() == digits).then_some(beside)
}

impl<Node: fmt::Display> Serialize for Process<Node> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, Node: FromStr> Deserialize<'de> for Process<Node> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let invalid =
            |_| serde::de::Error::custom(format_args!("`{text}` names neither a process nor a node"));
        text.parse().map_err(invalid)
    }
}
