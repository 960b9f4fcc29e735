//! Resources that a process holds, as the kernel reports them.

use std::fmt::Display;
use std::fs;

/// What a process holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Descriptors that it has open.
    pub descriptors: u64,
    /// Memory that is in use by it (resident), in KiB.
    pub memory_kib: u64,
}

impl Holdings {
    /// What this process holds.
    pub fn own() -> Self {
        let own = Self::read(&"self");
        // One is open for the look.
        Self { descriptors: own.descriptors.saturating_sub(1), ..own }
    }

    /// What a process of this machine holds; nothing where there is none, or where it is another user's.
    pub fn of(pid: i32) -> Self {
        Self::read(&pid)
    }

    fn read(process: &dyn Display) -> Self {
        let descriptors =
            fs::read_dir(format!("/proc/{process}/fd")).map_or(0, |entries| entries.count() as u64);
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let memory_kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0);
        Self { descriptors, memory_kib }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::Holdings;

    #[test]
    fn descriptors_and_memory_are_counted() {
        let own = i32::try_from(std::process::id()).unwrap();
        let before = Holdings::of(own);
        let files: Vec<File> = (0..50).map(|_| File::open("/dev/null").unwrap()).collect();
        let more = vec![1_u8; 64 << 20];
        let after = Holdings::own();
        // Other tests of this program open and close some meanwhile.
        assert!(after.descriptors >= before.descriptors + 40, "{before:?} {after:?}");
        assert!(after.memory_kib >= before.memory_kib + (48 << 10), "{before:?} {after:?}");
        assert_eq!((files.len(), more.len()), (50, 64 << 20));
        assert_eq!(Holdings::of(i32::MAX), Holdings::default());
    }
}
