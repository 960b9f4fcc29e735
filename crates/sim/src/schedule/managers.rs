//! Schedules with several subnet managers: they come, die and lose sight of each other.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use weft_machine::Time;
use weft_topology::generate::GenerateError;

use super::{Schedule, a_moment, an_outage, fabrics, put_right_the_managers_way};
use crate::{Fault, Process, StandbyOptions};

/// How often the managers of these schedules poll, and how many polls may go unanswered.
const POLLING_MS: u64 = 500;
const POLLING_RETRIES: u32 = 2;

/// Separates this generator from that of the rest of the schedule.
const SALT: u64 = 0x005e_ed0f_3a5e;
/// The same for who is frozen.
const FREEZE_SALT: u64 = 0x00f2_0e2e_5a17;

impl Schedule {
    /// The schedule of a seed with one or two managers more, of random priorities, each of which may die, and may begin
    /// again, and one of which may be frozen. At the end one of them runs at least, and all devices with a manager are on.
    pub fn with_managers(seed: u64) -> Result<Self, GenerateError> {
        let mut schedule = Self::random(seed)?;
        let mut random = Pcg64::seed_from_u64(seed ^ SALT);
        let options = &mut schedule.options;
        (options.sm.election.polling_ms, options.sm.election.polling_retries) = (POLLING_MS, POLLING_RETRIES);
        options.sm.election.priority = random.random_range(0..4);
        let mut taken: Vec<_> = options.sm_port.into_iter().collect();
        for _ in 0..random.random_range(1..3u32) {
            let port = fabrics::random_place(&mut random, &schedule.fabric);
            if taken.iter().all(|other| other.node != port.node) {
                taken.push(port);
                options.standbys.push(StandbyOptions {
                    port,
                    priority: random.random_range(0..4),
                    sm_key: None,
                });
            }
        }
        // The first one may stay dead if others live.
        let others_live = !options.standbys.is_empty();
        if others_live && random.random_bool(0.5) {
            let of_first = [Fault::Kill(Process::Sm), Fault::Restart(Process::Sm)];
            schedule.faults.retain(|(_, fault)| !of_first.contains(fault));
            schedule.guid2lid_lost = None;
            schedule.faults.push((a_moment(&mut random), Fault::Kill(Process::Sm)));
        }
        for number in 0..options.standbys.len() as u8 {
            if random.random_bool(0.5) {
                let (at, again) = an_outage(&mut random, Time::from_secs(2));
                schedule.faults.push((at, Fault::Kill(Process::Standby(number))));
                schedule.faults.push((again, Fault::Restart(Process::Standby(number))));
            }
        }
        schedule.faults.extend(frozen(seed, schedule.options.standbys.len()));
        for port in taken {
            put_right_the_managers_way(&schedule.fabric, port, &mut schedule.faults);
        }
        Ok(schedule)
    }
}

/// In half of the schedules one manager is frozen for a while, often for so long that another takes over.
fn frozen(seed: u64, standbys: usize) -> Vec<(Time, Fault)> {
    let mut random = Pcg64::seed_from_u64(seed ^ FREEZE_SALT);
    if random.random_bool(0.5) {
        return Vec::new();
    }
    let process = match random.random_range(0..=standbys as u8).checked_sub(1) {
        None => Process::Sm,
        Some(number) => Process::Standby(number),
    };
    let (at, until) = an_outage(&mut random, Time::from_secs(3));
    vec![(at, Fault::Freeze(process)), (until, Fault::Thaw(process))]
}
