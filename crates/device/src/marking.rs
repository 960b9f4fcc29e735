//! A switch's settings for FECN marking: the agent of congestion control keeps them, and the data lanes follow.

use weft_wire::{SwitchCongestionSetting, SwitchPortCongestion};

/// The settings of a switch and of its ports.
#[derive(Clone, Debug, Default)]
pub(crate) struct MarkingSettings {
    /// The switch's own.
    pub(crate) switch: SwitchCongestionSetting,
    /// By port, 0 included; empty until the first is set.
    pub(crate) ports: Vec<SwitchPortCongestion>,
}
