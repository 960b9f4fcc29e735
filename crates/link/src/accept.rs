//! The end of a cable that is dialled.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use quinn::{Connection, Incoming};
use tokio::task::spawn_local;
use tokio::time::timeout;

use crate::codec::{self, Control, ControlError, Hello};
use crate::credentials::peer_certificate;
use crate::dial::meaning;
use crate::handshake_slots::{HandshakeSlot, TurnedAway, turn_away};
use crate::identity::covers;
use crate::reason::RefusalReason;
use crate::state::{Inner, Slot};
use crate::visitor::Visitor;

/// Takes every connection that peers dial.
pub(crate) async fn accept_forever(inner: Rc<Inner>) {
    while let Some(incoming) = inner.endpoint.accept().await {
        let validated = incoming.remote_address_validated();
        match inner.places.take(incoming.remote_address(), validated) {
            Some(place) => drop(spawn_local(accept(inner.clone(), incoming, place))),
            None => match turn_away(incoming) {
                TurnedAway::Retried => inner.count_peer(|peers| peers.retried += 1),
                TurnedAway::Ignored => inner.count_peer(|peers| peers.ignored += 1),
            },
        }
    }
}

async fn accept(inner: Rc<Inner>, incoming: Incoming, place: HandshakeSlot) {
    let address = incoming.remote_address();
    let patience = Duration::from_millis(inner.config.handshake_timeout_ms);
    let outcome = timeout(patience, handshake(&inner, address, incoming)).await;
    inner.places.give_back(place);
    match outcome {
        Ok(Some((slot, connection, peer))) => inner.carry(&slot, connection, peer).await,
        Ok(None) => {}
        Err(_) => inner.count_peer(|peers| peers.unfinished += 1),
    }
}

async fn handshake(
    inner: &Rc<Inner>,
    address: SocketAddr,
    incoming: Incoming,
) -> Option<(Rc<Slot>, Connection, Hello)> {
    let connection = match incoming.accept() {
        Ok(connecting) => match connecting.await {
            Ok(connection) => match Visitor::of(connection.clone(), &inner.credentials) {
                Some(visitor) => {
                    inner.visited(visitor);
                    return None;
                }
                None => connection,
            },
            Err(error) => {
                match meaning(error) {
                    ControlError::Refused(reason) => inner.tell_refused(None, address, reason),
                    ControlError::Connection(_) => inner.count_peer(|peers| peers.unfinished += 1),
                }
                return None;
            }
        },
        Err(_) => {
            inner.count_peer(|peers| peers.unfinished += 1);
            return None;
        }
    };
    let mut slot = None;
    let error = match exchange(inner, &connection, &mut slot).await {
        Ok(hello) => return slot.map(|slot| (slot, connection, hello)),
        Err(ControlError::Connection(error)) => meaning(error),
        Err(refused) => refused,
    };
    match error {
        ControlError::Refused(reason) => {
            connection.close(reason.close_code().var_int(), reason.to_string().as_bytes());
            inner.tell_refused(slot.as_deref(), address, reason);
        }
        ControlError::Connection(_) => inner.count_peer(|peers| peers.unfinished += 1),
    }
    None
}

async fn exchange(
    inner: &Rc<Inner>,
    connection: &Connection,
    found: &mut Option<Rc<Slot>>,
) -> Result<Hello, ControlError> {
    let (mut send, mut receive) = connection.accept_bi().await?;
    let Control::Hello(peer) = codec::read(&mut receive).await? else {
        return Err(ControlError::Refused(RefusalReason::Malformed));
    };
    *found = inner.slot_between(peer.to, peer.from);
    let slot = judge(inner, connection, &peer, found.as_deref()).map_err(ControlError::Refused)?;
    codec::write(&mut send, &Control::Hello(inner.hello(slot))).await?;
    match codec::read(&mut receive).await? {
        Control::Ready => Ok(peer),
        Control::Hello(_) => Err(ControlError::Refused(RefusalReason::Malformed)),
    }
}

/// Whether the peer is who it claims to be and belongs at the other end of one of our cables.
fn judge<'a>(
    inner: &Inner,
    connection: &Connection,
    peer: &Hello,
    found: Option<&'a Slot>,
) -> Result<&'a Slot, RefusalReason> {
    if peer.lab != inner.config.lab {
        return Err(RefusalReason::WrongLab(peer.lab.clone()));
    }
    if !peer_certificate(connection).is_some_and(|certificate| covers(&certificate, peer.from.guid)) {
        return Err(RefusalReason::WrongNode(peer.from.guid));
    }
    let Some(slot) = found else {
        return Err(RefusalReason::NotCabled { from: peer.from, to: peer.to });
    };
    if slot.cable.dials() {
        return Err(RefusalReason::NotTheDialler);
    }
    if !slot.enabled.get() {
        return Err(RefusalReason::Cut);
    }
    Ok(slot)
}
