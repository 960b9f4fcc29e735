//! Schedules of faults survive their files.

use weft_chaos::{Planned, Scope, draw, named};
use weft_experiment::{Beside, ScheduleFile};
use weft_machine::Time;
use weft_topology::generate::{GenerateOptions, xgft};

#[test]
fn drawn_schedules_survive_their_files() {
    let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
    for seed in 0..200 {
        let drawn = draw(&fabric, seed, &Scope::default());
        let file = ScheduleFile {
            title: format!("seed \"{seed}\"\u{7f}\n"),
            topology: (seed % 2 == 0).then(|| "fabric.topo".to_owned()),
            seed,
            beside: Beside {
                pm: seed % 3 == 0,
                standbys: (seed % 5) as u8,
                vfs: (seed % 2 == 0).then_some(seed as u32 + 1),
                is_dynamic: seed % 4 == 0,
                vmm: seed % 7 == 0,
            },
            faults: drawn.iter().map(|planned| named(&fabric, planned)).collect(),
        };
        assert_eq!(ScheduleFile::parse("schedule.toml", &file.to_string()), Ok(file));
    }
}

#[test]
fn every_fault_survives_its_file() {
    let texts = [
        "kill sm",
        "restart S 1",
        "link-down a/1",
        "link-up a/1",
        "freeze S-1",
        "thaw S-1",
        "partition a,b c",
        "heal a",
        "loss 2.5% in seed 7 at a/1",
        "flap 2s 200ms both seed 0 at a/1",
        "width 1x both seed 0 at a/1",
        "bit-errors 1e-9 out seed 3 at a/1",
        "reorder 5% 2ms both seed 4294967295 at a/1",
    ];
    for text in texts {
        let fault: weft_fault::Fault<String, String> = text.parse().unwrap();
        let lasts = fault.end().map(|_| Time::from_millis(1500));
        let faults = vec![Planned { at: Time::from_millis(20), fault, lasts }];
        let file = ScheduleFile { faults, seed: 1, ..ScheduleFile::default() };
        assert_eq!(ScheduleFile::parse("x.toml", &file.to_string()), Ok(file), "{text}");
    }
}

#[test]
fn an_invalid_schedule_is_refused_with_its_place() {
    for (text, part) in [
        ("seed = 1\n[[fault]]\nkill = \"sm\"\n", "x.toml:2:1"),
        ("[traffic]\n", "unknown key `traffic`"),
        ("seed = -1\n", "seed"),
        ("[[fault]]\nat = 1\nflap = \"a/1\"\nevery = \"1s\"\n", "down"),
        ("[[fault]", "x.toml:1"),
        ("[[fault]]\nat = 1\nkill = \"a\"\n", "never ends"),
        ("[[fault]]\nat = 1\nfreeze = \"sm\"\n[[fault]]\nat = 0.5\nthaw = \"sm\"\n", "x.toml:1"),
        ("[[fault]]\nat = 1\nloss = \"a/1\"\npercent = 5\n", "never ends"),
        ("[[fault]]\nat = 3600.5\nlink-up = \"a/1\"\n", "after the run's end"),
        ("[[fault]]\nat = 3599\nkill = \"a\"\nfor = 2\n", "later than 3600 s"),
    ] {
        let error = ScheduleFile::parse("x.toml", text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn a_fault_is_ended_by_its_time_or_by_another_fault() {
    for text in [
        "[[fault]]\nat = 1\nkill = \"a\"\n[[fault]]\nat = 2\nrestart = \"a\"\n",
        "[[fault]]\nat = 2\nlink-up = \"a/1\"\n[[fault]]\nat = 1\ncut = \"a/1\"\n",
        "[[fault]]\nat = 3599\nkill = \"a\"\nfor = 1\n",
    ] {
        let file = ScheduleFile::parse("x.toml", text).unwrap();
        assert!(!file.faults.is_empty(), "{text}");
    }
}
