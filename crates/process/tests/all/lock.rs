//! Locks across processes: a helper process holds one until its standard input closes.

use std::process::{Command, Stdio};

use weft_process::lock::{LastWord, LockError, ProcessLock, holder, last_word, note_kill};

/// Not a test of its own: the other process of [`a_lock_names_its_holder_and_ends_with_it`].
#[test]
fn hold_the_lock_named_by_the_environment() {
    let Some(path) = std::env::var_os("WEFT_TEST_LOCK") else { return };
    let _lock = ProcessLock::take(path.as_ref()).unwrap();
    std::fs::write(format!("{}.ready", path.to_str().unwrap()), "").unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn a_lock_names_its_holder_and_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a0.lock");
    assert_eq!(holder(&path).unwrap(), None, "an absent file has no holder");
    std::fs::write(&path, "").unwrap();
    assert_eq!((holder(&path).unwrap(), last_word(&path).unwrap()), (None, LastWord::Nothing));
    note_kill(&path).unwrap();
    assert_eq!(last_word(&path).unwrap(), LastWord::Nothing, "what never ran is not killed");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hold_the_lock_named_by_the_environment"])
        .env("WEFT_TEST_LOCK", &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let found = loop {
        // The word is written when the lock is taken, a moment after.
        if let Some(pid) = holder(&path).unwrap().filter(|_| last_word(&path).unwrap() == LastWord::Runs) {
            break pid;
        }
        assert!(child.try_wait().unwrap().is_none(), "the helper ended early");
        std::thread::yield_now();
    };
    assert_eq!(u32::try_from(found.as_raw_nonzero().get()).unwrap(), child.id());
    assert!(matches!(ProcessLock::take(&path), Err(LockError::Held { .. })));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((holder(&path).unwrap(), last_word(&path).unwrap()), (None, LastWord::Runs));
    ProcessLock::take(&path).unwrap().note_stop();
    assert_eq!(last_word(&path).unwrap(), LastWord::Stopped);
    note_kill(&path).unwrap();
    assert_eq!(last_word(&path).unwrap(), LastWord::Killed);
    drop(ProcessLock::take(&path).unwrap());
    assert_eq!(last_word(&path).unwrap(), LastWord::Runs, "a new holder is not what the last one was");
}

#[test]
fn a_missing_lock_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(ProcessLock::take(&folder.path().join("x")), Err(LockError::Io { .. })));
}

#[test]
fn a_lock_file_that_points_elsewhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    std::fs::write(&file, "").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert!(matches!(ProcessLock::take(&link), Err(LockError::Io { .. })));
    assert!(holder(&link).is_err());
    assert!(ProcessLock::take(&file).is_ok());
}
