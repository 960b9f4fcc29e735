//! General management datagrams: queue pair 1 on the data lanes.

use weft_machine::Time;
use weft_wire::{
    AddressedMad, CongestionEvent, Lid, Mad, MadRoute, Method, MgmtClass, PKey, Packet, PerfMad, PortNum,
    QKey, QpNum, RmppType, ServiceLevel, VirtualLane, status,
};

use crate::congestion::Lanes;
use crate::data::{KeyHeading, WrongKey};
use crate::pma::Counted;
use crate::{Device, DropReason, Output};

/// A GMP with its addresses.
#[derive(Clone, Debug)]
pub(crate) struct Gmp {
    /// The port of arrival, or the port that it leaves from; 0 on a switch.
    pub(crate) port: PortNum,
    pub(crate) slid: Lid,
    pub(crate) dlid: Lid,
    pub(crate) service_level: ServiceLevel,
    pub(crate) p_key: PKey,
    pub(crate) dest_qp: QpNum,
    pub(crate) src_qp: QpNum,
    pub(crate) q_key: QKey,
    pub(crate) mad: Mad,
}

impl Gmp {
    fn heading(&self) -> KeyHeading {
        let &Self { slid, dlid, service_level, src_qp, dest_qp, .. } = self;
        KeyHeading { slid, dlid, service_level, src_qp, dest_qp }
    }
}

impl Device {
    /// A packet on a data lane that is addressed to this node. `port` is the port of arrival.
    pub(crate) fn receive_gmp(&mut self, now: Time, port: PortNum, packet: &Packet) {
        let parts = packet.bth().zip(packet.deth()).zip(packet.mad());
        let Some(((bth, deth), mad)) = parts else {
            return self.receive_error(port, DropReason::NotAMad);
        };
        if packet.check_icrc().is_err() {
            return self.receive_error(port, DropReason::BadIcrc);
        }
        self.accept_gmp(
            now,
            Gmp {
                port: self.end_port(port),
                slid: packet.slid(),
                dlid: packet.dlid(),
                service_level: packet.service_level(),
                p_key: bth.p_key,
                dest_qp: bth.dest_qp,
                src_qp: deth.src_qp,
                q_key: deth.q_key,
                mad,
            },
        );
    }

    /// Checks the queue pair and the two keys (IBA 10.2.4 and 10.9), then hands over.
    fn accept_gmp(&mut self, now: Time, gmp: Gmp) {
        if gmp.dest_qp != QpNum::GSI || gmp.mad.is_smp() {
            return self.discard(gmp.port, DropReason::NotAMad);
        }
        let Some(end) = self.ports.get(usize::from(gmp.port.0)) else { return };
        let Some(pkey_index) = end.p_key_index(gmp.p_key) else {
            self.key_violation(now, gmp.port, &gmp.heading(), WrongKey::PKey(gmp.p_key));
            return self.discard(gmp.port, DropReason::BadPKey);
        };
        if gmp.q_key != QKey::GSI {
            self.key_violation(now, gmp.port, &gmp.heading(), WrongKey::QKey(gmp.q_key));
            return self.discard(gmp.port, DropReason::BadQKey);
        }
        self.deliver_gmp(now, gmp, pkey_index);
    }

    fn deliver_gmp(&mut self, now: Time, mut gmp: Gmp, pkey_index: u16) {
        // What acknowledges a long answer has the method of the request, and asks for nothing.
        let asks = !gmp.mad.is_rmpp_active() || gmp.mad.rmpp().kind == RmppType::Data;
        let answers = gmp.mad.method().response().filter(|_| asks);
        // A program's registration for a class comes before the device's own answer.
        if let Some(client) = self.receiver(gmp.port, &mut gmp.mad) {
            let mad = AddressedMad {
                lid: gmp.slid,
                remote_qp: gmp.src_qp,
                local_qp: QpNum::GSI,
                service_level: gmp.service_level,
                pkey_index,
                qkey: gmp.q_key,
                mad: gmp.mad,
            };
            if let Some(host) = self.host_beside(gmp.port, &mad.mad) {
                self.outputs.push_back(Output::Deliver { client: host, mad: Box::new(mad) });
            }
            self.outputs.push_back(Output::Deliver { client, mad: Box::new(mad) });
        } else if let Some(answers) = answers.filter(|_| gmp.mad.class() == MgmtClass::Perf) {
            let answer = self.performance_answer(now, &gmp.mad, answers);
            self.reply_gmp(now, &gmp, answer);
        } else if let Some(answers) = answers.filter(|_| gmp.mad.class() == MgmtClass::CongestionControl) {
            match self.congestion_answer(now, gmp.port, &gmp.mad, answers) {
                Some(answer) => self.reply_gmp(now, &gmp, answer),
                None => self.discard(gmp.port, DropReason::BadCcKey),
            }
        } else if let Some(answer) =
            self.host_services.answer(&self.identity.description, &gmp.mad).filter(|_| !self.is_switch())
        {
            self.reply_gmp(now, &gmp, answer);
        } else if let Some(answers) = answers {
            let mut answer = gmp.mad;
            PerfMad::method.set(&mut answer.0, answers);
            PerfMad::status.set(&mut answer.0, status::BAD_VERSION);
            self.reply_gmp(now, &gmp, answer);
        } else {
            self.discard(gmp.port, DropReason::NoReceiver);
        }
    }

