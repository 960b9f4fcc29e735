//! The rules of the directed route (IBA 14.2.2), one pure function over an SMP, a node and a way of arrival.
//!
//! Outgoing (D = 0); the pointer counts the hops done:
//!
//! | pointer | from | done |
//! |---|---|---|
//! | 0, count > 0 | a program here, or the LID-routed head (switch) | pointer 1, leave by `initial_path[1]` |
//! | 0 < pointer < count | the link (switch) | note the port of arrival, pointer + 1, leave by `initial_path[pointer + 1]` |
//! | = count | the link; for count 0, a program here or the LID-routed head | note the port, pointer + 1; deliver, or (switch) go on to DrDLID |
//! | = count + 1 | the LID-routed tail | deliver |
//!
//! Returning (D = 1); the same path backwards:
//!
//! | pointer | from | done |
//! |---|---|---|
//! | = count + 1 | the SMA here, or the LID-routed tail (switch) | pointer - 1, leave by `return_path[pointer]` |
//! | 2 ≤ pointer ≤ count | the link (switch) | pointer - 1, leave by `return_path[pointer - 1]` |
//! | 1 | the link; for count 0, the SMA here | pointer 0; deliver, or (switch) go on to DrSLID |
//! | 0 | the LID-routed head | deliver |
//!
//! Everything else is discarded: more than 63 hops, a pointer that the way of arrival does not fit, a port that
//! the node does not have. An SMP of no hops never crosses a link, since its answer would find no way back.

use weft_wire::{DirectedSmp, HOPS_MAX, INITIAL_PATH, Lid, MAD_SIZE, PortNum, RETURN_PATH};

/// How an SMP came to the node's subnet management interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// From the node's own SMA, or from a program attached to the port.
    Local,
    /// Over the port's link, addressed to whoever is at the other end.
    Link,
    /// Over the port's link or from within, addressed to the node's own LID.
    Lid,
}

/// The node that the SMP is at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Here {
    /// Whether SMPs may pass through.
    pub(crate) is_switch: bool,
    /// How many physical ports there are.
    pub(crate) ports: u8,
    /// The port of arrival, or the port that the program is attached to.
    pub(crate) port: PortNum,
    /// The way of arrival.
    pub(crate) arrival: Arrival,
}

/// What is to be done with an SMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It has arrived: at the SMA when outgoing, at the program that asked when returning.
    Deliver,
    /// Send it out of this port, still on its directed route.
    Leave(PortNum),
    /// Its directed route is over; it goes on by LID.
    LidRoute(Lid),
    /// It cannot be.
    Discard,
}

/// Takes an SMP one step on its directed route and patches what the step changes.
pub(crate) fn step(smp: &mut [u8; MAD_SIZE], here: Here) -> Step {
    let pointer = usize::from(DirectedSmp::hop_pointer.get(smp));
    let count = usize::from(DirectedSmp::hop_count.get(smp));
    if count > HOPS_MAX || pointer > count + 1 {
        Step::Discard
    } else if DirectedSmp::direction.get(smp) {
        returning(smp, here, pointer, count)
    } else {
        outgoing(smp, here, pointer, count)
    }
}

fn outgoing(smp: &mut [u8; MAD_SIZE], here: Here, pointer: usize, count: usize) -> Step {
    match here.arrival {
        Arrival::Local | Arrival::Lid if pointer == 0 && count == 0 => end_of_route(smp, here, pointer),
        Arrival::Local if pointer == 0 => leave(smp, here, 1, path_entry(smp, INITIAL_PATH, 1)),
        Arrival::Lid if pointer == 0 && here.is_switch => {
            leave(smp, here, 1, path_entry(smp, INITIAL_PATH, 1))
        }
        Arrival::Link if 0 < pointer && pointer < count && here.is_switch => {
            note_arrival(smp, here, pointer);
            leave(smp, here, pointer + 1, path_entry(smp, INITIAL_PATH, pointer + 1))
        }
        Arrival::Link if pointer == count && count > 0 => {
            note_arrival(smp, here, pointer);
            end_of_route(smp, here, pointer)
        }
        Arrival::Lid if pointer == count + 1 => Step::Deliver,
        _ => Step::Discard,
    }
}

/// The last node of the directed part: the SMP is for it, or for someone whom its table knows.
fn end_of_route(smp: &mut [u8; MAD_SIZE], here: Here, pointer: usize) -> Step {
    set_pointer(smp, pointer + 1);
    match DirectedSmp::dr_dlid.get(smp) {
        Lid::PERMISSIVE => Step::Deliver,
        lid if here.is_switch => Step::LidRoute(lid),
        _ => Step::Discard,
    }
}

fn returning(smp: &mut [u8; MAD_SIZE], here: Here, pointer: usize, count: usize) -> Step {
    match here.arrival {
        Arrival::Local | Arrival::Lid if count == 0 && pointer == 1 => start_of_route(smp, here),
        Arrival::Local if pointer == count + 1 => {
            leave(smp, here, count, path_entry(smp, RETURN_PATH, count))
        }
        Arrival::Lid if pointer == count + 1 && here.is_switch => {
            leave(smp, here, count, path_entry(smp, RETURN_PATH, count))
        }
        Arrival::Link if 2 <= pointer && pointer <= count && here.is_switch => {
            leave(smp, here, pointer - 1, path_entry(smp, RETURN_PATH, pointer - 1))
        }
        Arrival::Link if pointer == 1 && count > 0 => start_of_route(smp, here),
        Arrival::Lid if pointer == 0 => Step::Deliver,
        _ => Step::Discard,
    }
}

/// Back at the first node of the directed part: the program that asked is here, or known to the table.
fn start_of_route(smp: &mut [u8; MAD_SIZE], here: Here) -> Step {
    set_pointer(smp, 0);
    match DirectedSmp::dr_slid.get(smp) {
        Lid::PERMISSIVE => Step::Deliver,
        lid if here.is_switch => Step::LidRoute(lid),
        _ => Step::Discard,
    }
}

/// Leaves by `port` with a new pointer. An HCA passes nothing from one of its ports to another.
fn leave(smp: &mut [u8; MAD_SIZE], here: Here, pointer: usize, port: PortNum) -> Step {
    let exists = (1..=here.ports).contains(&port.0);
    if !exists || !(here.is_switch || port == here.port) {
        return Step::Discard;
    }
    set_pointer(smp, pointer);
    Step::Leave(port)
}

fn set_pointer(smp: &mut [u8; MAD_SIZE], pointer: usize) {
    DirectedSmp::hop_pointer.set(smp, pointer as u8);
}

/// One entry, without decoding the other 63. The index has been checked against the hop count.
fn path_entry(smp: &[u8; MAD_SIZE], path: std::ops::Range<usize>, index: usize) -> PortNum {
    PortNum(smp[path][index & HOPS_MAX])
}

fn note_arrival(smp: &mut [u8; MAD_SIZE], here: Here, index: usize) {
    smp[RETURN_PATH][index & HOPS_MAX] = here.port.0;
}

#[cfg(test)]
mod tests;
