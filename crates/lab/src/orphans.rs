//! Processes whose laboratory's folder was removed without them. They end by themselves some seconds later; until then, and where
//! one is frozen, no lock names them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use weft_bundle::folder::Base;

use crate::process::Holder;
use crate::teardown::{TakenDown, stop};

/// What the kernel appends to the name of an open file that has none any more.
const DELETED: &[u8] = b" (deleted)";

/// Ends the orphans of all laboratories, or of one; how many of each were ended.
pub fn end(base: &Base, lab: Option<&str>) -> anyhow::Result<BTreeMap<String, TakenDown>> {
    let mut found: BTreeMap<String, Vec<Holder>> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").context("cannot list /proc")?.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        let Some((name, holder)) = pid.and_then(|pid| orphan(base, pid)) else { continue };
        if lab.is_none_or(|lab| lab == name) {
            found.entry(name).or_default().push(holder);
        }
    }
    let ended = |(name, holders): (String, Vec<Holder>)| {
        let processes = holders.len();
        Ok((name, TakenDown { processes, killed: stop(holders)? }))
    };
    found.into_iter().map(ended).collect()
}

/// The process, if it is one of weft's that holds a lock which is gone, and its laboratory. What belongs to others, or has ended
/// meanwhile, is none.
fn orphan(base: &Base, pid: Pid) -> Option<(String, Holder)> {
    // Pinned before it is looked at, so that the number cannot come to mean another.
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let folder = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
    let arguments = std::fs::read(folder.join("cmdline")).ok()?;
    let bundle = bundle(&arguments)?;
    let name = bundle.file_name()?.to_str()?.to_owned();
    if base.lab(&name).ok()?.path() != bundle {
        return None;
    }
    // The kernel knows the folder by its real name, whatever links lead to it.
    let locks = Path::new(&name).join("locks");
    let opened = std::fs::read_dir(folder.join("fd")).ok()?.flatten();
    let mut links = opened.filter_map(|fd| std::fs::read_link(fd.path()).ok());
    let lock = links.find(|link| {
        removed(link).is_some_and(|file| file.parent().is_some_and(|folder| folder.ends_with(&locks)))
    })?;
    Some((name, Holder { pid, lock, pidfd }))
}

/// The bundle that a command line names.
fn bundle(arguments: &[u8]) -> Option<&Path> {
    let mut arguments = arguments.split(|byte| *byte == 0);
    arguments.find(|argument| *argument == b"--bundle")?;
    arguments.next().map(|path| Path::new(OsStr::from_bytes(path)))
}

/// What an open file was called that was removed.
fn removed(link: &Path) -> Option<&Path> {
    let name = link.as_os_str().as_bytes().strip_suffix(DELETED)?;
    Some(Path::new(OsStr::from_bytes(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_names_its_bundle() {
        let line = b"weft\0agent\0--as\0a0000\0--bundle\0/tmp/w/x\0--run\0/tmp/w/x\0";
        assert_eq!(bundle(line), Some(Path::new("/tmp/w/x")));
        assert_eq!(bundle(b"vi\0weft\0"), None);
        assert_eq!(bundle(b"weft\0--bundle"), None);
    }

    #[test]
    fn only_a_file_that_is_gone_is_removed() {
        assert_eq!(removed(Path::new("/w/locks/sm (deleted)")), Some(Path::new("/w/locks/sm")));
        assert_eq!(removed(Path::new("/w/locks/sm")), None);
    }
}
