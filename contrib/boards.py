#!/usr/bin/env python3
"""Panels of weft's dashboards, and the files that are written from them.

    python3 contrib/boards.py            # write grafana/*.json and prometheus/consoles/*.html
    python3 contrib/boards.py --check    # fail if a file is not what would be written

One list of panels, so that Grafana and Prometheus' own consoles show the same. Queries have Grafana's
variables; a console puts in what its reader chose. `{{label}}` in a legend is a label of the series.
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent

# Conditions that restrict a query to what the reader chose.
LAB = 'lab=~"$lab"'
PORT = LAB + ', node=~"$node", port=~"$port"'
EVERY = "$__rate_interval"

# Counters of ports have a GUID; the performance manager's gauges have the node's name beside it.
NAMED = (" * on (lab, guid, port) group_left (node)"
         f" group by (lab, guid, port, node) (weft_pm_port_utilisation_ratio{{{PORT}}})")
# An agent's devices: the same GUID may move to another agent with a virtual machine.
DEVICE = (" * on (lab, process, guid) group_left (description)"
          f' group by (lab, process, guid, description) (weft_agent_device_info{{{LAB}, description=~"$node"}})')


def panel(kind, title, description, unit, *queries, **more):
    return {"kind": kind, "title": title, "description": description, "unit": unit,
            "queries": queries, **more}


def stat(title, description, unit, query, **more):
    return panel("stat", title, description, unit, (query, title), **more)


def lines(title, description, unit, *queries, **more):
    return panel("lines", title, description, unit, *queries, **more)


def table(title, description, query, columns, unit="none"):
    return panel("table", title, description, unit, (query, ""), columns=columns)


def either(name, more=LAB):
    """A counter of switches and of HCAs, which differ in their prefix."""
    return f'{{__name__=~"infiniband_(switch|hca)_{name}", {more}}}'


def rate(selector):
    return f"rate({selector}[{EVERY}])"


def increase(selector):
    return f"increase({selector}[{EVERY}])"


def top(query, number=10):
    return f"topk({number}, {query})"


OVERVIEW = [
    stat("Processes up", "Processes that answer scrapes.", "none", f'sum(up{{{LAB}, job=~"weft-.*"}})'),
    stat("Processes down", "Processes that serve metrics and do not answer. 0 is healthy.", "none",
         f'count(up{{{LAB}, job=~"weft-.*"}} == 0) or vector(0)', bad=1),
    stat("Subnet up", "1 if everything cabled is in service, as the master subnet manager sees it.", "none",
         f"max(weft_sm_subnet_up{{{LAB}}})"),
    stat("Ports active", "Ports in state Active; port 0 of switches is not counted.", "none",
         f"max(weft_sm_ports_active{{{LAB}}})"),
    stat("Cable ends without a link", "Ends of cables whose link is down. 0 is healthy.", "none",
         f"sum(weft_agent_cable_ends{{{LAB}}}) - sum(weft_agent_links_up{{{LAB}}})", bad=1),
    stat("Hot spots", "Hosts that receive more than they can take, found by the last sweep of counters.", "none",
         f"sum(weft_pm_hot_spots{{{LAB}}})", bad=1),
    table("Alerts", "Alerts of contrib/prometheus that are pending or firing.",
          f'ALERTS{{{LAB}, alertname=~"Weft.*"}}', ["alertname", "alertstate", "severity", "process", "node", "port"]),
    lines("Processes by state", "Processes as the hub sees them.", "none",
          (f"sum by (state) (weft_hub_processes{{{LAB}}})", "{{state}}")),
    lines("Data sent by all ports", "Sum of the data that all ports send, in fabric time.", "Bps",
          (f"sum by (lab) (weft_pm_port_transmit_bytes_per_second{{{LAB}}})", "{{lab}}")),
    lines("Ports where data waits most", "Share of the time that data waited for credit (PortXmitWait).", "percentunit",
          (top(f"weft_pm_port_transmit_wait_ratio{{{LAB}}}", 5), "{{node}} port {{port}}")),
    lines("Sweeps of the subnet manager", "Heavy sweeps read and write the whole subnet; light sweeps look for changes.",
          "none", (f"sum by (kind) ({increase(f'weft_sm_sweeps_total{{{LAB}}}')})", "{{kind}}")),
    lines("Dropped packets by reason", "Packets that devices dropped, per second.", "pps",
          (f"sum by (reason) ({rate(f'weft_agent_dropped_packets_total{{{LAB}}}')}) > 0 or "
           f"label_replace(sum({rate(f'weft_agent_dropped_packets_total{{{LAB}}}')}), \"reason\", \"all\", \"\", \"\")",
           "{{reason}}")),
    lines("Events", "Events that the hub collected from processes, and those that processes forgot first.", "cps",
          (f"sum by (lab) ({rate(f'weft_hub_events_collected_total{{{LAB}}}')})", "collected"),
          (f"sum by (lab) ({rate(f'weft_hub_events_lost_total{{{LAB}}}')})", "lost")),
    lines("Restarts", "Processes that the hub restarted, and restarts that failed, since the hub began.", "none",
          (f"sum by (lab) (weft_hub_restarts_total{{{LAB}}})", "restarted"),
          (f"sum by (lab) (weft_hub_restarts_failed_total{{{LAB}}})", "failed")),
    table("Versions", "Versions of weft by kind of process.",
          f"count by (kind, version) (weft_build_info{{{LAB}}})", ["kind", "version"]),
]

PORTS = [
    lines("Data sent", "Bandwidth that each port sent, in fabric time.", "Bps",
          (top(f"weft_pm_port_transmit_bytes_per_second{{{PORT}}}"), "{{node}} port {{port}}")),
    lines("Data received", "Bandwidth that each port received, in fabric time.", "Bps",
          (top(f"weft_pm_port_receive_bytes_per_second{{{PORT}}}"), "{{node}} port {{port}}")),
    lines("Utilisation", "Bandwidth sent as a share of the link's rate.", "percentunit",
          (top(f"weft_pm_port_utilisation_ratio{{{PORT}}}"), "{{node}} port {{port}}")),
    lines("Waiting time", "Share of the time that data waited without being sent (PortXmitWait).", "percentunit",
          (top(f"weft_pm_port_transmit_wait_ratio{{{PORT}}}"), "{{node}} port {{port}}")),
    lines("Packets sent", "Packets that each port sent (PortXmitPkts).", "pps",
          (top(rate(either("port_transmit_packets_total")) + NAMED), "{{node}} port {{port}}")),
    lines("Packets received", "Packets that each port received (PortRcvPkts).", "pps",
          (top(rate(either("port_receive_packets_total")) + NAMED), "{{node}} port {{port}}")),
    lines("Waiting time by lane", "Share of the time that data waited on the lane, summed over ports.", "percentunit",
          (f"sum by (vl) ({rate(f'infiniband_vl_transmit_wait_seconds_total{{{LAB}}}')}{NAMED})", "VL {{vl}}")),
    lines("Packets by lane", "Packets on data lanes, by where they went.", "pps",
          (f"sum by (vl, way) ({rate(f'weft_agent_lane_packets_total{{{LAB}}}')}{DEVICE})", "VL {{vl}} {{way}}")),
    lines("Packets held by lane", "Packets that devices hold. More than a few that stay are a hot spot or a deadlock.",
          "none", (f"sum by (vl) (weft_agent_lane_held_packets{{{LAB}}}{DEVICE})", "VL {{vl}}")),
    lines("Occupied input buffers", "Bytes in use of the fullest input buffers.", "bytes",
          (top(f'weft_agent_lane_buffer_occupied_bytes{{{LAB}, port=~"$port"}}{DEVICE}'),
           "{{description}} port {{port}} VL {{vl}}")),
    lines("Credit towards peers", "Bytes that may still be sent on the lanes with least credit.", "bytes",
          (f'bottomk(10, weft_agent_lane_credit_bytes{{{LAB}, port=~"$port"}}{DEVICE})',
           "{{description}} port {{port}} VL {{vl}}")),
    lines("Bytes that wait for credit", "Bytes that wait to leave by the port, on the lanes where most wait.", "bytes",
          (top(f'weft_agent_lane_waiting_bytes{{{LAB}, port=~"$port"}}{DEVICE}'),
           "{{description}} port {{port}} VL {{vl}}")),
    lines("Link errors", "Errors of the physical link, and times that it went down.", "none",
          *[(f"sum by (node, port) ({increase(either(name))}{NAMED}) > 0 or sum({increase(either(name))})",
             legend + " {{node}} {{port}}")
            for name, legend in [("port_symbol_error_total", "symbol errors"),
                                 ("port_link_error_recovery_total", "recoveries"),
                                 ("port_link_downed_total", "link downed")]]),
    lines("Packet errors", "Packets received with errors, not accepted or not forwarded.", "none",
          *[(f"sum({increase(either(name))}{NAMED})", legend)
            for name, legend in [("port_receive_errors_total", "received with errors"),
                                 ("port_receive_remote_physical_errors_total", "marked bad by the sender"),
                                 ("port_receive_switch_relay_errors_total", "not forwarded"),
                                 ("port_receive_constraint_errors_total", "refused at the input"),
                                 ("port_transmit_constraint_errors_total", "refused at the output"),
                                 ("port_transmit_discards_total", "discarded at the output"),
                                 ("port_vl15_dropped_total", "SMPs without room")]]),
    lines("Links of agents", "Times that links came up and went down, of all cables between agents.", "none",
          (f"sum by (lab) ({increase(f'weft_agent_link_ups_total{{{LAB}}}')})", "up"),
          (f"sum by (lab) ({increase(f'weft_agent_link_downs_total{{{LAB}}}')})", "down")),
    lines("Ports by state", "Ports of devices by state: 1 Down, 2 Initialize, 3 Armed, 4 Active.", "none",
          (f'count by (state) (count_values by (lab, process, guid, port) ("state", weft_agent_port_state{{{LAB}}}))',
           "state {{state}}")),
    table("Cables", "The other end of each switch port's cable.",
          f'infiniband_switch_uplink_info{{{LAB}, switch=~"$node", port=~"$port"}}',
          ["switch", "port", "uplink", "uplink_port", "uplink_type"]),
    table("Rates of links", "Data rate of each switch port.",
          f"infiniband_switch_port_rate_bytes_per_second{{{LAB}}}{NAMED}", ["node", "port"], "Bps"),
]

CONGESTION = [
    stat("Hot spots", "Hosts that receive more than they can take.", "none", f"sum(weft_pm_hot_spots{{{LAB}}})", bad=1),
    stat("Hosts on the slow lane", "Hosts that are asked to use the slow lane, once for each hot spot.", "none",
         f"sum(weft_pm_contributors{{{LAB}}})"),
    stat("Requests pending", "Hosts that are yet to be asked to change their lane.", "none",
         f"sum(weft_pm_moves_pending{{{LAB}}})"),
    stat("Threshold", "Share of the time above which a port counts as congested.", "percentunit",
         f"max(weft_pm_threshold_ratio{{{LAB}}})"),
    lines("Ports where data waits most", "Share of the time that data waited without being sent.", "percentunit",
          (top(f"weft_pm_port_transmit_wait_ratio{{{PORT}}}"), "{{node}} port {{port}}")),
    lines("Ticks of PortXmitWait", "Ticks of 4 ns of fabric time that data waited, per second.", "none",
          (top(rate(either("port_transmit_wait_total")) + NAMED), "{{node}} port {{port}}")),
    lines("Waiting time by lane", "Share of the time that data waited, summed over ports: the slow lane beside the others.",
          "percentunit",
          (f"sum by (vl) ({rate(f'infiniband_vl_transmit_wait_seconds_total{{{LAB}}}')})", "VL {{vl}}")),
    lines("Ports that lead to hot spots", "1 while the port leads to a host that is a hot spot.", "none",
          (top(f"weft_pm_port_hot_spot{{{PORT}}}", 5), "{{node}} port {{port}}")),
    lines("Ports of contributors", "1 while the port's host is asked to use the slow lane.", "none",
          (top(f"weft_pm_port_contributor{{{PORT}}}", 5), "{{node}} port {{port}}")),
    lines("Hot spots found", "Hot spots that sweeps found.", "none",
          (f"sum by (lab) ({increase(f'weft_pm_hot_spots_found_total{{{LAB}}}')})", "{{lab}}")),
    lines("Requests to change lanes", "Requests of the performance manager that the subnet manager took or refused.",
          "none",
          (f"sum by (lab) ({increase(f'weft_pm_repaths_total{{{LAB}}}')})", "to the slow lane"),
          (f"sum by (lab) ({increase(f'weft_pm_unpaths_total{{{LAB}}}')})", "back"),
          (f"sum by (lab) ({increase(f'weft_pm_notices_refused_total{{{LAB}}}')})", "refused"),
          (f"sum by (lab) ({increase(f'weft_pm_notices_unanswered_total{{{LAB}}}')})", "not answered")),
    lines("Packets held by lane", "Packets that devices hold.", "none",
          (f"sum by (vl) (weft_agent_lane_held_packets{{{LAB}}})", "VL {{vl}}")),
    lines("Bytes that wait by lane", "Bytes that wait for credit, of all ports.", "bytes",
          (f"sum by (vl) (weft_agent_lane_waiting_bytes{{{LAB}}})", "VL {{vl}}")),
    lines("Sweeps of counters", "How long a sweep of the performance manager takes, beside its interval.", "s",
          (f"weft_pm_last_sweep_duration_seconds{{{LAB}}}", "{{process}} last sweep"),
          (f"weft_pm_sweep_interval_seconds{{{LAB}}}", "{{process}} interval")),
    lines("Requests for counters", "Requests that the performance manager sent, and those without a good answer.", "reqps",
          (f"sum by (lab) ({rate(f'weft_pm_requests_total{{{LAB}}}')})", "sent"),
          (f"sum by (lab) ({rate(f'weft_pm_retries_total{{{LAB}}}')})", "sent again"),
          (f"sum by (lab) ({rate(f'weft_pm_timeouts_total{{{LAB}}}')})", "timed out"),
          (f"sum by (lab) ({rate(f'weft_pm_requests_refused_total{{{LAB}}}')})", "refused")),
    lines("Devices that do not answer", "Devices whose performance agent is silent; their counters stand still.", "none",
          (f"sum by (lab) ({either('collect_timeout')})", "silent"),
          (f"sum by (lab) ({either('collect_error')})", "answers with errors")),
]

MANAGER = [
    stat("Subnet up", "1 if everything cabled is in service.", "none", f"max(weft_sm_subnet_up{{{LAB}}})"),
    stat("Masters", "Subnet managers that are master: one for each piece of the fabric.", "none",
         f"sum(weft_sm_master{{{LAB}}})"),
    stat("LIDs", "Ports that have a LID.", "none", f"max(weft_sm_lids{{{LAB}}})"),
    stat("Hosts cut off", "Hosts that were there and cannot be reached. 0 is healthy.", "none",
         f"max(weft_sm_hosts_cut_off{{{LAB}}})", bad=1),
    stat("Last heavy sweep", "How long the last heavy sweep took.", "s",
         f"max(weft_sm_last_sweep_duration_seconds{{{LAB}}})"),
    table("Routing engine", "The routing engine in force.", f"weft_sm_engine_info{{{LAB}}}", ["process", "engine"]),
    lines("Nodes", "Nodes in the subnet, by kind.", "none",
          (f"max by (kind) (weft_sm_nodes{{{LAB}}})", "{{kind}}")),
    lines("Ports", "Ports that are Active, and ports with a link behind which no one answers.", "none",
          (f"max by (lab) (weft_sm_ports_active{{{LAB}}})", "active"),
          (f"max by (lab) (weft_sm_ports_silent{{{LAB}}})", "silent")),
    lines("Sweeps", "Sweeps begun, by kind, and sweeps that could not be routed.", "none",
          (f"sum by (kind) ({increase(f'weft_sm_sweeps_total{{{LAB}}}')})", "{{kind}}"),
          (f"sum by (lab) ({increase(f'weft_sm_routings_failed_total{{{LAB}}}')})", "not routed")),
    lines("Phases of heavy sweeps", "Mean duration of each phase since the manager began.", "s",
          (f"sum by (phase) (weft_sm_phase_duration_seconds_sum{{{LAB}}}) / "
           f"sum by (phase) (weft_sm_phase_duration_seconds_count{{{LAB}}})", "{{phase}}")),
    lines("SMPs", "SMPs sent per second; of those, retries.", "pps",
          (f"sum by (lab) ({rate(f'weft_sm_smps_sent_total{{{LAB}}}')})", "sent"),
          (f"sum by (lab) ({rate(f'weft_sm_smps_retried_total{{{LAB}}}')})", "retries")),
    lines("SMPs of heavy sweeps", "SMPs of finished heavy sweeps by method and attribute.", "none",
          (top(f"sum by (method, attribute) ({increase(f'weft_sm_sweep_smps_total{{{LAB}}}')})"),
           "{{method}} {{attribute}}")),
    lines("Forwarding table blocks written", "Blocks of linear forwarding tables that the manager wrote.", "none",
          (f"sum by (lab) ({increase(f'weft_sm_lft_blocks_written_total{{{LAB}}}')})", "{{lab}}")),
    lines("Traps", "Traps that the manager received.", "none",
          (f"sum by (lab) ({increase(f'weft_sm_traps_total{{{LAB}}}')})", "{{lab}}")),
    lines("Events", "Events of the manager by name.", "none",
          (top(f"sum by (event) ({increase(f'weft_sm_events_total{{{LAB}}}')})"), "{{event}}")),
    lines("Subnet administration", "Requests to subnet administration, by result.", "reqps",
          (f"sum by (result) ({rate(f'weft_sm_sa_requests_total{{{LAB}}}')})", "{{result}}")),
    lines("Path queries", "Requests for path records, without repetitions.", "reqps",
          (f"sum by (lab) ({rate(f'weft_sm_sa_path_queries_total{{{LAB}}}')})", "{{lab}}")),
    lines("Limits of subnet administration", "Requests refused because one host had too many, or there was no room.",
          "none", (f"sum by (limit) ({increase(f'weft_sm_sa_limited_total{{{LAB}}}')})", "{{limit}}")),
    lines("Reports to subscribers", "Reports that the manager sent, and those without an answer or dropped.", "none",
          (f"sum by (lab) ({increase(f'weft_sm_sa_reports_sent_total{{{LAB}}}')})", "sent"),
          (f"sum by (lab) ({increase(f'weft_sm_sa_reports_unanswered_total{{{LAB}}}')})", "not answered"),
          (f"sum by (lab) ({increase(f'weft_sm_sa_reports_dropped_total{{{LAB}}}')})", "dropped")),
]

MIGRATIONS = [
    stat("Virtual machines", "Virtual machines in all states.", "none", f"sum(weft_vmm_vms{{{LAB}}})"),
    stat("Free slots", "Virtual functions that can take a virtual machine.", "none", f"sum(weft_vmm_slots_free{{{LAB}}})"),
    stat("Hosts ready", "Hosts with slots whose agents answer.", "none", f"sum(weft_vmm_hosts_ready{{{LAB}}})"),
    stat("Moves undone", "Moves that were undone since the VM manager began. 0 is healthy.", "none",
         f"sum(weft_vmm_moves_undone_total{{{LAB}}})", bad=1),
    stat("Machines lost", "Virtual machines that were lost since the VM manager began. 0 is healthy.", "none",
         f"sum(weft_vmm_vms_lost_total{{{LAB}}})", bad=1),
    lines("Virtual machines by state", "Virtual machines by state.", "none",
          (f"sum by (state) (weft_vmm_vms{{{LAB}}})", "{{state}}")),
    lines("Moves", "Moves completed and undone, and machines lost.", "none",
          (f"sum by (lab) ({increase(f'weft_vmm_moves_done_total{{{LAB}}}')})", "completed"),
          (f"sum by (lab) ({increase(f'weft_vmm_moves_undone_total{{{LAB}}}')})", "undone"),
          (f"sum by (lab) ({increase(f'weft_vmm_vms_lost_total{{{LAB}}}')})", "lost")),
    lines("Work in progress", "Creations, removals and moves in progress, and requests that wait.", "none",
          (f"sum by (lab) (weft_vmm_tasks{{{LAB}}})", "in progress"),
          (f"sum by (lab) (weft_vmm_requests_queued{{{LAB}}})", "waiting")),
    lines("Slots", "Slots that agents reported, and those that are free.", "none",
          (f"sum by (lab) (weft_vmm_slots{{{LAB}}})", "all"),
          (f"sum by (lab) (weft_vmm_slots_free{{{LAB}}})", "free")),
    lines("Requests", "Requests of clients, and those that found a queue full.", "reqps",
          (f"sum by (lab) ({rate(f'weft_vmm_requests_total{{{LAB}}}')})", "all"),
          (f"sum by (lab) ({rate(f'weft_vmm_requests_refused_total{{{LAB}}}')})", "refused")),
    lines("Forwarding tables written", "Table blocks that devices were told to write: a move writes few.", "none",
          (top(f"sum by (description) ({increase(f'weft_agent_lft_blocks_written_total{{{LAB}}}')}{DEVICE})"),
           "{{description}}")),
    lines("Answers that fit nothing", "Answers without a request, invalid reports, and commands that an agent's queue did not take.",
          "none",
          (f"sum by (lab) ({increase(f'weft_vmm_strays_total{{{LAB}}}')})", "unmatched"),
          (f"sum by (lab) ({increase(f'weft_vmm_bad_reports_total{{{LAB}}}')})", "invalid"),
          (f"sum by (lab) ({increase(f'weft_vmm_commands_dropped_total{{{LAB}}}')})", "not taken")),
    lines("Journal", "Size of the VM manager's journal.", "bytes", (f"weft_vmm_journal_bytes{{{LAB}}}", "{{process}}")),
]

FLOW = "{{flow}}{{set}} {{from}} {{to}}"
# Reasons for which packets of data are dropped; docs/traffic.md explains them.
DATA = ("bad_p_key|partition_inbound|partition_outbound|switch_lifetime|head_lifetime|no_route|loop|no_lane|bad_lane|"
        "output_inactive|link_lost|link_down")
DROPS = f'weft_agent_dropped_packets_total{{{LAB}, reason=~"{DATA}"}}'


def of_flows(query):
    """A flow with a name has series of its own; the others are sums by set."""
    return top(f"sum by (lab, flow, set, from, to) ({query})")


def quantile(text):
    return top(f'weft_flow_time_seconds{{{LAB}, quantile="{text}"}}')


FLOWS = [
    stat("Flows running", "Flows that run.", "none", f'sum(weft_flows{{{LAB}, state="running"}})'),
    stat("Flows failed", "Flows that ended for a reason of the fabric's. 0 is healthy; `weft flow ls` says why.", "none",
         f'sum(weft_flows{{{LAB}, state="failed"}})', bad=1),
    stat("Delivered", "Bytes that flows deliver, of wall-clock time.", "Bps",
         f"sum({rate(f'weft_flow_delivered_bytes_total{{{LAB}}}')})"),
    stat("Packets sent again", "Packets that senders repeat.", "pps",
         f"sum({rate(f'weft_flow_repeated_packets_total{{{LAB}}}')})"),
    stat("Longest pause", "The longest time between two deliveries of a flow with a name.", "s",
         f"max(weft_flow_longest_pause_seconds{{{LAB}}})"),
    lines("Flows by state", "Flows of the laboratory, by state.", "none",
          (f"sum by (state) (weft_flows{{{LAB}}})", "{{state}}")),
    lines("Rates", "Bytes of body that flows, or sets of them, deliver, of wall-clock time.", "Bps",
          (of_flows(rate(f"weft_flow_delivered_bytes_total{{{LAB}}}")), FLOW)),
    lines("Sent", "Bytes of body that senders send for the first time, of wall-clock time.", "Bps",
          (of_flows(rate(f"weft_flow_sent_bytes_total{{{LAB}}}")), FLOW)),
    lines("Half of the times", "Round trips of ping-pongs and messages of streams: half of them take less.", "s",
          (quantile("0.5"), "{{flow}} {{from}} {{to}}")),
    lines("99 of 100 times", "The same: 99 of 100 take less.", "s", (quantile("0.99"), "{{flow}} {{from}} {{to}}")),
    lines("Longest times", "The longest round trip or message of each flow with a name.", "s",
          (quantile("1"), "{{flow}} {{from}} {{to}}")),
    lines("Longest pauses", "The longest time between two deliveries of each flow with a name.", "s",
          (top(f"weft_flow_longest_pause_seconds{{{LAB}}}"), "{{flow}} {{from}} {{to}}")),
    lines("Packets sent again by flow", "Packets that senders repeat: some were lost, or came too late.", "pps",
          (of_flows(rate(f"weft_flow_repeated_packets_total{{{LAB}}}")), FLOW)),
    lines("Packets missing", "Packets that never came to a receiver of datagrams.", "none",
          (of_flows(increase(f"weft_flow_missing_packets_total{{{LAB}}}")), FLOW)),
    lines("Dropped packets of data", "Packets that devices dropped, by the reasons for which data is dropped.", "pps",
          (f"sum by (reason) ({rate(DROPS)}) > 0 or label_replace(sum({rate(DROPS)}), \"reason\", \"all\", \"\", \"\")",
           "{{reason}}")),
    lines("Packets lost on cables", "Packets that faults lost, damaged or delayed on cables.", "pps",
          (f"sum by (became) ({rate(f'weft_agent_impaired_packets_total{{{LAB}}}')})", "{{became}}")),
    table("All flows", "Bytes that each flow with a name, or set, has delivered.",
          f"weft_flow_delivered_bytes_total{{{LAB}}}", ["flow", "set", "from", "to"], "bytes"),
]

LATE = f"sum by (le) ({rate(f'weft_agent_wake_up_lateness_seconds_bucket{{{LAB}}}')})"

AGENTS = [
    stat("Agents", "Agents that answer scrapes.", "none", f'sum(up{{{LAB}, job="weft-agent"}})'),
    stat("Devices", "Devices that agents run.", "none", f"sum(weft_agent_devices{{{LAB}}})"),
    stat("Lateness, 99th percentile", "How late machines are woken. Over 5 ms a run is not a valid measurement.", "s",
         f"histogram_quantile(0.99, {LATE})"),
    stat("Programs", "Programs that are attached to devices.", "none", f"sum(weft_agent_programs{{{LAB}}})"),
    lines("Lateness", "How late machines are woken, over all agents.", "s",
          (f"histogram_quantile(0.5, {LATE})", "median"),
          (f"histogram_quantile(0.99, {LATE})", "99th percentile")),
    lines("Latest agents", "Mean lateness of the agents that are latest.", "s",
          (top(f"sum by (process) ({rate(f'weft_agent_wake_up_lateness_seconds_sum{{{LAB}}}')}) / "
               f"sum by (process) ({rate(f'weft_agent_wake_up_lateness_seconds_count{{{LAB}}}')})"), "{{process}}")),
    lines("Links", "Ends of cables that have a link, beside all ends.", "none",
          (f"sum by (lab) (weft_agent_links_up{{{LAB}}})", "up"),
          (f"sum by (lab) (weft_agent_cable_ends{{{LAB}}})", "all")),
    lines("Cables between agents", "Packets that agents gave to cables, took from them, and that cables did not take.", "pps",
          (f"sum by (lab) ({rate(f'weft_agent_link_sent_packets_total{{{LAB}}}')})", "sent"),
          (f"sum by (lab) ({rate(f'weft_agent_link_received_packets_total{{{LAB}}}')})", "received"),
          (f"sum by (lab) ({rate(f'weft_agent_link_dropped_packets_total{{{LAB}}}')})", "not taken")),
    lines("Trouble with cables", "Dials, overflowed lanes, malformed frames and refused peers.", "none",
          *[(f"sum by (lab) ({increase(f'weft_agent_link_{name}_total{{{LAB}}}')})", legend)
            for name, legend in [("dials", "dials"), ("unresolved", "unknown addresses"), ("overflows", "overflows"),
                                 ("malformed_frames", "malformed frames"), ("refused_peers", "refused peers")]]),
    lines("Impaired packets", "Packets that faults impaired as they left a cable, by what became of them.", "pps",
          (f"sum by (became) ({rate(f'weft_agent_impaired_packets_total{{{LAB}}}')})", "{{became}}")),
    lines("Management requests", "Requests that devices answered, and directed-route SMPs that they passed on.", "reqps",
          (f"sum by (lab) ({rate(f'weft_agent_smps_answered_total{{{LAB}}}')})", "SMPs answered"),
          (f"sum by (lab) ({rate(f'weft_agent_smp_sets_total{{{LAB}}}')})", "of those, Sets"),
          (f"sum by (lab) ({rate(f'weft_agent_gmps_answered_total{{{LAB}}}')})", "GMPs answered"),
          (f"sum by (lab) ({rate(f'weft_agent_directed_hops_total{{{LAB}}}')})", "directed hops")),
    lines("Forwarded packets", "Packets that the devices which forward most forwarded.", "pps",
          (top(rate(f"weft_agent_forwarded_packets_total{{{LAB}}}") + DEVICE), "{{description}}")),
    lines("Dropped packets", "Packets that devices dropped, where most were dropped.", "pps",
          (top(f"sum by (description, reason) ({rate(f'weft_agent_dropped_packets_total{{{LAB}}}')}{DEVICE})"),
           "{{description}} {{reason}}")),
    lines("Events of agents", "What happened to agents, by event.", "cps",
          (top(f"sum by (event) ({rate(f'weft_agent_events_total{{{LAB}}}')})"), "{{event}}")),
    lines("Control clients", "Clients of the control sockets of managers and the hub.", "none",
          (f"weft_control_clients{{{LAB}}}", "{{process}}")),
    lines("Scrapes", "HTTP requests for pages, by status.", "reqps",
          (f"sum by (code) ({rate(f'weft_exporter_requests_total{{{LAB}}}')})", "{{code}}")),
]

# File, title, what it shows, the variables beside the laboratory, and the panels.
BOARDS = [
    ("overview", "Overview", "Whether a laboratory is well, and where to look next.", [], OVERVIEW),
    ("ports", "Ports and lanes", "What ports and lanes carry, where they wait, and their errors.", ["node", "port"], PORTS),
    ("congestion", "Congestion and slow lanes", "Hot spots, who contributes to them, and the slow lane.",
     ["node", "port"], CONGESTION),
    ("flows", "Flows", "What flows carry, how long it takes, and what is lost.", [], FLOWS),
    ("subnet-manager", "Subnet manager", "Sweeps, SMPs, traps and subnet administration.", [], MANAGER),
    ("migrations", "Migrations", "Virtual machines, their moves, and what moves cost.", ["node"], MIGRATIONS),
    ("agents", "Agents", "The processes that run devices: lateness, cables, management, drops.", ["node"], AGENTS),
]

VARIABLES = {
    "lab": ("Laboratory", 'label_values(up{job=~"weft-.*"}, lab)'),
    "node": ("Node", 'label_values(weft_pm_port_utilisation_ratio{lab=~"$lab"}, node)'),
    "port": ("Port", 'label_values(weft_pm_port_utilisation_ratio{lab=~"$lab", node=~"$node"}, port)'),
}

SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def grafana_variable(name):
    label, query = VARIABLES[name]
    return {"type": "query", "name": name, "label": label, "datasource": SOURCE, "definition": query,
            "query": {"query": query, "refId": "variable"}, "refresh": 2, "sort": 7, "regex": "",
            "includeAll": True, "allValue": ".*", "multi": name != "lab",
            "current": {"selected": True, "text": "All", "value": "$__all"}, "options": [], "hide": 0}


def grafana_panel(number, shown, place):
    kind = {"stat": "stat", "lines": "timeseries", "table": "table"}[shown["kind"]]
    targets = []
    for at, (query, legend) in enumerate(shown["queries"]):
        target = {"refId": chr(ord("A") + at), "datasource": SOURCE, "expr": query, "legendFormat": legend,
                  "editorMode": "code"}
        if kind == "timeseries":
            target["range"] = True
        else:
            target |= {"instant": True, "range": False}
        if kind == "table":
            target["format"] = "table"
        targets.append(target)
    steps = [{"color": "green", "value": None}]
    if "bad" in shown:
        steps.append({"color": "red", "value": shown["bad"]})
    defaults = {"unit": shown["unit"], "color": {"mode": "thresholds" if kind == "stat" else "palette-classic"},
                "thresholds": {"mode": "absolute", "steps": steps}, "mappings": []}
    made = {"id": number, "type": kind, "title": shown["title"], "description": shown["description"],
            "datasource": SOURCE, "gridPos": place, "targets": targets,
            "fieldConfig": {"defaults": defaults, "overrides": []}, "options": {}}
    if kind == "stat":
        made["options"] = {"colorMode": "value", "graphMode": "area", "justifyMode": "auto", "textMode": "value",
                           "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
    elif kind == "timeseries":
        defaults["min"] = 0
        defaults["custom"] = {"lineWidth": 1, "fillOpacity": 0, "showPoints": "auto", "spanNulls": False}
        made["options"] = {"legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull"],
                                      "showLegend": True}, "tooltip": {"mode": "multi", "sort": "desc"}}
    else:
        order = {name: at for at, name in enumerate([*shown["columns"], "Value"])}
        made["options"] = {"showHeader": True}
        made["transformations"] = [
            {"id": "filterFieldsByName", "options": {"include": {"names": list(order)}}},
            {"id": "organize", "options": {"indexByName": order, "excludeByName": {}, "renameByName": {}}},
        ]
    return made


def places(panels):
    """Where panels are on a grid of 24 columns: four numbers a row, two pictures a row."""
    x = y = height = 0
    for shown in panels:
        w, h = (4, 4) if shown["kind"] == "stat" else (12, 8)
        if x + w > 24 or (height and h != height):
            x, y = 0, y + height
        yield {"x": x, "y": y, "w": w, "h": h}
        x, height = x + w, h


def grafana(name, title, description, variables, panels):
    own = [{"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus", "refresh": 1,
            "regex": "", "multi": False, "includeAll": False, "current": {}, "options": [], "hide": 0}]
    return {
        "uid": f"weft-{name}", "title": f"weft: {title}", "description": description, "tags": ["weft", "infiniband"],
        "schemaVersion": 41, "version": 1, "editable": True, "graphTooltip": 1, "timezone": "browser",
        "time": {"from": "now-15m", "to": "now"}, "refresh": "5s", "fiscalYearStartMonth": 0, "liveNow": False,
        "timepicker": {"refresh_intervals": ["2s", "5s", "10s", "30s", "1m", "5m"]},
        "links": [{"type": "dashboards", "title": "weft", "tags": ["weft"], "asDropdown": True, "keepTime": True,
                   "includeVars": True, "icon": "external link", "targetBlank": False, "tooltip": "", "url": ""}],
        "annotations": {"list": [{
            "name": "Alerts", "enable": True, "hide": False, "iconColor": "red", "datasource": SOURCE,
            "expr": f'ALERTS{{{LAB}, alertname=~"Weft.*", alertstate="firing"}}', "titleFormat": "{{alertname}}",
            "textFormat": "{{process}} {{node}} {{port}}", "step": "5s"}]},
        "templating": {"list": own + [grafana_variable(variable) for variable in ["lab", *variables]]},
        "panels": [grafana_panel(number, shown, place)
                   for number, (shown, place) in enumerate(zip(panels, places(panels)), 1)],
    }


def console(name, title, description, variables, panels):
    """A console. Its template knows `{{`, so legends name labels as `%label%`."""
    shown = [{"kind": one["kind"], "title": one["title"], "description": one["description"], "unit": one["unit"],
              "columns": one.get("columns", []), "bad": one.get("bad"),
              "queries": [[query, legend.replace("{{", "%").replace("}}", "%")] for query, legend in one["queries"]]}
             for one in panels]
    # A `<` must not look like a tag inside the script.
    board = json.dumps({"title": title, "variables": ["lab", *variables], "panels": shown}, indent=1)
    return (f'{{{{ template "weft-head" "{title}" }}}}\n'
            f'{{{{ template "weft-menu" "{name}" }}}}\n'
            f"<main>\n<h1>{title}</h1>\n<p>{description}</p>\n"
            f'<script type="application/json" id="board">\n{board.replace("<", chr(92) + "u003c")}\n</script>\n'
            '{{ template "weft-tail" . }}\n')


def index():
    rows = "".join(f'<li><a href="weft-{name}.html">{title}</a>: {description}</li>\n'
                   for name, title, description, _, _ in BOARDS)
    return ('{{ template "weft-head" "weft" }}\n{{ template "weft-menu" "index" }}\n'
            f"<main>\n<h1>weft</h1>\n<ul>\n{rows}</ul>\n"
            '</main></body></html>\n')


def files():
    for board in BOARDS:
        yield HERE / "grafana" / f"weft-{board[0]}.json", json.dumps(grafana(*board), indent=2) + "\n"
        yield HERE / "prometheus/consoles" / f"weft-{board[0]}.html", console(*board)
    yield HERE / "prometheus/consoles/index.html", index()


def main():
    is_check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not is_check:
        sys.exit(__doc__)
    stale = []
    for path, text in files():
        if not is_check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(str(path.relative_to(HERE)))
    if stale:
        sys.exit(f"not as boards.py writes them: {', '.join(stale)}\nhint: python3 contrib/boards.py")


if __name__ == "__main__":
    main()
