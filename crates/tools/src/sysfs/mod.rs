//! The files that the kernel has under /sys of an HCA, for a node of the laboratory.
//!
//! The node's own management is asked with SMPs from inside; the counters, which the PMA
//! only tells by LID, are asked of its agent. Nothing is written that no one counts: there are no `hw_counters`.

mod text;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_control::HexGuid;
use weft_control::agent::{PortEnd, PortTotals};
use weft_lab::agents::read_ports;
use weft_lab::survey::{Session, limits};
use weft_lab::view::Lab;
use weft_mgmt::{DirectedPath, Request, SmpRoute, Window};
use weft_topology::NodeIndex;
use weft_wire::{
    AttributeId, Gid, Guid, GuidInfo, Mad, MlnxExtPortInfo, NodeDescription, NodeInfo, PKey, PKeyTable,
    PortInfo, PortNum,
};

/// What programs of weft's libibumad call the device, too.
pub const DEVICE: &str = "weft_0";

/// The version of the kernel's user_mad interface that libibumad expects.
const ABI_VERSION: u32 = 5;

/// GUIDs in one block of GUIDInfo, and keys in one block of the P_Key table (IBA 14.2.5.5, 14.2.5.7).
const GUIDS: usize = 8;
const KEYS: usize = 32;

/// Blocks asked of one port at most, whatever it says that it has.
const BLOCKS_MAX: usize = 64;

const WINDOW: Window = Window::Fixed(16);

/// Writes the node's files to a folder that stands for /sys: class/infiniband and class/infiniband_mad.
///
/// # Errors
/// When the node's management or its agent does not answer, or a file cannot be written.
pub fn write(lab: &Lab, node: NodeIndex, sys: &Path) -> anyhow::Result<()> {
    let node = lab.fabric.node(node);
    let numbers: Vec<PortNum> = node.end_ports().map(|(port, _)| port).collect();
    let tree =
        Tree { device: sys.join("class/infiniband").join(DEVICE), mad: sys.join("class/infiniband_mad") };
    for (index, number) in numbers.iter().enumerate() {
        let mut session = Session::attach(&lab.folder, &lab.record, node.guid, *number)?;
        let port = Port::ask(&mut session, *number)?;
        let totals = totals(lab, PortEnd { node: HexGuid(node.guid), port: *number })?;
        if index == 0 {
            tree.node(&port)?;
        }
        tree.port(&port, &totals)?;
        tree.mad(index, *number)?;
    }
    put(&tree.mad, "abi_version", ABI_VERSION)
}

/// What a port counted, as its agent says.
fn totals(lab: &Lab, end: PortEnd) -> anyhow::Result<PortTotals> {
    let (agent, _) = lab.record.device(end.node.0).context("the laboratory has no such node")?;
    let name = agent.name.as_str();
    let mut ports = read_ports(&lab.folder, [name])?;
    if let Some(error) = ports.silent.remove(name) {
        return Err(error).with_context(|| format!("agent {name} does not answer"));
    }
    let port = ports.told.remove(&end);
    Ok(port.with_context(|| format!("agent {name} says nothing of port {}", end.port))?.totals)
}

/// What a port's management says.
struct Port {
    number: PortNum,
    node: NodeInfo,
    description: String,
    info: PortInfo,
    fdr10: bool,
    gids: Vec<Gid>,
    p_keys: Vec<PKey>,
}

impl Port {
    fn ask(session: &mut Session, number: PortNum) -> anyhow::Result<Self> {
        let first = [
            (AttributeId::NodeInfo, 0),
            (AttributeId::NodeDescription, 0),
            (AttributeId::PortInfo, u32::from(number.0)),
            (AttributeId::MlnxExtPortInfo, u32::from(number.0)),
        ];
        let answers = Answers::ask(session, &first)?;
        let node = NodeInfo::decode(answers.needed(first[0])?.smp_attribute());
        let description = NodeDescription::decode(answers.needed(first[1])?.smp_attribute());
        let info = PortInfo::decode(answers.needed(first[2])?.smp_attribute());
        // Only some answer this; PortInfo has no bit for FDR10.
        let extended = answers.get(first[3]).map(|mad| MlnxExtPortInfo::decode(mad.smp_attribute()));
        let fdr10 = extended.is_some_and(|info| info.link_speed_active & MlnxExtPortInfo::FDR10 != 0);
        // A switch's port 0 has its GUID like any other end port.
        let guids = usize::from(info.guid_cap).max(1);
        let keys = usize::from(node.partition_cap);
        let blocks = |count: usize, size: usize| 0..count.div_ceil(size).min(BLOCKS_MAX) as u32;
        let guid_blocks = blocks(guids, GUIDS).map(|block| (AttributeId::GuidInfo, block));
        let key_blocks = blocks(keys, KEYS).map(|block| (AttributeId::PKeyTable, block));
        let tables: Vec<_> = guid_blocks.clone().chain(key_blocks.clone()).collect();
        let answers = Answers::ask(session, &tables)?;
        let own = || [session.attached().port_guid].to_vec();
        let mut table = Vec::new();
        for block in guid_blocks {
            table.extend(
                answers
                    .get(block)
                    .map(|mad| GuidInfo::decode(mad.smp_attribute()).guids)
                    .into_iter()
                    .flatten(),
            );
        }
        let table: Vec<Guid> = if table.is_empty() { own() } else { table };
        let gid = |guid: Guid| Gid { prefix: info.gid_prefix, guid };
        let gids = table.into_iter().take(guids).map(gid).collect();
        let mut p_keys = Vec::new();
        for block in key_blocks {
            p_keys.extend(PKeyTable::decode(answers.needed(block)?.smp_attribute()).p_keys);
        }
        p_keys.truncate(keys);
        let description = description.to_text();
        Ok(Self { number, node, description, info, fdr10, gids, p_keys })
    }
}

