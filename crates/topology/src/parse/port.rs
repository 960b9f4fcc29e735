//! A port's line.

use super::at::At;
use super::comment::{self, Ends, LidLmc};
use super::draft::{NodeDraft, PortDraft, RemoteDraft, Spot};
use super::error::Problem;
use super::line::{Line, LineError, check_name};
use super::settings::UNSAID;
use crate::{LinkMasks, LinkRate};

/// A port's line after its number; a spot for the port is the caller's to give.
pub(super) type PortLine = (PortDraft, LidLmc, Option<Spot>);

pub(super) fn read_alias(mut line: Line<'_>, at: At<'_>, owner: &NodeDraft) -> Result<PortLine, LineError> {
    line.skip_spaces();
    let start = line.offset();
    let alias = line.quoted("an alias in quotes")?;
    check_name(&line, start, alias)?;
    let spot = Spot { text: alias.to_owned(), ..at.spot(start..line.offset()) };
    let (masks, comment) = read_options(&mut line, at, owner)?;
    Ok((PortDraft { spot: spot.clone(), guid: None, masks, remote: None }, comment.own, Some(spot)))
}

pub(super) fn read_cable(
    mut line: Line<'_>,
    at: At<'_>,
    owner: &NodeDraft,
    module: &str,
) -> Result<PortLine, LineError> {
    line.skip_external_port()?;
    let guid = line.guid_in_parentheses()?;
    line.skip_spaces();
    let start = line.offset();
    let name = line.quoted("the id of the node at the other end, in quotes")?;
    if name.is_empty() {
        return Err(line.fault(start, Problem::Expected("a name that is not empty")));
    }
    line.skip_spaces();
    let port_start = line.offset();
    let port = line.port_in_brackets()?;
    let port = port.map(|port| (port, at.spot(port_start..line.offset())));
    let spot = at.spot(start..line.offset().min(at.text.len()));
    line.skip_external_port()?;
    line.skip_spaces();
    let guid_start = line.offset();
    let remote_guid = line.guid_in_parentheses()?;
    let remote_guid = remote_guid.map(|guid| (guid, at.spot(guid_start..line.offset())));
    let (masks, comment) = read_options(&mut line, at, owner)?;
    let remote = RemoteDraft {
        spot: Spot { text: spot.text.trim_end().to_owned(), ..spot.clone() },
        name: name.to_owned(),
        module: module.to_owned(),
        port,
        guid: remote_guid,
        lid: comment.remote,
    };
    Ok((PortDraft { spot, guid, masks, remote: Some(remote) }, comment.own, None))
}

/// The options `w= s= e=`, then the comment. The options say more than the comment's rate, which says more than
/// the defaults.
fn read_options(
    line: &mut Line<'_>,
    at: At<'_>,
    owner: &NodeDraft,
) -> Result<(Option<LinkMasks>, comment::PortComment), LineError> {
    let mut options = Vec::new();
    loop {
        line.skip_spaces();
        if line.rest().is_empty() || line.rest().starts_with('#') {
            break;
        }
        let name = line.rest().chars().next().unwrap_or('#');
        if !(line.take("w=") || line.take("s=") || line.take("e=") || line.take("v=")) {
            return Err(line.expected("an option `w=`, `s=` or `e=`, a comment or the end of the line"));
        }
        let range = match name {
            'w' => 1..=31,
            's' => 0..=7,
            'e' => 0..=31,
            _ => 0..=255,
        };
        options.push((name, line.number("the mask", range)? as u8));
    }
    let comment = if line.take("#") {
        comment::port(line.offset(), line.rest(), at.port_ends())?
    } else if at.port_ends() == Ends::Cut {
        return Err(comment::truncated(0, at.text));
    } else {
        comment::PortComment::default()
    };
    if options.is_empty() && comment.rate.is_none() {
        return Ok((None, comment));
    }
    let mut masks = comment.rate.map_or(owner.masks.unwrap_or(UNSAID), LinkRate::enabled);
    for (name, mask) in options {
        match name {
            'w' => masks.width = mask,
            // ibsim reads 0 as QDR.
            's' => masks.speed = if mask == 0 { 4 } else { mask },
            'e' => masks.speed_ext = mask,
            // `ibnetdiscover -f` adds the number of lanes, which is no property of a cable.
            _ => {}
        }
    }
    Ok((Some(masks), comment))
}
