//! Ports that are worse than they should be: links that flap or train below their best, hosts that take packets slowly, and
//! devices that answer nothing at all.

use std::collections::BTreeMap;

use weft_device as device;
use weft_fault::{Impairment, Signalling, Width};
use weft_machine::Time;
use weft_wire::LinkParameters;

use crate::timers::{Owner, TimerId};
use crate::{Answer, DeviceId, Node, PortId, Refusal};

/// All ports with such a fault. Without one nothing is looked up here.
#[derive(Debug, Default)]
pub(crate) struct DegradedPorts {
    ports: BTreeMap<PortId, Vec<Active>>,
    timer: Option<TimerId>,
}

/// A fault of a port.
#[derive(Debug)]
struct Active {
    how: Impairment,
    seed: u32,
    /// Of a link that flaps: when it goes or comes back next.
    next: Option<Time>,
    /// Whether it keeps the link down now.
    down: bool,
}

impl DegradedPorts {
    /// A device is gone, with its ports.
    pub(crate) fn forget(&mut self, device: DeviceId) {
        self.ports.retain(|at, _| at.device != device);
    }

    /// When a link goes or comes back next.
    fn earliest(&self) -> Option<Time> {
        self.ports.values().flatten().filter_map(|active| active.next).min()
    }

    fn is_down(&self, at: PortId) -> bool {
        self.ports.get(&at).is_some_and(|active| active.iter().any(|one| one.down))
    }

    /// What is left of link parameters at a port.
    pub(crate) fn limited(&self, at: PortId, parameters: LinkParameters) -> LinkParameters {
        let faults = self.ports.get(&at).into_iter().flatten();
        faults.fold(parameters, |left, active| limit(left, active.how))
    }

    /// The share of their rate at which hosts take packets at a port, in parts per million.
    fn drain_ppm(&self, at: PortId) -> Option<u32> {
        let shares = self.ports.get(&at).into_iter().flatten().filter_map(|active| match active.how {
            Impairment::SlowDrain(share) => Some(share.ppm()),
            _ => None,
        });
        shares.min()
    }
}

impl Node {
    /// Makes a port worse.
    pub(crate) fn degrade(&mut self, at: PortId, how: Impairment, seed: u32) -> Result<(), Refusal> {
        let slot = self.devices.get(at.device).ok_or(Refusal::NoSuchDevice(at.device))?;
        slot.device.link_parameters(at.port).ok_or(Refusal::NoSuchPort(at))?;
        let faults = self.degraded.ports.entry(at).or_default();
        if faults.iter().any(|active| (active.how, active.seed) == (how, seed)) {
            return Ok(());
        }
        let next = match how {
            Impairment::Flap { every, down } => {
                Some(self.now + Time::from_nanos(every.as_nanos().saturating_sub(down.as_nanos()).max(1)))
            }
            _ => None,
        };
        faults.push(Active { how, seed, next, down: false });
        self.has_degraded(at, how);
        Ok(())
    }

    /// Ends such a fault; nothing happens where there is none.
    pub(crate) fn restore(&mut self, at: PortId, how: Impairment, seed: u32) -> Result<(), Refusal> {
        self.devices.get(at.device).ok_or(Refusal::NoSuchDevice(at.device))?;
        let Some(faults) = self.degraded.ports.get_mut(&at) else { return Ok(()) };
        let before = faults.len();
        faults.retain(|active| (active.how, active.seed) != (how, seed));
        let (changed, is_empty) = (faults.len() < before, faults.is_empty());
        if is_empty {
            self.degraded.ports.remove(&at);
        }
        if changed {
            self.has_degraded(at, how);
        }
        Ok(())
    }

    /// A port has another fault, or one less.
    fn has_degraded(&mut self, at: PortId, how: Impairment) {
        match how {
            Impairment::Width(_) | Impairment::Speed(_) => self.train_again(at),
            Impairment::SlowDrain(_) => {
                let share_ppm = self.degraded.drain_ppm(at);
                self.feed(at.device, device::Input::DrainAt { port: at.port, share_ppm });
            }
            Impairment::Flap { .. } => {
                self.hold_link(at);
                self.set_flap_timer();
            }
            _ => debug_assert!(false, "{how} is of packets"),
        }
    }

    fn set_flap_timer(&mut self) {
        let timer = *self.degraded.timer.get_or_insert_with(|| self.timers.add(Owner::Flap));
        let moment = self.degraded.earliest();
        self.set_timer(timer, moment);
    }

    /// Links that flap go or come back.
    pub(crate) fn flap(&mut self) {
        let (now, mut changed) = (self.now, Vec::new());
        for (at, faults) in &mut self.degraded.ports {
            for active in faults.iter_mut() {
                let (Some(next), Impairment::Flap { every, down }) = (active.next, active.how) else {
                    continue;
                };
                if next > now {
                    continue;
                }
                active.down = !active.down;
                let up = every.as_nanos().saturating_sub(down.as_nanos()).max(1);
                let lasts = if active.down { down.as_nanos() } else { up };
                active.next = Some(next.max(now) + Time::from_nanos(lasts));
                changed.push(*at);
            }
        }
        changed.into_iter().for_each(|at| self.hold_link(at));
        self.set_flap_timer();
    }

    /// Keeps the link of a port down, or lets it come up, as its faults have it.
    fn hold_link(&mut self, at: PortId) {
        let down = self.degraded.is_down(at);
        let Some(slot) = self.devices.get_mut(at.device) else { return };
        if std::mem::replace(&mut slot.jack_mut(at.port).held_down, down) != down {
            self.show_link(at);
        }
    }

    /// Takes a link down and lets it come up with what the port offers now.
    fn train_again(&mut self, at: PortId) {
        let Some(slot) = self.devices.get_mut(at.device) else { return };
        let was = std::mem::replace(&mut slot.jack_mut(at.port).held_down, true);
        self.show_link(at);
        if let Some(slot) = self.devices.get_mut(at.device) {
            slot.jack_mut(at.port).held_down = was;
        }
        self.show_link(at);
    }

    /// A device stops answering, or goes on.
    pub(crate) fn freeze(&mut self, device: DeviceId, frozen: bool) -> Result<Option<Answer>, Refusal> {
        let slot = self.devices.get_mut(device).ok_or(Refusal::NoSuchDevice(device))?;
        if std::mem::replace(&mut slot.frozen, frozen) == frozen {
            return Ok(Some(Answer::Done));
        }
        let ports = (1..=u8::MAX).map(|port| PortId::new(device, weft_wire::PortNum(port)));
        let ports: Vec<PortId> =
            ports.take_while(|at| slot.device.link_parameters(at.port).is_some()).collect();
        for at in ports {
            if let Some(slot) = self.devices.get_mut(device) {
                slot.jack_mut(at.port).frozen = frozen;
            }
            self.show_link(at);
        }
        Ok(Some(Answer::Done))
    }

    /// Whether a device does not answer.
    pub fn is_frozen(&self, device: DeviceId) -> bool {
        self.devices.get(device).is_some_and(|slot| slot.frozen)
    }

    /// The faults of a port's link, host and packets, with their seeds.
    pub fn impairments(&self, at: PortId) -> Vec<(Impairment, u32)> {
        let degraded = self.degraded.ports.get(&at).into_iter().flatten();
        let mut all: Vec<_> = degraded.map(|active| (active.how, active.seed)).collect();
        all.extend(self.impaired.of(at));
        all
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
