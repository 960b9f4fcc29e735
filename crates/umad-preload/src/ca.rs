//! Adapters and their ports, as a kernel tells of them under `/sys`.

use std::ffi::{c_char, c_int, c_uint, c_void};

use umad::user_mad::PortAttributes;
use weft_wire::{Bits as _, PortNum};

use crate::abi::{NAME_BYTES, PORTS_MAX, UmadCa, UmadPort, allocate, text};
use crate::guard::{guard, number, tell};
use crate::place::{CA_NAME, UmadNode, is_ours};

/// libibumad asks the kernel for its version; here it is asked whether there is an agent at all.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn umad_init() -> c_int {
    guard(-1, || match UmadNode::ask() {
        Ok(_) => 0,
        Err(error) => {
            eprintln!("weft: no port to attach to: {error}");
            -1
        }
    })
}

/// Nothing is kept, so nothing is given back.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn umad_done() -> c_int {
    0
}

/// Writes the names of the adapters, of which there is one, or none without an agent; how many.
///
/// # Safety
/// `cas` has room for `max` names of 20 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_get_cas_names(cas: *mut [u8; NAME_BYTES], max: c_int) -> c_int {
    guard(0, || {
        if cas.is_null() || max < 1 || !is_there() {
            return 0;
        }
        // SAFETY: there is room for one name at least.
        unsafe { cas.write(name()) };
        1
    })
}

/// Whether the adapter is there.
pub(crate) fn is_there() -> bool {
    let asked = UmadNode::ask().and_then(|asking| asking.ca());
    asked.inspect_err(|error| tell("the agent does not know the node", error)).is_ok()
}

fn name() -> [u8; NAME_BYTES] {
    text(&CA_NAME.to_string_lossy())
}

/// Writes the ports' GUIDs by port number, 0 where there is none, in network order; how many, or an error.
///
/// # Safety
/// `ca_name` is null or a C string; `portguids` is null or has room for `max` GUIDs.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_get_ca_portguids(
    ca_name: *const c_char,
    portguids: *mut u64,
    max: c_int,
) -> c_int {
    guard(-libc::EIO, || {
        // SAFETY: the caller says so.
        if !unsafe { is_ours(ca_name) } {
            return -1;
        }
        let Ok((asking, ca)) = UmadNode::ask().and_then(|asking| asking.ca().map(|ca| (asking, ca))) else {
            return -1;
        };
        if portguids.is_null() {
            return 0;
        }
        let count = usize::from(ca.last_port.0).min(PORTS_MAX - 1) + 1;
        if count > usize::try_from(max).unwrap_or(0) {
            return -libc::ENOMEM;
        }
        for number in 0..count {
            let port = PortNum(number as u8);
            let guid = asking.port(port).map_or(0, |port| port.port_guid.0);
            // SAFETY: there is room for `max` of them, and `number` is below.
            let place = unsafe { portguids.add(number) };
            // SAFETY: as above.
            unsafe { place.write(guid.to_be()) };
        }
        count as c_int
    })
}

/// Fills in an adapter with all its ports; 0, or an error.
///
/// # Safety
/// `ca_name` is null or a C string, and `ca` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_get_ca(ca_name: *const c_char, ca: *mut UmadCa) -> c_int {
    guard(-libc::EIO, || {
        // SAFETY: the caller says so.
        if ca.is_null() || !unsafe { is_ours(ca_name) } {
            return -libc::ENODEV;
        }
        let (asking, found) = match UmadNode::ask().and_then(|asking| asking.ca().map(|ca| (asking, ca))) {
            Ok(found) => found,
            Err(error) => return -number(&error),
        };
        let mut filled = UmadCa {
            ca_name: name(),
            node_type: found.node_type.to_bits() as c_uint,
            numports: 0,
            fw_ver: text(env!("CARGO_PKG_VERSION")),
            ca_type: text("weft"),
            hw_ver: text(&format!("{:x}", found.revision)),
            node_guid: found.node_guid.0.to_be(),
            system_guid: found.system_image_guid.0.to_be(),
            ports: [std::ptr::null_mut(); PORTS_MAX],
        };
        let numbers = found.first_port.0..=found.last_port.0;
        for (port, place) in (0..).zip(&mut filled.ports).filter(|(port, _)| numbers.contains(port)) {
            let attributes = asking.port(PortNum(port));
            *place = attributes.map_or(std::ptr::null_mut(), |attributes| allocated(&attributes));
            if place.is_null() {
                release_ports(&mut filled);
                return -libc::EIO;
            }
            filled.numports = port.into();
        }
        // SAFETY: the caller says that it can be written.
        unsafe { ca.write(filled) };
        0
    })
}

