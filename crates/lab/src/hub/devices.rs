//! Devices and the agents that run them: an agent reports its own.

use std::collections::{BTreeMap, BTreeSet};

use weft_bundle::record::AgentRecord;
use weft_wire::Guid;

/// The devices of a laboratory's agents.
#[derive(Debug)]
pub(crate) struct Devices {
    /// By GUID: the agent, and whether it is a slot.
    by_guid: BTreeMap<Guid, (String, bool)>,
    /// By description, which several may share: the agents. Those of slots move, and are left out.
    by_description: BTreeMap<String, BTreeSet<String>>,
    /// All agents, and whether they have slots.
    agents: BTreeMap<String, bool>,
}

impl Devices {
    pub(crate) fn of(planned: &[AgentRecord]) -> Self {
        let (mut by_guid, mut by_description) = (BTreeMap::new(), BTreeMap::<_, BTreeSet<_>>::new());
        let mut agents = BTreeMap::new();
        for agent in planned {
            agents.insert(agent.name.clone(), agent.devices.iter().any(|device| device.slot));
            for device in &agent.devices {
                by_guid.insert(device.guid, (agent.name.clone(), device.slot));
                if !device.slot {
                    by_description.entry(device.description.clone()).or_default().insert(agent.name.clone());
                }
            }
        }
        Self { by_guid, by_description, agents }
    }

    /// Whether an agent may tell of a node. The identity in a slot may be a virtual machine's, or that of any other slot.
    pub(crate) fn may_tell_of(&self, agent: &str, node: Option<Guid>, description: Option<&str>) -> bool {
        let has_slots = self.agents.get(agent).copied();
        let is_its_own = node.is_none_or(|node| match self.by_guid.get(&node) {
            Some((owner, is_slot)) => owner == agent || (*is_slot && has_slots == Some(true)),
            // An agent that is not planned yet, or not any more, tells of nodes that are not planned either.
            None => has_slots != Some(false),
        });
        let owners = description.and_then(|description| self.by_description.get(description));
        is_its_own && owners.is_none_or(|owners| owners.contains(agent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_bundle::record::DeviceRecord;

    fn agent(name: &str, devices: &[(u64, bool)]) -> AgentRecord {
        let device = |(guid, slot): &(u64, bool)| DeviceRecord {
            guid: Guid(*guid),
            id: format!("id-{guid}"),
            description: format!("node {guid}"),
            label: format!("node {guid}"),
            switch: false,
            slot: *slot,
        };
        AgentRecord {
            name: name.to_owned(),
            address: "127.0.0.1:1000".parse().unwrap(),
            devices: devices.iter().map(device).collect(),
            proves: Vec::new(),
            metrics: None,
        }
    }

    #[test]
    fn an_agent_tells_of_its_devices_and_of_what_is_in_its_slots() {
        let planned = [
            agent("switch", &[(1, false)]),
            agent("host", &[(2, false), (3, true)]),
            agent("other", &[(4, false), (5, true)]),
        ];
        let devices = Devices::of(&planned);
        let may = |agent, guid, description| {
            let node: Option<u64> = guid;
            let description: Option<u64> = description;
            let description = description.map(|nth| format!("node {nth}"));
            devices.may_tell_of(agent, node.map(Guid), description.as_deref())
        };
        // Its own, a migrated virtual machine's, and a virtual machine's that is of no slot.
        for own in [2, 3, 5, 99] {
            assert!(may("host", Some(own), Some(own)), "{own}");
        }
        for other in [1, 4] {
            assert!(!may("host", Some(other), None) && !may("host", Some(2), Some(other)), "{other}");
        }
        assert!(
            may("switch", Some(1), Some(1)) && may("switch", None, None) && may("switch", Some(1), Some(99))
        );
        assert!([2, 3, 99].iter().all(|other| !may("switch", Some(*other), None)));
        // One that has just been added.
        assert!(
            may("new", Some(99), Some(99)) && !may("new", Some(1), None) && !may("new", Some(99), Some(1))
        );
    }
}
