//! The partitions file, read again while the subnet manager runs: on SIGHUP, and when a client asks for it.

use weft_bundle::failure::hint_of;
use weft_control::{Answer, Error, ErrorCode, KeyBlock};
use weft_routing::Partitions;
use weft_sm::{Event, Input, PlannedKeys};

use crate::manager::Reply;
use crate::sm::driver::Driver;

/// What an invalid file is: the old partitions stay.
fn refused(error: &anyhow::Error) -> Error {
    Error { hint: hint_of(error), ..Error::new(ErrorCode::Failed, format!("{error:#}")) }
}

impl Driver {
    /// SIGHUP: reads the file again. Without one it is a heavy sweep.
    pub(super) fn hangup(&mut self) -> Option<Input> {
        match self.partitions_now() {
            Ok(Some(partitions)) => Some(Input::Partitions(partitions)),
            Ok(None) => Some(Input::Resweep { heavy: true }),
            Err(_) => None,
        }
    }

    /// A client has changed the file, and waits until ports have their keys.
    pub(super) fn read_partitions(&mut self, reply: Reply) -> Option<Input> {
        let answer = match self.partitions_now() {
            Ok(Some(partitions)) => {
                self.wait_for_partitions.push(reply);
                return Some(Input::Partitions(partitions));
            }
            Ok(None) => Error::new(ErrorCode::NotFound, "there is no partitions file"),
            Err(error) => error,
        };
        // The client may have gone.
        let _ = reply.send(Err(answer));
        None
    }

    /// The partitions as the file has them now. What is wrong with it is an event, too.
    fn partitions_now(&mut self) -> Result<Option<Partitions>, Error> {
        let Some(source) = &self.config.partitions else { return Ok(None) };
        source.read().map_err(|error| {
            self.tell(&Event::PartitionsRefused { message: format!("{error:#}") });
            refused(&error)
        })
    }

    /// What the partitions of a text would write.
    pub(super) fn plan_partitions(&mut self, text: &str) -> Result<Answer, Error> {
        let source = self.config.partitions.as_ref();
        let source = source.ok_or_else(|| Error::new(ErrorCode::NotFound, "there is no laboratory"))?;
        let partitions = source.resolve(text).map_err(|error| refused(&error))?;
        let planned = self.machine.plan_partitions(&partitions).ok_or_else(|| {
            Error::new(ErrorCode::Conflict, "the subnet manager sweeps, or is not the master")
                .hint("`weft status` tells how it is")
        })?;
        let block = |PlannedKeys { node, port, block }| KeyBlock { node: node.into(), port, block };
        let writes = planned.into_iter().map(block).collect();
        Ok(Answer::PlanPartitions { writes, routes: self.machine.plan_routes(&partitions) })
    }

    /// What it routes with, for readers that know its process alone. Its keys are no part of that.
    pub(super) fn routing_options(&self) -> Result<Answer, Error> {
        let options = self.machine.options();
        let engine = serde_json::to_string(&options.routing.engine);
        let engine = engine.map_err(|error| Error::new(ErrorCode::Failed, error.to_string()))?;
        Ok(Answer::RoutingOptions { engine, management_lane: options.lanes.management_lane })
    }
}
