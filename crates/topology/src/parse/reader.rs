//! From lines to a draft.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use weft_wire::{Guid, Lid};

use super::Loader;
use super::at::{At, Seen};
use super::comment::{self, Ends};
use super::draft::{Draft, NodeDraft, PortDraft, Spot};
use super::error::{ParseError, Position, Problem};
use super::line::{Line, LineError, check_name};
use super::port::{read_alias, read_cable};
use super::settings::Settings;
use crate::{NODES_MAX, NodeType, PORTS_MAX, PORTS_PER_NODE_MAX};

/// How deep files may include files, as in ibsim.
const INCLUDE_DEPTH_MAX: usize = 9;
/// How many files may be included in all.
const INCLUDES_MAX: usize = 1024;
/// How many bytes a description may have. On the wire it has 64; ibsim cuts it there.
pub(super) const DESCRIPTION_BYTES_MAX: usize = 1024;
/// How many bytes a module's prefix may have, as in ibsim.
const MODULE_BYTES_MAX: usize = 20;

const KEYWORDS: &str = "keywords are Switch Ca Hca Rt, vendid devid sysimgguid switchguid caguid hcaguids rtguid, \
                        width speed extspeed module include pdebug do";

/// What helps against a list that names nodes or links and leaves out where cables lead.
const NO_CABLES: &str = "this list does not say where all cables lead: `ibnetdiscover`, `ibnetdiscover -p` and \
                         `iblinkinfo -l` print what weft reads";

/// Reads lines and keeps what they set.
pub(super) struct Reader<'l, 'f> {
    load: &'l mut Loader<'f>,
    draft: Draft,
    /// The node that port lines belong to.
    open: Option<usize>,
    settings: Settings,
    guids: BTreeMap<Guid, usize>,
    seen: Seen,
    ports: usize,
    depth: usize,
    includes: usize,
    lines: usize,
}

impl<'l, 'f> Reader<'l, 'f> {
    pub(super) fn new(load: &'l mut Loader<'f>) -> Self {
        Self {
            load,
            draft: Draft::default(),
            open: None,
            settings: Settings::default(),
            guids: BTreeMap::new(),
            seen: Seen::default(),
            ports: 0,
            depth: 0,
            includes: 0,
            lines: 0,
        }
    }

    pub(super) fn read_file(&mut self, file: &str, text: &str) -> Result<(), ParseError> {
        let mut lines = lines_of(text).enumerate().peekable();
        let outer = std::mem::take(&mut self.seen);
        while let Some((index, text)) = lines.next() {
            let text = text.trim_end();
            let unfinished = lines.peek().is_none() && !text.is_empty();
            let at = At { file, number: index + 1, text, unfinished, seen: self.seen };
            self.lines += 1;
            at.check_size(self.lines)?;
            self.read_line(at)?;
        }
        self.seen = outer;
        Ok(())
    }

    /// Hands over the draft, if it has a node at all.
    pub(super) fn finish(self, file: &str, text: &str) -> Result<Draft, ParseError> {
        if self.draft.nodes.is_empty() {
            let line = text.lines().count().max(1);
            let place = Position { file: file.to_owned(), line, column: 1 };
            return Err(Spot { place, text: String::new() }.error(Problem::Empty));
        }
        Ok(self.draft)
    }

    fn read_line(&mut self, at: At<'_>) -> Result<(), ParseError> {
        let mut line = Line::new(at.text);
        if line.rest().starts_with('#') || is_prompt(line.rest()) || is_tool_message(line.rest()) {
            return Ok(());
        }
        if line.rest().starts_with(['[', '@']) {
            return self.read_port(at, line);
        }
        // Whatever else a line is, it ends the node before it.
        self.open = None;
        if line.rest().is_empty() {
            return Ok(());
        }
        let start = line.offset();
        let word = line.take_until(|c| !c.is_ascii_alphabetic());
        match word {
            "Switch" => self.read_node(at, line, NodeType::Switch),
            "Ca" | "Hca" => self.read_node(at, line, NodeType::Hca),
            "Rt" => self.read_node(at, line, NodeType::Router),
            "include" => self.read_include(at, line),
            // ibsim's console commands change a running fabric; a file only describes one. `ibnetdiscover -g`
            // heads its groups with the rest.
            "do" | "Chassis" | "Hostname" | "Non" => Ok(()),
            "module" => self.read_module(&mut line).map_err(|fault| at.error(fault)),
            _ => match self.settings.read(word, &mut line) {
                Some(done) => done.map_err(|fault| at.error(fault)),
                None => {
                    let end = start + word.len().max(line.rest().chars().next().map_or(0, char::len_utf8));
                    let fault = LineError::new(start..end, Problem::UnknownKeyword);
                    let hint = if word == "CA" { NO_CABLES } else { KEYWORDS };
                    Err(at.error(fault.hint(hint)))
                }
            },
        }
    }

