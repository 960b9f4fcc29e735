//! The key that guards the settings of congestion control (IBA A10.4.2).

use weft_machine::Time;
use weft_wire::CongestionKeyInfo;

/// The key of one end port.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyState {
    held: CongestionKeyInfo,
    /// When the protection ends; none while no wrong key was shown.
    lease_end: Option<Time>,
}

impl KeyState {
    /// Whether a request that shows this key is answered. A wrong one is counted.
    pub(super) fn lets_in(&mut self, now: Time, shown: u64, set: bool) -> bool {
        if self.lease_end.is_some_and(|end| end <= now) {
            (self.held.protect, self.lease_end) = (false, None);
        }
        if self.held.cc_key == 0 || shown == self.held.cc_key {
            self.lease_end = None;
            return true;
        }
        if !set {
            return true;
        }
        self.held.violations = self.held.violations.saturating_add(1);
        if self.held.lease_period > 0 && self.lease_end.is_none() {
            self.lease_end = Some(now + Time::from_secs(self.held.lease_period.into()));
        }
        false
    }

    /// Whether a wrong key was shown, and the right one not since then.
    pub(super) fn lease_runs(&self) -> bool {
        self.lease_end.is_some()
    }

    /// Sets the key and how it is protected, if something is `asked`; what who shows this key may see of it.
    pub(super) fn info(&mut self, shown: u64, asked: Option<CongestionKeyInfo>) -> CongestionKeyInfo {
        let held = &mut self.held;
        if let Some(asked) = asked {
            (held.cc_key, held.protect, held.lease_period) =
                (asked.cc_key, asked.protect, asked.lease_period);
            if asked.violations == 0 {
                held.violations = 0;
            }
            return *held;
        }
        let hidden = held.protect && shown != held.cc_key;
        CongestionKeyInfo { cc_key: if hidden { 0 } else { held.cc_key }, ..*held }
    }
}
