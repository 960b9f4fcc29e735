//! Subnet management packets: from lane 15 to the SMA, to a program, or on their way.

use weft_machine::Time;
use weft_wire::{
    AttributeId, DirectedSmp, Lid, Mad, MadRoute, Method, MgmtClass, Packet, PortNum, QpNum, VirtualLane,
};

use crate::sma::{self, Effect, Verdict};
use crate::smi::{self, Arrival, Here, Step};
use crate::vl15::Smp;
use crate::{Device, DropReason};

impl Device {
    /// A packet on lane 15 that is addressed to this node, or to whoever gets it.
    pub(crate) fn receive_smp(&mut self, now: Time, port: PortNum, packet: &Packet) {
        let for_smi = packet.bth().is_some_and(|bth| bth.dest_qp == QpNum::SMI);
        let Some(mad) = packet.mad().filter(|mad| for_smi && mad.is_smp()) else {
            return self.receive_error(port, DropReason::NotAMad);
        };
        if packet.check_icrc().is_err() {
            return self.receive_error(port, DropReason::BadIcrc);
        }
        let dlid = packet.dlid();
        let arrival = if dlid == Lid::PERMISSIVE { Arrival::Link } else { Arrival::Lid };
        let smp = Smp { arrival, port, slid: packet.slid(), dlid, mad };
        if self.vl15.is_instant() || self.is_for_program(&smp.mad) {
            self.process_smp(now, smp);
        } else if self.vl15.push(now, smp).is_err() {
            self.ports[usize::from(port.0)].counters.vl15_dropped += 1;
            self.discard(port, DropReason::Vl15Full);
        } else {
            self.seldom_changed();
        }
    }

    /// What the device's own management does not touch, and spends no time on: an HCA's answers and traps go to
    /// the programs attached to it.
    fn is_for_program(&self, mad: &Mad) -> bool {
        !self.is_switch() && (mad.method().is_response() || mad.method() == Method::Trap)
    }

    /// Does with an SMP what its class and route say.
    pub(crate) fn process_smp(&mut self, now: Time, mut smp: Smp) {
        if smp.mad.class() == MgmtClass::SubnLid {
            // Only a directed route goes to whoever is at the other end.
            return match smp.arrival {
                Arrival::Lid => self.deliver_smp(now, smp),
                Arrival::Link | Arrival::Local => self.discard(smp.port, DropReason::BadAddress),
            };
        }
        let here = Here {
            is_switch: self.is_switch(),
            ports: self.ports.last(),
            port: smp.port,
            arrival: smp.arrival,
        };
        match smi::step(&mut smp.mad.0, here) {
            Step::Deliver => self.deliver_smp(now, smp),
            Step::Leave(port) => {
                if smp.arrival != Arrival::Local {
                    self.statistics.directed_hops += 1;
                }
                let route = MadRoute::smp(Lid::PERMISSIVE, Lid::PERMISSIVE);
                self.transmit(port, Packet::from_mad(&route, &smp.mad));
            }
            Step::LidRoute(dlid) => {
                let slid = self.ports[usize::from(self.end_port(smp.port).0)].info.lid;
                self.route_smp(now, smp.port, slid, dlid, smp.mad);
            }
            Step::Discard => self.discard(smp.port, DropReason::BadDirectedRoute),
        }
    }

    /// Sends an SMP by LID; `port` is where an HCA sends it from. What is for this very node is taken in.
    pub(crate) fn route_smp(&mut self, now: Time, port: PortNum, slid: Lid, dlid: Lid, mad: Mad) {
        if self.is_for(self.end_port(port), dlid) {
            return self.process_smp(now, Smp { arrival: Arrival::Lid, port, slid, dlid, mad });
        }
        if !dlid.is_unicast() {
            return self.discard(port, DropReason::BadAddress);
        }
        let packet = Packet::from_mad(&MadRoute::smp(dlid, slid), &mad);
        debug_assert!(packet.vl() == VirtualLane::MANAGEMENT, "SMPs have a lane of their own");
        if self.is_switch() {
            self.forward(PortNum::ZERO, packet);
        } else {
            self.transmit(port, packet);
        }
    }

    /// An SMP that has arrived: answers to the program that asked (TrapRepress too, if a program sent the trap), traps and what concerns a subnet manager to
    /// the program that registered, everything else to the SMA.
    fn deliver_smp(&mut self, now: Time, smp: Smp) {
        let method = smp.mad.method();
        // Directed requests travel outwards and answers back: what claims to be both is neither (IBA 14.2.1.2).
        if smp.mad.is_directed() && DirectedSmp::direction.get(&smp.mad.0) != method.is_response() {
            return self.discard(smp.port, DropReason::BadDirectedRoute);
        }
        let end = self.end_port(smp.port);
        let heard = method == Method::TrapRepress && self.has_asker(end, &smp.mad);
        let for_manager = smp.mad.attribute_id() == AttributeId::SmInfo && self.has_receiver(end, &smp.mad);
        if method.is_response() || method == Method::Trap || heard || for_manager {
            return self.deliver_smp_to_client(smp);
        }
        self.manage(now, &smp);
    }

    /// Has the SMA take an SMP in, and does what follows.
    pub(crate) fn manage(&mut self, now: Time, smp: &Smp) {
        let tables = sma::Tables {
            identity: &self.identity,
            ports: &mut self.ports,
            switch: self.switch.as_mut(),
            sl_to_vl: &mut self.sl_to_vl,
            traps: &self.traps,
            statistics: &mut self.statistics,
        };
        let verdict = self.sma.handle(now, tables, smp);
        let mut effects = self.sma.take_effects();
        for effect in effects.drain(..) {
            self.follow(now, effect);
        }
        self.sma.reuse(effects);
        match verdict {
            Verdict::Answer(answer) => {
                self.reply_smp(now, smp, answer);
                if let Some((port, stimulus)) = self.sma.take_asked_of_link() {
                    let changed = self.stimulate_asked(port, stimulus);
                    debug_assert!(changed.is_ok(), "it was checked when it was asked for");
                }
            }
            Verdict::Refuse => self.discard(smp.port, DropReason::BadMKey),
            Verdict::Repress(port) => self.repress_trap(port, &smp.mad),
        }
    }

    fn follow(&mut self, now: Time, effect: Effect) {
        match effect {
            Effect::Event(event) => self.emit(event),
            Effect::SettingsChanged(port) => self.data_settings_changed(port),
            Effect::KeysChanged(port) => {
                self.data.keys_changed(port);
                self.tell_host(port, false);
            }
            Effect::HelloChanged(port) => self.link_parameters_changed(port),
            Effect::Reregister(port) => self.tell_host(port, true),
            Effect::Describe(description) => self.set_description(now, description),
            Effect::Trap(port, details) => self.raise_trap(now, port, &details),
        }
    }

    /// Sends an answer back the way the request came.
    fn reply_smp(&mut self, now: Time, request: &Smp, mut mad: Mad) {
        let (port, slid, dlid) = (request.port, request.dlid, request.slid);
        if request.mad.is_directed() {
            DirectedSmp::direction.set(&mut mad.0, true);
            if DirectedSmp::dr_dlid.get(&mad.0) == Lid::PERMISSIVE {
                // The directed route ended here, so here it begins on the way back.
                return self.process_smp(now, Smp { arrival: Arrival::Local, port, slid, dlid, mad });
            }
        }
        self.route_smp(now, port, slid, dlid, mad);
    }
}

#[cfg(test)]
mod combined;
#[cfg(test)]
mod tests;
