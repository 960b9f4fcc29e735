//! The records that follow from the last sweep, in order of LIDs, then ports, then blocks.

use weft_wire::{
    GuidInfoRecord, Lid, LinearForwardingTable, LinearForwardingTableRecord, LinkRecord, MKey, NodeRecord,
    PKeyTableRecord, PortInfo, PortInfoRecord, PortNum, SaRecord, SlToVlTable, SlToVlTableRecord,
    SwitchInfoRecord, VlArbitrationRecord,
};

use super::ends::End;
use super::query::{Filter, Found, Query};
use super::tables::{Kind, Tables};
use super::view::View;

/// PortInfoRecord's components that are no plain values.
const OPTIONS: usize = 2;
const CAPABILITY_MASK: usize = 7;
const CAPABILITY_MASK_2: usize = 53;

/// A record whose first component is the LID of an end port.
trait OfEndPort: SaRecord {
    fn lid_mut(&mut self) -> &mut Lid;
}

macro_rules! of_end_port {
    ($($name:ident: $lid:ident)*) => {$(
        impl OfEndPort for $name {
            fn lid_mut(&mut self) -> &mut Lid {
                &mut self.$lid
            }
        }
    )*};
}
of_end_port! {
    NodeRecord: lid
    PortInfoRecord: lid
    SwitchInfoRecord: lid
    LinearForwardingTableRecord: lid
    LinkRecord: from_lid
    PKeyTableRecord: lid
    SlToVlTableRecord: lid
    VlArbitrationRecord: lid
    GuidInfoRecord: lid
}

