//! Ports that are worse than they should be, and what is left of them.

use std::collections::BTreeMap;

use weft_fault::{Impairment, Signalling, Width};
use weft_machine::Time;
use weft_wire::LinkParameters;

use crate::timers::TimerId;
use crate::{DeviceId, PortId};

/// All ports that are worse than they should be. Without one nothing is looked up here.
#[derive(Debug, Default)]
pub(crate) struct DegradedPorts {
    pub(crate) ports: BTreeMap<PortId, Vec<Active>>,
    pub(crate) timer: Option<TimerId>,
}

/// A fault of a port.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) how: Impairment,
    pub(crate) seed: u32,
    /// Of a link that flaps: when it goes or comes back next.
    pub(crate) next: Option<Time>,
    /// Whether it keeps the link down now.
    pub(crate) down: bool,
}

impl DegradedPorts {
    /// A device is gone, with its ports.
    pub(crate) fn forget(&mut self, device: DeviceId) {
        self.ports.retain(|at, _| at.device != device);
    }

    /// When a link goes or comes back next.
    pub(crate) fn earliest(&self) -> Option<Time> {
        self.ports.values().flatten().filter_map(|active| active.next).min()
    }

    pub(crate) fn is_down(&self, at: PortId) -> bool {
        self.ports.get(&at).is_some_and(|active| active.iter().any(|one| one.down))
    }

    /// What is left of link parameters at a port.
    pub(crate) fn limited(&self, at: PortId, parameters: LinkParameters) -> LinkParameters {
        let faults = self.ports.get(&at).into_iter().flatten();
        faults.fold(parameters, |left, active| limit(left, active.how))
    }

    /// The share of their rate at which hosts take packets at a port, in parts per million.
    pub(crate) fn drain_ppm(&self, at: PortId) -> Option<u32> {
        let shares = self.ports.get(&at).into_iter().flatten().filter_map(|active| match active.how {
            Impairment::SlowDrain(share) => Some(share.ppm()),
            _ => None,
        });
        shares.min()
    }
}

/// What a limit leaves of link parameters. The slowest that every port has is always left.
fn limit(parameters: LinkParameters, how: Impairment) -> LinkParameters {
    let LinkParameters { width, speed, speed_ext } = parameters;
    match how {
        Impairment::Width(most) => {
            // PortInfo's bits: 1x = 1, 4x = 2, 8x = 4, 12x = 8, 2x = 16.
            let allowed = match most {
                Width::X1 => 1,
                Width::X2 => 1 | 16,
                Width::X4 => 1 | 16 | 2,
                Width::X8 => 1 | 16 | 2 | 4,
            };
            LinkParameters { width: if width & allowed == 0 { 1 } else { width & allowed }, ..parameters }
        }
        Impairment::Speed(most) => {
            let (allowed, allowed_ext) = match most {
                Signalling::Sdr => (1, 0),
                Signalling::Ddr => (3, 0),
                Signalling::Qdr => (7, 0),
                Signalling::Fdr10 => (7 | LinkParameters::FDR10, 0),
                Signalling::Fdr => (0xff, 1),
                Signalling::Edr => (0xff, 3),
                Signalling::Hdr => (0xff, 7),
                Signalling::Ndr => (0xff, 0xf),
            };
            let (left, left_ext) = (speed & allowed, speed_ext & allowed_ext);
            let speed = if left == 0 && left_ext == 0 { 1 } else { left };
            LinkParameters { speed, speed_ext: left_ext, ..parameters }
        }
        _ => parameters,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how(word: weft_fault::Word, amounts: &str) -> Impairment {
        Impairment::of(word, amounts).unwrap_or_else(|| panic!("{amounts}"))
    }

    #[test]
    fn limits_leave_what_is_below_them_and_always_something() {
        use weft_fault::Word::{Speed, Width};
        let hdr = LinkParameters { width: 1 | 2 | 16, speed: 7, speed_ext: 7 };
        for (word, amount, width, speed, speed_ext) in [
            (Width, "1x", 1, 7, 7),
            (Width, "2x", 17, 7, 7),
            (Width, "4x", 19, 7, 7),
            (Width, "8x", 19, 7, 7),
            (Speed, "sdr", 19, 1, 0),
            (Speed, "ddr", 19, 3, 0),
            (Speed, "qdr", 19, 7, 0),
            (Speed, "fdr", 19, 7, 1),
            (Speed, "edr", 19, 7, 3),
            (Speed, "ndr", 19, 7, 7),
        ] {
            let left = LinkParameters { width, speed, speed_ext };
            assert_eq!(limit(hdr, how(word, amount)), left, "{amount}");
        }
        let only_4x = LinkParameters { width: 2, speed: 4, speed_ext: 0 };
        assert_eq!(limit(only_4x, how(Width, "1x")).width, 1);
        assert_eq!(limit(only_4x, how(Speed, "sdr")).speed, 1);
    }
}
