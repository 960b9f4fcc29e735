//! Processes behind a hub's door, where no ssh leads, as in containers: the hub asks each to end itself, and what started it there
//! starts it again.

mod gateway;

use std::time::Duration;

use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_bundle::names::{HUB, OPENSM};
use weft_control::hub::ProcessState;
use weft_control::{Answer, ErrorCode, Incarnation, Request};
use weft_fault::Word;
use weft_process::{Client, ClientError};

use crate::looks;
use crate::site::status::lab_status;
use crate::site::table::{self, Kind};
use crate::site::{LabProcess, Noted, Order};

pub use gateway::Gateway;

/// How long the hub and other processes have to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a hub that has just begun may take to hear a process.
const HEARS: Duration = Duration::from_secs(15);
/// How long a process that was asked to end may be seen still: the hub notices the end of its connection.
const ENDS: Duration = Duration::from_secs(30);
/// Longer than a hub takes to start a process of its machine.
const STARTS: Duration = Duration::from_secs(15);
/// How long one may take to come back: container engines wait for up to a minute before they start one that keeps ending.
const RETURNS: Duration = Duration::from_secs(90);
/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// A process behind a hub's door, and who hears what is done to it.
pub(super) struct Door<'a> {
    pub(super) lab: &'a LabFolder,
    pub(super) process: &'a LabProcess,
    pub(super) noted: Noted<'a>,
}

impl Door<'_> {
    pub(super) fn carry_out(&self, order: Order) -> anyhow::Result<()> {
        match order {
            Order::Kill => self.kill(),
            Order::Restart => self.restart(),
            Order::Freeze(_) => self.act("fault freeze MANAGER"),
            Order::Thaw => self.act("fault thaw MANAGER"),
        }
    }

    /// An error where a verb does not act on a process behind a door, as the table says.
    fn act(&self, verb: &str) -> anyhow::Result<()> {
        let allowed = table::of(verb, Kind::Door).map(drop);
        allowed.map_err(|refusal| refusal.failure(&self.process.given))
    }

    fn kill(&self) -> anyhow::Result<()> {
        match self.known_life("fault kill OPENSM")? {
            None => self.lab.say(&format!("{} is not running", self.process.what())),
            Some(life) => {
                self.end(life)?;
                let what = self.process.what();
                self.lab.say(&format!("killed {what}; what started it there may start it again"));
            }
        }
        Ok(())
    }

    fn restart(&self) -> anyhow::Result<()> {
        if let Some(life) = self.known_life("fault restart OPENSM")? {
            self.end(life)?;
        }
        // While the hub is away it passes nothing on.
        let is_hub = self.process.name == HUB;
        if !is_hub {
            (self.noted)(Word::Restart);
            self.have_started()?;
        }
        self.await_return()?;
        if is_hub {
            (self.noted)(Word::Restart);
        }
        self.lab.say(&format!("restarted {}", self.process.what()));
        Ok(())
    }

    /// Has the hub start the process, where the hub starts processes. Else what started it sees that it has ended.
    fn have_started(&self) -> anyhow::Result<()> {
        let request = Request::StartProcess { process: self.process.name.clone() };
        match Client::connect(&self.lab.control(HUB))?.ask(request, STARTS) {
            // Of remote processes, or an older hub: there is nothing to do but wait.
            Err(ClientError::Refused(error))
                if matches!(error.code, ErrorCode::InvalidRequest | ErrorCode::UnknownRequest) =>
            {
                Ok(())
            }
            asked => Ok(asked.map(drop)?),
        }
    }

    /// Waits until a process runs.
    pub(super) fn await_return(&self) -> anyhow::Result<()> {
        let back = looks::until(RETURNS, LOOK, || matches!(self.life(), Ok(Some(_))));
        if back {
            return Ok(());
        }
        let why = format!("{} has not come back within {} s", self.process.what(), RETURNS.as_secs());
        Err(Failure::new(why).hint("start it where it ran, as with `docker start CONTAINER`"))
    }

    /// Which life of a process runs, also while the hub has just begun: it does not know of a process before it has heard it. `verb`:
    /// what of OpenSM is asked, which is no process of weft's.
    fn known_life(&self, verb: &str) -> anyhow::Result<Option<Incarnation>> {
        if self.process.verb == OPENSM {
            self.act(verb)?;
        }
        let mut known = Ok(None);
        looks::until(HEARS, LOOK, || {
            known = self.life();
            known.is_ok()
        });
        known
    }

    /// The same as the hub knows it now; none of one that has ended.
    fn life(&self) -> anyhow::Result<Option<Incarnation>> {
        if self.process.name == HUB {
            let hello =
                Client::connect(&self.lab.control(HUB)).and_then(|mut hub| hub.ask(Request::Hello, PATIENCE));
            return Ok(match hello {
                Ok(Answer::Hello(hello)) => Some(hello.identity.incarnation),
                _ => None,
            });
        }
        let status = lab_status(self.lab).ok_or_else(|| {
            Failure::new("the hub does not answer, and only it knows what runs there")
                .hint("try again when it is back")
        })?;
        let Some(line) = status.processes.into_iter().find(|line| line.name == self.process.name) else {
            return Ok(None);
        };
        match line.state {
            ProcessState::Ended => Ok(None),
            ProcessState::Expected => {
                Err(Failure::new(format!("the hub has not heard {} yet", self.process.what()))
                    .hint("`weft ps` tells when it has"))
            }
            _ => Ok(line.incarnation),
        }
    }

    /// Asks one life of a process to end, and waits until it has.
    fn end(&self, life: Incarnation) -> anyhow::Result<()> {
        let mut client = Client::connect(&self.lab.control(&self.process.name))?;
        (self.noted)(Word::Kill);
        if let Err(ClientError::Refused(error)) = client.ask(Request::Kill, PATIENCE) {
            return Err(error.into());
        }
        // What the hub cannot tell is no proof.
        if looks::until(ENDS, LOOK, || self.life().is_ok_and(|now| now != Some(life))) {
            return Ok(());
        }
        let failure = Failure::new(format!("{} does not end", self.process.what()));
        Err(failure.hint("`weft ps` tells how it is"))
    }
}
