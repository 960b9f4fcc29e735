//! The partitions of a laboratory, as its subnet manager has them.

use weft_page::state::{Number, Partition, Table};
use weft_routing::{Member, Partitions};
use weft_topology::Fabric;
use weft_wire::PKey;

use crate::managers::routed_with;
use crate::view::Lab;

/// Members of one kind that are shown by name.
const NAMES_MAX: usize = 100;
/// Partitions that are shown.
const ROWS_MAX: usize = 1000;

/// Those with which this subnet manager routes; none where nothing is known of it.
pub(super) fn of(lab: &Lab, manager: &str) -> Option<Table<Partition>> {
    let with = routed_with(&lab.folder, manager)?;
    Some(table(&lab.fabric, with.engine.partitions.as_ref()))
}

/// The rows of a fabric's partitions. Without any, all ports are full members of the default partition.
pub fn table(fabric: &Fabric, partitions: Option<&Partitions>) -> Table<Partition> {
    let Some(partitions) = partitions else {
        let hosts = fabric.nodes().iter().filter(|node| !node.is_switch()).count() as u64;
        let text = "there is no partitions file: all ports are full members".to_owned();
        let all = Partition { name: "Default".into(), members: Number(hosts), text, ..Partition::default() };
        return Table::from([(key(PKey::DEFAULT_FULL.0), all)]);
    };
    let mut rows = Table::new();
    for partition in partitions.list.iter().take(ROWS_MAX) {
        let names = |full: bool| {
            let members = partition.members.iter().filter(|member| member.full == full);
            members.take(NAMES_MAX).map(|member| name(fabric, member)).collect()
        };
        let count = |full: bool| partition.members.iter().filter(|member| member.full == full).count();
        let row = Partition {
            name: partition.name.clone(),
            members: Number(partition.members.len() as u64),
            full: names(true),
            limited: names(false),
            text: format!("{} full, {} limited", count(true), count(false)),
        };
        rows.insert(key(partition.pkey), row);
    }
    rows
}

/// A P_Key without the bit of full members.
fn key(key: u16) -> String {
    format!("0x{:04x}", key & 0x7fff)
}

/// The node of a member; of a port that is in no cabling, as a virtual machine's, its GUID.
fn name(fabric: &Fabric, member: &Member) -> String {
    let node = fabric.by_port_guid(member.guid);
    node.map_or_else(|| member.guid.to_string(), |index| fabric.label(index))
}

#[cfg(test)]
mod tests {
    use weft_routing::{Isolation, Partition as Planned, Strictness};
    use weft_topology::generate::{GenerateOptions, ring};
    use weft_wire::Guid;

    use super::*;

    #[test]
    fn members_are_shown_by_name_and_kind() {
        let fabric = ring(4, 1, &GenerateOptions::default()).unwrap();
        let hosts: Vec<_> = fabric.iter().filter(|(_, node)| !node.is_switch()).collect();
        let port = |nth: usize| hosts[nth].1.external_ports().next().unwrap().1.guid;
        let member = |guid, full| Member { guid, full };
        let markup = "<script>alert(1)</script>";
        let list = vec![
            Planned {
                name: markup.into(),
                pkey: 0x8001,
                members: vec![member(port(0), true), member(port(1), false), member(Guid(0x1234), false)],
                isolation: Isolation::Def,
            },
            Planned { name: String::new(), pkey: 2, members: Vec::new(), isolation: Isolation::Def },
        ];
        let rows = table(&fabric, Some(&Partitions { list, strictness: Strictness::default() }));
        let (first, second) = (&rows["0x0001"], &rows["0x0002"]);
        assert_eq!((first.name.as_str(), first.members.0), (markup, 3));
        assert_eq!(first.full, [fabric.label(hosts[0].0)]);
        assert_eq!(first.limited, [fabric.label(hosts[1].0), Guid(0x1234).to_string()]);
        assert_eq!((first.text.as_str(), second.members.0), ("1 full, 2 limited", 0));
        let all = table(&fabric, None);
        assert_eq!((all.len(), all["0x7fff"].members.0), (1, 4));
    }
}
