//! The adapters as a linked list.

use std::ffi::{CStr, c_int};

use crate::abi::{UmadDeviceNode, allocate, set_errno};
use crate::ca::is_there;
use crate::guard::guard;
use crate::place::CA_NAME;

/// The adapters, or null when there is none or no memory; `errno` says which.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn umad_get_ca_device_list() -> *mut UmadDeviceNode {
    guard(std::ptr::null_mut(), || {
        set_errno(0);
        if !is_there() {
            return std::ptr::null_mut();
        }
        let node: *mut UmadDeviceNode = allocate(1);
        if node.is_null() {
            set_errno(libc::ENOMEM);
        } else {
            let first = UmadDeviceNode { next: std::ptr::null_mut(), ca_name: CA_NAME.as_ptr() };
            // SAFETY: it was allocated for one.
            unsafe { node.write(first) };
        }
        node
    })
}

/// Gives such a list back.
///
/// # Safety
/// `head` is null or a list of `umad_get_ca_device_list` that no one uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_free_ca_device_list(head: *mut UmadDeviceNode) {
    let mut node = head;
    // SAFETY: the list is sound, the caller says.
    while let Some(next) = unsafe { node.as_ref() }.map(|node| node.next) {
        // SAFETY: the node was allocated here; its name never was.
        unsafe { libc::free(node.cast()) };
        node = next;
    }
}

/// Sorts a list of adapters by name; 0, or an error. The second argument, how many there are, may be 0.
///
/// # Safety
/// `head` is null or points to null or a list whose names are C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_sort_ca_device_list(
    head: *mut *mut UmadDeviceNode,
    _size: usize,
) -> c_int {
    guard(libc::EIO, || {
        // SAFETY: the caller says so.
        let Some(head) = (unsafe { head.as_mut() }) else { return libc::EINVAL };
        let mut nodes = Vec::new();
        let mut at = *head;
        // SAFETY: the list is sound, the caller says.
        while let Some(node) = unsafe { at.as_ref() } {
            nodes.push(at);
            at = node.next;
        }
        nodes.sort_by(|a, b| {
            // SAFETY: it comes from the list.
            let first = unsafe { name(*a) };
            // SAFETY: as above.
            first.cmp(unsafe { name(*b) })
        });
        let mut next = std::ptr::null_mut();
        for node in nodes.into_iter().rev() {
            // SAFETY: it comes from the list, and no reference to it is left.
            unsafe { (*node).next = next };
            next = node;
        }
        *head = next;
        0
    })
}

/// # Safety
/// `node` comes from a list, and its name is a C string.
unsafe fn name<'a>(node: *mut UmadDeviceNode) -> &'a CStr {
    // SAFETY: the caller says so.
    let name = unsafe { (*node).ca_name };
    // SAFETY: as above.
    unsafe { CStr::from_ptr(name) }
}
