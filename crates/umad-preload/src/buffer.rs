//! The buffers that programs give and take MADs in: a header of 64 bytes, then the data.

use std::ffi::{c_int, c_void};
use std::fmt::Write as _;

use crate::abi::{HEADER_BYTES, IbMadAddr, IbUserMad};
use crate::guard::guard;

/// The header of a program's buffer.
///
/// # Safety
/// `umad` is null or a buffer of `umad_size()` bytes at least, aligned as `calloc` does.
pub(crate) unsafe fn header<'a>(umad: *mut c_void) -> Option<&'a mut IbUserMad> {
    // SAFETY: the caller says so, and every value of every byte is one.
    unsafe { umad.cast::<IbUserMad>().as_mut() }
}

/// How long the header is.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn umad_size() -> usize {
    HEADER_BYTES
}

/// Where the MAD begins.
///
/// # Safety
/// `umad` is a buffer of `umad_size()` bytes at least.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_get_mad(umad: *mut c_void) -> *mut c_void {
    umad.wrapping_byte_add(HEADER_BYTES)
}

/// 0, or why a send failed.
///
/// # Safety
/// `umad` is a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_status(umad: *mut c_void) -> c_int {
    // SAFETY: the caller says so.
    unsafe { header(umad) }.map_or(libc::EINVAL, |header| header.status as c_int)
}

/// Where the address is.
///
/// # Safety
/// `umad` is a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_get_mad_addr(umad: *mut c_void) -> *mut IbMadAddr {
    // SAFETY: the caller says so.
    unsafe { header(umad) }.map_or(std::ptr::null_mut(), |header| &raw mut header.addr)
}

/// Sets the address.
///
/// # Safety
/// `umad` is a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_set_addr(
    umad: *mut c_void,
    dlid: c_int,
    dqp: c_int,
    sl: c_int,
    qkey: c_int,
) -> c_int {
    let (lid, qpn, qkey) = ((dlid as u16).to_be(), (dqp as u32).to_be(), (qkey as u32).to_be());
    // SAFETY: the caller says so.
    unsafe { set_address(umad, lid, qpn, sl, qkey) }
}

/// Sets the address from values in network order.
///
/// # Safety
/// `umad` is a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_set_addr_net(
    umad: *mut c_void,
    dlid: c_int,
    dqp: c_int,
    sl: c_int,
    qkey: c_int,
) -> c_int {
    // SAFETY: the caller says so.
    unsafe { set_address(umad, dlid as u16, dqp as u32, sl, qkey as u32) }
}

/// # Safety
/// `umad` is null or a buffer.
unsafe fn set_address(umad: *mut c_void, lid: u16, qpn: u32, sl: c_int, qkey: u32) -> c_int {
    // SAFETY: the caller says so.
    let Some(header) = (unsafe { header(umad) }) else { return -libc::EINVAL };
    header.addr = IbMadAddr { lid, qpn, sl: sl as u8, qkey, ..header.addr };
    0
}

/// Sets a global route, whose flow label is in host order, or none.
///
/// # Safety
/// `umad` is a buffer, and `mad_addr` is null or an address.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_set_grh(umad: *mut c_void, mad_addr: *mut c_void) -> c_int {
    // SAFETY: the caller says so.
    let Some(header) = (unsafe { header(umad) }) else { return -libc::EINVAL };
    // SAFETY: the caller says so; it may lie anywhere.
    let route = (!mad_addr.is_null()).then(|| unsafe { mad_addr.cast::<IbMadAddr>().read_unaligned() });
    header.addr.grh_present = u8::from(route.is_some());
    if let Some(IbMadAddr { gid, flow_label, hop_limit, traffic_class, .. }) = route {
        let flow_label = flow_label.to_be();
        header.addr = IbMadAddr { gid, flow_label, hop_limit, traffic_class, ..header.addr };
    }
    0
}

/// Sets which entry of the P_Key table to send with.
///
/// # Safety
/// `umad` is a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_set_pkey(umad: *mut c_void, pkey_index: c_int) -> c_int {
    // SAFETY: the caller says so.
    let Some(header) = (unsafe { header(umad) }) else { return -libc::EINVAL };
    header.addr.pkey_index = pkey_index as u16;
    0
}

/// Which entry of the P_Key table it came or goes with.
///
/// # Safety
/// `umad` is a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_get_pkey(umad: *mut c_void) -> c_int {
    // SAFETY: the caller says so.
    unsafe { header(umad) }.map_or(0, |header| header.addr.pkey_index.into())
}

/// Prints a header to standard error.
///
/// # Safety
/// `umad` is a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_dump(umad: *mut c_void) {
    guard((), || {
        // SAFETY: the caller says so.
        let Some(header) = (unsafe { header(umad) }) else { return };
        let IbUserMad { agent_id, status, timeout_ms, .. } = *header;
        eprintln!("umad: agent id {agent_id} status {status:x} timeout {timeout_ms}");
        print_address(&header.addr);
    });
}

/// Prints an address to standard error.
///
/// # Safety
/// `addr` is an address.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_addr_dump(addr: *mut IbMadAddr) {
    guard((), || {
        // SAFETY: the caller says so.
        if let Some(address) = unsafe { addr.as_ref() } {
            print_address(address);
        }
    });
}

fn print_address(address: &IbMadAddr) {
    let (qpn, qkey, lid) = (u32::from_be(address.qpn), u32::from_be(address.qkey), u16::from_be(address.lid));
    let (label, gid) = (u32::from_be(address.flow_label), hexadecimal(&address.gid));
    let IbMadAddr { sl, path_bits, grh_present, gid_index, hop_limit, traffic_class, pkey_index, .. } =
        *address;
    eprintln!(
        "umad: qpn {qpn} qkey {qkey:#x} lid {lid} sl {sl} path bits {path_bits} pkey_index {pkey_index:#x}"
    );
    eprintln!(
        "umad: grh_present {grh_present} gid_index {gid_index} hop_limit {hop_limit} \
         traffic_class {traffic_class} flow_label {label:#x} Gid 0x{gid}"
    );
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
