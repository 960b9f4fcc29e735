//! Forwarding tables, each read where its switch runs: no SMP crosses a cable, and several agents answer at once.

use std::time::{Duration, Instant};

use weft_mgmt::{DirectedPath, Request, SmpRoute, Window};
use weft_sm::Surveyed;
use weft_topology::NodeIndex;
use weft_wire::{AttributeId, Guid, LinearForwardingTable, PortNum, status};

use crate::survey::{Session, limits, several};
use crate::view::Lab;

/// Agents that are asked at once.
const READERS: usize = 4;
/// How long an agent has to answer an attachment.
const PATIENCE: Duration = Duration::from_secs(1);

/// A switch whose table is wanted.
#[derive(Clone, Copy)]
struct Wanted {
    node: NodeIndex,
    guid: Guid,
    blocks: u16,
}

/// A table as it was read; `None` for a block that was not answered.
type Table = Vec<Option<[PortNum; 64]>>;

/// Reads the table of every switch of `live`: by an attachment to the switch itself, and where its agent does not
/// answer one, by a directed route from `session`. `watch` hears now and then how many SMPs were answered, and ends the
/// reading with an error.
pub fn read_tables(
    lab: &Lab,
    session: &mut Session,
    live: &mut Surveyed,
    until: Instant,
    mut watch: impl FnMut(u64) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let wanted: Vec<Wanted> = live
        .fabric
        .switches()
        .map(|(node, switch)| Wanted { node, guid: switch.guid, blocks: live.lft_blocks(node) })
        .filter(|wanted| wanted.blocks > 0)
        .collect();
    let (mut answered, mut unread) = (0, Vec::new());
    let read = |wanted: &Wanted| {
        let table = at_its_agent(lab, *wanted, until).ok();
        (*wanted, table.filter(|table| table.iter().all(Option::is_some)))
    };
    several(READERS, &wanted, read, |found| {
        match found {
            Some((wanted, Some(table))) => {
                answered += table.len() as u64;
                take(live, wanted, &table);
            }
            Some((wanted, None)) => unread.push(wanted),
            None => {}
        }
        watch(answered)
    })?;
    for wanted in unread {
        let Some(path) = live.path(wanted.node).copied() else { continue };
        let table = through(session, wanted, &path, until)?;
        live.unanswered += table.iter().filter(|block| block.is_none()).count() as u32;
        answered += table.iter().flatten().count() as u64;
        take(live, wanted, &table);
        watch(answered)?;
    }
    Ok(())
}

fn take(live: &mut Surveyed, wanted: Wanted, table: &Table) {
    for (block, ports) in (0..).zip(table) {
        if let Some(ports) = ports {
            live.set_lft_block(wanted.node, block, ports);
        }
    }
}

fn at_its_agent(lab: &Lab, wanted: Wanted, until: Instant) -> anyhow::Result<Table> {
    let patience = until.saturating_duration_since(Instant::now()).min(PATIENCE);
    let mut session = Session::attach_within(patience, &lab.folder, &lab.record, wanted.guid, PortNum(0))?;
    through(&mut session, wanted, &DirectedPath::default(), until)
}

/// Reads a table along a path from where `session` is attached.
fn through(
    session: &mut Session,
    wanted: Wanted,
    path: &DirectedPath,
    until: Instant,
) -> anyhow::Result<Table> {
    let route = SmpRoute::Directed(*path);
    let request =
        |block: u16| (block, Request::get(AttributeId::LinearForwardingTable, u32::from(block)).by(&route));
    let mut table = vec![None; usize::from(wanted.blocks)];
    let requests = (0..wanted.blocks).map(request).collect();
    session.exchange(Some(until), limits(Window::AUTO), requests, |block, answer, _| {
        let good = answer.filter(|answer| answer.mad.status() == status::OK);
        table[usize::from(block)] =
            good.map(|answer| LinearForwardingTable::decode(answer.mad.smp_attribute()).ports);
    })?;
    Ok(table)
}
