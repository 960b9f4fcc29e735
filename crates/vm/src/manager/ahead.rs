//! Requests that wait, and what later ones may therefore not have.

use std::collections::BTreeSet;

use crate::names::{HostName, VmName};
use crate::request::{FLEET_MAX, Request};

/// What earlier requests wait for: later ones may not overtake them there.
#[derive(Default)]
pub(super) struct Ahead {
    pub(super) vms: BTreeSet<VmName>,
    pub(super) hosts: BTreeSet<HostName>,
    /// Hosts that get a free slot when these requests have had their turn.
    pub(super) leaving: BTreeSet<HostName>,
    /// One waits for a slot on any host.
    pub(super) anywhere: bool,
}

impl Ahead {
    pub(super) fn wait_for(&mut self, request: &Request) {
        match request {
            Request::Create(create) => {
                match create.count {
                    Some(count) => self.vms.extend(
                        (1..=count.min(FLEET_MAX)).filter_map(|number| create.name.numbered(number).ok()),
                    ),
                    None => drop(self.vms.insert(create.name.clone())),
                }
                match &create.host {
                    Some(host) => drop(self.hosts.insert(host.clone())),
                    None => self.anywhere = true,
                }
            }
            Request::Migrate(migrate) => {
                self.vms.insert(migrate.vm.clone());
                self.hosts.insert(migrate.host.clone());
            }
            Request::Destroy(name) => drop(self.vms.insert(name.clone())),
            Request::List | Request::Plan { .. } | Request::Forget { .. } => {}
        }
    }
}
