//! Filters of events: by time, kind and node.

use weft_bundle::folder::LabFolder;
use weft_control::{HexGuid, Utc};
use weft_lab::events::Told;
use weft_lab::view::Lab;
use weft_wire::Guid;

use crate::cli::events::{EventsArgs, Since};

/// The events to print.
pub(super) struct Wanted {
    /// The first moment, by this machine's clock.
    first: Utc,
    /// The kinds by name; empty for all.
    kinds: Vec<String>,
    node: Option<Named>,
}

/// A node as events name it.
#[derive(Debug, Default)]
struct Named {
    /// Its GUIDs as JSON has them, its ports' too.
    guids: Vec<String>,
    /// Its process's name as JSON has it.
    process: Option<String>,
}

impl Wanted {
    /// # Errors
    /// When no node has the name, or the laboratory's cabling cannot be read.
    pub(super) fn of(folder: &LabFolder, args: &EventsArgs, now: Utc) -> anyhow::Result<Self> {
        let node = args.node.as_deref().map(|name| Named::of(folder, name)).transpose()?;
        let first = match &args.since {
            None if args.follow => now,
            None => Utc::default(),
            Some(since) => Since::before(since, now),
        };
        Ok(Self { first, kinds: args.kind.clone(), node })
    }

    pub(super) fn takes(&self, told: &Told) -> bool {
        told.moment >= self.first
            && (self.kinds.is_empty() || self.kinds.contains(&told.head.event))
            && self.node.as_ref().is_none_or(|node| node.is_in(told))
    }
}

impl Named {
    fn of(folder: &LabFolder, name: &str) -> anyhow::Result<Self> {
        let lab = Lab::load_for(folder, std::iter::once(name))?;
        let index = match (lab.find(name), guid_of(name)) {
            (Ok(index), _) => index,
            // A node that was removed is still in events.
            (Err(_), Some(guid)) => return Ok(Self { guids: vec![in_json(guid)], process: None }),
            (Err(error), None) => return Err(error),
        };
        let node = lab.fabric.node(index);
        let ports = node.end_ports().map(|(_, port)| port.guid);
        let guids = std::iter::once(node.guid).chain(ports).map(in_json).collect();
        let mut agents = lab.record.agents.iter();
        let runs_it = agents.find(|agent| agent.devices.iter().any(|device| device.guid == node.guid));
        let process = runs_it.map(|agent| format!("\"{}\"", agent.name));
        Ok(Self { guids, process })
    }

    /// Whether an event names it. What a process says of its devices is about these, not about the process.
    fn is_in(&self, told: &Told) -> bool {
        let has = |name: &String| told.json.contains(name.as_str());
        self.guids.iter().any(has)
            || (told.head.about().0.is_none() && self.process.as_ref().is_some_and(has))
    }
}

fn in_json(guid: Guid) -> String {
    format!("\"{}\"", HexGuid(guid))
}

/// A GUID in hexadecimal.
pub(super) fn guid_of(text: &str) -> Option<Guid> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok().map(Guid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(source: &str, second: u32, rest: &str) -> Told {
        let json = format!(
            "{{\"time\":\"2026-11-20T12:00:{second:02}.000000000Z\",\"source\":\"{source}\",\
             \"incarnation\":\"0000000000000007\",\"sequence\":0,\"monotonic_ns\":1,{rest}}}"
        );
        Told::of(json).unwrap().unwrap()
    }

    #[test]
    fn events_are_chosen_by_time_kind_and_node() {
        let all = || Wanted { first: Utc::default(), kinds: Vec::new(), node: None };
        let down = told("a0", 5, r#""event":"link-down","guid":"0x0000000000000002""#);
        let first = |second| Wanted { first: told("", second, r#""event":"""#).moment, ..all() };
        assert!(all().takes(&down) && first(5).takes(&down) && !first(6).takes(&down));
        let kinds =
            |kinds: &[&str]| Wanted { kinds: kinds.iter().map(|&kind| kind.into()).collect(), ..all() };
        assert!(kinds(&["link-up", "link-down"]).takes(&down) && !kinds(&["link"]).takes(&down));
        let node = Named { guids: vec![in_json(Guid(2)), in_json(Guid(3))], process: Some("\"a0\"".into()) };
        let node = Wanted { node: Some(node), ..all() };
        for (source, rest, wanted) in [
            ("a0", r#""event":"link-down","guid":"0x0000000000000002""#, true),
            ("a0", r#""event":"link-down","guid":"0x0000000000000001""#, false),
            (
                "a1",
                r#""event":"link-down","guid":"0x0000000000000001","peer":{"node":"0x0000000000000002"}"#,
                true,
            ),
            ("sm", r#""event":"lid-assigned","port_guid":"0x0000000000000003""#, true),
            ("sm", r#""event":"quiet""#, false),
            ("a0", r#""event":"process-ready""#, true),
            ("hub", r#""event":"process-ended","process":"a0""#, true),
            ("hub", r#""event":"process-ended","process":"a00""#, false),
        ] {
            assert_eq!(node.takes(&told(source, 0, rest)), wanted, "{source} {rest}");
        }
    }
}
