//! Registrations: which MADs come unasked, and who does RMPP.

use std::ffi::c_int;
use std::io;
use std::os::fd::BorrowedFd;

use umad::user_mad::{AgentRegistration, Reply, Request, Token};

use crate::abi::{MethodMask, UmadRegAttr};
use crate::guard::{failed, guard, number, tell};
use crate::place::UmadNode;

/// OpenFabrics' own, which libibumad gives to vendor classes that name none.
const OPENIB_OUI: u32 = 0x1405;
/// The vendor classes whose MADs name their vendor.
const VENDOR_CLASSES: std::ops::RangeInclusive<c_int> = 0x30..=0x4f;

/// Registers an agent for a class; its number, or an error.
///
/// # Safety
/// `method_mask` is null or 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_register(
    portid: c_int,
    mgmt_class: c_int,
    mgmt_version: c_int,
    rmpp_version: u8,
    method_mask: *const MethodMask,
) -> c_int {
    // SAFETY: the caller says so.
    let methods = unsafe { methods(method_mask) };
    let (class, class_version) = (mgmt_class as u8, mgmt_version as u8);
    numbered(
        portid,
        AgentRegistration { class, class_version, rmpp_version, oui: OPENIB_OUI, methods, ..at(class) },
    )
}

/// Registers an agent for a vendor class and its vendor; its number, or an error.
///
/// # Safety
/// `oui` is three bytes, and `method_mask` is null or 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_register_oui(
    portid: c_int,
    mgmt_class: c_int,
    rmpp_version: u8,
    oui: *const [u8; 3],
    method_mask: *const MethodMask,
) -> c_int {
    // SAFETY: the caller says so.
    let Some([a, b, c]) = (unsafe { oui.as_ref() }).copied() else { return -libc::EINVAL };
    if !VENDOR_CLASSES.contains(&mgmt_class) {
        return -libc::EINVAL;
    }
    // SAFETY: the caller says so.
    let methods = unsafe { methods(method_mask) };
    let (class, oui) = (mgmt_class as u8, u32::from_be_bytes([0, a, b, c]));
    numbered(portid, AgentRegistration { class, class_version: 1, rmpp_version, oui, methods, ..at(class) })
}

/// Registers an agent and writes its number; 0, or a *positive* error number.
///
/// # Safety
/// `attr` is null or can be read and written, and `agent_id` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_register2(
    port_fd: c_int,
    attr: *mut UmadRegAttr,
    agent_id: *mut u32,
) -> c_int {
    // SAFETY: the caller says so.
    let (Some(wanted), false) = (unsafe { attr.as_mut() }, agent_id.is_null()) else { return libc::EINVAL };
    let [low, high] = wanted.method_mask;
    let registration = AgentRegistration {
        class: wanted.mgmt_class,
        class_version: wanted.mgmt_class_version,
        rmpp_version: wanted.rmpp_version,
        flags: wanted.flags,
        oui: wanted.oui,
        methods: u128::from(high) << 64 | u128::from(low),
        ..at(wanted.mgmt_class)
    };
    let needs_oui = VENDOR_CLASSES.contains(&wanted.mgmt_class.into());
    if needs_oui && !(1..1 << 24).contains(&wanted.oui) {
        return libc::EINVAL;
    }
    match guard(Err(libc::EIO), || register(port_fd, registration)) {
        Ok(number) => {
            // SAFETY: the caller says that it can be written.
            unsafe { agent_id.write(number) };
            0
        }
        Err(error) => {
            // The program learns from that which flags are known.
            wanted.flags = registration.flags & USER_RMPP;
            error
        }
    }
}

/// The one flag of `umad_register2`: the program does RMPP of its own.
const USER_RMPP: u32 = 1;

/// The queue pair that a class has.
fn at(class: u8) -> AgentRegistration {
    AgentRegistration { qpn: u8::from(!matches!(class, 0x01 | 0x81)), ..AgentRegistration::default() }
}

/// # Safety
/// `mask` is null or 16 bytes.
unsafe fn methods(mask: *const MethodMask) -> u128 {
    // SAFETY: the caller says so.
    let words = unsafe { mask.as_ref() }.copied().unwrap_or_default();
    words.iter().rev().fold(0, |methods, word| methods << (8 * size_of_val(word)) | u128::from(*word as u64))
}

/// Registers, as the older functions tell: the number, or -EPERM.
fn numbered(portid: c_int, registration: AgentRegistration) -> c_int {
    match guard(Err(libc::EIO), || register(portid, registration)) {
        Ok(number) => number as c_int,
        Err(error) => {
            failed(error);
            -libc::EPERM
        }
    }
}

fn register(portid: c_int, registration: AgentRegistration) -> Result<u32, c_int> {
    let asked =
        token(portid).and_then(|token| UmadNode::ask()?.question(&Request::Register { token, registration }));
    match asked {
        Ok(Reply::Registered { agent_id }) => Ok(agent_id),
        Ok(_) => Err(libc::EIO),
        Err(error) => {
            tell("the agent does not register this", &error);
            Err(number(&error))
        }
    }
}

/// Gives a registration back; 0, or -1 with `errno`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn umad_unregister(portid: c_int, agentid: c_int) -> c_int {
    guard(-1, || {
        let asked = token(portid).and_then(|token| {
            UmadNode::ask()?.question(&Request::Unregister { token, agent_id: agentid as u32 })
        });
        match asked {
            Ok(_) => 0,
            Err(error) => {
                failed(number(&error));
                -1
            }
        }
    })
}

/// How the agent knows an open port.
fn token(portid: c_int) -> io::Result<Token> {
    if portid < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: not -1, and used for no longer than this call; one that is closed is an error of the system's.
    Token::of(unsafe { BorrowedFd::borrow_raw(portid) })
}
