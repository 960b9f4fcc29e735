//! `weft sm disable`, `standby` and `discover`: the master tells another manager what the operator wants of it.

use std::time::Duration;

use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_bundle::names::SM;
use weft_bundle::record::LabRecord;
use weft_control::sm::{Instructed, Instruction};
use weft_control::{Answer, Request};
use weft_lab::managers::{in_charge, subnet_managers};
use weft_lab::view::Lab;
use weft_process::{Client, ClientError, unexpected};
use weft_topology::PortRef;
use weft_wire::{Guid, PortNum};

use crate::cli::managers::{OtherManager, SmVerb};

/// Longer than a master waits for another manager's answer, unless its options say otherwise.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn run(folder: &LabFolder, verb: &SmVerb) -> anyhow::Result<()> {
    let lab = Lab::load(folder)?;
    let (instruction, OtherManager { manager }) = match verb {
        SmVerb::Disable(manager) => (Instruction::Disable, manager),
        SmVerb::Standby(manager) => (Instruction::Standby, manager),
        SmVerb::Discover(manager) => (Instruction::Discover, manager),
    };
    if lab.record.sm.is_none() {
        return Err(Failure::new("this laboratory has no subnet manager of weft's")
            .hint("with another one, `sminfo -s 3 LID MODIFIER` sends Set(SMInfo)"));
    }
    let guid = port_guid(&lab, manager)?;
    let managers = subnet_managers(folder, &piece_with(&lab, guid))?;
    let master = in_charge(&managers).map_or_else(|| SM.to_owned(), |manager| manager.name.clone());
    if *manager == master {
        return Err(Failure::bad_input(format!("{master} is the master, which commands the others"))
            .hint("`weft fault kill` ends it"));
    }
    let silent = |_: ClientError| {
        Failure::new("the subnet manager does not answer").hint("`weft status` tells how it is")
    };
    let request = Request::SmInstruct { guid: guid.into(), instruction };
    let answer =
        Client::connect(&folder.control(&master)).and_then(|mut client| client.ask(request, PATIENCE));
    let Answer::SmInstruct { outcome } = answer.map_err(silent)? else { return unexpected("sm-instruct") };
    if let Some(failure) = refusal(outcome, manager, &master) {
        return Err(failure);
    }
    crate::output::say(&format!("{manager} obeys {}", instruction.name()));
    Ok(())
}

/// The record of the piece of the fabric that a manager's port is in: its master commands it.
fn piece_with(lab: &Lab, guid: Guid) -> LabRecord {
    let pieces = lab.fabric.pieces();
    let ports = lab.fabric.iter().flat_map(|(index, node)| {
        node.end_ports().map(move |(number, port)| (PortRef::new(index, number), port.guid))
    });
    let seat = ports.filter(|(_, own)| *own == guid).map(|(seat, _)| seat).next();
    let piece = seat.and_then(|seat| pieces.of_seat(seat)).filter(|_| pieces.len() > 1);
    piece.map_or_else(|| lab.record.clone(), |piece| lab.piece(&pieces, piece).record)
}

/// Why nothing came of it; `None` if the other manager obeys.
fn refusal(outcome: Instructed, manager: &str, master: &str) -> Option<anyhow::Error> {
    let states = "`weft status` lists the managers and their states";
    Some(match outcome {
        Instructed::Accepted => return None,
        Instructed::Refused => Failure::new(format!("{manager} refuses: the command does not fit its state"))
            .hint(
                "disable and discover are for managers that stand by, standby for those that are not active",
            ),
        Instructed::Unanswered => Failure::new(format!("{manager} does not answer {master}")).hint(states),
        Instructed::Unknown => Failure::new(format!("{master} knows no manager {manager}"))
            .hint("one that has just begun is known after the next sweep; `weft status` lists the managers"),
        Instructed::Untrusted => Failure::new(format!("{manager} shows another SM_Key than {master}"))
            .hint("--sm-key gives managers the same key"),
        Instructed::NotMaster => Failure::new(format!("{master} is not the master")).hint(states),
        Instructed::Busy => Failure::new(format!("{master} waits for the answer to another command")).into(),
    })
}

/// The port of a manager that is named by its process, its port GUID or its node.
fn port_guid(lab: &Lab, manager: &str) -> anyhow::Result<Guid> {
    let place = lab.record.subnet_managers().find(|(name, _)| name == manager);
    let place = place.map(|(_, place)| (place.node, place.port));
    let known =
        |guid: Guid| lab.fabric.iter().any(|(_, node)| node.end_ports().any(|(_, port)| port.guid == guid));
    if let Some(guid) = manager.parse().ok().filter(|guid| place.is_none() && known(*guid)) {
        return Ok(guid);
    }
    let node = match place {
        Some((node, _)) => lab.fabric.by_guid(node).unwrap_or_default(),
        None => lab.find(manager)?,
    };
    let mut ports = lab.fabric.node(node).end_ports();
    let port = match place {
        Some((_, port)) => ports.find(|(number, _)| *number == port),
        None => ports.find(|(number, end)| *number == PortNum::ZERO || end.peer.is_some()),
    };
    let port = port.map(|(_, port)| port.guid);
    Ok(port.ok_or_else(|| Failure::bad_input(format!("`{manager}` has no cabled port")))?)
}
