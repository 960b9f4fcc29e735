//! One client's capture: packets that cross the agent's cables, kept until the client reads them.
//!
//! A capture never holds anything up: what its client does not read in time is dropped and counted.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use weft_control::agent::{CaptureTotals, Captured, Tap};
use weft_control::{Error, ErrorCode};
use weft_node::{PortId, Request};
use weft_process::{Crowded, Requester};

use crate::asked::Asker;
use crate::core::Core;
use crate::counter::Counter;
use crate::listener::{At, Listener};
use crate::shared::Agent;
use crate::tap::{LISTENERS_MAX, LISTENERS_OF_ONE_MAX};

/// Packets are batched for this long: less than a capture waits for other agents' packets.
const GATHER: Duration = Duration::from_millis(5);
/// Packets in one batch at most.
const BATCH: usize = 256;

/// A client's capture. Dropping it ends it.
pub(crate) struct Capture {
    agent: Rc<Agent>,
    listener: Rc<Listener>,
}

impl Capture {
    /// Begins to listen.
    pub(crate) fn begin(agent: &Rc<Agent>, tap: &Tap, requester: &Requester) -> Result<Self, Error> {
        let listener = agent.with_core(|core| {
            let at = core.find_tapped(tap)?;
            let listener = Rc::new(Listener::new(at, requester.clone()));
            core.taps.listen(listener.clone()).map_err(|why| core.refuse_capture(why))?;
            core.recorder.count(Counter::Captures);
            core.ask(Asker::Agent, Request::Watch(true));
            Ok(listener)
        });
        Ok(Self { agent: agent.clone(), listener: listener? })
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.agent.with_core(|core| core.stop_capture(&self.listener));
    }
}

impl weft_process::Capture for Capture {
    async fn ready(&mut self) {
        self.listener.filled().await;
        tokio::time::sleep(GATHER).await;
    }

    fn take(&mut self) -> Vec<Captured> {
        let taken = self.listener.take(BATCH);
        taken.into_iter().map(|(lost, packet)| packet.told(lost)).collect()
    }

    fn totals(&self) -> CaptureTotals {
        self.listener.totals()
    }
}

impl Core {
    /// Where a client wants to listen; says which port is not here.
    fn find_tapped(&self, tap: &Tap) -> Result<At, Error> {
        let Tap::Ports(wanted) = tap else { return Ok(At::Everything) };
        let mut ports = BTreeMap::new();
        for port in wanted {
            let at = self.names.find(port.end.node.0).map(|device| PortId::new(device, port.end.port));
            let at = at.filter(|at| {
                self.node.device(at.device).is_some_and(|device| device.link_parameters(at.port).is_some())
            });
            let not_here = || {
                let message = format!("port {} of node {} is not here", port.end.port, port.end.node);
                Error::new(ErrorCode::NotFound, message)
            };
            ports.insert(at.ok_or_else(not_here)?, port.received);
        }
        Ok(At::Ports(ports))
    }

    fn refuse_capture(&mut self, why: Crowded) -> Error {
        let (counter, message) = match why {
            Crowded::Full => {
                (Counter::CapturesRefused, format!("{LISTENERS_MAX} captures are under way already"))
            }
            Crowded::OfOne => (
                Counter::CapturesOfOneRefused,
                format!("this process or identity has {LISTENERS_OF_ONE_MAX} captures under way already"),
            ),
        };
        self.recorder.count(counter);
        Error::new(ErrorCode::TooMany, message).hint("end another one first")
    }

    fn stop_capture(&mut self, listener: &Rc<Listener>) {
        self.taps.forget(listener);
        if !self.taps.is_active() {
            self.ask(Asker::Agent, Request::Watch(false));
        }
    }
}
