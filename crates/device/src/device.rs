//! The machine: sorts its inputs and hands each to the file that handles it.

use weft_machine::{Machine, Time, Timer};
use weft_wire::{
    DataPacket, Lid, LinkParameters, NodeType, Packet, PortNum, ServiceLevel, SwitchInfo, VirtualLane,
    capability,
};

use crate::attach::Clients;
use crate::congestion::Congestion;
use crate::counters::is_multicast;
use crate::data::{Body, DataPath, Heading};
use crate::host_services::HostServices;
use crate::identity::Identity;
use crate::moment::NEVER;
use crate::outputs::Outputs;
use crate::pma::Pma;
use crate::port::{Port, capability_mask, capability_mask2};
use crate::ports::Ports;
use crate::sma::Sma;
use crate::switch::{SlToVl, Switch};
use crate::trap::Traps;
use crate::vl15::Vl15;
use crate::{
    DeviceConfig, DeviceTimer, DropReason, Event, Frame, Input, LaneTotals, Output, PortSnapshot, Snapshot,
    Statistics, Unsent,
};

/// The most physical ports that a node can have: 255 stands for "no route" and "all ports".
const PORTS_MAX: usize = 254;

/// A switch or an HCA. What every data packet needs is in front.
#[derive(Debug)]
#[repr(C)]
pub struct Device {
    pub(crate) data: DataPath,
    pub(crate) outputs: Outputs,
    pub(crate) switch: Option<Switch>,
    pub(crate) sl_to_vl: SlToVl,
    pub(crate) ports: Ports,
    pub(crate) statistics: Statistics,
    pub(crate) identity: Identity,
    pub(crate) vl15: Vl15,
    pub(crate) traps: Traps,
    pub(crate) clients: Clients,
    pub(crate) sma: Sma,
    pub(crate) pma: Pma,
    pub(crate) congestion: Congestion,
    pub(crate) host_services: HostServices,
}

impl Device {
    /// A device that has just been switched on.
    pub fn new(config: &DeviceConfig) -> Self {
        let options = &config.options;
        let is_switch = config.kind == NodeType::Switch;
        let port0_guid = config.ports.first().map_or(config.guid, |port| port.guid);
        let mut ports = vec![Port::management(port0_guid, options)];
        ports.extend(
            config
                .ports
                .iter()
                .take(PORTS_MAX)
                .zip(1..)
                .map(|(port, number)| Port::new(PortNum(number), port.guid, port.link, options)),
        );
        if is_switch {
            // Port 0 speaks for all ports.
            let any = config.ports.iter().fold(LinkParameters::default(), |any, port| LinkParameters {
                width: any.width | port.link.width,
                speed: any.speed | port.link.speed,
                speed_ext: any.speed_ext | port.link.speed_ext,
            });
            ports[0].info.capability_mask = capability_mask(any);
            ports[0].info.capability_mask2 = capability_mask2(any);
        } else {
            for (port, config) in ports[1..].iter_mut().zip(&config.ports) {
                port.info.capability_mask =
                    capability_mask(config.link) | capability::IS_VENDOR_CLASS_SUPPORTED;
                port.info.capability_mask2 = capability_mask2(config.link);
            }
        }
        let mut device = Self {
            identity: Identity::new(config),
            sl_to_vl: SlToVl::new(ports.len() - 1),
            congestion: Congestion::new(is_switch, ports.len()),
            data: DataPath::new(is_switch, &ports, options),
            ports: Ports::new(ports, is_switch),
            switch: is_switch.then(|| Switch::new(initial_switch_info(config))),
            vl15: Vl15::new(options.vl15_buffer_packets, options.smp_processing),
            traps: Traps::new(options),
            clients: Clients::new(options),
            sma: Sma::default(),
            pma: Pma::default(),
            host_services: HostServices::new(options.processors.clone()),
            statistics: Statistics::default(),
            outputs: Outputs::default(),
        };
        for port in 0..device.ports.len() {
            device.data_settings_changed(PortNum(port as u8));
        }
        device.outputs.clear();
        device
    }

