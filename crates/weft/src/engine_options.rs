//! Options of routing engines, from arguments and the files that they name.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use weft_bundle::failure::Failure;
use weft_routing::files::partitions::PartitionsFile;
use weft_routing::files::{SavedFiles, SavedRouting, parse_counters, parse_guids, parse_weights};
use weft_routing::{
    Chain, ChainError, EngineOptions, PROGRAM, Partitions, WEIGHTS, learn_order, learn_weights,
};
use weft_topology::{Fabric, Node, NodeIndex};
use weft_wire::Guid;

use crate::cli::engine::EngineArgs;
use crate::output::{say, say_labelled};

/// Any engine that serves.
const AUTO: &str = "auto";

/// Options for routing engines.
#[derive(Clone)]
pub(crate) struct Told {
    pub(crate) options: EngineOptions,
    /// The fields of the options that the user gave.
    given: Vec<&'static str>,
    /// What a subnet manager learns from a performance manager's counts.
    pub(crate) live: Live,
}

/// What is learned while a subnet manager runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Live {
    /// The weights of hosts.
    pub(crate) weights: bool,
    /// In which order hosts are routed.
    pub(crate) order: bool,
}

/// The word for counts, where a file could stand.
const RECEIVED: &str = "received";

/// The file that an option names, if it is none of a performance manager's counts.
fn file(given: &Option<PathBuf>) -> Option<&PathBuf> {
    given.as_ref().filter(|path| path.as_os_str() != RECEIVED)
}

impl Told {
    /// Reads all files that the arguments name, but for `--vm-weights`, whose keys depend on who reads it. Their GUIDs must be
    /// `fabric`'s, where it is known.
    pub(crate) fn load(fabric: Option<&Fabric>, args: &EngineArgs) -> anyhow::Result<Self> {
        let mut options = EngineOptions { threads: args.threads, ..EngineOptions::default() };
        let mut given = Vec::new();
        let mut note = |option: &'static str, is_given: bool| given.extend(is_given.then_some(option));
        note("lanes", args.lanes.is_some());
        note("roots", args.roots.is_some());
        note("compute_nodes", args.compute_nodes.is_some());
        note("io_nodes", args.io_nodes.is_some());
        note("max_reverse_hops", args.max_reverse_hops.is_some());
        note("order", args.order.is_some());
        note("lfts", !args.lfts.is_empty());
        note("lid_matrix", !args.lid_matrix.is_empty());
        note("sl2vl", !args.sl2vl.is_empty());
        note("psl", !args.psl.is_empty());
        note("partitions", args.partitions.is_some());
        note("weights", args.weights.is_some() || args.received.is_some() && !is_received(&args.order));
        note("vm_weights", args.vm_weights.is_some());
        note("isolation_share", args.isolation_share.is_some());
        note("pftree_order", args.pftree_order.is_some());
        note("literal", args.literal);
        note("leave_one", args.leave_one);
        note("exec_timeout", args.exec_timeout.is_some());
        note("exec_memory", args.exec_memory.is_some());
        options.exec_timeout_ms = args.exec_timeout.map_or(options.exec_timeout_ms, |seconds| seconds * 1000);
        options.exec_memory_bytes =
            args.exec_memory.map_or(options.exec_memory_bytes, |mebibytes| mebibytes << 20);
        options.lanes = args.lanes.unwrap_or(options.lanes);
        options.max_reverse_hops = args.max_reverse_hops.unwrap_or(options.max_reverse_hops);
        options.isolation_share = args.isolation_share.unwrap_or(options.isolation_share);
        options.pftree_order = args.pftree_order.unwrap_or_default();
        options.literal = args.literal;
        options.leave_one = args.leave_one;
        for (path, list) in [
            (args.roots.as_ref(), &mut options.roots),
            (args.compute_nodes.as_ref(), &mut options.compute_nodes),
            (args.io_nodes.as_ref(), &mut options.io_nodes),
            (file(&args.order), &mut options.order),
        ] {
            let Some(path) = path else { continue };
            *list = parsed(path, parse_guids)?;
        }
        let live = traffic(args, &mut options)?;
        options.saved = saved_routing(args)?;
        if let Some(fabric) = fabric {
            check_guids(fabric, args, &options)?;
        }
        if let Some(list) = &args.management_nodes {
            options.management_nodes = management_nodes(list, fabric)?;
        }
        if let Some(path) = &args.partitions {
            let fabric = fabric.ok_or_else(|| {
                Failure::bad_input("--partitions needs the cabling's file, which an ibsim has for itself")
            })?;
            options.partitions = Some(load_partitions(path, fabric)?);
        }
        Ok(Self { options, given, live })
    }

    /// An option serves for something besides engines, so that it need not mean anything to one.
    pub(crate) fn serves_otherwise(&mut self, option: &str) {
        self.given.retain(|given| *given != option);
    }

