//! Resources of a laboratory's processes: descriptors and memory, from /proc, and processes without an owner.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use weft_bundle::folder::LabFile;
use weft_bundle::names::HUB;
use weft_control::process::Health;
use weft_control::{Answer, Request};
use weft_lab::agents::ask_agents;
use weft_lab::process::Holder;
use weft_lab::site;
use weft_lab::view::Lab;
use weft_process as process;

/// Descriptors that a process may have more than at first: connections that come and go.
const DESCRIPTORS_MORE: u64 = 32;
/// Memory that a process may have more than at first, in KiB: 32 MiB, and half of what it had.
const MEMORY_MORE_KIB: u64 = 32 * 1024;

/// What one process holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    /// Its number, or the number of its life if it is remote.
    life: u64,
    descriptors: u64,
    memory_kib: u64,
}

/// What all processes hold, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Holdings(BTreeMap<String, Held>);

impl Holdings {
    /// What the processes hold now. One that does not run holds nothing.
    pub(super) fn of(lab: &Lab) -> anyhow::Result<Self> {
        if !site::of(&lab.folder)?.shows_processes() {
            return Self::told(lab);
        }
        let mut all = BTreeMap::new();
        for (name, lock) in locks(lab) {
            if let Some(holder) = Holder::of(&lock)? {
                let pid = holder.pid.as_raw_nonzero().get();
                let process::Holdings { descriptors, memory_kib } = process::Holdings::of(pid);
                all.insert(name, Held { life: life_of(pid), descriptors, memory_kib });
            }
        }
        Ok(Self(all))
    }

    /// The same of remote processes, as each tells by way of the hub. One that does not answer is as one that does not run.
    fn told(lab: &Lab) -> anyhow::Result<Self> {
        let names: Vec<String> = lab.record.processes().chain([HUB.to_owned()]).collect();
        let (mut lives, mut all) = (BTreeMap::new(), BTreeMap::new());
        let names = names.iter().map(String::as_str);
        ask_agents(&lab.folder, names, &Request::Hello, |name, answer| match answer {
            Answer::Hello(hello) => {
                lives.insert(name, hello.identity.incarnation.0);
                Some(Request::Health)
            }
            Answer::Health(Health { descriptors, memory_kib, .. }) => {
                let life = lives.get(name).copied().unwrap_or_default();
                all.insert(name.to_owned(), Held { life, descriptors, memory_kib });
                None
            }
            _ => None,
        })?;
        Ok(Self(all))
    }

    /// A process that was there at first and is not now.
    pub(super) fn missing(&self, first: &Self) -> Option<String> {
        first.0.keys().find(|name| !self.0.contains_key(*name)).cloned()
    }

    /// What is too much, compared with the beginning. A process that began since is compared too: it had no less to do before.
    pub(super) fn leak(&self, first: &Self) -> Option<String> {
        self.0.iter().find_map(|(name, now)| {
            let before = first.0.get(name)?;
            if now.descriptors > before.descriptors + DESCRIPTORS_MORE {
                let (first, now) = (before.descriptors, now.descriptors);
                return Some(format!("process {name} has {now} descriptors open, {first} at first"));
            }
            let most = before.memory_kib + before.memory_kib / 2 + MEMORY_MORE_KIB;
            (now.memory_kib > most).then(|| {
                let (first, now) = (before.memory_kib, now.memory_kib);
                format!("process {name} has {now} KiB of memory, {first} at first")
            })
        })
    }

    /// A process that was started for this laboratory and holds none of its locks.
    pub(super) fn stray(&self, lab: &Lab) -> Option<String> {
        if !site::of(&lab.folder).is_ok_and(|site| site.shows_processes()) {
            return None;
        }
        let own = fs::read_link("/proc/self/exe").ok()?;
        self.stray_in(lab.folder.path(), own.parent()?)
    }

    /// One whose program is in the folder of weft's, with the laboratory's folder as an argument.
    fn stray_in(&self, lab: &Path, programs: &Path) -> Option<String> {
        let folder = lab.as_os_str().as_encoded_bytes();
        let mut others = fs::read_dir("/proc").ok()?.filter_map(|entry| {
            let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let known = self.0.values().any(|held| held.life == life_of(pid));
            let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let is_ours = line.split(|byte| *byte == 0).any(|argument| argument == folder)
                && fs::read_link(format!("/proc/{pid}/exe")).ok()?.parent() == Some(programs);
            (is_ours && !known && i64::from(pid) != i64::from(std::process::id())).then_some((pid, line))
        });
        let (pid, line) = others.next()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        Some(format!("process {pid} holds no lock of the laboratory: {}", weft_wire::Printable(line.trim())))
    }
}

/// What each process held whenever nothing was wrong, for as long as it lived: one that needs a little more every minute is found
/// long before it has half as much again.
#[derive(Debug, Default)]
pub(super) struct Soak(BTreeMap<(String, u64), Series>);

