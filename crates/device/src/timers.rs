//! Timers of a device.

use weft_machine::{Time, Timer};

use crate::Device;
use crate::data::Deadline;
use crate::moment::NEVER;
use crate::pma::Counted;

weft_wire::worded! {
    /// What a device waits for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum DeviceTimer {
        /// A sample of the performance management agent begins or ends.
        Sample => ("counter sample"),
        /// Something happens on the data lanes.
        Data(deadline: Deadline) => ("{deadline}"),
        /// The node's management has processed an SMP.
        Smp => ("SMP processed"),
        /// A trap that was not answered is sent again, or given up.
        Trap => ("trap repeat"),
    }
}

impl Device {
    /// Does everything that was due by `now`, in order of time and each at its own moment. A sample that begins or ends
    /// comes before what else happens at that moment, and a packet that leaves before one that has waited too long.
    #[inline(always)]
    pub(crate) fn catch_up(&mut self, now: Time) {
        if self.next_due() <= now {
            self.do_all_due(now);
        }
        self.data.now = self.data.now.max(now);
    }

    #[inline(never)]
    fn do_all_due(&mut self, now: Time) {
        loop {
            let due = self.next_due();
            if due > now || due == NEVER {
                break;
            }
            self.data.now = self.data.now.max(due);
            self.do_due(due);
            self.run(due);
        }
    }

    /// The moment of the next thing that happens by itself, traps apart; at the end of time when there is none.
    #[inline]
    pub(crate) fn next_due(&self) -> Time {
        debug_assert_eq!(self.data.seldom, self.pma.due().min(self.vl15.due()), "known here too");
        self.data.due().min(self.data.seldom)
    }

    /// A sample or an SMP has come or gone.
    pub(crate) fn seldom_changed(&mut self) {
        self.data.seldom = self.pma.due().min(self.vl15.due());
    }

    /// A sample begins or ends. Kept out of the packets' path, in which it is seldom.
    #[cold]
    fn step_sample(&mut self, due: Time) {
        self.pma.step(due, Counted { ports: &mut self.ports, data: &mut self.data });
        self.seldom_changed();
    }

    /// What comes first of all that is due by `due`, traps apart.
    #[inline]
    fn first_due(&self, due: Time) -> DeviceTimer {
        if self.data.seldom <= due && self.pma.due() <= due {
            return DeviceTimer::Sample;
        }
        self.data.deadline(due).map_or(DeviceTimer::Smp, DeviceTimer::Data)
    }

    /// The first of the things that are due at `due`.
    fn do_due(&mut self, due: Time) {
        match self.first_due(due) {
            DeviceTimer::Sample => self.step_sample(due),
            DeviceTimer::Data(deadline) => self.lanes_due(due, deadline),
            DeviceTimer::Smp | DeviceTimer::Trap => {
                if let Some(smp) = self.vl15.pop_done(due) {
                    self.seldom_changed();
                    self.process_smp(due, smp);
                }
            }
        }
    }

    /// The next moment, and what happens first at it.
    pub(crate) fn timer(&self) -> Option<Timer<DeviceTimer>> {
        let (at, traps) = (self.next_due(), self.data.traps);
        if at == NEVER && traps == NEVER {
            return None;
        }
        Some(if traps < at {
            Timer { at: traps, reason: DeviceTimer::Trap }
        } else {
            Timer { at, reason: self.first_due(at) }
        })
    }
}
