//! Writing a partitions file.

use std::fmt;

use super::{Group, GroupFlags, PartitionRule, PartitionsFile, PortRule, Who};
use crate::partitions::Strictness;

impl fmt::Display for PartitionsFile {
    /// The file's text. Reading it gives the same rules.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.strictness {
            None => {}
            Some(Strictness::Strict) => f.write_str("strict ;\n")?,
            Some(Strictness::BestEffort) => f.write_str("best-effort ;\n")?,
        }
        self.rules.iter().try_for_each(|rule| write!(f, "{rule}"))
    }
}

impl fmt::Display for PartitionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(pkey) = self.pkey {
            write!(f, "={pkey:#06x}")?;
        }
        if self.index0 {
            f.write_str(", indx0")?;
        }
        if self.ipoib {
            f.write_str(", ipoib")?;
        }
        write!(f, "{}", self.flags)?;
        if let Some(membership) = self.defmember {
            write!(f, ", defmember={membership}")?;
        }
        if let Some(isolation) = self.isolation {
            write!(f, ", isolation={isolation}")?;
        }
        f.write_str(" :\n")?;
        self.groups.iter().try_for_each(|group| writeln!(f, "  {group}"))?;
        let (last, first) = match self.ports.split_last() {
            Some((last, first)) => (Some(last), first),
            None => (None, [].as_slice()),
        };
        first.iter().try_for_each(|port| writeln!(f, "  {port},"))?;
        last.iter().try_for_each(|port| writeln!(f, "  {port}"))?;
        f.write_str("  ;\n")
    }
}

weft_wire::displayed!(Group { mgid, flags } => "mgid={mgid}{flags}");

impl fmt::Display for GroupFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut flag =
            |name: &str, value: Option<u64>| value.map_or(Ok(()), |value| write!(f, ", {name}={value}"));
        flag("rate", self.rate.map(u64::from))?;
        flag("mtu", self.mtu.map(u64::from))?;
        flag("sl", self.sl.map(u64::from))?;
        self.scopes.iter().try_for_each(|scope| flag("scope", Some(u64::from(*scope))))?;
        flag("Q_Key", self.q_key.map(u64::from))?;
        flag("TClass", self.traffic_class.map(u64::from))?;
        flag("FlowLabel", self.flow_label.map(u64::from))
    }
}

impl fmt::Display for PortRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.who {
            Who::Port(guid) => write!(f, "{:#018x}", guid.0)?,
            Who::All => f.write_str("ALL")?,
            Who::AllCas => f.write_str("ALL_CAS")?,
            Who::AllSwitches => f.write_str("ALL_SWITCHES")?,
            Who::AllRouters => f.write_str("ALL_ROUTERS")?,
            Who::SubnetManager => f.write_str("SELF")?,
        }
        self.membership.map_or(Ok(()), |membership| write!(f, "={membership}"))
    }
}
