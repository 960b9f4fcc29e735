//! Flows: what is opened, expected and stopped, and when.

use weft_host::stack::Guids;
use weft_host::traffic::{Command, Destination, FlowId, FlowSpec, MoveBy, PathSource, Transport, Work};
use weft_machine::{Random, Time};
use weft_routing::quality::Traffic;
use weft_topology::NodeIndex;
use weft_wire::Guid;

use super::body_rate;
use super::names::Names;
use super::vms;
use crate::file::{At, Role, VM_PREFIX, Wrong};
use crate::{
    Action, Experiment, FlowEntry, FlowOptions, FlowPlan, GivenLevel, MixSpec, Paths, PatternSpec, Step,
};

/// The most flows of a run.
const FLOWS_MAX: usize = 20_000;

/// Flows being built from a file's traffic.
pub(super) struct Flows<'a> {
    pub(super) names: &'a Names<'a>,
    pub(super) experiment: &'a Experiment,
    pub(super) seed: u64,
    pub(super) flows: Vec<FlowPlan>,
    pub(super) setup: Vec<(NodeIndex, Command)>,
    pub(super) steps: Vec<Step>,
    pub(super) levels: Vec<GivenLevel>,
}

impl<'a> Flows<'a> {
    pub(super) fn new(names: &'a Names<'a>, experiment: &'a Experiment, seed: u64) -> Self {
        Self {
            names,
            experiment,
            seed,
            flows: Vec::new(),
            setup: Vec::new(),
            steps: Vec::new(),
            levels: Vec::new(),
        }
    }

    /// All of the file.
    pub(super) fn all(&mut self) -> Result<(), Wrong> {
        let experiment = self.experiment;
        if !experiment.hosts.heed_repath {
            for host in self.names.all_hosts() {
                self.setup.push((host, Command::HeedRepath(false)));
            }
        }
        for flow in &experiment.flows {
            self.flow(flow)?;
        }
        for pattern in &experiment.patterns {
            self.pattern(pattern)?;
        }
        for mix in &experiment.mixes {
            self.mix(mix)?;
        }
        for test in &experiment.beffs {
            self.beff(test)?;
        }
        Ok(())
    }

    fn next_id(&self) -> Result<FlowId, Wrong> {
        if self.flows.len() >= FLOWS_MAX {
            return Err(Wrong::new(At::default(), format!("the file comes to more than {FLOWS_MAX} flows")));
        }
        Ok(FlowId(self.flows.len() as u32 + 1))
    }

    fn stop(&self, options: &FlowOptions) -> Time {
        options.stop.unwrap_or(self.experiment.duration)
    }

    fn flow(&mut self, flow: &FlowEntry) -> Result<(), Wrong> {
        if let Some(sl) = flow.sl {
            self.no_machine(flow, "`sl`")?;
            let (host, to) = (self.names.host(&flow.from)?, self.names.port_guid(self.names.host(&flow.to)?));
            self.levels.push(GivenLevel { host, to, sl });
        }
        if flow.options.paths == Paths::Learnt {
            self.no_machine(flow, "`paths = \"learnt\"`")?;
        }
        let (from, to) = (self.names.end(&flow.from)?, self.names.end(&flow.to)?);
        let plan = self.plan(flow.name.clone(), flow.work, &flow.options);
        let plan = FlowPlan { agree_as: flow.agree_as.clone(), ..plan };
        let share = vms::share(self.experiment, &flow.from);
        let own = flow.options.rate_gbps.into_iter().chain(share).reduce(f64::min);
        self.pair(from, to, plan, &FlowOptions { rate_gbps: own, ..flow.options.clone() }, flow.bytes_max)
    }

    /// Caches that are filled by hand stay behind when a machine moves.
    fn no_machine(&self, flow: &FlowEntry, key: &str) -> Result<(), Wrong> {
        let Some(end) = [&flow.from, &flow.to].into_iter().find(|end| end.starts_with(VM_PREFIX)) else {
            return Ok(());
        };
        let message = format!("the flow `{}` has {key}, which is not for virtual machines", flow.name);
        Err(self.names.choice.wrong(Role::Host, end, message).allowed("leave it out: machines ask for paths"))
    }

