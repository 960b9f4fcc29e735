//! Prometheus metrics of the subnet manager.

use std::collections::BTreeMap;

use weft_control::sm::{SmState, SmStatus};
use weft_machine::Time;
use weft_metrics::Page;
use weft_sm::{Event, Progress, SaCounts, SmpCounts, SweepPhase};

/// The bounds of a phase's duration, in seconds.
const PHASE_BOUNDS: [f64; 9] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0, 100.0];

/// How long a phase took, each time.
#[derive(Clone, Debug, Default)]
struct Durations {
    buckets: [u64; PHASE_BOUNDS.len()],
    count: u64,
    sum: Time,
}

/// What no one else adds up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    phases: BTreeMap<SweepPhase, Durations>,
    smps: BTreeMap<(&'static str, &'static str), u64>,
    routings_failed: u64,
    events: BTreeMap<&'static str, u64>,
}

/// The subnet manager at one moment.
#[derive(Clone, Debug)]
pub(crate) struct SmFigures {
    pub(crate) status: SmStatus,
    pub(crate) counted: Counted,
    pub(crate) progress: Progress,
    pub(crate) sa: SaCounts,
}

impl Counted {
    /// Adds up an event.
    pub(crate) fn take(&mut self, event: &Event) {
        *self.events.entry(event.name()).or_default() += 1;
        match event {
            Event::PhaseDone(time) => {
                let durations = self.phases.entry(time.phase).or_default();
                let seconds = time.took.as_secs_f64();
                if let Some(at) = PHASE_BOUNDS.iter().position(|bound| seconds <= *bound) {
                    durations.buckets[at] += 1;
                }
                durations.count += 1;
                durations.sum += time.took;
            }
            Event::SubnetUp(summary) | Event::SweepIncomplete(summary) => {
                for (kind, count) in by_kind(&summary.smps) {
                    *self.smps.entry(kind).or_default() += count;
                }
            }
            Event::RouteFailed { .. } => self.routings_failed += 1,
            _ => {}
        }
    }
}

/// The SMPs of a sweep by method and attribute.
fn by_kind(smps: &SmpCounts) -> [((&'static str, &'static str), u64); 15] {
    [
        (("get", "NodeInfo"), smps.get_node_info),
        (("get", "NodeDescription"), smps.get_node_description),
        (("get", "SwitchInfo"), smps.get_switch_info),
        (("get", "PortInfo"), smps.get_port_info),
        (("get", "LinearForwardingTable"), smps.get_lft),
        (("get", "SLtoVLMappingTable"), smps.get_sl_to_vl),
        (("get", "VLArbitrationTable"), smps.get_vl_arbitration),
        (("get", "SMInfo"), smps.get_sm_info),
        (("set", "SwitchInfo"), smps.set_switch_info),
        (("set", "PortInfo"), smps.set_port_info),
        (("set", "LinearForwardingTable"), smps.set_lft),
        (("set", "SLtoVLMappingTable"), smps.set_sl_to_vl),
        (("set", "VLArbitrationTable"), smps.set_vl_arbitration),
        (("get", "P_KeyTable"), smps.get_p_keys),
        (("set", "P_KeyTable"), smps.set_p_keys),
    ]
}

impl SmFigures {
    /// All of it.
    pub(crate) fn page(&self) -> Page {
        let mut page = Page::of(weft_bundle::names::SM, env!("CARGO_PKG_VERSION"));
        self.add_state(&mut page);
        self.add_sweeps(&mut page);
        self.add_administration(&mut page);
        page
    }

    fn add_state(&self, page: &mut Page) {
        let (status, progress) = (&self.status, &self.progress);
        let flag = u64::from;
        for (name, help, value) in [
            ("attached", "Whether the subnet manager has its port", flag(status.attached)),
            ("subnet_up", "Whether all that is cabled is in service", flag(status.subnet_up)),
            ("master", "Whether it is the subnet's master", flag(status.state() == Some(SmState::Master))),
            (
                "ports_active",
                "Ports that are Active, port 0 of switches not counted",
                progress.ports_active.into(),
            ),
            ("ports_silent", "Ports with a link behind which nobody answers", progress.ports_silent.into()),
            ("lids", "Ports that have a LID", progress.lids.into()),
            ("hosts_cut_off", "Hosts that were there and cannot be reached", status.cut_off.len() as u64),
        ] {
            page.gauge(&format!("weft_sm_{name}"), help).count(&[], value);
        }
        page.gauge("weft_sm_nodes", "Nodes in the subnet, by kind")
            .count(&[("kind", "switch")], progress.switches.into())
            .count(&[("kind", "hca")], progress.hosts.into());
        if let Some(routing) = &status.routing {
            page.gauge("weft_sm_engine_info", "The routing engine in force")
                .count(&[("engine", &routing.engine)], 1);
            page.gauge("weft_sm_data_lanes", "Virtual lanes that the routing uses")
                .count(&[], u64::from(routing.lanes));
        }
    }