    fn read_module(&mut self, line: &mut Line<'_>) -> Result<(), LineError> {
        line.skip_spaces();
        line.expect("=", "`=`")?;
        line.skip_spaces();
        let start = line.offset();
        let module = line.quoted("a module name in quotes")?;
        if module.len() > MODULE_BYTES_MAX {
            let problem = Problem::TooLarge { what: "bytes in a module name", max: MODULE_BYTES_MAX };
            return Err(line.fault(start, problem));
        }
        if !module.is_empty() {
            check_name(line, start, module)?;
        }
        line.end()?;
        self.settings.module = module.to_owned();
        Ok(())
    }

    fn read_include(&mut self, at: At<'_>, mut line: Line<'_>) -> Result<(), ParseError> {
        line.skip_spaces();
        let start = line.offset();
        let name = line.quoted("a file name in quotes").map_err(|fault| at.error(fault))?;
        let fail = |problem| at.error(line.fault(start, problem));
        if self.depth == INCLUDE_DEPTH_MAX {
            return Err(fail(Problem::TooLarge { what: "levels of include", max: INCLUDE_DEPTH_MAX }));
        }
        if self.includes == INCLUDES_MAX {
            return Err(fail(Problem::TooLarge { what: "included files", max: INCLUDES_MAX }));
        }
        let text = (self.load)(name, at.file).map_err(|reason| fail(Problem::Include(reason.to_string())))?;
        self.includes += 1;
        self.depth += 1;
        // Named as seen from the first file, so that its own includes are looked for beside it.
        let named = match at.file.rfind('/') {
            Some(end) if !name.starts_with('/') => format!("{}{name}", &at.file[..=end]),
            _ => name.to_owned(),
        };
        self.read_file(&named, &text)?;
        self.depth -= 1;
        self.open = None;
        Ok(())
    }

    fn read_node(&mut self, at: At<'_>, mut line: Line<'_>, kind: NodeType) -> Result<(), ParseError> {
        let header =
            read_header(&mut line, at, kind, &self.settings.module).map_err(|fault| at.error(fault))?;
        let spot = at.spot(header.id_span);
        if let Some(first) = self.draft.ids.get(&header.id) {
            let other = self.draft.nodes[*first].spot.place.clone();
            return Err(spot.error(Problem::DuplicateId { id: header.id, other }));
        }
        self.ports += usize::from(header.ports) + 1;
        if self.draft.nodes.len() == NODES_MAX || self.ports > PORTS_MAX {
            let problem = match self.ports > PORTS_MAX {
                true => Problem::TooLarge { what: "ports", max: PORTS_MAX },
                false => Problem::TooLarge { what: "nodes", max: NODES_MAX },
            };
            return Err(spot.error(problem));
        }
        let mut node =
            self.settings.node(kind, header.id.rsplit('#').next().unwrap_or_default(), header.ports);
        match self.guids.entry(node.guid) {
            Entry::Occupied(first) => {
                let first = &self.draft.nodes[*first.get()];
                let (owner, other) = (format!("`{}`", first.node.id), first.spot.place.clone());
                return Err(spot.error(Problem::DuplicateGuid { guid: node.guid, owner, other }));
            }
            Entry::Vacant(free) => free.insert(self.draft.nodes.len()),
        };
        let comment = header.comment;
        node.description =
            if comment.description.is_empty() { header.id.clone() } else { comment.description };
        node.id.clone_from(&header.id);
        if kind == NodeType::Switch {
            node.enhanced_port0 = comment.enhanced_port0;
            node.ports[0].lid = comment.port0.lid.unwrap_or(Lid(0));
            node.ports[0].lmc = comment.port0.lmc.unwrap_or(0);
        }
        self.seen.headers |= comment.port0.lid.is_some() && comment.port0.lmc.is_some();
        self.open = Some(self.draft.nodes.len());
        self.draft.ids.insert(header.id, self.draft.nodes.len());
        let masks = self.settings.masks;
        self.draft.nodes.push(NodeDraft { node, spot, ports: BTreeMap::new(), masks });
        Ok(())
    }

    fn read_port(&mut self, at: At<'_>, mut line: Line<'_>) -> Result<(), ParseError> {
        let start = line.offset();
        let Some(owner) = self.open else {
            let length = line.rest().find(char::is_whitespace).unwrap_or(line.rest().len());
            let fault = LineError::new(start..start + length, Problem::PortOutsideNode);
            return Err(
                at.error(fault.hint("port lines follow their node's line, with no blank line between"))
            );
        };
        let is_alias = line.take("@");
        let number = line.port_in_brackets().map_err(|fault| at.error(fault))?;
        let Some(number) = number else {
            return Err(at.error(line.expected("a port number in brackets")));
        };
        let spot = at.spot(start..line.offset());
        let draft = &mut self.draft.nodes[owner];
        let count = draft.node.port_count();
        let Some(number) = u8::try_from(number).ok().filter(|number| (1..=count).contains(number)) else {
            let node = draft.node.id.clone();
            return Err(spot.error(Problem::PortOutOfRange { port: number, node, count }));
        };
        if let Some(first) = draft.ports.get(&number) {
            let (node, other) = (draft.node.id.clone(), first.spot.place.clone());
            return Err(spot.error(Problem::PortTwice { port: number, node, other }));
        }
        let module = &self.settings.module;
        let read = if is_alias { read_alias(line, at, draft) } else { read_cable(line, at, draft, module) };
        let (port, lids, alias) = read.map_err(|fault| at.error(fault))?;
        if draft.node.kind != NodeType::Switch {
            let node_port = &mut draft.node.ports[usize::from(number)];
            node_port.lid = lids.lid.unwrap_or(Lid(0));
            node_port.lmc = lids.lmc.unwrap_or(0);
        }
        self.seen.ports |= port.remote.as_ref().is_some_and(|remote| remote.lid.lid.is_some());
        draft.ports.insert(number, PortDraft { spot, ..port });
        alias.map_or(Ok(()), |alias| self.add_alias(alias, owner, number))
    }

