//! Showing packets that cross the agent's cables to those who listen.

use weft_link::SendOutcome;
use weft_node::{Frame, PortId};
use weft_wire::Packet;

use super::Core;
use crate::listener::Direction;

impl Core {
    /// Hands a frame to its cable and shows it to those who listen, if it went.
    pub(crate) fn transmit_tapped(&mut self, at: PortId, frame: Frame) -> Option<SendOutcome> {
        let bytes = self.taps.wants(at, Direction::Sent).then(|| bytes(&frame)).flatten();
        let outcome = self.hand_over(at, frame);
        if let (Some(bytes), Some(SendOutcome::Sent | SendOutcome::Queued)) = (bytes, outcome) {
            self.tap(at, Direction::Sent, &bytes);
        }
        outcome
    }

    /// Shows a frame that crosses a cable within the agent.
    pub(crate) fn tap_crossing(&mut self, at: PortId, received: bool, frame: &Frame) {
        let direction = if received { Direction::Received } else { Direction::Sent };
        self.tap_frame(at, direction, frame);
    }

    /// Shows a frame that crosses a cable to those who listen.
    pub(crate) fn tap_frame(&mut self, at: PortId, direction: Direction, frame: &Frame) {
        if self.taps.wants(at, direction)
            && let Some(bytes) = bytes(frame)
        {
            self.tap(at, direction, &bytes);
        }
    }

    /// Shows a packet that crosses a cable to those who listen, without the SA key.
    pub(crate) fn tap(&mut self, at: PortId, direction: Direction, packet: &[u8]) {
        let Some(named) = self.names.of(at.device) else { return };
        let shown = Packet::without_sa_key(packet);
        self.taps.take(at, &named.who, direction, shown.as_deref().unwrap_or(packet));
    }
}

/// What a capture has of a frame: all of a packet's bytes, made up where they did not travel. Flow control is no packet.
fn bytes(frame: &Frame) -> Option<Vec<u8>> {
    match frame {
        Frame::Packet(packet) => Some(packet.bytes().to_vec()),
        Frame::Data(packet) => Some(packet.to_whole().into_bytes()),
        Frame::Credit(_) => None,
    }
}