    /// No manager counts here, so that everything has to be in files.
    pub(crate) fn without_manager(self) -> anyhow::Result<Self> {
        let option = match self.live {
            Live { weights: true, .. } => "weights",
            Live { order: true, .. } => "order",
            _ => return Ok(self),
        };
        let message =
            format!("--{option} received takes the counts of a performance manager, and none runs here");
        Err(Failure::bad_input(message).hint("name a file of counts with --received FILE"))
    }

    /// An engine of its own, without the last resort; options are not judged.
    pub(crate) fn alone(&self, name: &str) -> anyhow::Result<Chain> {
        let chain = format!("{name},no_fallback").parse::<Chain>().map_err(|error| bad_chain(&error))?;
        Ok(with_programs(chain))
    }

    /// The engines of a list, if one of them reads each option that the user gave.
    pub(crate) fn chain(&self, list: &str) -> anyhow::Result<Chain> {
        let chain = with_programs(list.parse::<Chain>().map_err(|error| bad_chain(&error))?);
        if self.options.saved.is_empty() && chain.engines().any(|engine| engine.name == "file") {
            return Err(Failure::bad_input("the engine file reads tables, and none are given")
                .hint("name them with --lfts FILE, as OpenSM writes opensm-lfts.dump"));
        }
        chain.check_options(&self.given).map_err(|error| bad_chain(&error))?;
        Ok(chain)
    }
}

/// Whether an option is to follow counts.
fn is_received(given: &Option<PathBuf>) -> bool {
    given.is_some() && file(given).is_none()
}

/// Takes what files say of how much hosts receive, and says what is left to be learned from a performance manager.
fn traffic(args: &EngineArgs, options: &mut EngineOptions) -> anyhow::Result<Live> {
    if let Some(path) = file(&args.weights) {
        options.weights = parsed(path, |file, text| parse_weights(file, text, WEIGHTS))?;
    }
    let mut live = Live { weights: is_received(&args.weights), order: is_received(&args.order) };
    if let Some(path) = &args.received {
        let received = parsed(path, parse_counters)?;
        options.weights = learn_weights(&received, *WEIGHTS.start(), *WEIGHTS.end());
        if std::mem::take(&mut live.order) {
            options.order = learn_order(&received);
        }
    }
    Ok(live)
}

/// A chain whose programs are run here. What they write to standard error is shown.
fn with_programs(mut chain: Chain) -> Chain {
    chain.set_outside(weft_exec::programs(|program, line| say(&format!("{program}: {line}"))));
    chain
}

/// What the engine `file` takes. Each file that belongs to tables stands at their place, or there are none of its kind.
fn saved_routing(args: &EngineArgs) -> anyhow::Result<Vec<SavedRouting>> {
    let EngineArgs { lfts, lid_matrix, sl2vl, psl, .. } = args;
    let files = SavedFiles { lfts, lid_matrix, sl2vl, psl };
    if let Some((option, given)) = files.uneven() {
        let (tables, option) = (lfts.len(), option.replace('_', "-"));
        return Err(Failure::bad_input(format!("{tables} times --lfts, and {given} times --{option}"))
            .hint(format!("name a --{option} file for each --lfts file, in the same order, or none")));
    }
    files.read(|path, saved, add| parsed(path, |file, text| add(saved, file, text)))
}

/// The nodes that serve management alone, of a list with commas or of a file that has one on each line, where `#`
/// at its beginning makes a line a comment. A description stands for all nodes that have it. Without a fabric there are no names but GUIDs.
pub(crate) fn management_nodes(list: &str, fabric: Option<&Fabric>) -> anyhow::Result<Vec<Guid>> {
    let path = Path::new(list);
    let owned = |name: &str| name.trim().to_owned();
    let mut names: Vec<String> = match path.is_file() {
        true => parsed(path, |_, text| {
            Ok::<_, String>(text.lines().map(owned).filter(|line| !line.starts_with('#')).collect())
        })?,
        false => list.split(',').map(owned).collect(),
    };
    names.retain(|name| !name.is_empty());
    let mut guids = Vec::new();
    for name in &names {
        let guid = name.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok()).map(Guid);
        let known = |fabric: &Fabric, index: NodeIndex, node: &Node| {
            let by_guid = |guid| node.guid == guid || node.end_ports().any(|(_, port)| port.guid == guid);
            let by_name = || [&*node.description, &*node.id, fabric.name(index)].contains(&name.as_str());
            !node.is_switch() && guid.map_or_else(by_name, by_guid)
        };
        let found: Vec<Guid> = match fabric {
            Some(fabric) => {
                let found = fabric.iter().filter(|(index, node)| known(fabric, *index, node));
                found.map(|(_, node)| node.guid).collect()
            }
            None => guid.into_iter().collect(),
        };
        if found.is_empty() {
            let message = format!("--management-nodes: no host or router is called `{name}`");
            return Err(Failure::bad_input(message).hint(
                "name a file, or hosts by GUID (0x…), description or id; `weft topo show FILE` lists them",
            ));
        }
        guids.extend(found);
    }
    Ok(guids)
}

/// Whom a file of GUIDs may name.
#[derive(Clone, Copy)]
enum Named {
    /// Switches, by node GUID.
    Switches,
    /// Hosts and routers, by port or node GUID.
    Hosts,
    /// Whoever has a LID, by port or node GUID.
    All,
}

