//! The VM manager's machine together with its client of subnet administration: one machine for the loop of a manager.

use std::collections::VecDeque;

use weft_machine::{Machine, Time, Timer};
use weft_wire::{AddressedMad, PortNum};

use crate::manager::VmManager;
use crate::places::Places;
use crate::sa::SaClient;
use crate::sm::SmAnswer;
use crate::timers::VmTimer;
use crate::{input, output};

/// What happens to it.
#[derive(Clone, Debug)]
pub enum Input {
    /// To virtual machines.
    Vm(input::Input),
    /// It is attached to a port.
    Attached(PortNum),
    /// It is attached no more.
    Detached,
    /// The port's link came up or went down.
    PortChanged,
    /// A MAD came.
    Mad(AddressedMad),
}

/// What it wants done.
#[derive(Debug)]
pub enum Output {
    /// Send a MAD.
    Send(AddressedMad),
    /// Everything but questions to the subnet manager.
    Vm(output::Output),
}

/// The machine.
#[derive(Debug)]
pub struct Station {
    /// The VM manager.
    pub manager: VmManager,
    sa: SaClient,
    /// The slots of the laboratory.
    pub places: Places,
    outputs: VecDeque<Output>,
}

impl Station {
    /// A machine that has not started.
    pub fn new(manager: VmManager, sa: SaClient, places: Places) -> Self {
        Self { manager, sa, places, outputs: VecDeque::new() }
    }

    /// Takes what both want, until neither wants anything.
    fn drain(&mut self, now: Time) {
        loop {
            self.announce(now);
            while let Some(output) = self.manager.poll_output() {
                match output {
                    output::Output::AskSm(request) => self.sa.ask(now, &request, &self.places),
                    output => self.outputs.push_back(Output::Vm(output)),
                }
            }
            while let Some(mad) = self.sa.poll_transmit(now) {
                self.outputs.push_back(Output::Send(mad));
            }
            let Some((number, answer)) = self.sa.poll_answer() else { return };
            self.hear(now, number, answer);
        }
    }

    /// Informs the subnet manager of all addresses, if it asks and the manager knows them.
    fn announce(&mut self, now: Time) {
        if self.sa.wants_word()
            && let Some((addresses, last)) = self.manager.announce(now)
        {
            self.sa.take_word(&addresses, last, &self.places);
        }
    }

    fn hear(&mut self, now: Time, number: u64, answer: SmAnswer) {
        self.manager.handle_input(now, input::Input::Sm { number, answer });
    }
}

impl Machine for Station {
    type Input = Input;
    type Output = Output;
    type Reason = VmTimer;

    fn handle_input(&mut self, now: Time, input: Input) {
        match input {
            Input::Vm(input) => self.manager.handle_input(now, input),
            Input::Attached(port) => self.sa.attach(Some(port)),
            Input::Detached => self.sa.attach(None),
            Input::PortChanged => self.sa.forget(),
            Input::Mad(mad) => self.sa.receive(now, &mad),
        }
        self.drain(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.sa.expire(now);
        if self.manager.poll_timeout().is_some_and(|at| at <= now) {
            self.manager.handle_timeout(now);
        }
        self.drain(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn next_timer(&self) -> Option<Timer<VmTimer>> {
        Timer::earliest([self.manager.next_timer(), Timer::new(self.sa.next_timer(), VmTimer::SubnetManager)])
    }
}
