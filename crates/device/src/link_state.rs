//! Consequences of a change of a port's state: counters, events, SwitchInfo.PortStateChange, trap 128.

use weft_machine::Time;
use weft_wire::{Details, LinkParameters, LocalChangesDetails, NodeDescription, PortNum, PortState, trap};

use crate::port::{InvalidTransition, LinkState, Stimulus};
use crate::{Device, DropReason, Event, Output};

impl Device {
    /// The hello has passed in both directions.
    pub(crate) fn link_up(&mut self, now: Time, port: PortNum, peer: LinkParameters) {
        let Some(input) = self.physical_port(port) else {
            return self.discard(port, DropReason::NoSuchPort);
        };
        let before = self.ports[input].state;
        if before.is_up() {
            // No one saw it go, but a new hello says that it did.
            self.lose_link(now, port);
        } else if before != LinkState::Polling {
            // The link came up while it was being switched off.
            return self.command_link(port, false);
        }
        if !self.ports[input].train(peer) {
            return self.emit(Event::LinkMismatch { port });
        }
        self.stimulate_unasked(now, port, Stimulus::Trained);
    }

    /// The link is gone.
    pub(crate) fn link_down(&mut self, now: Time, port: PortNum) {
        match self.physical_port(port) {
            Some(at) if self.ports[at].state.is_up() => self.lose_link(now, port),
            Some(_) => {}
            None => self.discard(port, DropReason::NoSuchPort),
        }
    }

    fn lose_link(&mut self, now: Time, port: PortNum) {
        let counters = &mut self.ports[usize::from(port.0)].counters;
        counters.link_downed_counter += 1;
        self.stimulate_unasked(now, port, Stimulus::Lost);
        if self.ports[usize::from(port.0)].state == LinkState::Sleep {
            self.command_link(port, false);
        }
    }

    /// Whether a data packet may come in; in Armed the first one says that the neighbour is Active.
    #[inline]
    pub(crate) fn receive_data_state(&mut self, now: Time, port: PortNum) -> bool {
        match self.ports[usize::from(port.0)].state {
            LinkState::Active => true,
            LinkState::Armed => {
                self.stimulate_unasked(now, port, Stimulus::Data);
                true
            }
            _ => false,
        }
    }

    /// A change that the subnet manager did not ask for, and is notified of.
    fn stimulate_unasked(&mut self, now: Time, port: PortNum, stimulus: Stimulus) {
        let at = usize::from(port.0);
        let before = self.ports[at].state;
        let Ok(after) = before.after(stimulus, self.ports[at].down_state()) else { return };
        self.enter(port, after);
        if before.is_up() != after.is_up()
            && let Some(switch) = &mut self.switch
        {
            switch.info.port_state_change = true;
            let lid = self.ports[0].info.lid;
            self.raise_trap(now, PortNum::ZERO, &Details::link_state_change(lid));
        }
    }

    /// A change that the subnet manager asked for; it needs no trap.
    pub(crate) fn stimulate_asked(
        &mut self,
        port: PortNum,
        stimulus: Stimulus,
    ) -> Result<(), InvalidTransition> {
        let at = usize::from(port.0);
        let before = self.ports[at].state;
        let after = before.after(stimulus, self.ports[at].down_state())?;
        self.enter(port, after);
        match after {
            LinkState::Polling if before.is_up() => {
                self.command_link(port, false);
                self.command_link(port, true);
            }
            LinkState::Polling if before != after => self.command_link(port, true),
            LinkState::Sleep | LinkState::Disabled if before != after => self.command_link(port, false),
            _ => {}
        }
        Ok(())
    }

    /// Tells the driver whether the link may be up.
    fn command_link(&mut self, port: PortNum, enabled: bool) {
        let parameters = self.ports[usize::from(port.0)].parameters();
        self.outputs.push_back(Output::SetLink { port, enabled, parameters });
    }

    /// Tells the driver what the next hello is to say.
    pub(crate) fn link_parameters_changed(&mut self, port: PortNum) {
        let state = self.ports[usize::from(port.0)].state;
        self.command_link(port, state.is_up() || state == LinkState::Polling);
    }

    fn enter(&mut self, port: PortNum, state: LinkState) {
        let entered = &mut self.ports[usize::from(port.0)];
        let (from, to) = (entered.state.logical(), state.logical());
        let changed = entered.state.is_up() != state.is_up();
        entered.set_state(state);
        if changed {
            let up = state.is_up();
            if !up {
                self.data_link_down(port);
            }
            let told = self.clients.at(port).map(|client| Output::PortChanged { client, up });
            self.outputs.extend(told);
            if up {
                self.data_link_up(port);
            }
        }
        if from != to {
            debug_assert!(to != PortState::NoChange, "a port is always in some state");
            self.emit(Event::PortStateChanged { port, from, to });
            self.data_settings_changed(port);
        }
    }

    /// Where a port with a cable is in the list.
    fn physical_port(&self, port: PortNum) -> Option<usize> {
        let at = usize::from(port.0);
        (1..self.ports.len()).contains(&at).then_some(at)
    }

    /// Gives the port other capabilities and says so, unless its own programs are the subnet manager.
    pub(crate) fn set_capability_mask(&mut self, now: Time, port: PortNum, mask: u32) {
        let Some(changed) = self.ports.get_mut(usize::from(port.0)) else { return };
        if changed.info.capability_mask == mask {
            return;
        }
        changed.info.capability_mask = mask;
        if !changed.has_lid(changed.info.master_sm_lid) {
            let details = Details::capability_change(changed.info.lid, mask);
            self.raise_trap(now, port, &details);
        }
    }

    /// The node gets another text, and says so.
    pub(crate) fn describe(&mut self, now: Time, text: &str) {
        self.set_description(now, NodeDescription::new(text));
    }

    pub(crate) fn set_description(&mut self, now: Time, description: NodeDescription) {
        if description == self.identity.description {
            return;
        }
        self.identity.description = description;
        for at in 0..self.ports.len() {
            let port = PortNum(at as u8);
            if self.end_port(port) != port || !self.has_port(port) {
                continue;
            }
            let info = &self.ports[at].info;
            let changes = LocalChangesDetails {
                lid: info.lid,
                other_local_changes: true,
                capability_mask: info.capability_mask,
                node_description_change: true,
                ..LocalChangesDetails::default()
            };
            self.raise_trap(now, port, &Details::LocalChanges(trap::LOCAL_CHANGES, changes));
        }
    }
}
