//! A flow hop by hop, from the state alone: so it is the same for what happens and for what was taped.

use serde::Serialize;
use serde_json::Value;

/// The way of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowHops {
    /// Each cable, from the sender on.
    pub hops: Vec<HopLine>,
    /// Why there are none.
    pub why: Option<String>,
}

/// A cable of a flow's way.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HopLine {
    /// The node that sends into the cable.
    pub node: String,
    /// The port by which the flow came to it; none at the sender.
    pub in_port: Option<u64>,
    /// The port by which it leaves.
    pub out_port: u64,
    /// The cable.
    pub cable: String,
    /// The lane, where it is known.
    pub vl: Option<u64>,
    /// Megabytes per second on that lane, or on all of them where it is not known.
    pub mbps: f64,
    /// The share of the second in which data waited for credit there.
    pub wait: f64,
    /// All flows whose way has this cable in this direction and on this lane, the greatest first.
    pub shares: Vec<ShareLine>,
}

/// A flow's part of what crosses a cable.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ShareLine {
    /// The flow.
    pub flow: String,
    /// What it delivers, in megabytes per second.
    pub mbps: f64,
}

/// The way of a flow by its name; `None` where there is no such flow.
pub fn hops(state: &Value, id: &str) -> Option<FlowHops> {
    let flow = state["flows"].get(id)?;
    let path = flow["path"].as_array().filter(|path| !path.is_empty());
    let Some(path) = path else {
        let why = flow["why"].as_str().unwrap_or("its way through the forwarding tables is not known");
        return Some(FlowHops { hops: Vec::new(), why: Some(why.to_owned()) });
    };
    let (mut hops, mut in_port) = (Vec::new(), None);
    for step in path {
        let Some(id) = step[0].as_str() else { continue };
        let cable = &state["cables"][id];
        let (from, out, into, way) = match step[1].as_u64() {
            Some(0) => ("a", "ap", "bp", "ab"),
            _ => ("b", "bp", "ap", "ba"),
        };
        let vl = step[2].as_u64();
        let load = &cable[way];
        let load = match vl {
            Some(vl) => &load["lanes"][vl.to_string()],
            None => load,
        };
        let node = cable[from].as_str().unwrap_or_default();
        hops.push(HopLine {
            node: state["nodes"][node]["name"].as_str().unwrap_or(node).to_owned(),
            in_port,
            out_port: cable[out].as_u64().unwrap_or_default(),
            cable: id.to_owned(),
            vl,
            mbps: load["mbps"].as_f64().unwrap_or_default(),
            wait: load["wait"].as_f64().unwrap_or_default(),
            shares: shares(state, step),
        });
        in_port = cable[into].as_u64();
    }
    Some(FlowHops { hops, why: None })
}

/// The flows that have this step in their way.
fn shares(state: &Value, step: &Value) -> Vec<ShareLine> {
    let flows = state["flows"].as_object().into_iter().flatten();
    let is_here = |flow: &Value| flow["path"].as_array().is_some_and(|path| path.contains(step));
    let mut shares: Vec<ShareLine> = flows
        .filter(|(_, flow)| is_here(flow))
        .map(|(id, flow)| ShareLine { flow: id.clone(), mbps: flow["mbps"].as_f64().unwrap_or_default() })
        .collect();
    shares.sort_by(|a, b| b.mbps.total_cmp(&a.mbps));
    shares
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_flow_is_followed_with_those_beside_it() {
        let load = json!({"mbps": 3.0, "wait": 0.0, "lanes": {"1": {"mbps": 3.0, "wait": 0.25}}});
        let state = json!({
            "nodes": {"0": {"name": "h0"}, "1": {"name": "s"}, "2": {"name": "h1"}},
            "cables": {
                "7": {"a": "1", "ap": 4, "b": "0", "bp": 1, "ba": load},
                "8": {"a": "1", "ap": 5, "b": "2", "bp": 2},
            },
            "flows": {
                "web": {"mbps": 1.0, "path": [["7", 1, 1], ["8", 0, 1]]},
                "big": {"mbps": 2.0, "path": [["7", 1, 1]]},
                "lost": {"why": "cut off"},
            },
        });
        let way = hops(&state, "web").unwrap();
        let [first, second] = way.hops.as_slice() else { panic!("{way:?}") };
        assert_eq!((first.node.as_str(), first.in_port, first.out_port), ("h0", None, 1));
        assert_eq!((first.vl, first.mbps, first.wait), (Some(1), 3.0, 0.25));
        let shares: Vec<&str> = first.shares.iter().map(|share| share.flow.as_str()).collect();
        assert_eq!(shares, ["big", "web"]);
        assert_eq!((second.node.as_str(), second.in_port, second.out_port), ("s", Some(4), 5));
        assert_eq!(hops(&state, "lost").unwrap().why.as_deref(), Some("cut off"));
        assert_eq!(hops(&state, "none"), None);
    }
}
