//! Cables of a laboratory that runs are put in, taken out and moved.

use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_lab::recabling::{Change, Draft, Issue, Turn, await_links};
use weft_lab::site::status::lab_status;
use weft_lab::view::Lab;
use weft_topology::{Fabric, LinkRate, PortRef};

use crate::cli::recable::{ChangeArgs, ConnectArgs, DisconnectArgs, MoveArgs};
use crate::output::{print_json, say};

/// A cable as it is shown.
#[derive(Debug, Serialize)]
struct Cabled {
    a: String,
    b: String,
    /// Its rate when its link is up; none of a cable that was taken out.
    rate: Option<String>,
}

/// What was done.
#[derive(Debug, Default, Serialize)]
pub(super) struct Told {
    taken_out: Vec<Cabled>,
    put_in: Vec<Cabled>,
    /// A node that is new: its description.
    pub(super) added: Option<Added>,
    /// A node that is gone: what it was called.
    pub(super) removed: Option<String>,
    /// Whether all links of cables that were put in are up.
    links_up: bool,
}

/// A node that is new.
#[derive(Debug, Serialize)]
pub(super) struct Added {
    pub(super) node: String,
    pub(super) guid: weft_wire::Guid,
    pub(super) agent: String,
}

impl Told {
    pub(super) fn put_in(&mut self, fabric: &Fabric, [a, b]: [PortRef; 2], rate: LinkRate) {
        let (a, b) = (fabric.port_label(a), fabric.port_label(b));
        self.put_in.push(Cabled { a, b, rate: Some(rate.to_string()) });
    }

    pub(super) fn taken_out(&mut self, fabric: &Fabric, [a, b]: [PortRef; 2]) {
        let (a, b) = (fabric.port_label(a), fabric.port_label(b));
        self.taken_out.push(Cabled { a, b, rate: None });
    }
}

/// A laboratory that is being recabled.
pub(super) struct Bench {
    pub(super) turn: Turn,
    pub(super) lab: Lab,
    pub(super) told: Told,
}

impl Bench {
    /// Waits for the turn.
    pub(super) fn begin(folder: &LabFolder) -> anyhow::Result<Self> {
        if lab_status(folder).is_some_and(|status| status.starting) {
            return Err(Failure::new(format!("the laboratory `{}` is starting", folder.name()))
                .hint("wait until `weft up` says SUBNET UP"));
        }
        refuse_part(&Lab::load(folder)?)?;
        let turn = Turn::take(folder)?;
        // What was interrupted is finished by now.
        Ok(Self { turn, lab: Lab::load(folder)?, told: Told::default() })
    }

    pub(super) fn draft(&self) -> Draft {
        Draft::new(&self.turn, self.lab.record.clone(), self.lab.fabric.clone())
    }

    /// Drafts a cable that is put in.
    pub(super) fn connect(&mut self, args: &ConnectArgs) -> anyhow::Result<Change> {
        let ends = [self.lab.port(&args.a)?, self.lab.port(&args.b)?];
        let mut draft = self.draft();
        let rate = draft.put_in(ends[0], ends[1], 0)?;
        self.told.put_in(draft.fabric(), ends, rate);
        Ok(draft.finish(format!("weft topo connect {} {}", args.a, args.b)))
    }

    /// Drafts a cable that is taken out.
    pub(super) fn disconnect(&mut self, args: &DisconnectArgs) -> anyhow::Result<Change> {
        let port = self.lab.port(&args.port)?;
        let mut draft = self.draft();
        let (peer, _) = draft.take_out(port)?;
        self.told.taken_out(draft.fabric(), [port, peer]);
        Ok(draft.finish(format!("weft topo disconnect {}", args.port)))
    }

    /// Drafts a cable whose far end goes to another port.
    pub(super) fn relocate(&mut self, args: &MoveArgs) -> anyhow::Result<Change> {
        let (stays, to) = (self.lab.port(&args.stays)?, self.lab.port(&args.to)?);
        let mut draft = self.draft();
        let (from, cord) = draft.take_out(stays)?;
        if from == to {
            let message = format!("the cable in {} leads to {} already", args.stays, args.to);
            return Err(Failure::bad_input(message).hint("name another port"));
        }
        self.told.taken_out(draft.fabric(), [stays, from]);
        let rate = draft.put_in(stays, to, cord.delay_ns)?;
        self.told.put_in(draft.fabric(), [stays, to], rate);
        Ok(draft.finish(format!("weft topo move {} {}", args.stays, args.to)))
    }

    /// Carries a change out, and says so.
    pub(super) fn change(
        mut self,
        args: &ChangeArgs,
        draft: impl FnOnce(&mut Self) -> anyhow::Result<Change>,
    ) -> anyhow::Result<()> {
        let change = draft(&mut self)?;
        change.carry_out(&self.turn, Issue { authority: args.authority.folder.as_deref() })?;
        if let (Some(added), Some(agent)) = (&mut self.told.added, change.added()) {
            agent.clone_into(&mut added.agent);
        }
        self.told.links_up = await_links(self.turn.folder(), change.put_in());
        if args.json {
            return print_json(&self.told);
        }
        self.say();
        Ok(())
    }

    fn say(&self) {
        let Told { taken_out, put_in, added, removed, links_up } = &self.told;
        if let Some(Added { node, guid, agent }) = added {
            say(&format!("added {node} ({guid}, agent {agent})"));
        }
        for Cabled { a, b, .. } in taken_out {
            say(&format!("disconnected {a} - {b}"));
        }
        for Cabled { a, b, rate } in put_in {
            let rate = rate.as_deref().unwrap_or_default();
            say(&format!("connected {a} - {b}, {rate}"));
        }
        if let Some(node) = removed {
            say(&format!("removed {node}"));
        }
        if !links_up {
            say("warning: no link yet; `weft links` shows its state, `weft fault ls` what may keep it down");
        }
        if self.turn.is_written_by_hub() {
            say(
                "where processes' files can only be read, as in containers, this lasts as long as their hub, or as they do",
            );
        }
    }
}

/// A host with a part of a laboratory leaves the cabling to the hub, which knows all of it.
fn refuse_part(lab: &Lab) -> anyhow::Result<()> {
    let here: usize = lab.record.agents.iter().map(|agent| agent.devices.len()).sum();
    let all = lab.fabric.iter().count();
    if here >= all {
        return Ok(());
    }
    Err(Failure::bad_input(format!("{here} of {all} nodes of `{}` run on this host", lab.folder.name()))
        .hint("recable it where it was started, or with `weft --at HUB:PORT`"))
}
