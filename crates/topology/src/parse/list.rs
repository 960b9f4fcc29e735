//! The lists of ports that `ibnetdiscover -p` and `iblinkinfo -l` print: one line a port.
//!
//! Both hold all cabling. They show an end port's GUID and never its node's, so an adapter gets the GUID of its first
//! port for both.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use weft_wire::{Guid, Lid, NodeType};

use super::at::At;
use super::comment::LidLmc;
use super::draft::{Draft, NodeDraft, PortDraft, RemoteDraft, Spot};
use super::error::{ParseError, Problem};
use super::line::{Line, LineError};
use super::reader::{DESCRIPTION_BYTES_MAX, is_prompt, is_tool_message, lines_of};
use crate::{LinkRate, NODES_MAX, Node, PORTS_MAX, PORTS_PER_NODE_MAX};

/// Which program printed a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `ibnetdiscover -p`: `SW 11 1 0x0008f105001086a2 4x QDR - SW 8 6 0x… ( 'here' - 'there' )`.
    Ports,
    /// `iblinkinfo -l`: `0x0008f105001086a2 "here" 11 1[  ] ==( 4X 10.0 Gbps Active/ LinkUp)==> 0x… 8 6[  ] "there" ( )`.
    Links,
}

/// A port's line.
struct Row {
    /// Where and how the port's GUID is written.
    spot: Spot,
    /// `None` in a form that does not say it.
    kind: Option<NodeType>,
    lid: Option<Lid>,
    port: u8,
    guid: Guid,
    rate: Option<LinkRate>,
    description: String,
    far: Option<Far>,
}

/// The other end of a row's cable.
struct Far {
    spot: Spot,
    lid: Option<Lid>,
    port: (u64, Spot),
    guid: Guid,
}

impl Form {
    /// The form that the first line which is no comment has, if it is a list's.
    pub(super) fn of(text: &str) -> Option<Self> {
        let first = lines_of(text).map(str::trim).find(|line| !is_skipped(line))?;
        let mut words = first.split_whitespace();
        match (words.next()?, words.next()?) {
            ("SW" | "CA" | "RT", lid) if lid.parse::<u16>().is_ok() => Some(Self::Ports),
            (guid, description) if guid.starts_with("0x") && description.starts_with('"') => {
                Some(Self::Links)
            }
            _ => None,
        }
    }
}

/// Whether a line says nothing of a port.
fn is_skipped(line: &str) -> bool {
    line.is_empty() || line.starts_with('#') || is_prompt(line) || is_tool_message(line)
}

/// Reads a list into the draft that the same fabric's nodes would give.
pub(super) fn read(form: Form, file: &str, text: &str) -> Result<Draft, ParseError> {
    let mut rows = Vec::new();
    let mut lines = lines_of(text).enumerate().peekable();
    while let Some((index, text)) = lines.next() {
        let text = text.trim_end();
        let at = At::line(file, index + 1, text, lines.peek().is_none() && !text.is_empty());
        at.check_size(index + 1)?;
        let line = Line::new(text);
        if is_skipped(line.rest()) {
            continue;
        }
        let row = match form {
            Form::Ports => read_port(at, line),
            Form::Links => read_link(at, line),
        };
        rows.push(row.map_err(|fault| at.error(fault))?);
        if rows.len() > PORTS_MAX {
            return Err(at.spot(0..0).error(Problem::TooLarge { what: "ports", max: PORTS_MAX }));
        }
    }
    let nodes = nodes(&rows);
    draft(rows, &nodes)
}

/// A number with spaces around it, and where it stands.
fn number(at: At<'_>, line: &mut Line<'_>, what: &'static str, max: u64) -> Result<(u64, Spot), LineError> {
    line.skip_spaces();
    let start = line.offset();
    let value = line.number(what, 0..=max)?;
    let spot = at.spot(start..line.offset());
    line.skip_spaces();
    Ok((value, spot))
}

