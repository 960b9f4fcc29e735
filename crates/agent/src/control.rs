//! What an agent answers about itself.

use std::collections::BTreeMap;
use std::rc::Rc;

use weft_device::{DataAccount, DropReason, PortSnapshot};
use weft_link::{CableEnd, Links};
use weft_umad::{
    AgentStatus, ControlReply, ControlRequest, DeviceAccount, DeviceStatus, LaneAccount, PortEnd, PortStatus,
    PortTotals, Tap,
};
use weft_wire::{Guid, VirtualLane};

use crate::client::Program;
use crate::core::{Core, Hosted};
use crate::lateness::Histogram;
use crate::tap::Tapped;
use crate::wiring::{Attachment, Jack};

impl Core {
    /// Answers one question.
    pub(crate) fn control(&mut self, program: &Rc<Program>, request: &ControlRequest) -> ControlReply {
        match request {
            ControlRequest::Status => ControlReply::Status(self.status()),
            ControlRequest::Ports => ControlReply::Ports(self.ports()),
            ControlRequest::SetCable { node, port, up } => {
                match self.set_cable(CableEnd { guid: *node, port: *port }, *up) {
                    Ok(()) => ControlReply::Done,
                    Err(reason) => ControlReply::Failed { reason },
                }
            }
            ControlRequest::Capture(tap) => match self.capture(program, tap) {
                Ok(()) => ControlReply::Done,
                Err(reason) => ControlReply::Failed { reason },
            },
            ControlRequest::EndCapture => match self.taps.forget(program) {
                Some(totals) => ControlReply::CaptureEnded(totals),
                None => ControlReply::Failed { reason: "this connection captures nothing".into() },
            },
            ControlRequest::Host { node, port, command } => match self.host_command(*node, *port, command) {
                Ok(()) => ControlReply::Done,
                Err(reason) => ControlReply::Failed { reason },
            },
            ControlRequest::Flows => ControlReply::Flows(self.host_flows()),
            ControlRequest::Account => ControlReply::Account(self.accounts()),
            ControlRequest::ResetLateness => {
                self.lateness = Histogram::new();
                ControlReply::Done
            }
            ControlRequest::Shutdown => {
                self.signals.stop.notify_one();
                ControlReply::Done
            }
        }
    }

    fn capture(&mut self, program: &Rc<Program>, tap: &Tap) -> Result<(), String> {
        let tapped = Tapped::find(tap, &self.wiring, |end| self.by_guid.get(&end.node).copied())?;
        self.taps.listen(program, tapped)?;
        self.recorder.count("captures");
        Ok(())
    }

    fn status(&self) -> AgentStatus {
        AgentStatus {
            agent: self.name.clone(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            devices: self.by_guid.values().map(|device| self.device_status(*device)).collect(),
            counts: self.counts(),
            lateness: self.lateness.summary(),
        }
    }

    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        let peers = self.links.as_ref().map(Links::peer_stats).unwrap_or_default();
        let links = || self.links.iter().flat_map(|links| links.cables().map(|(link, _)| links.stats(link)));
        let watched = self.links.as_ref().map_or(0, Links::processes_watched);
        let overflows = links().map(|stats| stats.overflows).sum::<u64>() + self.twins.overflows();
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

    fn device_status(&self, device: usize) -> DeviceStatus {
        let snapshot = self.devices[device].machine.snapshot_at(self.now());
        let ports = snapshot.ports.iter().filter(|port| port.port.0 != 0).count();
        let up = self.wiring.cabled(device).filter(|jack| self.is_up(jack)).count();
        DeviceStatus {
            node: snapshot.guid,
            description: snapshot.description,
            node_type: snapshot.kind,
            ports: u8::try_from(ports).unwrap_or(u8::MAX),
            links_up: count(up),
            links_total: count(self.wiring.cabled(device).count()),
            clients: count(self.program_count(device)),
            lft_writes: snapshot.statistics.lft_writes,
        }
    }

    fn accounts(&self) -> Vec<DeviceAccount> {
        let devices = self.by_guid.iter();
        devices.map(|(node, device)| account(*node, &self.devices[*device].machine.data_account())).collect()
    }

    fn ports(&self) -> Vec<PortStatus> {
        let mut ports = Vec::new();
        for device in self.by_guid.values() {
            let hosted = &self.devices[*device];
            let snapshot = hosted.machine.snapshot_at(self.now());
            let statuses = snapshot.ports.iter().map(|port| {
                let jack = self.wiring.jack(*device, port.port);
                self.port_status(hosted, port, &jack)
            });
            ports.extend(statuses);
        }
        ports
    }

    fn port_status(&self, hosted: &Hosted, port: &PortSnapshot, jack: &Jack) -> PortStatus {
        let counters = &port.counters;
        let peers_refused = match (jack.attachment, &self.links) {
            (Attachment::Link(link), Some(links)) => links.stats(link).refused,
            _ => 0,
        };
        PortStatus {
            end: PortEnd { node: hosted.who.guid, port: port.port },
            peer: jack.peer.map(|peer| PortEnd { node: peer.guid, port: peer.port }),
            state: port.state,
            phys_state: port.physical,
            link_up: self.is_up(jack),
            plugged: jack.plugged,
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

    fn is_up(&self, jack: &Jack) -> bool {
        match (jack.attachment, &self.links) {
            (Attachment::Link(link), Some(links)) => links.is_up(link),
            (Attachment::Twin(end), _) => self.twins.is_up(end),
            _ => false,
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
