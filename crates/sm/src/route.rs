//! From LIDs and cabling to forwarding tables. A pure function: the same fabric gets the same tables again.

use weft_routing::{LidError, Lids, Routes, minhop};

use crate::assign::{Claim, assign};
use crate::guid2lid::{GuidToLid, LidRange};
use crate::subnet::{Subnet, graph_port, own_lid};
use crate::{Event, Options};
use weft_wire::{Lid, PortNum};

/// Gives every end port its LIDs, and says which are new.
pub(crate) fn give_lids(subnet: &mut Subnet, known: &mut GuidToLid, options: &Options) -> Vec<Event> {
    let mut ends: Vec<_> = subnet
        .end_ports()
        .map(|(at, port)| {
            let lmc = if at.port == PortNum::ZERO { 0 } else { options.lmc.min(7) };
            (Claim { guid: subnet.end_guid(at), present: own_lid(port).unwrap_or(Lid(0)), lmc }, at)
        })
        .collect();
    ends.sort_by_key(|(claim, at)| (claim.guid, *at));
    let mut events = Vec::new();
    ends.dedup_by(|(later, at), (first, _)| {
        let twice = later.guid == first.guid;
        if twice {
            let path = subnet.path(*at).unwrap_or_default();
            events.push(Event::DuplicateGuid { guid: first.guid, first: path, second: path });
        }
        twice
    });
    let claims: Vec<Claim> = ends.iter().map(|(claim, _)| *claim).collect();
    let given = assign(&claims, known);
    for ((claim, at), lids) in ends.iter().zip(given) {
        if let Some(port) = subnet.port_mut(*at) {
            port.lid = lids;
        }
        match lids {
            None => events.push(Event::LidsExhausted { port_guid: claim.guid }),
            Some(LidRange { min, .. }) if min != claim.present => {
                events.push(Event::LidAssigned { port_guid: claim.guid, lid: min, before: claim.present });
            }
            Some(_) => {}
        }
    }
    events
}

/// Computes the tables of all switches.
pub(crate) fn route(subnet: &Subnet) -> Result<(Lids, Routes), LidError> {
    let mut ends: Vec<_> =
        subnet.end_ports().filter_map(|(at, port)| Some((port.lid?, graph_port(at)))).collect();
    ends.sort_by_key(|(lids, _)| *lids);
    let mut lids = Lids::new();
    for (range, port) in ends {
        lids.insert(port, range.min, range.lmc())?;
    }
    let routes = minhop(&subnet.fabric, &lids);
    Ok((lids, routes))
}