/// Every GUID of the files is one of those in this fabric whom the option is about.
fn check_guids(fabric: &Fabric, args: &EngineArgs, options: &EngineOptions) -> anyhow::Result<()> {
    let mut by_guid: BTreeMap<Guid, &Node> = BTreeMap::new();
    for node in fabric.nodes() {
        by_guid.extend(node.end_ports().map(|(_, port)| (port.guid, node)));
    }
    by_guid.extend(fabric.nodes().iter().map(|node| (node.guid, node)));
    let weights: Vec<Guid> = options.weights.keys().copied().collect();
    let order = if is_received(&args.order) { &args.received } else { &args.order };
    let weighted = if args.received.is_some() { &args.received } else { &args.weights };
    for (path, guids, named) in [
        (&args.roots, &options.roots, Named::Switches),
        (&args.compute_nodes, &options.compute_nodes, Named::Hosts),
        (&args.io_nodes, &options.io_nodes, Named::Hosts),
        (order, &options.order, Named::Hosts),
        (weighted, &weights, Named::All),
    ] {
        let Some(path) = path else { continue };
        for guid in guids {
            let reason = match (by_guid.get(guid), named) {
                (None, _) => "nobody's GUID".to_owned(),
                (Some(node), Named::Switches) if !node.is_switch() => {
                    format!("{}, which is no switch", node.id)
                }
                (Some(node), Named::Switches) if node.guid != *guid => {
                    format!("a port's GUID; that of the switch {} is {}", node.id, node.guid)
                }
                (Some(node), Named::Hosts) if node.is_switch() => format!("{}, which is a switch", node.id),
                _ => continue,
            };
            return Err(Failure::bad_input(format!("{}: {guid} is {reason}", path.display()))
                .hint("`weft topo show FILE` lists the GUIDs"));
        }
    }
    Ok(())
}

fn bad_chain(error: &ChainError) -> anyhow::Error {
    let text = match error {
        ChainError::Unread { option, engines } => {
            format!("--{} means nothing to {engines}", option.replace('_', "-"))
        }
        _ => error.to_string(),
    };
    Failure::bad_input(text).hint("`weft routes engines` lists the engines and the options that each reads")
}

/// The partitions of a fabric, with the members that they have there. The subnet manager is where `weft up` would attach it.
pub(crate) fn load_partitions(path: &Path, fabric: &Fabric) -> anyhow::Result<Partitions> {
    let file = parsed(path, PartitionsFile::parse)?;
    let idle = file.flags_without_effect();
    if !idle.is_empty() {
        say(&format!("note: {}: these flags have no effect here: {}", path.display(), idle.join(", ")));
    }
    let manager = fabric.attach_place().and_then(|port| fabric.port(port)).map(|port| port.guid);
    Ok(file.resolve(fabric, manager))
}

/// The text of a partitions file.
pub(crate) fn partitions_text(path: &Path) -> anyhow::Result<String> {
    parsed(path, |_, text| Ok::<_, String>(text.to_owned()))
}

/// Reads a file of the user's. What is wrong with it is exit code 2.
pub(crate) fn parsed<T, E: Display>(
    path: &Path,
    parse: impl FnOnce(&str, &str) -> Result<T, E>,
) -> anyhow::Result<T> {
    let name = path.display().to_string();
    let bytes = weft_bundle::input::read(path)
        .map_err(|error| Failure::bad_input(format!("cannot read {name}: {error}")))?;
    // What is no UTF-8 can only be in a description, and those are for people.
    let text = String::from_utf8_lossy(&bytes);
    parse(&name, &text).map_err(|error| Failure::bad_input(error.to_string()).into())
}

/// A list of engines whose programs are found from every folder, as a manager runs in one of its own.
pub(crate) fn from_everywhere(list: &str) -> String {
    let place = |name: &str| {
        let command = name.trim().strip_prefix(PROGRAM)?.trim();
        let (program, arguments) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let absolute = std::path::absolute(program).ok().filter(|_| program.contains('/'))?;
        Some(format!("{PROGRAM}{} {arguments}", absolute.display()).trim_end().to_owned())
    };
    let names = list.split(',').map(|name| place(name).unwrap_or_else(|| name.to_owned()));
    names.collect::<Vec<_>>().join(",")
}

/// Warns where none of the engines that the user named serves the fabric; whether that is so.
pub(crate) fn warn_of_fallback(named: &str, engine: &str, fallbacks: &[String]) -> bool {
    let everywhere = from_everywhere(named);
    let mut known = named.split(',').chain(everywhere.split(',')).map(str::trim);
    let is_other = !known.any(|known| known == engine || known == AUTO);
    if is_other {
        let why = fallbacks.join("; ");
        let hint = format!("`--engine {named},no_fallback` fails instead");
        say_labelled("warning:", "33", &format!("{engine} took over: {why}"));
        say_labelled("hint:", "36", &hint);
    }
    is_other
}
