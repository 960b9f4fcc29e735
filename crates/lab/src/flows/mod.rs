//! Traffic of a running laboratory: flows and patterns of flows between its hosts, by way of the hub, which owns them.

mod paths;
mod patterns;
mod units;

use std::time::Duration;

use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_bundle::names::HUB;
use weft_bundle::plan::seats;
use weft_control::agent::PortEnd;
use weft_control::flow::{FlowChoice, FlowEnd, FlowLine, FlowOrder, FlowRefused, FlowShape};
use weft_control::{Answer, ErrorCode, HexGuid, NamePage, Request};
use weft_process::{Client, ClientError, all_pages, unexpected};
use weft_topology::{NodeIndex, PortRef};

pub use paths::{FlowHop, FlowPath, paths};
pub use patterns::{Pair, Pattern};
pub use units::Units;

use crate::view::{Lab, VM_PREFIX};

/// Longer than the hub takes where agents do not answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Flows that begin with one request.
const CHUNK: usize = 1024;

/// Bytes per second that flows without a rate may have together, and each of them, where packets take no time: one stream alone would
/// keep both of its agents busy, and with them links and managers.
pub const TOTAL_DEFAULT: u64 = 32_000_000;
/// The most of it for one flow.
pub const EACH_DEFAULT: u64 = 4_000_000;
/// The least.
const EACH_LEAST: u64 = 1000;

/// Bytes per second of each flow where no rate is named, by the number of all flows.
pub fn default_rate(flows: usize) -> u64 {
    (TOTAL_DEFAULT / flows.max(1) as u64).clamp(EACH_LEAST, EACH_DEFAULT)
}

/// What began, and what did not.
#[derive(Debug, Default)]
pub struct Begun {
    /// The names of flows that have begun.
    pub names: Vec<String>,
    /// Those that have not, and why.
    pub refused: Vec<FlowRefused>,
}

/// The end of a flow at the host, port or virtual machine of this name.
///
/// # Errors
/// When there is no such host, or it has no cable.
pub fn end(lab: &Lab, name: &str) -> anyhow::Result<FlowEnd> {
    let (node, port) = lab.find_seat(name)?;
    let port = seats::named(&lab.fabric, node, port, "another host")?;
    end_at(lab, port, name.strip_prefix(VM_PREFIX).map(|_| name))
}

fn end_at(lab: &Lab, port: PortRef, vm: Option<&str>) -> anyhow::Result<FlowEnd> {
    let (node, label) = (lab.fabric.node(port.node), lab.fabric.label(port.node));
    if node.is_switch() {
        let failure = Failure::bad_input(format!("`{label}` is a switch: flows go between hosts"));
        return Err(failure.hint("`weft ps` lists the hosts"));
    }
    let missing = || Failure::new(format!("the laboratory has no agent for `{label}`"));
    let (agent, _) = lab.record.device(node.guid).ok_or_else(missing)?;
    let known = lab.fabric.port(port).ok_or_else(missing)?;
    Ok(FlowEnd {
        name: vm.map_or_else(|| label.to_string(), str::to_owned),
        process: agent.name.clone(),
        at: PortEnd { node: HexGuid(lab.guid_at_agent(port.node)), port: port.port },
        guid: HexGuid(known.guid),
        by_name: vm.is_some() && lab.record.guids_stay,
    })
}

/// The hosts of a laboratory: adapters with a cable that are no slots of virtual machines, in the order of the cabling.
///
/// # Errors
/// When the record lacks one of them.
pub fn hosts(lab: &Lab) -> anyhow::Result<Vec<FlowEnd>> {
    let is_host = |index: &NodeIndex| {
        let node = lab.fabric.node(*index);
        let is_slot = lab.record.device(node.guid).is_none_or(|(_, device)| device.slot);
        !node.is_switch() && !is_slot
    };
    let hosts = lab.fabric.iter().map(|(index, _)| index).filter(is_host);
    let ports = hosts.filter_map(|host| Some(PortRef::new(host, lab.fabric.node(host).attach_port()?)));
    ports.map(|port| end_at(lab, port, None)).collect()
}

