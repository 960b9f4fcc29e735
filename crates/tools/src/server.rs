//! The server that programs under ibsim's library find a laboratory by, when no one named one.

use anyhow::Context;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use weft_bundle::config::managers::{IbsimPart, Listen};
use weft_bundle::folder::{self, LabFile, bundle};
use weft_bundle::names::IBSIM;
use weft_ibsim::Address;
use weft_lab::process::Holder;
use weft_lab::restart;
use weft_lab::view::Lab;

/// The name of the laboratory's own server, or of one that is started now and ends with this process, which becomes
/// the program, and with the processes that it leaves behind.
pub(crate) fn name(lab: &Lab) -> anyhow::Result<String> {
    if let Some(listen) = &lab.record.ibsim
        && Holder::of(&lab.folder.place(LabFile::IbsimLock))?.is_some()
    {
        return Ok(listen.to_string());
    }
    // One for each program, so that none takes another's slots.
    let process = format!("{IBSIM}-{}", std::process::id());
    let name = format!("weft-{}-{}", lab.folder.name(), std::process::id());
    let part = IbsimPart { bound: true, ..IbsimPart::new(Listen::Socket(name.clone())) };
    folder::write(&lab.folder.locks().join(&process), b"")?;
    bundle::store(&lab.folder.bundle().manager(&process), &part)?;
    let (far, near) = pipe_with(PipeFlags::CLOEXEC).context("cannot make a pipe")?;
    let control = Address::named(&name, "ctl");
    restart::start_bound(&lab.folder, IBSIM, &process, far, || control.is_taken())?;
    // The pipe stays open as long as anybody of the program lives, and when it closes the server ends.
    fcntl_setfd(&near, FdFlags::empty()).context("cannot hand the server on to the program")?;
    std::mem::forget(near);
    Ok(name)
}
