//! Lanes that a packet of each level may take, by its port of entry and exit.

use std::collections::BTreeMap;

use weft_topology::{NodeIndex, PortRef};
use weft_wire::PortNum;

use crate::lanes::{LaneMap, LaneRow, SERVICE_LEVELS};

use super::ground::{End, Ground};

/// By level: a bit for each lane that it may take; none where such packets are dropped.
pub(crate) type Bits = [u16; SERVICE_LEVELS];

/// The mapping tables of all ports, each different row once. When tables are being changed, a row has the lanes before
/// and after.
#[derive(Debug)]
pub(crate) struct Rows {
    rows: Vec<Bits>,
    /// By row: the levels that have a lane.
    open: Vec<u16>,
    /// By switch, where it has rows of its own: by input and output port, the row. Other places have row 0.
    switches: Vec<Option<Box<[u32]>>>,
    /// Input ports of switches, each with the lowest one that has the same rows.
    kinds: Vec<Option<Box<[u8]>>>,
    /// The rows of end ports where they are not row 0.
    sending: BTreeMap<PortRef, u32>,
}

impl Rows {
    /// The rows of one map, or of all those that may be in force at the same time, on this many data lanes.
    pub(crate) fn new(ground: &Ground<'_>, maps: &[&LaneMap], lanes: u8) -> Self {
        let bits_of = |row_of: &dyn Fn(&LaneMap) -> LaneRow| -> Bits {
            let mut bits = [0; SERVICE_LEVELS];
            for map in maps {
                for (bits, lane) in bits.iter_mut().zip(row_of(map)) {
                    if lane.0 < lanes.min(15) {
                        *bits |= 1 << lane.0;
                    }
                }
            }
            bits
        };
        let everywhere = bits_of(&|map| map.everywhere);
        let mut rows = Self {
            rows: vec![everywhere],
            open: Vec::new(),
            switches: vec![None; ground.len()],
            kinds: vec![None; ground.len()],
            sending: BTreeMap::new(),
        };
        let mut known = BTreeMap::from([(everywhere, 0)]);
        for place in maps.iter().flat_map(|map| map.exceptions.keys()) {
            let bits = bits_of(&|map| *map.exceptions.get(place).unwrap_or(&map.everywhere));
            let row = *known.entry(bits).or_insert_with(|| {
                rows.rows.push(bits);
                rows.rows.len() as u32 - 1
            });
            let (node, entry, exit) = *place;
            rows.enter(ground, node, entry, exit, row);
        }
        let open =
            |bits: &Bits| (0..SERVICE_LEVELS).fold(0, |open, at| open | u16::from(bits[at] != 0) << at);
        rows.open = rows.rows.iter().map(open).collect();
        rows.find_kinds(ground);
        rows
    }

    fn enter(&mut self, ground: &Ground<'_>, node: NodeIndex, entry: PortNum, exit: PortNum, row: u32) {
        let Some(switch) = ground.graph.number(node) else {
            if entry == PortNum::ZERO && row != 0 {
                self.sending.insert(PortRef::new(node, exit), row);
            }
            return;
        };
        let ports = ground.exits(switch).len();
        let (entry, exit) = (usize::from(entry.0), usize::from(exit.0));
        if entry >= ports || exit >= ports || row == 0 {
            return;
        }
        let table = &mut self.switches[switch as usize];
        table.get_or_insert_with(|| vec![0; ports * ports].into())[entry * ports + exit] = row;
    }

    fn find_kinds(&mut self, ground: &Ground<'_>) {
        for (switch, table) in (0..).zip(&self.switches) {
            let Some(table) = table else { continue };
            let ports = ground.exits(switch).len();
            let mut first = BTreeMap::new();
            let kind = |(entry, rows)| *first.entry(rows).or_insert(entry);
            let kinds = (0..=u8::MAX).zip(table.chunks_exact(ports)).map(kind).collect();
            self.kinds[switch as usize] = Some(kinds);
        }
    }

    fn row(&self, switch: u32, entry: PortNum, exit: PortNum) -> usize {
        let Some(table) = &self.switches[switch as usize] else { return 0 };
        let ports = table.len().isqrt();
        table.get(usize::from(entry.0) * ports + usize::from(exit.0)).map_or(0, |row| *row as usize)
    }

    /// The lanes by which a switch sends on what came in by `entry`.
    pub(crate) fn bits(&self, switch: u32, entry: PortNum, exit: PortNum) -> &Bits {
        &self.rows[self.row(switch, entry, exit)]
    }

    /// The levels that a switch sends on at all. What is for the switch itself needs no lane.
    pub(crate) fn open(&self, switch: u32, entry: PortNum, exit: PortNum) -> u16 {
        if exit == PortNum::ZERO { u16::MAX } else { self.open[self.row(switch, entry, exit)] }
    }

    /// The levels that every place sends on.
    pub(crate) fn open_everywhere(&self) -> u16 {
        self.open.iter().fold(u16::MAX, |all, open| all & open)
    }

    /// The levels that an end port sends at all. A switch's own packets take lanes only where they leave it.
    pub(crate) fn sends(&self, end: &End) -> u16 {
        match end.at {
            PortNum::ZERO => u16::MAX,
            _ => self.open[self.sending.get(&end.port).map_or(0, |row| *row as usize)],
        }
    }

    /// The lowest input port of a switch from which packets go on as from this one.
    pub(crate) fn kind(&self, switch: u32, entry: PortNum) -> PortNum {
        let kinds = self.kinds[switch as usize].as_deref();
        PortNum(kinds.and_then(|kinds| kinds.get(usize::from(entry.0)).copied()).unwrap_or(0))
    }

    /// Whether what is found with every packet on level 0 holds whatever the levels are. If no packet changes lanes,
    /// levels only spread the same paths over several lanes, which closes no circle; a circle stays one if all
    /// levels take the same lane.
    pub(crate) fn levels_do_not_matter(&self, is_free: bool) -> bool {
        self.constant()
            .is_some_and(|bits| is_free || bits.iter().all(|lanes| *lanes == bits[0] || *lanes == 0))
    }

    /// The lanes of all levels, if every place has the same and each level at most one: then no packet ever changes
    /// lanes.
    pub(crate) fn constant(&self) -> Option<&Bits> {
        let all = &self.rows[0];
        (self.rows.len() == 1 && all.iter().all(|lanes| lanes.count_ones() <= 1)).then_some(all)
    }

    /// One more than the highest lane in use.
    pub(crate) fn lane_count(&self) -> usize {
        let all = self.rows.iter().flatten().fold(0, |all, lanes| all | lanes);
        16 - all.leading_zeros() as usize
    }
}