    fn add_sweeps(&self, page: &mut Page) {
        let (status, progress, counted) = (&self.status, &self.progress, &self.counted);
        page.counter("weft_sm_sweeps_total", "Sweeps begun, by kind")
            .count(&[("kind", "heavy")], status.heavy_sweeps)
            .count(&[("kind", "light")], status.light_sweeps);
        for (name, help, value) in [
            ("smps_sent", "SMPs sent, retries included", progress.smps_sent),
            ("smps_retried", "SMPs sent again because no answer came", progress.smps_retried),
            ("mads_ignored", "MADs malformed, unsolicited, late or not understood", progress.mads_ignored),
            ("traps", "Traps received", status.traps),
            ("repaths", "How often hosts were told to use paths differently", status.repaths),
            ("routings_failed", "Sweeps that could not be routed", counted.routings_failed),
        ] {
            page.counter(&format!("weft_sm_{name}_total"), help).count(&[], value);
        }
        let mut events = page.counter("weft_sm_events_total", "Events of the subnet manager, by their names");
        for (name, count) in &counted.events {
            events.count(&[("event", name)], *count);
        }
        let written = counted.smps.get(&("set", "LinearForwardingTable")).copied().unwrap_or(0);
        page.counter(
            "weft_sm_lft_blocks_written_total",
            "Blocks of forwarding tables written by heavy sweeps",
        )
        .count(&[], written);
        let mut smps = page.counter(
            "weft_sm_sweep_smps_total",
            "SMPs of the heavy sweeps that have ended, by method and attribute, retries not counted",
        );
        for ((method, attribute), count) in &counted.smps {
            smps.count(&[("method", method), ("attribute", attribute)], *count);
        }
        let mut phases =
            page.histogram("weft_sm_phase_duration_seconds", "How long the phases of heavy sweeps took");
        for (phase, durations) in &counted.phases {
            let phase = format!("{phase:?}").to_lowercase();
            let buckets = PHASE_BOUNDS.into_iter().zip(durations.buckets);
            phases.spread(&[("phase", &phase)], buckets, durations.count, durations.sum.as_secs_f64());
        }
        if let Some(last) = &status.last {
            page.gauge("weft_sm_last_sweep_duration_seconds", "How long the last heavy sweep took")
                .add(&[], last.took.as_secs_f64());
        }
    }

    fn add_administration(&self, page: &mut Page) {
        let sa = &self.sa;
        page.counter(
            "weft_sm_sa_requests_total",
            "Requests to subnet administration, by what became of them",
        )
        .count(&[("result", "answered")], sa.answered)
        .count(&[("result", "refused")], sa.refused)
        .count(&[("result", "busy")], sa.limited.busy);
        page.counter(
            "weft_sm_sa_limited_total",
            "What was refused because one requester or subscriber had too many, or there was no room, by what there was too much of",
        )
        .count(&[("limit", "tables")], sa.limited.requester_tables)
        .count(&[("limit", "waiting")], sa.limited.requester_waiting)
        .count(&[("limit", "segments")], sa.limited.requester_segments)
        .count(&[("limit", "services")], sa.limited.requester_services)
        .count(&[("limit", "services_in_all")], sa.limited.services)
        .count(&[("limit", "service_gids")], sa.limited.service_gids)
        .count(&[("limit", "subscriptions")], sa.limited.requester_subscriptions)
        .count(&[("limit", "moves")], sa.limited.requester_moves)
        .count(&[("limit", "caused_reports")], sa.limited.requester_reports)
        .count(&[("limit", "reports")], sa.limited.subscriber_reports);
        for (name, help, value) in [
            ("path_queries", "Requests for path records, repetitions not counted", sa.path_queries),
            ("mads_ignored", "MADs to subnet administration that are none of its business", sa.ignored),
            ("received_reports", "Reports of what hosts receive that are complete", sa.received_reports),
            ("received_refused", "Requests of such reports that were refused", sa.received_refused),
            ("reports_sent", "Reports sent to subscribers, repetitions included", sa.reports),
            ("reports_answered", "Reports answered", sa.reports_answered),
            ("reports_unanswered", "Reports that nobody answered", sa.reports_unanswered),
            ("tables_sent", "Tables sent and acknowledged to their end", sa.tables),
            ("segments_sent", "Segments of tables sent, repetitions included", sa.segments),
            ("acks_received", "Acknowledgements of segments", sa.acks),
            ("reports_dropped", "Reports not sent because too many waited", sa.limited.reports),
            ("transfers_failed", "Tables that did not arrive", sa.transfers_failed),
        ] {
            page.counter(&format!("weft_sm_sa_{name}_total"), help).count(&[], value);
        }
    }
}
