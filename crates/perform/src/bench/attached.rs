//! A bench attached to a laboratory that runs.

use std::time::{Duration, Instant};

use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_lab::signals::{Interruption, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use weft_lab::survey::{Session, limits, survey};
use weft_lab::view::Lab;
use weft_mgmt::Window;
use weft_sm::Surveyed;
use weft_wire::AddressedMad;

use super::placement;

/// The windows that are tried.
pub const WINDOWS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// The measurements to make.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Round trips per measurement.
    pub count: u32,
    /// Most LFT updates in figure 7.
    pub updates: u32,
    /// Give numbers even if something else used the processor meanwhile.
    pub allow_busy: bool,
}

/// What all measurements need.
pub(super) struct Bench {
    pub(super) session: Session,
    pub(super) interruption: Interruption,
}

impl Bench {
    /// A bench at a laboratory, and what it sees of it. Processes are held to cores meanwhile; whatever ends the measurement must let
    /// them go.
    pub(super) fn attach(folder: &LabFolder) -> anyhow::Result<(Lab, Self, Surveyed)> {
        let lab = Lab::load(folder)?;
        let interruption = Interruption::watch(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT])?;
        placement::free(folder)?;
        let mut session = session(&lab)?;
        let live = survey(&mut session, true, |_| Ok(()))?;
        Ok((lab, Self { session, interruption }, live))
    }

    /// Sends requests with a window; how long all took. `take` gets each answer, or `None` where there was none.
    pub(super) fn exchange<K>(
        &mut self,
        window: u32,
        requests: Vec<(K, AddressedMad)>,
        mut take: impl FnMut(K, Option<AddressedMad>),
    ) -> anyhow::Result<Duration> {
        self.interruption.check()?;
        let began = Instant::now();
        self.session
            .exchange(None, limits(Window::Fixed(window)), requests, |key, answer, _| take(key, answer))?;
        Ok(began.elapsed())
    }
}

/// Attaches at a host whose agent is not the subnet manager's, so that the two do not share a socket's queue.
fn session(lab: &Lab) -> anyhow::Result<Session> {
    let sm = lab.record.sm.as_ref().map(|sm| sm.node);
    let hosts = lab.fabric.hosts().filter(|(_, host)| Some(host.guid) != sm);
    for (_, node) in hosts {
        let Some(port) = node.attach_port() else { continue };
        if let Ok(session) = Session::attach(&lab.folder, &lab.record, node.guid, port) {
            return Ok(session);
        }
    }
    Err(Failure::new("no host's agent is running").hint("`weft ps` lists the processes"))
}
