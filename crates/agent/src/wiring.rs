//! Which port is at which cable, and whether the cable is plugged in.

use std::collections::BTreeMap;

use weft_link::{Cable, CableEnd, LinkIndex, TwinIndex, Twins};
use weft_machine::Time;
use weft_wire::{Guid, LinkParameters, PortNum};

use crate::cables::Frame;
use crate::config::{AgentConfig, CableConfig};

/// Packets that may be on their way to one end of an in-process cable: as many as a link's own queue holds.
const TWIN_QUEUE_PACKETS: u32 = 1024;
/// Packets and flow control of its data lanes that may be on their way: more than fifteen lanes' credit allows.
const TWIN_LANE_FRAMES: u32 = 15 * 4096;

/// A port of one of the agent's devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The place of the device in the agent's list.
    pub(crate) device: usize,
    pub(crate) port: PortNum,
}

/// What is at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attachment {
    /// No cable.
    None,
    /// A cable to another agent.
    Link(LinkIndex),
    /// A cable to a port of this agent.
    Twin(TwinIndex),
}

/// A port and its cable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jack {
    pub(crate) attachment: Attachment,
    pub(crate) peer: Option<CableEnd>,
    /// Whether the cable is plugged in, which is the operator's doing.
    pub(crate) plugged: bool,
    /// Whether the port lets its link come up, which is the subnet manager's doing.
    pub(crate) enabled: bool,
    /// How long what comes over the data lanes is held back.
    pub(crate) delay: Time,
}

const EMPTY: Jack =
    Jack { attachment: Attachment::None, peer: None, plugged: true, enabled: true, delay: Time::ZERO };

/// The agent's cabling.
#[derive(Debug, Default)]
pub(crate) struct Wiring {
    /// By device and port number; port 0 has no cable.
    jacks: Vec<Vec<Jack>>,
    /// By link index.
    link_places: Vec<Place>,
    /// By twin index.
    twin_places: Vec<Place>,
}

impl Wiring {
    /// Lays the cables of a checked configuration; also returns those that leave the agent.
    pub(crate) fn lay(config: &AgentConfig) -> (Self, Twins<Frame>, Vec<Cable>) {
        let guids: BTreeMap<Guid, usize> =
            config.devices.iter().enumerate().map(|(index, device)| (device.guid, index)).collect();
        let jacks = config.devices.iter().map(|device| vec![EMPTY; device.ports.len() + 1]).collect();
        let mut wiring = Self { jacks, ..Self::default() };
        let mut twins = Twins::new(TWIN_QUEUE_PACKETS, TWIN_LANE_FRAMES);
        let mut cables = Vec::new();
        let place =
            |end: CableEnd| guids.get(&end.guid).map(|device| Place { device: *device, port: end.port });
        let enabled = |place: Place| enabled_at_first(config, place);
        for cable in config.distinct_cables() {
            let Some(local) = place(cable.local) else { continue };
            let delay = Time::from_nanos(cable.delay_ns);
            match (cable.remote_addr, place(cable.remote)) {
                (Some(remote_addr), _) => {
                    let CableConfig { local: local_end, remote, .. } = cable;
                    let attachment = Attachment::Link(LinkIndex(cables.len()));
                    wiring.plug(local, attachment, remote, delay);
                    wiring.link_places.push(local);
                    let parameters = enabled(local);
                    cables.push(Cable { local: local_end, remote, remote_addr, parameters });
                }
                (None, Some(remote)) => {
                    let (near, far) = twins.connect(enabled(local), enabled(remote));
                    wiring.plug(local, Attachment::Twin(near), cable.remote, delay);
                    wiring.plug(remote, Attachment::Twin(far), cable.local, delay);
                    wiring.twin_places.extend([local, remote]);
                }
                (None, None) => {}
            }
        }
        (wiring, twins, cables)
    }

    fn plug(&mut self, place: Place, attachment: Attachment, peer: CableEnd, delay: Time) {
        if let Some(jack) = self.jack_mut(place) {
            *jack = Jack { attachment, peer: Some(peer), delay, ..EMPTY };
        }
    }

    /// What is at a port; a port that is none has no cable.
    #[inline]
    pub(crate) fn jack(&self, device: usize, port: PortNum) -> Jack {
        self.jacks.get(device).and_then(|jacks| jacks.get(usize::from(port.0))).copied().unwrap_or(EMPTY)
    }

    /// Whether a device has this port, cabled or not. Port 0 is none that a cable could be at.
    pub(crate) fn has_port(&self, device: usize, port: PortNum) -> bool {
        port != PortNum::ZERO && self.jacks.get(device).is_some_and(|jacks| usize::from(port.0) < jacks.len())
    }

    pub(crate) fn jack_mut(&mut self, place: Place) -> Option<&mut Jack> {
        self.jacks.get_mut(place.device)?.get_mut(usize::from(place.port.0))
    }

    /// The ports of a device that have a cable.
    pub(crate) fn cabled(&self, device: usize) -> impl Iterator<Item = Jack> {
        let jacks = self.jacks.get(device).into_iter().flatten();
        jacks.filter(|jack| jack.attachment != Attachment::None).copied()
    }

    /// The ports that have a cable.
    pub(crate) fn cabled_count(&self) -> usize {
        self.link_places.len() + self.twin_places.len()
    }

    #[inline]
    pub(crate) fn link_place(&self, link: LinkIndex) -> Option<Place> {
        self.link_places.get(link.0).copied()
    }

    #[inline]
    pub(crate) fn twin_place(&self, twin: TwinIndex) -> Option<Place> {
        self.twin_places.get(twin.0 as usize).copied()
    }
}

fn enabled_at_first(config: &AgentConfig, place: Place) -> LinkParameters {
    let device = config.devices.get(place.device);
    let port = device.and_then(|device| device.ports.get(usize::from(place.port.0).checked_sub(1)?));
    port.map(|port| port.link).unwrap_or_default()
}