    /// The same device, switched on for another time. Whoever drives it gives every switching-on a number that the
    /// device did not have lately, so that its traps are not taken for those of the time before.
    #[must_use]
    pub fn with_incarnation(mut self, incarnation: u64) -> Self {
        self.traps.begin_incarnation(incarnation);
        self
    }

    /// What the device has done.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The device when something last happened to it.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot_at(self.data.now)
    }

    /// The device at a moment. Waits under way count up to it, or up to what was due before it and has not been done yet.
    pub fn snapshot_at(&self, at: Time) -> Snapshot {
        let first = usize::from(!self.is_switch());
        Snapshot {
            kind: self.identity.kind,
            guid: self.identity.guid,
            description: self.identity.description.to_text(),
            ports: self.ports[first..].iter().map(|port| self.snapshot_of(port, at)).collect(),
            statistics: self.statistics.clone(),
            clients: self.clients.len() as u16,
        }
    }

    /// One port when something last happened to its device.
    pub fn port_snapshot(&self, port: PortNum) -> Option<PortSnapshot> {
        self.port_snapshot_at(port, self.data.now)
    }

    /// One port at a moment, as [`Self::snapshot_at`] has it.
    pub fn port_snapshot_at(&self, port: PortNum, at: Time) -> Option<PortSnapshot> {
        let port = self.ports.get(usize::from(port.0)).filter(|_| self.has_port(port))?;
        Some(self.snapshot_of(port, at))
    }

    /// What each data lane of a port has counted at a moment, as [`Self::snapshot_at`] has it.
    pub fn lane_totals_at(&self, port: PortNum, at: Time) -> impl Iterator<Item = LaneTotals> {
        let at = at.min(self.next_due()).max(self.data.now);
        let port = self.ports.get(usize::from(port.0)).filter(|_| self.has_port(port));
        port.into_iter().flat_map(move |port| self.data.lane_totals(at, port))
    }

    /// The lane on which a packet of a service level leaves by `output` that came in by `input`; at an adapter both are its own port.
    pub fn lane_of(&self, input: PortNum, output: PortNum, level: ServiceLevel) -> Option<VirtualLane> {
        let table = self.sl_to_vl.table(input, output)?;
        table.lanes.get(usize::from(level.0)).copied()
    }

    /// The highest number of a port.
    pub fn port_count(&self) -> u8 {
        self.ports.len().saturating_sub(1) as u8
    }

    /// Nanoseconds of machine time in one of fabric time.
    pub fn dilation(&self) -> u32 {
        self.data.dilation()
    }

    fn snapshot_of(&self, port: &Port, at: Time) -> PortSnapshot {
        // What is due could end a wait: no counter may fall when it is done.
        let at = at.min(self.next_due()).max(self.data.now);
        let mut counters = port.counters;
        self.data.add_uncounted(at, port.number, &mut counters);
        PortSnapshot { counters, ..port_snapshot(port) }
    }

    /// A switch's linear forwarding table by LID, as far as it has been written; 255 is no route.
    pub fn forwarding_table(&self) -> &[PortNum] {
        self.switch.as_ref().map_or(&[], |switch| &switch.linear)
    }

    /// The highest LID that a switch looks up.
    pub fn linear_fdb_top(&self) -> Lid {
        Lid(self.switch.as_ref().map_or(0, |switch| switch.info.linear_fdb_top))
    }

    /// Exchanges the outputs with others, of which there are none on one side. Whoever drives many devices can lend the same
    /// memory to each of them while it is fed, and take the outputs with it: so it stays in the processor's cache.
    #[inline]
    pub fn exchange_outputs(&mut self, memory: &mut Outputs) {
        debug_assert!(self.outputs.is_empty() || memory.is_empty(), "outputs are taken first");
        std::mem::swap(&mut self.outputs, memory);
    }

    #[inline]
    pub(crate) fn is_switch(&self) -> bool {
        self.switch.is_some()
    }

    /// Whether the port exists; an HCA has no port 0.
    #[inline]
    pub(crate) fn has_port(&self, port: PortNum) -> bool {
        self.ports.has(port)
    }

    /// The port that has a LID: a switch's port 0, an HCA's own.
    #[inline]
    pub(crate) fn end_port(&self, port: PortNum) -> PortNum {
        self.ports.end(port)
    }

    pub(crate) fn emit(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    /// Counts and reports a packet or MAD that goes no further.
    pub(crate) fn discard(&mut self, port: PortNum, reason: DropReason) {
        self.statistics.count_drop(reason);
        self.emit(Event::Dropped { port, reason });
    }

    /// A packet that the port of arrival can see to be wrong.
    pub(crate) fn receive_error(&mut self, port: PortNum, reason: DropReason) {
        if let Some(port) = self.ports.get_mut(usize::from(port.0)) {
            port.counters.port_rcv_errors += 1;
            match reason {
                DropReason::BadPacket | DropReason::BadIcrc => port.counters.port_local_physical_errors += 1,
                _ => port.counters.port_malformed_pkt_errors += 1,
            }
        }
        self.discard(port, reason);
    }

    /// Sends a packet of lane 15 out of `port`, if the port is up.
    pub(crate) fn transmit(&mut self, port: PortNum, packet: Packet) -> bool {
        let Some(output) = self.ports.get_mut(usize::from(port.0)) else {
            self.discard(port, DropReason::NoSuchPort);
            return false;
        };
        let refused = if !output.state.is_up() {
            DropReason::OutputInactive
        } else if packet.bytes().len() > output.packet_size_max {
            DropReason::TooLong
        } else {
            output.counters.sent(packet.words(), is_multicast(packet.dlid()));
            self.outputs.push_back(Output::Transmit { port, frame: Frame::Packet(packet) });
            return true;
        };
        self.count_departure(port, refused);
        self.discard(port, refused);
        false
    }

    /// A packet has come in over the cable at `port`.
    fn receive(&mut self, now: Time, port: PortNum, packet: Packet) {
        let input = self.ports.get_mut(usize::from(port.0)).filter(|_| port != PortNum::ZERO);
        let Some(input) = input else { return self.discard(port, DropReason::NoSuchPort) };
        let vl = packet.vl();
        if vl != VirtualLane::MANAGEMENT {
            let heading = Heading::from(&packet);
            return self.arrive(now, port, Body::Whole(packet), &heading);
        }
        if !input.state.is_up() {
            return self.discard(port, DropReason::LinkDown);
        }
        input.counters.received(packet.words(), is_multicast(packet.dlid()));
        input.by_lane.received(packet.op_code(), vl, packet.words());
        if self.is_for(self.end_port(port), packet.dlid()) || packet.dlid() == Lid::PERMISSIVE {
            self.receive_smp(now, port, &packet);
        } else {
            self.forward(port, packet);
        }
    }

    /// A data packet whose body is a length has come in over the cable at `port`.
    #[inline]
    fn receive_data(&mut self, now: Time, port: PortNum, packet: DataPacket) {
        if port == PortNum::ZERO || usize::from(port.0) >= self.ports.len() {
            return self.discard(port, DropReason::NoSuchPort);
        }
        if packet.vl.0 >= VirtualLane::MANAGEMENT.0 {
            return self.receive_error(port, DropReason::BadLane);
        }
        let heading = Heading::from(&packet);
        self.arrive(now, port, Body::Data(packet), &heading);
    }

    /// What does not happen with every packet.
    #[inline(never)]
    fn handle_seldom(&mut self, now: Time, input: Input) {
        match input {
            Input::Arrive { frame: Frame::Data(_) | Frame::Credit(_), .. } | Input::Inject { .. } => {}
            Input::Congestion { port, event } => self.log_congestion(now, port, event),
            Input::Arrive { port, frame: Frame::Packet(packet) } => self.receive(now, port, packet),
            Input::LinkUp { port, peer } => self.link_up(now, port, peer),
            Input::LinkDown { port } => self.link_down(now, port),
            Input::TransmitDropped { port, unsent } => self.transmit_dropped(port, unsent),
            Input::Lost { port, lost, bit_errors } => self.lost(port, lost, bit_errors),
            Input::ReceiveError { port, physical: true } => self.receive_error(port, DropReason::BadPacket),
            Input::ReceiveError { port, physical: false } => self.receive_error(port, DropReason::Malformed),
            Input::Attach { client, port, registrations } => self.attach(now, client, port, registrations),
            Input::Register { client, key, registration } => self.register(client, key, registration),
            Input::Unregister { client, key } => self.unregister(client, key),
            Input::SetSm { client, is_sm } => self.set_sm(now, client, is_sm),
            Input::Detach { client } => self.detach(now, client),
            Input::Send { client, mad } => self.send(now, client, &mad),
            Input::Describe { text } => self.describe(now, &text),
            Input::DrainAt { port, share_ppm } => self.drain_at(port, share_ppm),
        }
    }

    /// The driver could not send a packet that it took.
    fn transmit_dropped(&mut self, port: PortNum, unsent: Unsent) {
        let number = usize::from(port.0);
        if port == PortNum::ZERO || number >= self.ports.len() {
            return self.discard(port, DropReason::NoSuchPort);
        }
        self.data.count_all(&mut self.ports, number..number + 1);
        self.ports[number].counters.not_sent(unsent.words, unsent.multicast);
        self.discard(port, DropReason::TransmitDropped);
        self.data_not_sent(port, unsent.lane, unsent.words);
    }
}