    /// A flow without ends and id, as long as the options say.
    pub(super) fn plan(&self, name: String, work: Work, options: &FlowOptions) -> FlowPlan {
        FlowPlan {
            flow: FlowId::default(),
            name,
            group: None,
            senders: Vec::new(),
            receivers: Vec::new(),
            transport: options.transport,
            work,
            message_bytes: options.message_bytes,
            start: options.start,
            stop: self.stop(options),
            beff: None,
            agree_as: None,
        }
    }

    /// Adds a flow between two hosts.
    pub(super) fn pair(
        &mut self,
        from: NodeIndex,
        to: NodeIndex,
        plan: FlowPlan,
        options: &FlowOptions,
        bytes_max: Option<u64>,
    ) -> Result<(), Wrong> {
        if from == to {
            let message = format!("the flow `{}` goes from a host to itself", plan.name);
            return Err(Wrong::new(At::default(), message));
        }
        let told = FlowPlan { flow: self.next_id()?, senders: vec![from], receivers: vec![to], ..plan };
        let destination = self.destination(to);
        let is_reliable = options.transport == Transport::ReliableConnection;
        if matches!(destination, Destination::Named(_)) && !is_reliable {
            let message = format!(
                "the flow `{}` sends datagrams to a machine, and none tells that it has moved and has another GUID",
                told.name
            );
            let allowed = "write `transport = \"rc\"`, or `guids = \"static\"` in [vms]";
            return Err(Wrong::new(At::default(), message).allowed(allowed));
        }
        let open = self.open(&told, destination, options, bytes_max);
        self.expect(to, Some(self.names.end_guid(from)), &told);
        self.run(from, open, &told);
        self.flows.push(told);
        Ok(())
    }

    /// A machine whose GUID stays behind when it moves is found by its name.
    fn destination(&self, to: NodeIndex) -> Destination {
        let is_named = self.experiment.vms.as_ref().is_some_and(|vms| vms.guids == Guids::Dynamic);
        let vm = self.names.machines.iter().find(|vm| is_named && vm.born == to);
        vm.map_or_else(
            || Destination::One(self.names.end_guid(to)),
            |vm| Destination::Named(vm.name.to_string()),
        )
    }

    /// Lets a receiver expect a flow.
    fn expect(&mut self, host: NodeIndex, from: Option<Guid>, told: &FlowPlan) {
        let FlowPlan { flow, transport, work, message_bytes, .. } = *told;
        self.setup.push((host, Command::Expect { flow, from, transport, work, message_bytes }));
    }

    /// Opens and stops a flow at one of its senders.
    fn run(&mut self, host: NodeIndex, open: FlowSpec, told: &FlowPlan) {
        let flow = open.flow;
        self.steps.push(Step { at: told.start, action: Action::Host(host, Command::Open(open)) });
        if told.stop < self.experiment.duration {
            self.steps.push(Step { at: told.stop, action: Action::Host(host, Command::Stop { flow }) });
        }
    }

    fn open(
        &self,
        told: &FlowPlan,
        to: Destination,
        options: &FlowOptions,
        bytes_max: Option<u64>,
    ) -> FlowSpec {
        let rate = |gbps: f64| {
            body_rate(gbps, self.experiment.rates.dilation, options.packet_bytes, told.overhead())
        };
        FlowSpec {
            flow: told.flow,
            to,
            transport: options.transport,
            work: told.work,
            message_bytes: options.message_bytes,
            packet_bytes: options.packet_bytes,
            bytes_per_second: options.rate_gbps.map(rate),
            bytes_max,
            paths: match options.paths {
                Paths::Asked | Paths::Learnt => PathSource::PathRecord,
                Paths::Unasked => PathSource::Unasked,
            },
            move_by: options.move_by,
        }
    }

