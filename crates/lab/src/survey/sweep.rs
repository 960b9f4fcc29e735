//! The fabric as its devices describe it, read by the subnet manager's own discovery with Gets alone.

use std::time::Duration;

use anyhow::bail;
use weft_machine::{Machine, Time};
use weft_mgmt::Window;
use weft_sm::{Input, Survey, SurveyOutput, Surveyed};

use crate::survey::{Session, limits};

/// Reads all that `session` can reach, with tables or without. `watch` hears now and then how many SMPs were sent, and ends the survey
/// with an error.
pub fn survey(
    session: &mut Session,
    tables: bool,
    mut watch: impl FnMut(u64) -> anyhow::Result<()>,
) -> anyhow::Result<Surveyed> {
    let mut sent = 0;
    let mut survey = Survey::new(limits(Window::AUTO), tables);
    let attached = session.attached();
    let (node_guid, port_guid, port) = (attached.node, attached.port_guid, attached.port);
    survey.handle_input(session.now(), Input::Attached { node_guid, port_guid, port });
    loop {
        while let Some(output) = survey.poll_output() {
            match output {
                SurveyOutput::Send(mad) => {
                    session.queue(&mad)?;
                    sent += 1;
                }
                SurveyOutput::Event(event) => tracing::debug!("survey: {event}"),
                SurveyOutput::Done(surveyed) => return Ok(*surveyed),
            }
        }
        session.flush()?;
        watch(sent)?;
        let Some(due) = survey.poll_timeout() else { bail!("the survey waits for nothing") };
        let wait = due.saturating_sub(session.now()).max(Time::from_micros(1));
        for mad in session.receive_all(Duration::from_nanos(wait.as_nanos()))? {
            survey.handle_input(session.now(), Input::Receive(mad));
        }
        survey.handle_timeout(session.now());
    }
}