/// A pattern's flows among hosts; flows of a pattern are called SET-1, SET-2 and so on, with zeros in front, so that they are in order.
pub fn of_pattern(
    pattern: Pattern,
    hosts: &[FlowEnd],
    seed: u64,
    set: &str,
    shape: &FlowShape,
) -> Vec<FlowOrder> {
    let pairs = pattern.pairs(hosts.len(), seed);
    let digits = pairs.len().to_string().len();
    let order = |(number, pair): (usize, Pair)| FlowOrder {
        name: Some(format!("{set}-{:0digits$}", number + 1)),
        set: Some(set.to_owned()),
        from: hosts[pair.from].clone(),
        to: hosts[pair.to].clone(),
        shape: shape.clone(),
    };
    pairs.into_iter().enumerate().map(order).collect()
}

fn connect(folder: &LabFolder) -> anyhow::Result<Client> {
    Client::connect(&folder.control(HUB)).map_err(|error| {
        Failure::new(format!("the hub, which owns flows, does not answer: {error}"))
            .hint("`weft hub --detached` starts another")
    })
}

fn in_words(error: ClientError) -> anyhow::Error {
    match error {
        ClientError::Refused(refused) => {
            let is_input = matches!(refused.code, ErrorCode::InvalidRequest | ErrorCode::NotFound);
            let failure =
                if is_input { Failure::bad_input(refused.message) } else { Failure::new(refused.message) };
            failure.hint_if_any(refused.hint)
        }
        other => Failure::new(format!("the hub does not answer: {other}"))
            .hint("`weft flow ls` tells which flows there are"),
    }
}

/// Begins flows.
///
/// # Errors
/// When the hub refuses them all, or does not answer. Flows that an agent refuses are no error: they are listed.
pub fn start(folder: &LabFolder, orders: &[FlowOrder]) -> anyhow::Result<Begun> {
    let mut client = connect(folder)?;
    let mut all = Begun::default();
    for flows in orders.chunks(CHUNK) {
        let request = Request::FlowStart { flows: flows.to_vec() };
        let Answer::FlowStart { begun, refused } = client.ask(request, PATIENCE).map_err(in_words)? else {
            return unexpected("flow-start");
        };
        all.names.extend(begun);
        all.refused.extend(refused);
    }
    Ok(all)
}

/// Ends flows: how many, and those of which an agent did not hear.
///
/// # Errors
/// When the hub knows one of them not, or does not answer.
pub fn stop(folder: &LabFolder, choice: FlowChoice) -> anyhow::Result<(u64, Vec<FlowRefused>)> {
    match connect(folder)?.ask(Request::FlowStop(choice), PATIENCE).map_err(in_words)? {
        Answer::FlowStop { stopped, unheard } => Ok((stopped, unheard)),
        _ => unexpected("flow-stop"),
    }
}

/// All flows, in order of their names.
///
/// # Errors
/// When the hub does not answer.
pub fn list(folder: &LabFolder) -> anyhow::Result<Vec<FlowLine>> {
    list_in_units(folder).map(|(flows, _)| flows)
}

/// The same with the units of the laboratory's rates.
///
/// # Errors
/// When the hub does not answer.
pub fn list_in_units(folder: &LabFolder) -> anyhow::Result<(Vec<FlowLine>, Units)> {
    let mut client = connect(folder)?;
    let mut units = Units::default();
    let flows = all_pages(|last: Option<&FlowLine>| {
        let page = NamePage { after: last.map(|flow| flow.name.clone()), limit: None };
        let answer = client.ask(Request::LabFlows(page), PATIENCE).map_err(in_words)?;
        let Answer::LabFlows { flows, more, dilation } = answer else { return unexpected("lab-flows") };
        units = Units { dilation };
        anyhow::Ok((flows, more))
    })?;
    Ok((flows, units))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_without_a_rate_share_what_the_machine_can_spare() {
        assert_eq!(default_rate(1), EACH_DEFAULT);
        assert_eq!(default_rate(8), EACH_DEFAULT);
        assert_eq!(default_rate(64), TOTAL_DEFAULT / 64);
        assert_eq!(default_rate(1_000_000), EACH_LEAST);
        assert_eq!(default_rate(0), EACH_DEFAULT);
    }
}
