//! libibumad's structures and the few functions of C that are needed.

use std::ffi::{c_char, c_int, c_long, c_short, c_uint, c_ulong};

/// Bytes of the names of adapters and link layers, their final zero among them.
pub(crate) const NAME_BYTES: usize = 20;
/// Ports that `umad_ca_t` has room for, from 0.
pub(crate) const PORTS_MAX: usize = 10;
/// libibumad's kinds of address: 64 bytes before the data.
pub(crate) const HEADER_BYTES: usize = 64;

/// `ib_mad_addr_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IbMadAddr {
    pub(crate) qpn: u32,
    pub(crate) qkey: u32,
    pub(crate) lid: u16,
    pub(crate) sl: u8,
    pub(crate) path_bits: u8,
    pub(crate) grh_present: u8,
    pub(crate) gid_index: u8,
    pub(crate) hop_limit: u8,
    pub(crate) traffic_class: u8,
    pub(crate) gid: [u8; 16],
    pub(crate) flow_label: u32,
    pub(crate) pkey_index: u16,
    pub(crate) reserved: [u8; 6],
}

/// `ib_user_mad_t` without its data.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IbUserMad {
    pub(crate) agent_id: u32,
    pub(crate) status: u32,
    pub(crate) timeout_ms: u32,
    pub(crate) retries: u32,
    pub(crate) length: u32,
    pub(crate) addr: IbMadAddr,
}

const _: () = assert!(size_of::<IbUserMad>() == HEADER_BYTES);

/// `umad_port_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct UmadPort {
    pub(crate) ca_name: [u8; NAME_BYTES],
    pub(crate) portnum: c_int,
    pub(crate) base_lid: c_uint,
    pub(crate) lmc: c_uint,
    pub(crate) sm_lid: c_uint,
    pub(crate) sm_sl: c_uint,
    pub(crate) state: c_uint,
    pub(crate) phys_state: c_uint,
    pub(crate) rate: c_uint,
    pub(crate) capmask: u32,
    pub(crate) gid_prefix: u64,
    pub(crate) port_guid: u64,
    pub(crate) pkeys_size: c_uint,
    pub(crate) pkeys: *mut u16,
    pub(crate) link_layer: [u8; NAME_BYTES],
}

/// `umad_ca_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct UmadCa {
    pub(crate) ca_name: [u8; NAME_BYTES],
    pub(crate) node_type: c_uint,
    pub(crate) numports: c_int,
    pub(crate) fw_ver: [u8; 20],
    pub(crate) ca_type: [u8; 40],
    pub(crate) hw_ver: [u8; 20],
    pub(crate) node_guid: u64,
    pub(crate) system_guid: u64,
    pub(crate) ports: [*mut UmadPort; PORTS_MAX],
}

/// `struct umad_reg_attr`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct UmadRegAttr {
    pub(crate) mgmt_class: u8,
    pub(crate) mgmt_class_version: u8,
    pub(crate) flags: u32,
    pub(crate) method_mask: [u64; 2],
    pub(crate) oui: u32,
    pub(crate) rmpp_version: u8,
}

/// `long method_mask[16 / sizeof(long)]`: bit n of the words is method n.
pub type MethodMask = [c_long; 16 / size_of::<c_long>()];

/// `struct umad_device_node`.
#[derive(Debug)]
#[repr(C)]
pub struct UmadDeviceNode {
    pub(crate) next: *mut UmadDeviceNode,
    pub(crate) ca_name: *const c_char,
}

#[repr(C)]
struct PollFd {
    fd: c_int,
    events: c_short,
    revents: c_short,
}

unsafe extern "C-unwind" {
    // C's own, since that is where `pthread_cancel` finds a thread; unwinds through its caller then.
    fn poll(fds: *mut PollFd, count: c_ulong, timeout: c_int) -> c_int;
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// PTHREAD_CANCEL_DISABLE of Linux' C libraries.
const CANCEL_DISABLE: c_int = 1;

/// Whether this thread may be cancelled; a cancellation that comes meanwhile waits. What was so before.
fn cancel_state(state: c_int) -> c_int {
    let mut old = 0;
    // SAFETY: the integer lives as long as the call, which neither waits nor unwinds.
    unsafe { pthread_setcancelstate(state, &raw mut old) };
    old
}

/// Does some work during which this thread is not cancelled, because files are closed, read and written in it, and the
/// unwinding of a cancellation must not come by.
pub(crate) fn uncancelled<T>(work: impl FnOnce() -> T) -> T {
    let before = cancel_state(CANCEL_DISABLE);
    let done = work();
    cancel_state(before);
    done
}

/// What came of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// There is something to be read, or the connection has ended.
    Ready,
    /// The time is over.
    TimedOut,
    /// A signal came, or the descriptor is none; `errno` says which.
    Failed,
}

/// Waits until `fd` can be read, for ever when the time is negative. A thread may be cancelled here.
pub(crate) fn wait(fd: c_int, timeout_ms: c_int) -> Waited {
    let mut watched = PollFd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure, which lives as long as the call and needs no destructor when it is unwound.
    match unsafe { poll(&raw mut watched, 1, timeout_ms) } {
        0 => Waited::TimedOut,
        1 if watched.revents & libc::POLLNVAL == 0 => Waited::Ready,
        1 => {
            set_errno(libc::EBADF);
            Waited::Failed
        }
        _ => Waited::Failed,
    }
}

/// Lets a moment pass. A thread may be cancelled here.
pub(crate) fn pause(timeout_ms: c_int) {
    // SAFETY: no structures, so none is read.
    unsafe { poll(std::ptr::null_mut(), 0, timeout_ms) };
}

/// Sets this thread's `errno`.
pub(crate) fn set_errno(error: c_int) {
    // SAFETY: takes nothing.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: it is this thread's own, and always there.
    unsafe { *place = error };
}

/// This thread's `errno`.
pub(crate) fn errno() -> c_int {
    // SAFETY: takes nothing.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: it is this thread's own, and always there.
    unsafe { *place }
}

/// Memory for `count` values, all zero, that C's `free` gives back; null when there is none.
pub(crate) fn allocate<T>(count: usize) -> *mut T {
    // SAFETY: any sizes are allowed.
    unsafe { libc::calloc(count, size_of::<T>()).cast() }
}

/// A name as C has it: cut to what has room, then zeros.
pub(crate) fn text<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    for (place, byte) in bytes.iter_mut().take(N - 1).zip(text.bytes()) {
        *place = byte;
    }
    bytes
}
