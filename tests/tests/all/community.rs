//! The rules and dashboards that treydock/infiniband_exporter has as examples, on weft's page: each of the 109 rules is evaluated, and each
//! query returns data or stands here with its reason.
//!
//! The rules follow from the counters' names: rates of each port joined with the other end of its cable, and sums by switch.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::boards::Watched;
use crate::prometheus::wait_until;

/// Counters of traffic, after `infiniband_switch_port_` and without `_total`: two rules for each port, and two by switch.
const TRAFFIC: [&str; 8] = [
    "transmit_data_bytes",
    "receive_data_bytes",
    "transmit_packets",
    "receive_packets",
    "unicast_transmit_packets",
    "unicast_receive_packets",
    "multicast_transmit_packets",
    "multicast_receive_packets",
];
/// Counters of errors, which have a rule with `delta` for each port beside these.
const ERRORS: [&str; 14] = [
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "receive_errors",
    "receive_remote_physical_errors",
    "receive_switch_relay_errors",
    "transmit_discards",
    "transmit_constraint_errors",
    "receive_constraint_errors",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "vl15_dropped",
    "transmit_wait",
    "qp1_dropped",
];
/// Conditions of its alerts.
const ALERTS: [(&str, &str); 7] = [
    ("CollectError", "infiniband_exporter_collect_errors > 0"),
    ("CollectTimeout", "infiniband_exporter_collect_timeouts > 0"),
    ("CollectorStale", "time() - infiniband_exporter_last_execution > 900"),
    (
        "SwitchFan",
        "infiniband_switch_fan_status_info * on (guid) group_left (switch) infiniband_switch_info == 1",
    ),
    (
        "SwitchDcPower",
        "infiniband_switch_power_supply_dc_power_status_info * on (guid) group_left (switch) infiniband_switch_info == 1",
    ),
    (
        "SwitchPsuFan",
        "infiniband_switch_power_supply_fan_status_info * on (guid) group_left (switch) infiniband_switch_info == 1",
    ),
    (
        "SwitchPsu",
        "infiniband_switch_power_supply_status_info * on (guid) group_left (switch) infiniband_switch_info == 1",
    ),
];

/// No such hardware is emulated.
const HARDWARE: &str = "weft has no power supplies and no fans";
/// Of a run of minutes on a fabric that is a thousand times slower than the clock.
const FOR_HOURS: &str = "its threshold is what a congested fabric counts in an hour";

/// Queries of its two dashboards, and why there is no data for one.
const QUERIES: [(&str, Option<&str>); 15] = [
    ("infiniband:switch_power_supply_dc_power_status_info == 1", Some(HARDWARE)),
    ("infiniband:switch_fan_status_info", Some(HARDWARE)),
    ("infiniband:switch_port_link_downed:delta5m > 0", None),
    ("infiniband:switch_port_symbol_error:delta5m > 0", None),
    (
        "delta(node_infiniband_symbol_error_total[5m]) > 0",
        Some("the node exporter's, of the kernel's own adapters"),
    ),
    ("infiniband:switch_port_transmit_discards:delta5m > 0", None),
    (
        "infiniband:switch_port_receive_remote_physical_errors:delta5m > 0",
        Some("switches drop a damaged packet and mark none as bad for the next one"),
    ),
    ("infiniband:switch_port_local_link_integrity_errors:delta5m > 0", None),
    ("sum by (switch) (infiniband:switch_port_transmit_wait:delta5m > 0) > 2e12", Some(FOR_HOURS)),
    ("topk(20, infiniband:switch_port_transmit_wait:delta5m > 5e10)", Some(FOR_HOURS)),
    // The same without thresholds.
    ("sum by (switch) (infiniband:switch_port_transmit_wait:delta5m > 0)", None),
    ("topk(20, sum by (switch) (infiniband:switch_port_receive_data_bytes:irate5m > 0))", None),
    ("topk(20, infiniband:switch_port_receive_data_bytes:irate5m > 0)", None),
    ("topk(20, sum by (switch) (infiniband:switch_port_receive_packets:irate5m))", None),
    ("topk(20, infiniband:switch_port_receive_packets:irate5m)", None),
];

/// Its rules, as a file.
pub(crate) fn rules() -> String {
    let join =
        "* on (guid, port) group_left (switch, host, uplink, uplink_port) infiniband_switch_uplink_info";
    let mut text = "groups:\n  - name: community\n    rules:\n".to_owned();
    let mut record = |name: &str, query: &str| {
        writeln!(text, "      - {{record: '{name}', expr: '{query}'}}").unwrap();
    };
    for counter in TRAFFIC.iter().chain(&ERRORS) {
        let functions: &[&str] =
            if ERRORS.contains(counter) { &["delta", "irate", "rate"] } else { &["irate", "rate"] };
        for function in functions {
            let query = format!("{function}(infiniband_switch_port_{counter}_total[5m]) {join}");
            record(&format!("infiniband:switch_port_{counter}:{function}5m"), &query);
        }
    }
    for counter in TRAFFIC.iter().chain(&ERRORS) {
        for function in ["irate", "rate"] {
            let sum = format!(
                "sum without (host, port, uplink, uplink_port) (infiniband:switch_port_{counter}:irate5m)"
            );
            record(&format!("infiniband:switch_port_{counter}:switch_{function}5m"), &sum);
        }
    }
    for (name, condition) in ALERTS {
        writeln!(text, "      - {{alert: 'Community{name}', expr: '{condition}'}}").unwrap();
    }
    text
}

/// Every rule is evaluated without an error, every record has data with the labels that legends name, and queries return data.
pub(crate) fn rules_and_queries_work(watched: &Watched) {
    let told = || -> BTreeMap<String, String> {
        let rules = watched.rules("community");
        let text = |rule: &serde_json::Value, key: &str| rule[key].as_str().unwrap().to_owned();
        rules.iter().map(|rule| (text(rule, "name"), text(rule, "health"))).collect()
    };
    assert_eq!(told().len(), 109, "the file has 109 rules");
    wait_until("every rule of the community is well", || told().values().all(|health| health == "ok"));
    for name in told().keys().filter(|name| name.starts_with("infiniband:")) {
        wait_until(name, || !watched.query(name).is_empty());
    }
    let series = watched.query("infiniband:switch_port_receive_packets:irate5m");
    let labels: BTreeSet<&str> =
        series[0]["metric"].as_object().unwrap().keys().map(String::as_str).collect();
    for label in ["guid", "port", "switch", "uplink", "uplink_port"] {
        assert!(labels.contains(label), "{labels:?}");
    }
    for (query, reason) in QUERIES {
        match reason {
            None => wait_until(query, || !watched.query(query).is_empty()),
            Some(reason) => {
                let found = watched.query(query);
                assert!(found.is_empty(), "{query} does return data, although {reason}: {found:?}");
            }
        }
    }
    for name in ["collect_errors", "collect_timeouts", "collector_duration_seconds", "last_execution"] {
        let query = format!("infiniband_exporter_{name}{{collector=~\"switch|hca\"}}");
        assert_eq!(watched.query(&query).len(), 2, "{name}");
    }
    wait_until("the last execution is recent", || {
        !watched.query("time() - infiniband_exporter_last_execution < 60").is_empty()
    });
}