fn lid(at: At<'_>, line: &mut Line<'_>) -> Result<Option<Lid>, LineError> {
    // 65535 is what a port says that has none yet.
    let (value, _) = number(at, line, "a LID", u64::from(u16::MAX))?;
    Ok(u16::try_from(value).ok().map(Lid).filter(|lid| *lid != Lid(0) && *lid <= Lid::UNICAST_MAX))
}

fn guid(at: At<'_>, line: &mut Line<'_>) -> Result<(Guid, Spot), LineError> {
    let (value, spot) = number(at, line, "a GUID", u64::MAX)?;
    Ok((Guid(value), spot))
}

fn own_port(at: At<'_>, line: &mut Line<'_>) -> Result<u8, LineError> {
    line.skip_spaces();
    let start = line.offset();
    let (value, _) = number(at, line, "a port number", u64::MAX)?;
    let in_range = u8::try_from(value).ok().filter(|port| (1..=PORTS_PER_NODE_MAX).contains(port));
    let range = Problem::NumberRange { what: "a port number", min: 1, max: u64::from(PORTS_PER_NODE_MAX) };
    in_range.ok_or_else(|| LineError::new(start..start + value.to_string().len(), range))
}

/// A width and a speed; `None` for those that the program did not know.
fn rate(line: &Line<'_>, start: usize, width: &str, speed: &str) -> Result<Option<LinkRate>, LineError> {
    if width.contains('?') || speed.contains('?') || speed.is_empty() {
        return Ok(None);
    }
    let rate = format!("{}{speed}", width.to_ascii_lowercase()).parse::<LinkRate>();
    rate.map(Some).map_err(|error| line.fault(start, Problem::UnknownRate).hint(error.to_string()))
}

fn description(line: &Line<'_>, start: usize, text: &str) -> Result<String, LineError> {
    if text.len() > DESCRIPTION_BYTES_MAX {
        let problem = Problem::TooLarge { what: "bytes in a description", max: DESCRIPTION_BYTES_MAX };
        return Err(line.fault(start, problem));
    }
    Ok(text.trim().to_owned())
}

fn kind(line: &mut Line<'_>) -> Result<NodeType, LineError> {
    line.skip_spaces();
    for (word, kind) in [("SW", NodeType::Switch), ("CA", NodeType::Hca), ("RT", NodeType::Router)] {
        if line.take(word) {
            return Ok(kind);
        }
    }
    Err(line.expected("SW, CA or RT"))
}

/// A line of `ibnetdiscover -p`.
fn read_port(at: At<'_>, mut line: Line<'_>) -> Result<Row, LineError> {
    let kind = kind(&mut line)?;
    let (lid, port, (guid, spot)) = (lid(at, &mut line)?, own_port(at, &mut line)?, guid(at, &mut line)?);
    let start = line.offset();
    let width = line.take_until(char::is_whitespace);
    line.skip_spaces();
    let speed = line.take_until(char::is_whitespace);
    let rate = rate(&line, start, width, speed)?;
    line.skip_spaces();
    let far = match line.take("- ") {
        true => Some(far_of_port(at, &mut line)?),
        false => None,
    };
    line.skip_spaces();
    let start = line.offset();
    let names = match &far {
        None => line.rest().strip_prefix('\'').and_then(|text| text.strip_suffix('\'')),
        Some(_) => line.rest().strip_prefix("( '").and_then(|text| text.strip_suffix("' )")),
    };
    let Some(names) = names else { return Err(line.expected("the description in single quotes")) };
    let name = if far.is_some() { names.split("' - '").next().unwrap_or(names) } else { names };
    let description = description(&line, start, name)?;
    Ok(Row { spot, kind: Some(kind), lid, port, guid, rate, description, far })
}

