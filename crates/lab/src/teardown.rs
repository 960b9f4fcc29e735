//! Ending a laboratory so that nothing of it is left, whatever state it is in.
//!
//! Every lock of the laboratory is taken and its file removed by whoever takes it down, one after the other; a lock
//! that another process holds ends that process first. A process that was started but has not locked yet finds its lock
//! taken or its file removed, and ends by itself. So when the folder goes, nothing of the laboratory can be alive.
//! However many processes there are, a few descriptors suffice: what cannot come up for want of them can go down.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Resource, Signal, getrlimit};
use weft_bundle::folder::{self, Base, LabFile, LabFolder};
use weft_process::lock::{LockError, ProcessLock, holder, note_kill};

use crate::process::{Holder, wait_for_end};

/// How long a process has to end in order.
const GRACE: Duration = Duration::from_secs(2);

/// How long the kernel has to end a killed process.
const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// The most processes that are ended together.
const HOLDERS_MAX: usize = 1024;

/// How often a lock may have another holder once the one before was ended.
const ROUNDS: usize = 10;

/// What was there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakenDown {
    /// Processes that were ended.
    pub processes: usize,
    /// Of these, those that had to be killed.
    pub killed: usize,
}

/// Takes a laboratory down. One that is gone already is success with nothing done.
pub fn take_down(lab: &LabFolder) -> anyhow::Result<TakenDown> {
    if !lab.exists()? {
        return Ok(TakenDown::default());
    }
    let _turn = match ProcessLock::wait(&lab.place(LabFile::DownLock)) {
        Ok(lock) => Some(lock),
        Err(LockError::Removed { .. }) => return Ok(TakenDown::default()),
        // A folder without its locks is what a crash while making or removing it leaves.
        Err(LockError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let mut done = TakenDown::default();
    // The launcher first, so that it starts no more.
    end(vec![lab.place(LabFile::UpLock)], &mut done)?;
    // Then the hub, which would tell of every end.
    end(vec![lab.place(LabFile::HubLock)], &mut done)?;
    let _recabling = end_recabling(lab)?;
    end(lock_files(lab)?, &mut done)?;
    lab.remove()?;
    Ok(done)
}

/// Clears what a crashed laboratory left; false when it is not dead. Asked while no one else can take it down: what
/// looked dead before may be another launcher's new laboratory by now.
pub fn clear_dead(lab: &LabFolder) -> anyhow::Result<bool> {
    // Asked first, because a hub that starts processes takes whoever holds the lock of `down` for that.
    let lives = |file| holder(&lab.place(file)).is_ok_and(|holder| holder.is_some());
    if lives(LabFile::UpLock) || lives(LabFile::HubLock) {
        return Ok(false);
    }
    let _turn = match ProcessLock::take(&lab.place(LabFile::DownLock)) {
        Ok(lock) => Some(lock),
        Err(LockError::Held { .. }) => return Ok(false),
        Err(LockError::Removed { .. }) => return Ok(true),
        Err(LockError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let mut files = lock_files(lab)?;
    files.push(lab.place(LabFile::UpLock));
    // Asked before any is taken, so that in a living laboratory no one who starts finds a lock taken by us.
    if files.iter().any(|file| holder(file).is_ok_and(|holder| holder.is_some())) {
        return Ok(false);
    }
    // Whoever starts in it now is ended: half a laboratory would be left otherwise.
    let _recabling = end_recabling(lab)?;
    end(files, &mut TakenDown::default())?;
    lab.remove()?;
    Ok(true)
}

/// Clears what launchers that died left before their laboratories had a name; how many there were.
pub fn clear_unfinished(base: &Base) -> anyhow::Result<usize> {
    let mut cleared = 0;
    for lab in base.unfinished()? {
        // A launcher that lives may not hold its lock yet, and what weft did not make is not weft's to remove.
        let dead = !lab.launcher_lives() && lab.exists().unwrap_or(false);
        cleared += usize::from(dead && clear_dead(&lab)?);
    }
    Ok(cleared)
}

/// Takes a laboratory down for its launcher, which holds the lock of its own and must not touch it.
///
/// When somebody takes the laboratory down already, the rest is theirs: they wait for this process to end.
pub fn take_down_held(lab: &LabFolder) -> anyhow::Result<()> {
    let _turn = match ProcessLock::take(&lab.place(LabFile::DownLock)) {
        Ok(lock) => lock,
        Err(LockError::Held { .. } | LockError::Removed { .. }) => return Ok(()),
        Err(LockError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut done = TakenDown::default();
    // The hub first, so that it starts no more.
    end(vec![lab.place(LabFile::HubLock)], &mut done)?;
    let _recabling = end_recabling(lab)?;
    end(lock_files(lab)?, &mut done)?;
    lab.remove()
}

/// Ends a recabling under way and prevents another: a new node's agent would be left.
fn end_recabling(lab: &LabFolder) -> anyhow::Result<Option<ProcessLock>> {
    let file = lab.place(LabFile::RecablingLock);
    folder::touch(&file)?;
    // Several may wait for each other.
    for _ in 0..ROUNDS {
        match ProcessLock::take(&file) {
            Ok(lock) => return Ok(Some(lock)),
            Err(LockError::Held { .. }) => {
                stop(Holder::of(&file)?.into_iter().collect())?;
            }
            Err(LockError::Removed { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
    anyhow::bail!("a lock of the laboratory is taken again and again: {}", file.display())
}

/// Ends whoever holds these locks, and removes them.
fn end(mut files: Vec<PathBuf>, done: &mut TakenDown) -> anyhow::Result<()> {
    let at_once = holders_at_once();
    // A process that was just starting may take its lock between our asking and our taking: so several rounds.
    for _ in 0..ROUNDS {
        let mut held = Vec::new();
        for file in std::mem::take(&mut files) {
            match ProcessLock::take(&file) {
                // Whoever has opened it meanwhile finds it removed once it is let go.
                Ok(_lock) => folder::remove(&file)?,
                Err(LockError::Removed { .. }) => {}
                Err(LockError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
                Err(LockError::Held { .. }) => held.push(file),
                Err(error) => return Err(error.into()),
            }
        }
        if held.is_empty() {
            return Ok(());
        }
        for files in held.chunks(at_once) {
            let mut holders = Vec::new();
            for file in files {
                holders.extend(Holder::of(file)?);
            }
            done.processes += holders.len();
            done.killed += stop(holders)?;
        }
        files = held;
    }
    anyhow::bail!("a lock of the laboratory is taken again and again: {}", files[0].display())
}

/// How many processes are ended together: each takes a descriptor.
fn holders_at_once() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit / 4).unwrap_or(usize::MAX).clamp(1, HOLDERS_MAX)
}

/// Ends processes in order, and kills those that do not end. Returns how many were killed.
pub fn stop(holders: Vec<Holder>) -> anyhow::Result<usize> {
    for holder in &holders {
        holder.signal(Signal::TERM)?;
        // One that is frozen goes on, to end in order.
        holder.signal(Signal::CONT)?;
    }
    let stubborn = wait_for_end(holders, GRACE)?;
    let killed = stubborn.len();
    kill(stubborn)?;
    Ok(killed)
}

/// Kills processes and waits until they are gone.
pub fn kill(holders: Vec<Holder>) -> anyhow::Result<()> {
    // Noted before, for a hub that sees the end at once, and after, in case the process was just beginning.
    let locks: Vec<PathBuf> = holders.iter().map(|holder| holder.lock.clone()).collect();
    note_kills(&locks);
    for holder in &holders {
        holder.signal(Signal::KILL)?;
    }
    let alive = wait_for_end(holders, KILL_PATIENCE)?;
    note_kills(&locks);
    if let Some(holder) = alive.first() {
        anyhow::bail!("process {} does not end", holder.pid.as_raw_nonzero());
    }
    Ok(())
}

/// Notes that whoever holds or held these locks is dead on purpose: a hub leaves it so.
fn note_kills(locks: &[PathBuf]) {
    for lock in locks {
        // Without the note a hub may start it again: that is no reason to leave it alive.
        let _ = note_kill(lock);
    }
}

fn lock_files(lab: &LabFolder) -> anyhow::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(lab.locks()) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("cannot list {}", lab.locks().display()))?,
    };
    let up = lab.place(LabFile::UpLock);
    let mut files = Vec::new();
    for entry in entries {
        files.push(entry.with_context(|| format!("cannot list {}", lab.locks().display()))?.path());
    }
    files.retain(|file| *file != up); // Held by us already: opening it again would let it go.
    Ok(files)
}