/// A port's attributes in memory that `free` gives back; null when there is none.
fn allocated(attributes: &PortAttributes) -> *mut UmadPort {
    let place: *mut UmadPort = allocate(1);
    if !place.is_null() {
        // SAFETY: it was allocated for one port.
        unsafe { place.write(filled(attributes)) };
    }
    place
}

fn filled(attributes: &PortAttributes) -> UmadPort {
    let pkeys: *mut u16 = allocate(attributes.p_keys.len());
    let count = if pkeys.is_null() { 0 } else { attributes.p_keys.len() };
    for (at, key) in attributes.p_keys.iter().take(count).enumerate() {
        // SAFETY: there is room for `count` of them, and `at` is below.
        let place = unsafe { pkeys.add(at) };
        // SAFETY: as above.
        unsafe { place.write(key.0) };
    }
    UmadPort {
        ca_name: name(),
        portnum: attributes.port.0.into(),
        base_lid: attributes.lid.0.into(),
        lmc: attributes.lmc.into(),
        sm_lid: attributes.sm_lid.0.into(),
        sm_sl: attributes.sm_sl.0.into(),
        state: attributes.state.to_bits() as c_uint,
        phys_state: attributes.phys_state.to_bits() as c_uint,
        rate: attributes.rate_100mbps / 10,
        capmask: attributes.capability_mask.to_be(),
        gid_prefix: attributes.gid_prefix.0.to_be(),
        port_guid: attributes.port_guid.0.to_be(),
        pkeys_size: count as c_uint,
        pkeys,
        link_layer: text("InfiniBand"),
    }
}

/// Gives back what `umad_get_ca` allocated.
///
/// # Safety
/// `ca` is null or was filled in by `umad_get_ca` and not released since.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_release_ca(ca: *mut UmadCa) -> c_int {
    // SAFETY: the caller says so.
    match unsafe { ca.as_mut() } {
        Some(ca) => {
            release_ports(ca);
            0
        }
        None => -libc::ENODEV,
    }
}

fn release_ports(ca: &mut UmadCa) {
    for place in &mut ca.ports {
        let port = std::mem::replace(place, std::ptr::null_mut());
        // SAFETY: it is null or a port that was allocated here.
        if let Some(port) = unsafe { port.as_mut() } {
            release_keys(port);
        }
        // SAFETY: as above, and no one has it any more.
        unsafe { libc::free(port.cast()) };
    }
}

fn release_keys(port: &mut UmadPort) {
    let keys: *mut c_void = std::mem::replace(&mut port.pkeys, std::ptr::null_mut()).cast();
    port.pkeys_size = 0;
    // SAFETY: they are null or were allocated here, and no one has them any more.
    unsafe { libc::free(keys) };
}

/// Fills in one port; 0, or an error.
///
/// # Safety
/// `ca_name` is null or a C string, and `port` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_get_port(
    ca_name: *const c_char,
    portnum: c_int,
    port: *mut UmadPort,
) -> c_int {
    guard(-libc::EIO, || {
        // SAFETY: the caller says so.
        if port.is_null() || !unsafe { is_ours(ca_name) } {
            return -libc::ENODEV;
        }
        let asked = UmadNode::ask().and_then(|asking| asking.port(asking.resolve(portnum)?));
        match asked {
            Ok(attributes) => {
                // SAFETY: the caller says that it can be written.
                unsafe { port.write(filled(&attributes)) };
                0
            }
            Err(error) => {
                tell("cannot look at a port", &error);
                -libc::EIO
            }
        }
    })
}

/// Gives back what `umad_get_port` allocated.
///
/// # Safety
/// `port` is null or was filled in by `umad_get_port` and not released since.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_release_port(port: *mut UmadPort) -> c_int {
    // SAFETY: the caller says so.
    match unsafe { port.as_mut() } {
        Some(port) => {
            release_keys(port);
            0
        }
        None => -libc::ENODEV,
    }
}