fn far_of_port(at: At<'_>, line: &mut Line<'_>) -> Result<Far, LineError> {
    kind(line)?;
    let lid = lid(at, line)?;
    let port = number(at, line, "a port number", u64::from(u32::MAX))?;
    let (guid, spot) = guid(at, line)?;
    Ok(Far { spot, lid, port, guid })
}

/// A line of `iblinkinfo -l`.
fn read_link(at: At<'_>, mut line: Line<'_>) -> Result<Row, LineError> {
    let (guid, spot) = guid(at, &mut line)?;
    let start = line.offset();
    // The description may hold quotes; what follows it is a LID, a port and `[`.
    let arrow = line.rest().find("] ==(").ok_or_else(|| line.expected("`==(` with the state of the link"))?;
    let end = line.rest()[..arrow].rfind('"').ok_or_else(|| line.expected("a description in quotes"))?;
    let text =
        line.rest()[..end].strip_prefix('"').ok_or_else(|| line.expected("a description in quotes"))?;
    let description = description(&line, start, text)?;
    line.skip_bytes(end + 1);
    let (lid, port) = (lid(at, &mut line)?, own_port(at, &mut line)?);
    line.take_until(|c| c == '(');
    line.expect("(", "`(` with the state of the link")?;
    let start = line.offset();
    let state =
        line.rest().find(")==>").ok_or_else(|| line.expected("`)==>` after the state of the link"))?;
    let rate = link_rate(&line, start, &line.rest()[..state])?;
    line.skip_bytes(state + ")==>".len());
    line.skip_spaces();
    let far = match line.rest().starts_with("0x") {
        false => None,
        true => {
            let (guid, spot) = self::guid(at, &mut line)?;
            let lid = self::lid(at, &mut line)?;
            Some(Far { spot, lid, port: number(at, &mut line, "a port number", u64::from(u32::MAX))?, guid })
        }
    };
    Ok(Row { spot, kind: None, lid, port, guid, rate, description, far })
}

/// The rate in `4X 10.0 Gbps Active/ LinkUp`; none while the link is down.
fn link_rate(line: &Line<'_>, start: usize, state: &str) -> Result<Option<LinkRate>, LineError> {
    let mut words = state.split_whitespace();
    let (Some(width), Some(speed), Some("Gbps")) = (words.next(), words.next(), words.next()) else {
        return Ok(None);
    };
    let speed = match (speed, words.next()) {
        (_, Some("(FDR10)")) => "FDR10",
        ("2.5", _) => "SDR",
        ("5.0", _) => "DDR",
        ("10.0", _) => "QDR",
        ("14.0625", _) => "FDR",
        ("25.78125", _) => "EDR",
        ("53.125", _) => "HDR",
        ("106.25", _) => "NDR",
        ("212.5", _) => "XDR",
        (other, _) => other,
    };
    rate(line, start, width, speed)
}

/// Which node each row belongs to: a switch's rows share a GUID, and an adapter's stand beside each other under one
/// description with GUIDs that follow each other.
fn nodes(rows: &[Row]) -> Vec<usize> {
    let mut count = 0;
    let mut switches: BTreeMap<Guid, usize> = BTreeMap::new();
    let mut nodes: Vec<usize> = Vec::with_capacity(rows.len());
    let base = |row: &Row| row.guid.0.wrapping_sub(u64::from(row.port));
    for (index, row) in rows.iter().enumerate() {
        let beside = index.checked_sub(1).and_then(|before| Some((rows.get(before)?, *nodes.get(before)?)));
        let same = beside.filter(|(before, _)| {
            before.kind == row.kind
                && row.kind != Some(NodeType::Switch)
                && (base(before), &before.description) == (base(row), &row.description)
        });
        let node = switches.get(&row.guid).copied().or(same.map(|(_, node)| node)).unwrap_or(count);
        count = count.max(node + 1);
        switches.entry(row.guid).or_insert(node);
        nodes.push(node);
    }
    nodes
}