    /// The congestion control agent's answer to a request; `None` when the key is wrong.
    pub(crate) fn congestion_answer(
        &mut self,
        now: Time,
        port: PortNum,
        request: &Mad,
        answers: Method,
    ) -> Option<Mad> {
        let (ports, is_switch, guid) = (self.ports.len(), self.is_switch(), self.identity.guid);
        let lanes = Lanes { data: &mut self.data, ports, is_switch, guid };
        let verdict = self.congestion.handle(now, lanes, port, request, answers);
        if verdict.tells_host {
            self.tell_host(port, false);
        }
        verdict.answer
    }

    /// The host behind a port tells of an index that came to its threshold.
    pub(crate) fn log_congestion(&mut self, now: Time, port: PortNum, event: CongestionEvent) {
        let Some(lid) = self.ports.get(usize::from(port.0)).map(|port| port.info.lid) else { return };
        self.congestion.log(self.data.time_stamp(now), port, lid, &event);
    }

    /// The PMA's answer to a request. `answers` is the method that it is answered with.
    pub(crate) fn performance_answer(&mut self, now: Time, request: &Mad, answers: Method) -> Mad {
        let counted = Counted { ports: &mut self.ports, data: &mut self.data };
        let answer = self.pma.answer(now, counted, request, answers);
        self.seldom_changed();
        answer
    }

    fn reply_gmp(&mut self, now: Time, request: &Gmp, mad: Mad) {
        self.statistics.gmps_answered += 1;
        let own = self.ports.get(usize::from(request.port.0)).and_then(|end| end.own_p_key(request.p_key));
        let answer = Gmp {
            // A limited member would not take its own key back.
            p_key: own.unwrap_or(request.p_key),
            slid: request.dlid,
            dlid: request.slid,
            dest_qp: request.src_qp,
            src_qp: QpNum::GSI,
            q_key: QKey::GSI,
            mad,
            ..*request
        };
        self.route_gmp(now, answer);
    }

    /// Sends a GMP from `gmp.port`, or takes it in when it is for this very port.
    pub(crate) fn route_gmp(&mut self, now: Time, gmp: Gmp) {
        if usize::from(gmp.port.0) < self.ports.len() && self.is_for(gmp.port, gmp.dlid) {
            return self.accept_gmp(now, gmp);
        }
        if gmp.dlid == Lid(0) || gmp.dlid == Lid::PERMISSIVE {
            return self.discard(gmp.port, DropReason::BadAddress);
        }
        let mut route = MadRoute {
            vl: VirtualLane(0),
            service_level: gmp.service_level,
            dlid: gmp.dlid,
            slid: gmp.slid,
            p_key: gmp.p_key,
            dest_qp: gmp.dest_qp,
            src_qp: gmp.src_qp,
            q_key: gmp.q_key,
        };
        if self.is_switch() {
            self.send_from_port0(now, Packet::from_mad(&route, &gmp.mad));
        } else {
            route.vl = self.sl_to_vl.lane(gmp.port, gmp.port, gmp.service_level);
            if route.vl == VirtualLane::MANAGEMENT {
                return self.discard(gmp.port, DropReason::NoLane);
            }
            self.inject_whole(now, gmp.port, Packet::from_mad(&route, &gmp.mad));
        }
    }
}

#[cfg(test)]
mod tests;