impl View {
    /// The end ports that a query is about, of those that its sender sees: all, or the one that has its LID, which need not be
    /// its base LID.
    fn asked<'a, R: OfEndPort>(
        &'a self,
        query: &Query<'a>,
    ) -> Result<(Filter, impl Iterator<Item = &'a End> + use<'a, R>), u16> {
        let mut wanted: R = query.record();
        let mut ends = &self.ends[..];
        if query.names(0) {
            ends = self.by_lid(*wanted.lid_mut()).map_or(&[], std::slice::from_ref);
            if let Some(end) = ends.first() {
                *wanted.lid_mut() = end.lid;
            }
        }
        let sight = query.sight;
        Ok((query.filter_of(&wanted, query.mask)?, ends.iter().filter(move |end| sight.sees(end.guid))))
    }

    pub(super) fn node_records<'a>(&'a self, query: &Query<'a>) -> Result<Found, u16> {
        let (filter, ends) = self.asked::<NodeRecord>(query)?;
        filter.select(ends.filter_map(|end| {
            let node = self.node(end)?;
            let mut record = NodeRecord { lid: end.lid, ..NodeRecord::default() };
            record.node_info = node.info;
            record.node_info.port_guid = end.guid;
            record.node_info.local_port_num = end.at.port;
            record.node_description = node.description;
            Some(record)
        }))
    }

    pub(super) fn port_info_records<'a>(&'a self, query: &Query<'a>) -> Result<Found, u16> {
        let (mut filter, ends) = self.asked::<PortInfoRecord>(query)?;
        // The options say how much of a PortInfo is wanted, not which.
        filter.ignore(PortInfoRecord::COMPONENTS[OPTIONS]);
        if query.capabilities_at_least() {
            filter.loosen(PortInfoRecord::COMPONENTS[CAPABILITY_MASK]);
            filter.loosen(PortInfoRecord::COMPONENTS[CAPABILITY_MASK_2]);
        }
        let shown = |info: PortInfo| if query.trusted { info } else { PortInfo { m_key: MKey(0), ..info } };
        filter.select(ends.flat_map(|end| {
            self.ports(end).filter_map(move |(port_num, port)| {
                let port_info = shown(port.info?);
                Some(PortInfoRecord { lid: end.lid, port_num, options: 0, port_info })
            })
        }))
    }

    pub(super) fn switch_info_records<'a>(&'a self, query: &Query<'a>) -> Result<Found, u16> {
        let (filter, ends) = self.asked::<SwitchInfoRecord>(query)?;
        filter.select(ends.filter_map(|end| {
            let switch_info = self.node(end)?.switch?;
            Some(SwitchInfoRecord { lid: end.lid, reserved_16: 0, switch_info })
        }))
    }

    pub(super) fn forwarding_records<'a>(&'a self, query: &Query<'a>) -> Result<Found, u16> {
        let (filter, ends) = self.asked::<LinearForwardingTableRecord>(query)?;
        filter.select(ends.flat_map(|end| {
            let node = self.node(end);
            let blocks = node.and_then(|node| Some(usize::from(node.switch?.linear_fdb_top / 64) + 1));
            let lft = node.map_or(&[][..], |node| &node.lft);
            (0u16..).zip(lft).take(blocks.unwrap_or(0)).filter_map(|(block_num, ports)| {
                let table = LinearForwardingTable { ports: (*ports)? };
                Some(LinearForwardingTableRecord { lid: end.lid, block_num, reserved_32: 0, table })
            })
        }))
    }

    /// Each cable twice, once from each end.
    pub(super) fn link_records<'a>(&'a self, query: &Query<'a>) -> Result<Found, u16> {
        let mut wanted: LinkRecord = query.record();
        let (_, ends) = self.asked::<LinkRecord>(query)?;
        for lid in [&mut wanted.from_lid, &mut wanted.to_lid] {
            *lid = self.by_lid(*lid).map_or(*lid, |end| end.lid);
        }
        let filter = query.filter_of(&wanted, query.mask)?;
        filter.select(ends.flat_map(|end| {
            self.ports(end).filter_map(move |(from_port, port)| {
                let peer = port.peer?;
                let to = self.end_of(peer).filter(|to| query.sight.sees(to.guid))?;
                Some(LinkRecord { from_lid: end.lid, from_port, to_port: peer.port, to_lid: to.lid })
            })
        }))
    }

    /// From every input port of a switch to every output port whose mapping is known; on other nodes from port 0,
    /// which stands for the node itself.
    pub(super) fn lane_records<'a>(&'a self, query: &Query<'a>) -> Result<Found, u16> {
        let (filter, ends) = self.asked::<SlToVlTableRecord>(query)?;
        filter.select(ends.flat_map(|end| {
            let inputs = match self.node(end) {
                Some(node) if node.switch.is_some() => node.info.num_ports,
                _ => 0,
            };
            (0..=inputs).map(PortNum).flat_map(move |input_port| {
                self.ports(end).filter_map(move |(output_port, port)| {
                    let table = SlToVlTable { lanes: port.lanes? };
                    let (lid, reserved_32) = (end.lid, 0);
                    Some(SlToVlTableRecord { lid, input_port, output_port, reserved_32, table })
                })
            })
        }))
    }

    pub(super) fn arbitration_records<'a>(
        &'a self,
        query: &Query<'a>,
        tables: &Tables,
    ) -> Result<Found, u16> {
        let (filter, ends) = self.asked::<VlArbitrationRecord>(query)?;
        filter.select(ends.flat_map(|end| {
            tables.of(Kind::VlArbitration, end, self).map(|(output_port, block_num, bytes)| {
                VlArbitrationRecord {
                    lid: end.lid,
                    output_port,
                    block_num: block_num as u8,
                    reserved_32: 0,
                    table: weft_wire::VlArbitrationTable::decode(bytes),
                }
            })
        }))
    }

    pub(super) fn p_key_records<'a>(&'a self, query: &Query<'a>, tables: &Tables) -> Result<Found, u16> {
        let (filter, ends) = self.asked::<PKeyTableRecord>(query)?;
        filter.select(ends.flat_map(|end| {
            tables.of(Kind::PKeys, end, self).map(|(port_num, block_num, bytes)| PKeyTableRecord {
                lid: end.lid,
                block_num,
                port_num,
                reserved_40: 0,
                table: weft_wire::PKeyTable::decode(bytes),
            })
        }))
    }

    pub(super) fn guid_records<'a>(&'a self, query: &Query<'a>, tables: &Tables) -> Result<Found, u16> {
        let (filter, ends) = self.asked::<GuidInfoRecord>(query)?;
        filter.select(ends.flat_map(|end| {
            tables.of(Kind::Guids, end, self).map(|(_, block_num, bytes)| GuidInfoRecord {
                lid: end.lid,
                block_num: block_num as u8,
                guid_info: weft_wire::GuidInfo::decode(bytes),
                ..GuidInfoRecord::default()
            })
        }))
    }
}
