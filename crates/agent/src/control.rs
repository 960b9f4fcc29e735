//! What an agent answers about itself.

use std::collections::BTreeMap;
use std::rc::Rc;

use weft_device::{DataAccount, DropReason, PortSnapshot};
use weft_link::Links;
use weft_node::{DeviceId, PortId, Request};
use weft_umad::{
    AgentStatus, ControlReply, ControlRequest, DeviceAccount, DeviceStatus, LaneAccount, PortEnd, PortStatus,
    PortTotals, Tap,
};
use weft_wire::{Guid, VirtualLane};

use crate::asked::Asker;
use crate::client::Program;
use crate::core::Core;
use crate::lateness::Histogram;
use crate::tap::Tapped;

impl Core {
    /// Answers one question; what the node decides is answered when it has.
    pub(crate) fn control(
        &mut self,
        program: &Rc<Program>,
        number: u32,
        request: &ControlRequest,
    ) -> Option<ControlReply> {
        let asks = (program, number);
        Some(match request {
            ControlRequest::Status => ControlReply::Status(self.status()),
            ControlRequest::Ports => ControlReply::Ports(self.ports()),
            ControlRequest::SetCable { node, port, up: plugged } => {
                let Some(device) = self.names.find(*node) else {
                    return Some(ControlReply::Failed { reason: format!("node {node} is not here") });
                };
                let (at, plugged) = (PortId::new(device, *port), *plugged);
                self.ask(Asker::Control(program.clone(), number), Request::Plug { at, plugged });
                return None;
            }
            ControlRequest::Capture(tap) => match self.capture(program, tap) {
                Ok(()) => ControlReply::Done,
                Err(reason) => ControlReply::Failed { reason },
            },
            ControlRequest::EndCapture => match self.stop_capture(program) {
                Some(totals) => ControlReply::CaptureEnded(totals),
                None => ControlReply::Failed { reason: "this connection captures nothing".into() },
            },
            ControlRequest::Host { node, port, command } => {
                let refused = self.host_command(asks, (*node, *port), command).err()?;
                ControlReply::Failed { reason: refused }
            }
            ControlRequest::Flows => ControlReply::Flows(self.host_flows()),
            ControlRequest::Account => ControlReply::Account(self.accounts()),
            ControlRequest::ResetLateness => {
                self.waking.lateness = Histogram::new();
                ControlReply::Done
            }
            ControlRequest::Shutdown => {
                self.signals.stop.notify_one();
                ControlReply::Done
            }
        })
    }

    fn capture(&mut self, program: &Rc<Program>, tap: &Tap) -> Result<(), String> {
        let tapped = Tapped::find(tap, |end| {
            let at = PortId::new(self.names.find(end.node)?, end.port);
            self.node.device(at.device)?.link_parameters(at.port).map(|_| at)
        })?;
        self.taps.listen(program, tapped)?;
        self.recorder.count("captures");
        self.ask(Asker::Agent, Request::Watch(true));
        Ok(())
    }

    fn status(&self) -> AgentStatus {
        AgentStatus {
            agent: self.name.clone(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            devices: self.names.iter().filter_map(|(_, device)| self.device_status(device)).collect(),
            counts: self.counts(),
            lateness: self.waking.lateness.summary(),
        }
    }

    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        let peers = self.links.as_ref().map(Links::peer_stats).unwrap_or_default();
        let links = || self.links.iter().flat_map(|links| links.cables().map(|(link, _)| links.stats(link)));
        let watched = self.links.as_ref().map_or(0, Links::processes_watched);
        let overflows = links().map(|stats| stats.overflows).sum::<u64>() + self.node.inner_overflows();
        let links = [
            ("events_lost", self.recorder.journal.lost()),
            ("link_peers_asked", links().map(|stats| stats.asked).sum()),
            ("link_peers_watched", watched as u64),
            ("link_frames_malformed", links().map(|stats| stats.malformed_frames).sum()),
            ("link_lanes_overflowed", overflows),
            ("peers_ignored", peers.ignored),
            ("peers_refused", peers.refused),
            ("peers_unfinished", peers.unfinished),
            ("peers_retried", peers.retried),
        ];
        self.recorder.counts().chain(links).map(|(name, count)| (name.to_owned(), count)).collect()
    }

