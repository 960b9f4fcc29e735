//! Ports that are worse than they should be: links that flap or train below their best, hosts that take packets slowly, and
//! devices that answer nothing at all.

use weft_device as device;
use weft_fault::Impairment;
use weft_machine::Time;

use crate::parts::Active;
use crate::timers::Owner;
use crate::{Answer, DeviceId, Node, PortId, Refusal};

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