impl Machine for Device {
    type Input = Input;
    type Output = Output;
    type Reason = DeviceTimer;

    fn handle_input(&mut self, now: Time, input: Input) {
        self.catch_up(now);
        match input {
            Input::Arrive { port, frame: Frame::Data(packet) } => self.receive_data(now, port, packet),
            Input::Arrive { port, frame: Frame::Credit(flow_control) } => {
                self.credit(now, port, flow_control);
            }
            Input::Inject { port, packet } => self.inject(now, port, packet),
            seldom => self.handle_seldom(now, seldom),
        }
        self.run(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.catch_up(now);
        if self.data.traps <= now {
            self.send_due_traps(now);
        }
        self.run(now);
    }

    #[inline]
    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn next_timer(&self) -> Option<Timer<DeviceTimer>> {
        self.timer()
    }

    fn poll_timeout(&self) -> Option<Time> {
        debug_assert_eq!(self.data.traps, self.traps.due(), "known here too");
        let due = self.data.traps.min(self.next_due());
        let due = (due != NEVER).then_some(due);
        debug_assert_eq!(due, self.timer().map(|timer| timer.at), "one moment, told in two ways");
        due
    }
}

fn initial_switch_info(config: &DeviceConfig) -> SwitchInfo {
    let options = &config.options;
    SwitchInfo {
        linear_fdb_cap: options.lft_cap.min(Lid::UNICAST_MAX.0 + 1),
        multicast_fdb_cap: options.mft_cap.min(0x4000),
        life_time_value: 20,
        optimized_sl_to_vl_mapping: u8::from(options.optimized_sl_to_vl_mapping),
        partition_enforcement_cap: options.partition_cap,
        inbound_enforcement_cap: true,
        outbound_enforcement_cap: true,
        enhanced_port0: config.enhanced_port0,
        multicast_fdb_top: Lid(0xbfff),
        ..SwitchInfo::default()
    }
}

fn port_snapshot(port: &Port) -> PortSnapshot {
    PortSnapshot {
        port: port.number,
        guid: port.guid,
        state: port.state.logical(),
        physical: port.state.physical(),
        lid: port.info.lid,
        lmc: port.info.lmc,
        master_sm_lid: port.info.master_sm_lid,
        link_width_active: port.info.link_width_active,
        link_speed_active: port.info.link_speed_active,
        link_speed_ext_active: port.info.link_speed_ext_active,
        link_active: port.active(),
        link_enabled: port.parameters(),
        link_supported: port.supported(),
        neighbor_mtu: port.info.neighbor_mtu,
        operational_vls: port.info.operational_vls,
        counters: port.counters,
    }
}

#[cfg(test)]
mod tests;