impl Soak {
    /// Takes note of what processes hold. Those that have ended are forgotten.
    pub(super) fn note(&mut self, now: &Holdings) {
        let lives = |(name, life): &(String, u64)| now.0.get(name).is_some_and(|held| held.life == *life);
        self.0.retain(|process, _| lives(process));
        for (name, held) in &now.0 {
            self.0.entry((name.clone(), held.life)).or_default().push(held.memory_kib);
        }
    }

    /// A process whose memory is not flat.
    pub(super) fn leak(&self) -> Option<String> {
        self.0.iter().find_map(|((name, _), series)| {
            let [first, _, last] = series.grows()?;
            Some(format!("process {name} has needed more and more memory: {first} KiB, then {last} KiB"))
        })
    }
}

/// Samples of one figure, evenly spread over its time.
#[derive(Debug)]
struct Series {
    samples: Vec<u64>,
    /// One of this number is kept.
    stride: usize,
    skipped: usize,
}

/// Samples of a series at most.
const SAMPLES_MAX: usize = 4096;
/// Samples of a series that tells anything.
const SAMPLES_MIN: usize = 16;
/// What memory may grow by from the second quarter of a series to its last, in KiB, and the tenth of what it was.
const GROWS_KIB: u64 = 2 * 1024;

impl Default for Series {
    fn default() -> Self {
        Self { samples: Vec::new(), stride: 1, skipped: 0 }
    }
}

impl Series {
    fn push(&mut self, sample: u64) {
        self.skipped += 1;
        if self.skipped < self.stride {
            return;
        }
        self.skipped = 0;
        self.samples.push(sample);
        if self.samples.len() == SAMPLES_MAX {
            let mut keep = false;
            self.samples.retain(|_| {
                keep = !keep;
                keep
            });
            self.stride *= 2;
        }
    }

    /// The medians of the second, third and fourth quarter, if they rise, and by too much. In the first everything is new.
    fn grows(&self) -> Option<[u64; 3]> {
        let quarter = self.samples.len() / 4;
        if self.samples.len() < SAMPLES_MIN {
            return None;
        }
        let medians = [1, 2, 3].map(|nth| {
            let mut part = self.samples[nth * quarter..(nth + 1) * quarter].to_vec();
            part.sort_unstable();
            part[quarter / 2]
        });
        let [second, third, fourth] = medians;
        let rises = second < third && third < fourth;
        (rises && fourth > second + second / 10 + GROWS_KIB).then_some(medians)
    }
}

/// The life of a process of this machine.
fn life_of(pid: i32) -> u64 {
    u64::from(pid.unsigned_abs())
}

