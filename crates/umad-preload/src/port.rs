//! Opening and closing ports.

use std::ffi::{c_char, c_int};
use std::os::fd::{FromRawFd as _, IntoRawFd as _, OwnedFd};

use umad::user_mad::{Reply, Request, open};

use crate::abi::uncancelled;
use crate::guard::{failed, guard, number, tell};
use crate::place::{UmadNode, is_ours};

/// Opens a port; its descriptor, or an error.
///
/// # Safety
/// `ca_name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_open_port(ca_name: *const c_char, portnum: c_int) -> c_int {
    guard(-libc::EIO, || {
        // SAFETY: the caller says so.
        if !unsafe { is_ours(ca_name) } {
            return failed(libc::EINVAL);
        }
        let asking = match UmadNode::ask() {
            Ok(asking) => asking,
            Err(error) => {
                tell("no port to attach to", &error);
                return failed(libc::ENODEV);
            }
        };
        let port = match asking.resolve(portnum) {
            Ok(port) => port,
            Err(error) => return failed(number(&error)),
        };
        match UmadNode::find().and_then(|place| open(&place.socket, place.node, port)) {
            Ok(socket) => socket.into_raw_fd(),
            Err(error) => {
                tell("the agent does not open the port", &error);
                failed(libc::EIO)
            }
        }
    })
}

/// Closes a port. What was registered or sent through it is the agent's to forget.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn umad_close_port(portid: c_int) -> c_int {
    if portid >= 0 {
        // SAFETY: the program gives back what `umad_open_port` gave it.
        let port = unsafe { OwnedFd::from_raw_fd(portid) };
        uncancelled(|| drop(port));
    }
    0
}

/// The descriptor to poll, which is the port itself.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn umad_get_fd(portid: c_int) -> c_int {
    portid
}

/// Writes the path of the file that makes a subnet manager of whoever holds it open; 0, or an error.
///
/// # Safety
/// `ca_name` is null or a C string, and `path` has room for `max` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_get_issm_path(
    ca_name: *const c_char,
    portnum: c_int,
    path: *mut c_char,
    max: c_int,
) -> c_int {
    guard(-libc::EIO, || {
        let room = usize::try_from(max).unwrap_or(0);
        // SAFETY: the caller says so.
        if path.is_null() || room == 0 || !unsafe { is_ours(ca_name) } {
            return -libc::EINVAL;
        }
        let asked = UmadNode::ask().and_then(|asking| {
            let port = asking.resolve(portnum)?;
            asking.question(&Request::Issm { node: asking.node, port })
        });
        let found = match asked {
            Ok(Reply::Issm(found)) if found.len() < room => found,
            Ok(_) => return -libc::EINVAL,
            Err(error) => {
                tell("the agent has no issm file for the port", &error);
                return -libc::EINVAL;
            }
        };
        // SAFETY: there is room for it and the zero after it, and the two do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), path.cast(), found.len()) };
        // SAFETY: as above.
        let end = unsafe { path.add(found.len()) };
        // SAFETY: as above.
        unsafe { end.write(0) };
        0
    })
}