fn draft(rows: Vec<Row>, nodes: &[usize]) -> Result<Draft, ParseError> {
    let mut groups: Vec<Vec<Row>> = Vec::new();
    for (row, node) in rows.into_iter().zip(nodes) {
        if *node == groups.len() {
            groups.push(Vec::new());
        }
        groups[*node].push(row);
    }
    if groups.len() > NODES_MAX {
        let problem = Problem::TooLarge { what: "nodes", max: NODES_MAX };
        return Err(groups[NODES_MAX][0].spot.error(problem));
    }
    let mut ids: BTreeMap<Guid, String> = BTreeMap::new();
    let mut drafts = Vec::with_capacity(groups.len());
    for rows in &groups {
        let node = node(rows);
        ids.extend(rows.iter().map(|row| (row.guid, node.id.clone())));
        drafts.push(node);
    }
    let mut draft = Draft::default();
    for (node, rows) in drafts.into_iter().zip(groups) {
        let (id, spot) = (node.id.clone(), rows[0].spot.clone());
        let ports = ports(&id, rows, &ids)?;
        match draft.ids.entry(id) {
            Entry::Vacant(free) => free.insert(draft.nodes.len()),
            Entry::Occupied(first) => {
                let other = draft.nodes[*first.get()].spot.place.clone();
                return Err(spot.error(Problem::DuplicateId { id: node.id, other }));
            }
        };
        draft.nodes.push(NodeDraft { node, spot, ports, masks: None });
    }
    Ok(draft)
}

/// The node of some rows, without what its cables say.
fn node(rows: &[Row]) -> Node {
    let first = rows.iter().min_by_key(|row| row.port).expect("a group has a row");
    let ports = rows.iter().map(|row| row.port).max().unwrap_or(1);
    // `iblinkinfo` does not say the kind. It lists a switch's ports, cabled or not, under one GUID.
    let shared = rows.len() > 1 && rows.iter().all(|row| row.guid == first.guid);
    let kind = first.kind.unwrap_or(if shared { NodeType::Switch } else { NodeType::Hca });
    let mut node = Node::new(kind, first.guid, ports, LinkRate::default());
    node.description.clone_from(&first.description);
    for row in rows {
        let number = if kind == NodeType::Switch { 0 } else { usize::from(row.port) };
        node.ports[number].lid = row.lid.unwrap_or_default();
    }
    node
}

fn ports(
    id: &str,
    rows: Vec<Row>,
    ids: &BTreeMap<Guid, String>,
) -> Result<BTreeMap<u8, PortDraft>, ParseError> {
    let mut ports: BTreeMap<u8, PortDraft> = BTreeMap::new();
    for row in rows {
        if let Some(first) = ports.get(&row.port) {
            let (node, other) = (id.to_owned(), first.spot.place.clone());
            return Err(row.spot.error(Problem::PortTwice { port: row.port, node, other }));
        }
        let Some(far) = row.far else {
            let guid = Some(row.guid);
            ports.insert(row.port, PortDraft { spot: row.spot, guid, masks: None, remote: None });
            continue;
        };
        let Some(name) = ids.get(&far.guid) else {
            let error = far.spot.error(Problem::MissingNode(far.guid.to_string()));
            let hint = "the list must have all nodes and be whole: `ibnetdiscover -p` or `iblinkinfo -l`";
            return Err(ParseError { hint: Some(hint.to_owned()), ..error });
        };
        let remote = RemoteDraft {
            guid: Some((far.guid, far.spot.clone())),
            spot: far.spot,
            name: name.clone(),
            module: String::new(),
            port: Some(far.port),
            lid: LidLmc { lid: far.lid, lmc: None },
        };
        let masks = row.rate.map(LinkRate::enabled);
        ports.insert(
            row.port,
            PortDraft { spot: row.spot, guid: Some(row.guid), masks, remote: Some(remote) },
        );
    }
    Ok(ports)
}
