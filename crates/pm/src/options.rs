//! Options of the performance manager.

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_mgmt::{Limits, Window};
use weft_wire::{MKey, ServiceLevel, SmKey};

/// The paper's threshold, in ticks per second of fabric time.
pub const PRINTED_THRESHOLD: u64 = 100_000;

/// Where packets take time: half of what a port waits that leads from a DDR link to a host at its limit of 12.9 Gb/s, (1 - 12.9 / 16) / 2 = 9.7 %
/// of the time. With the paper's, every busy host is a hot spot there.
pub const SHAPED_THRESHOLD: u64 = 24_200_000;

/// The shortest interval: no one is swept without end.
const INTERVAL_MIN: Time = Time::from_millis(1);

weft_wire::named! {
    /// How hot spots are found.
    #[derive(Default)]
    pub enum DetectorKind {
        /// Algorithm 1 with weft's rules: further hot spots last, hidden senders get notice, and none ends while another blocks the slow lane.
        #[default]
        Weft = "weft",
        /// Algorithm 1 as the paper prints it, without a further rule: one threshold, one sweep.
        Printed = "printed",
    }
}

weft_wire::defaults! {
    /// What an operator can choose.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Options {
        /// From the start of one sweep to that of the next; at least 1 ms.
        pub interval: Time = Time::from_secs(2),
        /// Requests in flight.
        pub window: u32 = 64,
        /// How long to wait for an answer.
        pub timeout: Time = Time::from_millis(500),
        /// How often to ask again.
        pub retries: u32 = 3,
        /// How long to wait for an answer of subnet administration, or for the next part of a long one.
        pub sa_timeout: Time = Time::from_secs(1),
        /// How often the fabric is asked for again when nothing else calls for it. Subscriptions are renewed with it, because
        /// they die with a subnet manager.
        pub refresh: Time = Time::from_secs(60),
        /// Nanoseconds of machine time in one of fabric time, for the papers' "per second".
        pub dilation: u32 = 1,
        /// How hot spots are found.
        pub detector: DetectorKind = DetectorKind::Weft,
        /// Ticks per second of fabric time above which a port is congested. The paper's is 100 000, which is 0.04 % of the
        /// time; 2 500 000 is 1 %.
        pub threshold: u64 = PRINTED_THRESHOLD,
        /// The same for a port that is to become a hot spot beside others, if it is higher, and then in three sweeps in a row.
        /// Hosts that have notice of hot spots leave the links to the others, which then carry so much
        /// that ordinary hosts' ports wait nearly as long as a hot spot's.
        pub further_threshold: u64 = 0,
        /// A congested host below this share of its link's rate takes part in a hot spot or suffers from one.
        pub utilisation_limit: f64 = 0.5,
        /// Whether hosts are asked to move; otherwise hot spots are only shown.
        pub repath: bool = true,
        /// Whether hosts are asked to leave the slow lanes of which an earlier manager notified them,
        /// when this one has learned the fabric first.
        pub wildcard_at_start: bool = true,
        /// How many sweeps there are at least from one report of what hosts receive to the next; 0 makes none.
        pub learn_weights: u32 = 0,
        /// The service level of the slow lane.
        pub slow_sl: ServiceLevel = ServiceLevel(1),
        /// Sweeps in a row that a port must be above the threshold to become a hot spot, and below it to be none any more.
        pub hysteresis: (u32, u32) = (1, 1),
        /// The service level of this manager's own requests; none is the one that the subnet manager has given the port.
        pub management_sl: Option<ServiceLevel> = None,
        /// Whether counters by lane are swept too.
        pub lanes: bool = false,
        /// Whether what received errors are made of is swept too (PortRcvErrorDetails).
        pub errors: bool = false,
        /// Whether counters that stop at their highest value are set back when they are past half of it.
        pub reset: bool = true,
        /// The key that the own port may want to be shown (IBA 14.2.4).
        pub m_key: MKey = MKey(0),
        /// The SM_Key that subnet administration is shown with what it may not take from everyone: notices for hosts, and reports (IBA 15.4.1).
        /// 0 shows none.
        pub sa_key: SmKey = SmKey(0),
    }
}

impl Options {
    /// Takes the threshold and the one of further hot spots, or those that are usual on cables that take time (`is_shaped`) and on others: 1.8 times the
    /// first is nine tenths of what a hot spot's port waits, where the first is half of it.
    pub fn set_thresholds(&mut self, is_shaped: bool, threshold: Option<u64>, further: Option<u64>) {
        let has_rules = self.detector == DetectorKind::Weft;
        let usual = if is_shaped && has_rules { SHAPED_THRESHOLD } else { PRINTED_THRESHOLD };
        self.threshold = threshold.unwrap_or(usual);
        let usual = if is_shaped { self.threshold.saturating_mul(9) / 5 } else { 0 };
        self.further_threshold = further.unwrap_or(usual);
    }

    /// The same with values that the machine can work with.
    pub(crate) fn sound(mut self) -> Self {
        self.interval = self.interval.max(INTERVAL_MIN);
        self.refresh = self.refresh.max(Time::from_secs(1));
        self.timeout = self.timeout.max(INTERVAL_MIN);
        self.sa_timeout = self.sa_timeout.max(INTERVAL_MIN);
        self.dilation = self.dilation.max(1);
        self.hysteresis = (self.hysteresis.0.max(1), self.hysteresis.1.max(1));
        self
    }

    /// How counters are asked for.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            window: Window::Fixed(self.window),
            timeout: self.timeout,
            retries: self.retries,
            ..Limits::default()
        }
    }

    /// The utilisation limit in millionths.
    pub(crate) fn utilisation_limit_ppm(&self) -> u32 {
        (self.utilisation_limit * 1e6).round() as u32
    }
}