    fn add_alias(&mut self, alias: Spot, owner: usize, number: u8) -> Result<(), ParseError> {
        let name = format!("{}@{}", self.settings.module, alias.text);
        match self.draft.aliases.entry(name) {
            Entry::Occupied(first) => {
                let other = first.get().2.place.clone();
                Err(alias.error(Problem::AliasTwice { alias: alias.text.clone(), other }))
            }
            Entry::Vacant(free) => {
                free.insert((owner, number, alias));
                Ok(())
            }
        }
    }
}

/// The lines of a file, without the byte order mark that editors of Windows put before the first.
pub(super) fn lines_of(text: &str) -> std::str::Split<'_, char> {
    text.strip_prefix('\u{feff}').unwrap_or(text).split('\n')
}

/// Whether a line is a shell's prompt with the command that printed the file: `[root@head ~]# ibnetdiscover`. No line
/// of a topology file has an `@`, a `~` or a command of infiniband-diags around its first mark, without a quote before.
pub(super) fn is_prompt(line: &str) -> bool {
    let Some(mark) = line.find(['#', '$', '%', '>']) else { return false };
    let (prompt, rest) = line.split_at(mark);
    let command = &rest[1..];
    let commands = ["ibnetdiscover", "iblinkinfo"];
    !prompt.contains(['"', '='])
        && !line.starts_with('@')
        && (command.is_empty() || command.starts_with(' '))
        && (prompt.contains(['@', '~'])
            || !line.starts_with('#') && commands.iter().any(|name| command.contains(name)))
}

/// Whether a line is a message of infiniband-diags, of its libraries or of `ibdiagnet`, as they stand in output that was saved with
/// `2>&1`: `ibwarn: [6931] sim_connect: attached`, `src/query_smp.c:196; umad (DR path …) bad status 110`, `-W- Bad link`.
pub fn is_tool_message(line: &str) -> bool {
    let line = line.trim_start();
    let from_library = ["ibwarn: [", "ibpanic: [", "iberror: [", "ibdebug: [", "umad: "];
    let from_ibdiagnet = ["-I- ", "-W- ", "-E- "];
    let from_source = || {
        let (source, rest) = line.split_once(".c:")?;
        let number = rest.split_once(';')?.0;
        let is_path =
            !source.is_empty() && source.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
        (is_path && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(())
    };
    let starts = |starts: &[&str]| starts.iter().any(|start| line.starts_with(start));
    starts(&from_library)
        || starts(&from_ibdiagnet)
        || line.starts_with("*** WARNING ***")
        || from_source().is_some()
}

/// What a node's header line says.
struct Header {
    id: String,
    id_span: Range<usize>,
    ports: u8,
    comment: comment::HeaderComment,
}

fn read_header(line: &mut Line<'_>, at: At<'_>, kind: NodeType, module: &str) -> Result<Header, LineError> {
    line.skip_spaces();
    if line.rest().starts_with(':') {
        return Err(line.expected("the number of ports").hint(NO_CABLES));
    }
    let ports = line.number("the number of ports", 1..=u64::from(PORTS_PER_NODE_MAX))?;
    line.skip_spaces();
    let start = line.offset();
    let id = line.quoted("the node's id in quotes")?;
    check_name(line, start, id)?;
    let id = if module.is_empty() { id.to_owned() } else { format!("{module}#{id}") };
    let id_span = start..line.offset();
    line.end()?;
    let comment = if line.take("#") {
        let of_switch = kind == NodeType::Switch;
        comment::header(line.offset(), line.rest(), of_switch, at.header_ends())?
    } else if at.header_ends() == Ends::Cut {
        return Err(comment::truncated(0, at.text));
    } else {
        comment::HeaderComment::default()
    };
    if comment.description.len() > DESCRIPTION_BYTES_MAX {
        let problem = Problem::TooLarge { what: "bytes in a description", max: DESCRIPTION_BYTES_MAX };
        return Err(LineError::new(id_span, problem));
    }
    Ok(Header { id, id_span, ports: ports as u8, comment })
}