/// The locks of all processes that a laboratory has, and of its hub.
fn locks(lab: &Lab) -> Vec<(String, PathBuf)> {
    let locks = lab.folder.locks();
    let hub = (HUB.to_owned(), lab.folder.place(LabFile::HubLock));
    lab.record.processes().map(|name| (name.clone(), locks.join(name))).chain([hub]).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use std::fs::File;
    use std::io::Read as _;
    use std::process::{Child, Command, Stdio};

    use weft_machine::Random;

    use super::*;

    fn series(count: usize, sample: impl Fn(usize) -> u64) -> Series {
        let mut series = Series::default();
        (0..count).for_each(|nth| series.push(sample(nth)));
        series
    }

    /// What a process holds goes up and down by a few pages whenever links come and go.
    #[test]
    fn only_steadily_rising_memory_is_a_leak() {
        for seed in 0..100 {
            let noise = |nth: usize| u64::from(Random::new(seed ^ ((nth as u64) << 20)).below(256));
            for count in [SAMPLES_MIN, 100, SAMPLES_MAX - 1, 20_000] {
                let flat = series(count, |nth| 30_000 + noise(nth));
                assert_eq!(flat.grows(), None, "seed {seed}, {count} samples");
                // Half of what it had at first, over all the time: `Holdings::leak` lets that pass.
                let leaking = series(count, |nth| 30_000 + noise(nth) + 15_000 * nth as u64 / count as u64);
                assert!(leaking.grows().is_some(), "seed {seed}, {count} samples: {:?}", leaking.samples);
                // It grows at first, and then no more.
                let warm =
                    series(count, |nth| 60_000 + noise(nth) - if nth < count / 4 { 30_000 } else { 0 });
                assert_eq!(warm.grows(), None, "seed {seed}, {count} samples");
            }
        }
        assert_eq!(series(SAMPLES_MIN - 1, |nth| 1_000_000 * nth as u64).grows(), None, "too few to tell");
    }

    #[test]
    fn a_long_series_stays_small_and_keeps_its_shape() {
        let long = series(1_000_000, |nth| nth as u64);
        assert!((SAMPLES_MAX / 4..SAMPLES_MAX).contains(&long.samples.len()), "{}", long.samples.len());
        assert!(long.samples.is_sorted() && long.grows().is_some());
        assert!(long.samples.last().is_some_and(|last| *last > 990_000), "{:?}", long.samples.last());
    }

    #[test]
    fn only_a_process_that_lives_on_is_judged() {
        let holdings = |life, memory_kib| {
            Holdings(BTreeMap::from([("sm".to_owned(), Held { life, descriptors: 9, memory_kib })]))
        };
        let (mut killed, mut lives) = (Soak::default(), Soak::default());
        for nth in 0..64 {
            killed.note(&holdings(100 + nth / 8, 30_000 + 1000 * nth));
            lives.note(&holdings(100, 30_000 + 1000 * nth));
        }
        assert_eq!(killed.leak(), None);
        assert!(lives.leak().is_some_and(|what| what.contains("process sm")), "{lives:?}");
        assert_eq!(killed.0.len(), 1, "what has ended is forgotten");
    }

    fn one(pid: i32) -> Holdings {
        let process::Holdings { descriptors, memory_kib } = process::Holdings::of(pid);
        Holdings(BTreeMap::from([("a0000".to_owned(), Held { life: life_of(pid), descriptors, memory_kib })]))
    }

    #[test]
    fn only_descriptors_left_open_are_a_leak() {
        let own = i32::try_from(std::process::id()).unwrap();
        let first = one(own);
        // Other tests of this program may open and close some meanwhile.
        let few: Vec<File> = (0..DESCRIPTORS_MORE / 2).map(|_| File::open("/dev/null").unwrap()).collect();
        assert_eq!(one(own).leak(&first), None);
        let many: Vec<File> = (0..2 * DESCRIPTORS_MORE).map(|_| File::open("/dev/null").unwrap()).collect();
        let what = one(own).leak(&first).unwrap();
        assert!(what.starts_with("process a0000 has ") && what.contains(" descriptors open, "), "{what}");
        drop((few, many));
        assert_eq!(one(own).leak(&first), None);
    }

    #[test]
    fn a_process_that_needs_much_more_memory_leaks() {
        let own = i32::try_from(std::process::id()).unwrap();
        let first = one(own);
        let most = first.0["a0000"].memory_kib / 2 + MEMORY_MORE_KIB;
        // Written, or it is none of its memory.
        let held = vec![1_u8; usize::try_from(2 * most).unwrap() * 1024];
        let what = one(own).leak(&first).unwrap();
        assert!(what.starts_with("process a0000 has ") && what.contains(" KiB of memory, "), "{what}");
        assert_eq!(held.iter().step_by(1024).map(|byte| u64::from(*byte)).sum::<u64>(), 2 * most);
        // What is not known from the beginning is not judged, nor is what has ended: that is missing.
        assert_eq!(one(own).leak(&Holdings::default()), None);
        assert_eq!(Holdings::default().leak(&first), None);
        assert_eq!(Holdings::default().missing(&first).as_deref(), Some("a0000"));
    }

    /// A child that lives until it is dropped; its arguments are read by no one.
    struct Lives(Child);

    impl Lives {
        fn start(arguments: &[&str]) -> Self {
            let mut child = Command::new("sh");
            child.args(["-c", "echo; read -r line", "sh"]).args(arguments);
            let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            // Only a program that runs has arguments.
            child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
            Self(child)
        }

        fn pid(&self) -> i32 {
            i32::try_from(self.0.id()).unwrap()
        }
    }

    impl Drop for Lives {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn only_a_process_of_the_lab_without_a_lock_is_stray() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let lab = folder.path().join("lab");
        let beside = folder.path().join("lab-2");
        let [shown, beside] = [&lab, &beside].map(|path| path.to_str().unwrap());
        let none = Holdings::default();
        // Of another laboratory, and one that only has the folder's name within an argument.
        let _others = [Lives::start(&["--run", beside]), Lives::start(&[&format!("--run={shown}"), "a0000"])];
        let child = Lives::start(&["--as", "a0000", "--run", shown]);
        let programs = fs::read_link(format!("/proc/{}/exe", child.pid())).unwrap();
        let programs = programs.parent().unwrap();
        let what = none.stray_in(&lab, programs).unwrap();
        assert!(what.starts_with(&format!("process {} holds no lock", child.pid())), "{what}");
        assert!(what.ends_with(&format!("--as a0000 --run {shown}")), "{what}");
        assert_eq!(one(child.pid()).stray_in(&lab, programs), None, "it holds a lock");
        assert_eq!(none.stray_in(&lab, other.path()), None, "another program");
        drop(child);
        assert_eq!(none.stray_in(&lab, programs), None, "it has ended");
    }
}