    fn pattern(&mut self, spec: &PatternSpec) -> Result<(), Wrong> {
        let all = |hosts: Vec<NodeIndex>| if spec.hosts.is_empty() { self.names.all_hosts() } else { hosts };
        let mut ranks = all(self.names.hosts(&spec.hosts)?);
        let against = self.names.hosts(&spec.against)?;
        if let Some(twice) = against.iter().find(|host| ranks.contains(host)) {
            let message =
                format!("`{}` is in both groups of the pattern `{}`", self.names.name(*twice), spec.name);
            return Err(Wrong::new(At::default(), message));
        }
        if let Some(processes) = spec.processes {
            ranks = ranks.iter().copied().cycle().take(processes as usize).collect();
        }
        let first = ranks.len() as u32;
        ranks.extend(against);
        if spec.shuffle {
            let (one, two) = ranks.split_at_mut(first as usize);
            let mut random = Random::of_purpose(self.seed, &spec.name);
            random.shuffle(one);
            random.shuffle(two);
        }
        let second = ranks.len() as u32 - first;
        too_many(spec.pattern, first, second)?;
        let stop = self.stop(&spec.options);
        for (nth, level) in spec.pattern.levels(first, second, self.seed).iter().enumerate() {
            let start =
                Time::from_nanos(spec.level.as_nanos().saturating_mul(nth as u64)) + spec.options.start;
            if start >= stop {
                break;
            }
            for (from, to) in level.pairs() {
                let numbers =
                    spec.processes.map(|_| [format!("{from}:"), format!("{to}:")]).unwrap_or_default();
                let (from, to) = (ranks[from as usize], ranks[to as usize]);
                if from == to && spec.processes.is_some() {
                    continue;
                }
                let (sender, receiver) = (self.names.name(from), self.names.name(to));
                let name = format!("{}/{}{sender}-{}{receiver}", spec.name, numbers[0], numbers[1]);
                let (group, stop) = (Some(spec.name.clone()), stop.min(start + spec.level));
                let plan = self.plan(name, Work::Stream, &spec.options);
                self.pair(from, to, FlowPlan { group, start, stop, ..plan }, &spec.options, None)?;
            }
        }
        Ok(())
    }

    /// One flow of many senders and receivers; each group of hosts has a hot spot of its own.
    fn mix(&mut self, spec: &MixSpec) -> Result<(), Wrong> {
        let listed = self.names.hosts(&spec.hosts)?;
        let mut hosts = if spec.hosts.is_empty() { self.names.all_hosts() } else { listed };
        let except = self.names.hosts(&spec.except)?;
        hosts.retain(|host| !except.contains(host));
        let hot_spots = self.names.hosts(&spec.hot_spots)?;
        let outside = hot_spots.iter().position(|hot| !hosts.contains(hot));
        if let Some(name) = outside.and_then(|nth| spec.hot_spots.get(nth)) {
            let message = format!("the hot spot `{name}` is not among the hosts of the mix `{}`", spec.name);
            return Err(self.names.choice.wrong(Role::Host, name, message));
        }
        if hosts.len() < 2 {
            return Err(Wrong::new(At::default(), format!("the mix `{}` has fewer than 2 hosts", spec.name)));
        }
        let (flow, senders, receivers) = (self.next_id()?, hosts.clone(), hosts.clone());
        let plan = self.plan(spec.name.clone(), Work::Stream, &spec.options);
        let told = FlowPlan { flow, senders, receivers, ..plan };
        let others: Vec<_> = hosts.iter().map(|host| self.names.port_guid(*host)).collect();
        let group = hosts.len().div_ceil(hot_spots.len().max(1));
        let mut random = Random::of_purpose(self.seed, &spec.name);
        for (nth, host) in hosts.iter().enumerate() {
            let hot = hot_spots.get(nth / group).filter(|hot| *hot != host);
            let hot_spot = hot.map(|hot| self.names.port_guid(*hot));
            let (others, seed) = (others.clone(), random.draw());
            let to = Destination::Mix { hot_spot, hot_permille: spec.hot_permille, others, seed };
            self.expect(*host, None, &told);
            let open = self.open(&told, to, &spec.options, None);
            self.run(*host, open, &told);
        }
        self.flows.push(told);
        Ok(())
    }

    /// What a latency and bandwidth test's flows are like.
    pub(super) fn beff_options(message_bytes: u32, packet_bytes: u16, move_by: MoveBy) -> FlowOptions {
        FlowOptions {
            transport: Transport::ReliableConnection,
            message_bytes,
            packet_bytes,
            rate_gbps: None,
            start: Time::ZERO,
            stop: None,
            paths: Paths::Asked,
            move_by,
        }
    }
}

/// Patterns are counted before they are written out.
fn too_many(pattern: Traffic, first: u32, second: u32) -> Result<(), Wrong> {
    const RANKS_MAX: u32 = 4096;
    let ranks = u64::from(first.max(second));
    let quadratic = pattern.to_string().contains("alltoall") || pattern.to_string().contains("shift");
    if first + second > RANKS_MAX || quadratic && ranks * ranks > FLOWS_MAX as u64 {
        let message = format!("`{pattern}` among {ranks} hosts comes to more than {FLOWS_MAX} flows");
        return Err(Wrong::new(At::default(), message));
    }
    Ok(())
}
