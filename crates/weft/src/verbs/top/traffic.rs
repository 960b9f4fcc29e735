//! Flows and virtual machines in `top`.

use serde::Serialize;
use weft_bundle::folder::LabFolder;
use weft_bundle::record::LabRecord;
use weft_control::flow::{FlowLine, FlowState};
use weft_control::vm::SlotState;
use weft_lab::flows::{self, Units};
use weft_lab::view::Lab;
use weft_wire::Lid;

use super::line::Style;
use crate::output::{Table, or_dash};

/// Columns of flows that a narrow screen goes without, the first of these first.
pub(super) const FLOWS_EXPENDABLE: [&str; 5] = ["detail", "repeated", "SL", "p99", "p50"];
/// The same of machines.
pub(super) const MACHINES_EXPENDABLE: [&str; 2] = ["LID", "slot"];

/// A flow.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Flow {
    pub(super) name: String,
    pub(super) from: String,
    pub(super) to: String,
    state: FlowState,
    /// MB/s, or Gb/s of fabric time.
    pub(super) rate: f64,
    unit: &'static str,
    repeated: u64,
    service_level: Option<u8>,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    detail: String,
}

/// A virtual machine.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) host: String,
    slot: String,
    state: SlotState,
    lid: Lid,
}

/// What there is beside ports.
#[derive(Debug, Default, Serialize)]
pub(super) struct Traffic {
    pub(super) flows: Vec<Flow>,
    pub(super) machines: Vec<Machine>,
}

impl Traffic {
    /// Asks the hub and the agents; of those that do not answer nothing is shown.
    pub(super) fn look(folder: &LabFolder) -> Self {
        let (lines, units) = flows::list_in_units(folder).unwrap_or_default();
        let flows = lines.iter().map(|line| Flow::of(line, units)).collect();
        Self { flows, machines: machines(folder).unwrap_or_default() }
    }
}

fn machines(folder: &LabFolder) -> anyhow::Result<Vec<Machine>> {
    if LabRecord::load(folder)?.vfs.is_none() {
        return Ok(Vec::new());
    }
    let lab = Lab::load_live(folder)?;
    let named = lab.slots.values().filter_map(|slot| Some((slot, slot.vm.clone()?)));
    let machines = named.map(|(slot, name)| {
        let host = lab.record.device(slot.vswitch.0).map(|(_, device)| device.label.clone());
        let host = host.unwrap_or_else(|| slot.vswitch.to_string());
        Machine { name, host, slot: slot.name.clone(), state: slot.state, lid: slot.lid }
    });
    let mut machines: Vec<Machine> = machines.collect();
    machines.sort_by(|a, b| (&a.name, &a.slot).cmp(&(&b.name, &b.slot)));
    Ok(machines)
}

impl Flow {
    fn of(line: &FlowLine, units: Units) -> Self {
        let sender = line.sender.as_ref();
        let times =
            sender.map(|sender| if sender.latency.count > 0 { sender.latency } else { sender.messages });
        let times = times.filter(|times| times.count > 0);
        Self {
            name: line.name.clone(),
            from: line.from.name.clone(),
            to: line.to.name.clone(),
            state: line.state,
            rate: units.throughput(line),
            unit: units.of_rates(),
            repeated: sender.map_or(0, |sender| sender.repeated),
            service_level: sender.and_then(|sender| sender.service_level).map(|level| level.0),
            p50_us: times.map(|times| units.micros(times.p50_ns)),
            p99_us: times.map(|times| units.micros(times.p99_ns)),
            detail: line.reason.clone().unwrap_or_default(),
        }
    }

    /// How a row of it is drawn.
    pub(super) fn style(&self) -> Style {
        match self.state {
            FlowState::Failed => Style::Alarm,
            FlowState::Running if self.rate == 0.0 => Style::Notice,
            FlowState::Done => Style::Faint,
            _ => Style::Plain,
        }
    }
}

impl Machine {
    /// How a row of it is drawn.
    pub(super) fn style(&self) -> Style {
        if self.state == SlotState::Running { Style::Plain } else { Style::Notice }
    }
}

/// The table of flows.
pub(super) fn flows_table(flows: &[Flow]) -> Table {
    let unit = flows.first().map_or("MB/s", |flow| flow.unit);
    let mut table =
        Table::new(&["flow", unit, "state", "from", "to", "p50", "p99", "SL", "repeated", "detail"]);
    for flow in flows {
        let micros = |time: Option<f64>| or_dash(time.map(|micros| format!("{micros:.1} µs")));
        table.row(&[
            &flow.name,
            &format!("{:.3}", flow.rate),
            &flow.state.name(),
            &flow.from,
            &flow.to,
            &micros(flow.p50_us),
            &micros(flow.p99_us),
            &or_dash(flow.service_level),
            &flow.repeated,
            &flow.detail,
        ]);
    }
    table
}

/// The table of machines.
pub(super) fn machines_table(machines: &[Machine]) -> Table {
    let mut table = Table::headed("machine | host | state | LID | slot");
    for machine in machines {
        table.row(&[&machine.name, &machine.host, &machine.state, &machine.lid, &machine.slot]);
    }
    table
}