    fn device_status(&self, device: DeviceId) -> Option<DeviceStatus> {
        let snapshot = self.node.device(device)?.snapshot_at(self.now());
        let ports = snapshot.ports.iter().filter(|port| port.port.0 != 0).count();
        let ends = snapshot.ports.iter().map(|port| PortId::new(device, port.port));
        let cabled: Vec<PortId> = ends.filter(|at| self.wiring.at(*at).is_some()).collect();
        let up = cabled.iter().filter(|at| self.is_link_up(**at)).count();
        Some(DeviceStatus {
            node: snapshot.guid,
            description: snapshot.description,
            node_type: snapshot.kind,
            ports: u8::try_from(ports).unwrap_or(u8::MAX),
            links_up: count(up),
            links_total: count(cabled.len()),
            clients: count(self.node.clients(device).count()),
            lft_writes: snapshot.statistics.lft_writes,
        })
    }

    fn accounts(&self) -> Vec<DeviceAccount> {
        let devices = self.names.iter();
        let accounts =
            devices.filter_map(|(guid, id)| Some(account(guid, &self.node.device(id)?.data_account())));
        accounts.collect()
    }

    fn ports(&self) -> Vec<PortStatus> {
        let mut ports = Vec::new();
        for (_, id) in self.names.iter() {
            let Some(device) = self.node.device(id) else { continue };
            let snapshot = device.snapshot_at(self.now());
            ports
                .extend(snapshot.ports.iter().map(|port| self.port_status(PortId::new(id, port.port), port)));
        }
        ports
    }

    fn port_status(&self, at: PortId, port: &PortSnapshot) -> PortStatus {
        let counters = &port.counters;
        let link = self.wiring.at(at).and_then(|cabled| cabled.link);
        let peers_refused =
            self.links.as_ref().zip(link).map_or(0, |(links, link)| links.stats(link).refused);
        PortStatus {
            end: self.names.end(at),
            peer: self.peer(at).map(|peer| PortEnd { node: peer.guid, port: peer.port }),
            state: port.state,
            phys_state: port.physical,
            link_up: self.is_link_up(at),
            plugged: self.node.is_plugged(at),
            lid: port.lid,
            width_active: port.link_width_active,
            speed_active: port.link_speed_active,
            speed_ext_active: port.link_speed_ext_active,
            totals: PortTotals {
                xmit_packets: counters.port_xmit_pkts,
                xmit_words: counters.port_xmit_data,
                rcv_packets: counters.port_rcv_pkts,
                rcv_words: counters.port_rcv_data,
                unicast_xmit_packets: counters.port_unicast_xmit_pkts,
                unicast_rcv_packets: counters.port_unicast_rcv_pkts,
                multicast_xmit_packets: counters.port_multicast_xmit_pkts,
                multicast_rcv_packets: counters.port_multicast_rcv_pkts,
                symbol_errors: counters.symbol_error_counter,
                link_error_recovery: counters.link_error_recovery_counter,
                link_downed: counters.link_downed_counter,
                rcv_errors: counters.port_rcv_errors,
                rcv_remote_physical_errors: counters.port_rcv_remote_physical_errors,
                rcv_switch_relay_errors: counters.port_rcv_switch_relay_errors,
                xmit_discards: counters.port_xmit_discards,
                xmit_constraint_errors: counters.port_xmit_constraint_errors,
                rcv_constraint_errors: counters.port_rcv_constraint_errors,
                local_link_integrity_errors: counters.local_link_integrity_errors,
                excessive_buffer_overrun_errors: counters.excessive_buffer_overrun_errors,
                vl15_dropped: counters.vl15_dropped,
                xmit_wait: counters.port_xmit_wait,
                peers_refused,
            },
        }
    }
}

fn account(node: Guid, account: &DataAccount) -> DeviceAccount {
    let lanes = account.lanes.iter().zip(0..).map(|(lane, number)| {
        let dropped = DropReason::ALL.iter().zip(&lane.dropped).filter(|(_, count)| **count > 0);
        LaneAccount {
            lane: VirtualLane(number),
            received: lane.received,
            injected: lane.injected,
            moved_in: lane.moved_in,
            moved_out: lane.moved_out,
            transmitted: lane.transmitted,
            to_host: lane.to_host,
            to_own: lane.to_own,
            dropped: dropped.map(|(reason, count)| (reason.name().to_owned(), *count)).collect(),
            held: lane.held,
        }
    });
    let unused = |lane: &LaneAccount| *lane == LaneAccount { lane: lane.lane, ..LaneAccount::default() };
    DeviceAccount { node, sound: account.is_sound(), lanes: lanes.filter(|lane| !unused(lane)).collect() }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