/// Attribute and modifier.
type Question = (AttributeId, u32);

/// What the node answered without complaint.
struct Answers(BTreeMap<Question, Mad>);

impl Answers {
    fn ask(session: &mut Session, questions: &[Question]) -> anyhow::Result<Self> {
        let here = SmpRoute::Directed(DirectedPath::new(&[]).context("an empty path is a path")?);
        let requests =
            questions.iter().map(|question| (*question, Request::get(question.0, question.1).by(&here)));
        let mut answers = BTreeMap::new();
        session.exchange(None, limits(WINDOW), requests.collect(), |question, answer, _| {
            if let Some(answer) = answer.filter(|answer| answer.mad.status() == 0) {
                answers.insert(question, answer.mad);
            }
        })?;
        Ok(Self(answers))
    }

    fn get(&self, question: Question) -> Option<&Mad> {
        self.0.get(&question)
    }

    fn needed(&self, question: Question) -> anyhow::Result<&Mad> {
        self.get(question).with_context(|| format!("the node does not answer Get({})", question.0))
    }
}

/// Where the files are.
struct Tree {
    device: PathBuf,
    mad: PathBuf,
}

impl Tree {
    fn node(&self, port: &Port) -> anyhow::Result<()> {
        let node = &port.node;
        let put = |name, value: String| put(&self.device, name, value);
        put("node_type", text::node_type(node.node_type))?;
        put("node_guid", text::eui64(node.node_guid))?;
        put("sys_image_guid", text::eui64(node.system_image_guid))?;
        put("node_desc", port.description.clone())?;
        put("hw_rev", format!("{:x}", node.revision))?;
        // As the programs over weft's libibumad hear it.
        put("fw_ver", env!("CARGO_PKG_VERSION").to_owned())?;
        put("hca_type", "weft".to_owned())?;
        put("board_id", "weft".to_owned())
    }

    fn port(&self, port: &Port, totals: &PortTotals) -> anyhow::Result<()> {
        let folder = self.device.join("ports").join(port.number.to_string());
        let info = &port.info;
        for (name, value) in [
            ("state", text::state(info.port_state)),
            ("phys_state", text::phys_state(info.port_physical_state)),
            ("lid", format!("{:#x}", info.lid.0)),
            ("lid_mask_count", info.lmc.to_string()),
            ("sm_lid", format!("{:#x}", info.master_sm_lid.0)),
            ("sm_sl", info.master_sm_sl.to_string()),
            ("cap_mask", format!("{:#010x}", info.capability_mask)),
            ("rate", text::rate(info, port.fdr10)),
            ("link_layer", "InfiniBand".to_owned()),
        ] {
            put(&folder, name, value)?;
        }
        for (index, gid) in port.gids.iter().enumerate() {
            put(&folder.join("gids"), &index.to_string(), text::gid(*gid))?;
        }
        for (index, p_key) in port.p_keys.iter().enumerate() {
            put(&folder.join("pkeys"), &index.to_string(), p_key)?;
        }
        text::counters(totals).iter().try_for_each(|(name, value)| put(&folder.join("counters"), name, value))
    }

    /// What belongs to the device files of user_mad. A switch's only port is 0, as in the kernel.
    fn mad(&self, index: usize, port: PortNum) -> anyhow::Result<()> {
        ["umad", "issm"].into_iter().try_for_each(|kind| {
            let folder = self.mad.join(format!("{kind}{index}"));
            put(&folder, "ibdev", DEVICE)?;
            put(&folder, "port", port)
        })
    }
}

/// Writes a file of one line. Whoever reads meanwhile sees the old line or the new one.
fn put(folder: &Path, name: &str, value: impl std::fmt::Display) -> anyhow::Result<()> {
    let path = folder.join(name);
    let new = folder.join(format!(".{name}.new"));
    let written = fs::create_dir_all(folder)
        .and_then(|()| fs::write(&new, format!("{value}\n")))
        .and_then(|()| fs::rename(&new, &path));
    written.map_err(|error| Failure::bad_input(format!("cannot write {}: {error}", path.display())).into())
}
