//! A check of every piece of the fabric by itself.

use weft_bundle::plan::seats;
use weft_sm::Surveyed;
use weft_topology::PortRef;
use weft_wire::{Lid, PortState, count_of};

use crate::check::{Clock, Deadlock, Options, Report, settled, text_of_piece, view};
use crate::pieces::LabPieces;
use crate::view::Lab;

/// Judges what can be sent anywhere: each piece by itself, where there are several.
pub(crate) fn judge(lab: &Lab, options: &Options, clock: &mut Clock) -> anyhow::Result<Report> {
    let of_lab = LabPieces::of(lab);
    let live = of_lab.live();
    if live.len() < 2 {
        return settled(lab, options, clock);
    }
    if let Some(name) = &options.from {
        let (node, port) = lab.find_seat(name)?;
        let seat = seats::named(&lab.fabric, node, port, "--from")?;
        let piece = of_lab.pieces.of_seat(seat).unwrap_or_default();
        return settled(&lab.piece(&of_lab.pieces, piece), options, clock);
    }
    let (mut judged, mut bare) = (Vec::new(), Vec::new());
    for piece in live {
        let (name, part) = (lab.fabric.piece_label(&of_lab.pieces, piece), lab.piece(&of_lab.pieces, piece));
        // One that another program manages is judged, too.
        if !of_lab.is_managed(piece) && !is_configured(&view::take(&part, None, clock)?.1) {
            bare.push((name, part));
            continue;
        }
        judged.push(Report { piece: Some(name), ..settled(&part, options, clock)? });
    }
    if judged.is_empty() {
        for (name, part) in std::mem::take(&mut bare) {
            judged.push(Report { piece: Some(name), ..settled(&part, options, clock)? });
        }
    }
    let mut all = together(judged);
    all.unmanaged = bare.into_iter().map(|(name, part)| (name, part.fabric.nodes().len())).collect();
    all.notes.extend(all.unmanaged.iter().map(|(name, nodes)| no_manager(name, *nodes)));
    Ok(all)
}

/// The same laboratory, or piece of one, with what is in the slots of virtual machines now; `None` without slots.
pub(crate) fn renewed(lab: &Lab) -> anyhow::Result<Option<Lab>> {
    if lab.slots.is_empty() {
        return Ok(None);
    }
    let now = Lab::load_live(&lab.folder)?;
    if lab.whole {
        return Ok(Some(now));
    }
    // Its switches stay in their piece, wherever machines go.
    let pieces = now.fabric.pieces();
    let mut switches = lab.fabric.nodes().iter().filter(|node| node.is_switch());
    let here = switches.find_map(|switch| pieces.of_node(now.fabric.by_guid(switch.guid)?).next());
    Ok(here.map(|piece| now.piece(&pieces, piece)))
}

/// Whether a subnet manager has been at work.
fn is_configured(live: &Surveyed) -> bool {
    live.fabric.iter().any(|(index, node)| {
        let ports = node.cabled_ports().filter_map(|(port, _)| live.port_info(PortRef::new(index, port)));
        let states = ports.map(|info| info.port_state);
        node.end_ports().any(|(_, end)| end.lid != Lid(0))
            || states.into_iter().any(|state| matches!(state, PortState::Armed | PortState::Active))
    })
}

/// One report of several.
fn together(pieces: Vec<Report>) -> Report {
    let mut all = Report { ok: true, subnet_up: true, ..Report::default() };
    let mut seats = Vec::new();
    for piece in &pieces {
        let name = piece.piece.as_deref().unwrap_or_default();
        let of_piece = |line: &String| format!("piece of `{name}`: {line}");
        all.ok &= piece.ok;
        all.subnet_up &= piece.subnet_up;
        all.cables_out_of_service += piece.cables_out_of_service;
        seats.push(piece.attached_to.as_str());
        all.switches += piece.switches;
        all.hosts += piece.hosts;
        all.cables += piece.cables;
        all.ports_active += piece.ports_active;
        all.lids += piece.lids;
        all.table_pairs += piece.table_pairs;
        all.detours += piece.detours;
        all.packets += piece.packets;
        all.packets_withheld += piece.packets_withheld;
        all.packets_not_tried += piece.packets_not_tried;
        all.notes.extend(piece.notes.iter().map(of_piece));
        all.problems.extend(piece.problems.iter().map(of_piece));
    }
    all.attached_to = seats.join(", ");
    // A circle in one piece is what there is to say of all.
    let has_cycle = |report: &&Report| report.deadlock.as_ref().is_some_and(|found| found.cycle.is_some());
    let deadlock = pieces.iter().find(has_cycle).or(pieces.first()).and_then(|piece| piece.deadlock.as_ref());
    all.deadlock = deadlock.map(|found| Deadlock { cycle: found.cycle.clone(), ..*found });
    all.pieces = pieces;
    all
}

fn no_manager(piece: &str, nodes: usize) -> String {
    format!("no subnet manager in the piece of `{piece}`: {}", count_of(nodes, "node"))
}

/// What was found, for people.
pub fn text(report: &Report) -> String {
    if report.pieces.is_empty() {
        return text_of_piece(report);
    }
    let mut text = String::new();
    for piece in &report.pieces {
        text += &format!("piece of `{}`:\n", piece.piece.as_deref().unwrap_or_default());
        text += &text_of_piece(piece);
    }
    for (name, nodes) in &report.unmanaged {
        text += &format!("note: {}\n", no_manager(name, *nodes));
    }
    let bad = report.pieces.iter().filter(|piece| !piece.ok).count();
    let of = count_of(report.pieces.len(), "piece");
    text += &match bad {
        0 => format!("ok: {of} with a subnet manager\n"),
        bad => format!("not ok: {bad} of {of}\n"),
    };
    text
}
