//! Engines in the order in which they are tried.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use weft_topology::Fabric;

use super::contest;
use super::outside::{Named, Outside, PROGRAM, Runner, Step};
use super::pftree::KeptPaths;
use super::{ENGINES, Engine, Input, Refusal, ftree, in_pool, lash, minhop, sssp, updn};
use crate::lids::Lids;
use crate::options::EngineOptions;
use crate::partitions::Strictness;
use crate::routing::Routing;
use crate::verify::{Cycle, Expectations, IsolationReport, verify_routing};

/// Says that nothing is tried after the engines of the list, and no routing is taken that may deadlock in place of a default one.
const NO_FALLBACK: &str = "no_fallback";

/// Stands for the defaults.
const AUTO: &str = "auto";

/// The engines that are tried by default and after those of a list, each only if its routing is proved free of
/// deadlock. Min-hop comes first, as it balances best; the others always are free of deadlock where they serve.
const DEFAULTS: [&Engine; 4] = [&minhop::ENGINE, &updn::ENGINE, &sssp::DFSSSP, &lash::ENGINE];

/// Engines in the order in which they are tried: those that the operator names, then min-hop if it is proved free of
/// deadlock, up/down, DFSSSP and LASH, and at last min-hop although it may deadlock. On a damaged tree `ftree` takes the place of the
/// default engine that would serve, if it is proved and not behind. The word `auto` in a list names the defaults, and `no_fallback`
/// leaves out all that the list does not name, the last resort included. `exec:COMMAND` names a program ([`Outside`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    named: Vec<Named>,
    auto: bool,
    falls_back: bool,
    runner: Runner,
}

/// Why a list of engines is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// No such engine.
    #[error("no engine is called `{0}`; there are {known}", known = names())]
    Unknown(String),
    /// `exec:` without a program.
    #[error("`{PROGRAM}` names no program; write exec:./mine.py")]
    NoProgram,
    /// An empty list.
    #[error("no engine is named; there are {known}", known = names())]
    Empty,
    /// An option that no engine of the list reads.
    #[error("the option {option} means nothing to {engines}")]
    Unread {
        /// The field of [`EngineOptions`].
        option: &'static str,
        /// The engines.
        engines: String,
    },
}

fn names() -> String {
    ENGINES.map(|engine| engine.name).join(", ") + ", exec:PROGRAM"
}

impl Chain {
    /// The engines of this crate that the operator chose: those of the list, or the defaults if it names none.
    pub fn engines(&self) -> impl Iterator<Item = &'static Engine> {
        let defaults = if self.named.is_empty() { &DEFAULTS[..] } else { &[] };
        let own = |named: &Named| match named {
            Named::Engine(engine) => Some(*engine),
            Named::Program(_) => None,
        };
        self.named.iter().filter_map(own).chain(defaults.iter().copied())
    }

    /// Names who runs the programs of the list. Without, they refuse.
    pub fn set_outside(&mut self, outside: Arc<dyn Outside>) {
        self.runner = Runner(Some(outside));
    }

    /// All that is tried, in order, and whether an engine's routing is taken only if it is proved free of deadlock.
    fn steps(&self) -> impl Iterator<Item = (Step<'_>, bool)> {
        let defaults = if self.falls_back || self.auto { &DEFAULTS[..] } else { &[] };
        let is_named = |other: &Engine| self.named.iter().any(|named| *named == *other);
        let others = defaults.iter().copied().filter(move |engine| !is_named(engine));
        let named = self.named.iter().map(|named| match named {
            Named::Engine(engine) => (Step::Engine(engine), false),
            Named::Program(name) => (Step::Program(name, self.runner.0.as_deref()), false),
        });
        named.chain(others.map(|engine| (Step::Engine(engine), true)))
    }

    /// Fails when an option is given that no engine of the chain reads.
    pub fn check_options(&self, given: &[&'static str]) -> Result<(), ChainError> {
        let reads = |option: &str| {
            self.engines().any(|engine| engine.options.contains(&option))
                || self.named.iter().any(|named| named.options().contains(&option))
        };
        match given.iter().find(|option| !reads(option)) {
            None => Ok(()),
            Some(option) => {
                let engines: Vec<&str> = match self.named.is_empty() {
                    true => self.engines().map(|engine| engine.name).collect(),
                    false => self.named.iter().map(Named::name).collect(),
                };
                Err(ChainError::Unread { option, engines: engines.join(", ") })
            }
        }
    }

    /// The routing of the first engine that serves the fabric and keeps its word. Its report says why the engines
    /// before it did not, and what it does not keep. If no engine serves, an error for each says why.
    ///
    /// The verifier looks at every routing before it is returned: all packets of hosts must arrive, on a lane that
    /// exists, and a routing that its engine calls free of deadlock must be. Policies of partitions must be kept
    /// where they are strict.
    ///
    /// The verifier uses as many threads as the engines.
    pub fn route(
        &self,
        fabric: &Fabric,
        lids: &Lids,
        options: &EngineOptions,
    ) -> Result<Routing, Vec<Refusal>> {
        self.first(&Input { fabric, lids, options }, None)
    }

    /// The same for a fabric that is routed again and again: engines of the `pftree` family calculate no path twice.
    ///
    /// # Errors
    /// As [`Self::route`].
    pub fn route_keeping(&self, input: &Input<'_>, kept: &mut KeptPaths) -> Result<Routing, Vec<Refusal>> {
        self.first(input, Some(kept))
    }

    fn first(&self, input: &Input<'_>, kept: Option<&mut KeptPaths>) -> Result<Routing, Vec<Refusal>> {
        let steps: Vec<(Step<'_>, bool)> = self.steps().collect();
        match in_pool(input.options.threads, || first_proven(&steps, input, self.falls_back, kept)) {
            Ok(result) => result,
            Err(reason) => Err(steps.iter().map(|(step, _)| step.refusal(reason.clone())).collect()),
        }
    }
}

/// The routing of the first engine that serves the fabric, and if none does, the last resort where there is to be one: a routing that
/// was passed over because it may deadlock.
fn first_proven(
    steps: &[(Step<'_>, bool)],
    input: &Input<'_>,
    has_last_resort: bool,
    mut kept: Option<&mut KeptPaths>,
) -> Result<Routing, Vec<Refusal>> {
    let mut refusals: Vec<Refusal> = Vec::new();
    let mut last_resort: Option<(usize, Routing, Cycle)> = None;
    for (engine, must_be_free) in steps {
        let routed = engine.run_keeping(input, kept.as_deref_mut());
        match routed.and_then(|routing| proven(engine, input, routing)) {
            Ok((routing, Some(cycle))) if *must_be_free => {
                let place = refusals.len();
                refusals.push(engine.refusal(brief(&cycle)));
                last_resort = last_resort.or(Some((place, routing, cycle))).filter(|_| has_last_resort);
            }
            Ok((routing, None)) if *must_be_free => {
                let (routing, reason) = beside_ftree(steps, input, routing);
                refusals.extend(reason.map(|reason| engine.refusal(reason)));
                return Ok(told(routing, &refusals));
            }
            Ok((mut routing, cycle)) => {
                routing.report.unsatisfied.extend(cycle.as_ref().map(may_deadlock));
                return Ok(told(routing, &refusals));
            }
            Err(refusal) => refusals.push(refusal),
        }
    }
    let Some((place, mut routing, cycle)) = last_resort else { return Err(refusals) };
    refusals.remove(place);
    routing.report.unsatisfied.push(may_deadlock(&cycle));
    Ok(told(routing, &refusals))
}

/// The routing of `ftree` and why it takes the place of a default engine's, on a damaged tree where it is not behind; else the latter.
fn beside_ftree(
    steps: &[(Step<'_>, bool)],
    input: &Input<'_>,
    routing: Routing,
) -> (Routing, Option<String>) {
    let ftree = Step::Engine(&ftree::ENGINE);
    // One that the operator named has had its turn.
    if steps.iter().any(|(step, _)| step.is(&ftree::ENGINE)) || !contest::is_damaged_tree(input) {
        return (routing, None);
    }
    match ftree.run_here(input).and_then(|tree| proven(&ftree, input, tree)) {
        Ok((tree, None)) => contest::better(input, tree, routing),
        _ => (routing, None),
    }
}

/// Says in a routing's report why the engines before its own did not serve.
fn told(mut routing: Routing, refusals: &[Refusal]) -> Routing {
    routing.report.fallbacks.splice(0..0, refusals.iter().map(ToString::to_string));
    routing
}

fn may_deadlock(cycle: &Cycle) -> String {
    format!("this routing may deadlock: {cycle}")
}

/// The same in one line, for a routing that is passed over.
fn brief(cycle: &Cycle) -> String {
    let example = cycle.channels.first().map(ToString::to_string).unwrap_or_default();
    let count = cycle.len();
    format!(
        "this routing may deadlock: {count} channels may wait for each other in a circle, {example} first"
    )
}

/// A routing that keeps what its engine promises and what policies demand, and a circle in which its packets may wait
/// for each other if there is one and the engine does not promise that there is none.
fn proven(
    engine: &Step<'_>,
    input: &Input<'_>,
    mut routing: Routing,
) -> Result<(Routing, Option<Cycle>), Refusal> {
    let partitions = input.options.partitions.as_ref().filter(|partitions| partitions.isolates());
    let expected = Expectations {
        lanes: input.options.lanes,
        partitions,
        management_nodes: &input.options.management_nodes,
        ..Expectations::default()
    };
    let verdict = verify_routing(input.fabric, input.lids, &routing, &expected);
    let refuse = |reason: String| Err(engine.refusal(reason));
    if !verdict.reach.serves_hosts() {
        // What the engine itself says of it names the nodes in its own terms.
        let said = routing.report.unsatisfied.into_iter().next();
        let example = verdict.reach.counter_examples.first().map(ToString::to_string).unwrap_or_default();
        return refuse(
            said.unwrap_or_else(|| format!("its tables do not bring every packet home: {example}")),
        );
    }
    if let Some(pair) = verdict.drops.example {
        return refuse(format!("packets {pair} would take a lane that there is not"));
    }
    if let Some((partitions, breaches)) = partitions.zip(verdict.isolation.as_ref().and_then(breaches)) {
        match partitions.strictness {
            Strictness::Strict => return refuse(breaches),
            Strictness::BestEffort => routing.report.unsatisfied.push(breaches),
        }
    }
    match verdict.cycles.into_iter().next() {
        Some(cycle) if engine.is_deadlock_free() => refuse(brief(&cycle)),
        cycle => Ok((routing, cycle)),
    }
}

/// The routing of an engine, if it keeps what the engine promises and what policies demand.
pub(super) fn proven_by(engine: &Engine, input: &Input<'_>, routing: Routing) -> Result<Routing, Refusal> {
    proven(&Step::Engine(engine), input, routing).map(|(routing, _)| routing)
}

/// Says how policies of partitions are broken, if they are.
fn breaches(isolation: &IsolationReport) -> Option<String> {
    let example = isolation.examples.first()?;
    let links = isolation.breaches;
    Some(format!("links shared against policies of partitions: {links}; {example}"))
}

impl FromStr for Chain {
    type Err = ChainError;

    fn from_str(list: &str) -> Result<Self, ChainError> {
        let (mut named, mut falls_back, mut auto) = (Vec::new(), true, false);
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match Engine::by_name(name) {
                Some(engine) => named.push(Named::Engine(engine)),
                None if name == PROGRAM => return Err(ChainError::NoProgram),
                None if name.starts_with(PROGRAM) => named.push(Named::Program(name.into())),
                None if name == NO_FALLBACK => falls_back = false,
                None if name == AUTO => auto = true,
                None => return Err(ChainError::Unknown(name.to_owned())),
            }
        }
        if named.is_empty() && !auto {
            return Err(ChainError::Empty);
        }
        Ok(Self { named, auto, falls_back, runner: Runner::default() })
    }
}

weft_wire::serde_as_text!(Chain);

impl Default for Chain {
    /// The defaults alone: `auto`.
    fn default() -> Self {
        Self { named: Vec::new(), auto: true, falls_back: true, runner: Runner::default() }
    }
}

impl fmt::Display for Chain {
    /// The list that was read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<&str> = self.named.iter().map(Named::name).collect();
        if self.auto {
            names.push(AUTO);
        }
        if !self.falls_back {
            names.push(NO_FALLBACK);
        }
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Mutex;

    use weft_topology::generate::{GenerateOptions, ring, xgft};
    use weft_wire::{Lid, PortNum};

    use super::*;
    use crate::partitions::{Isolation, Member, Partition, Partitions};

    #[test]
    fn a_list_is_what_it_was_read_from() {
        for (list, tried) in [
            ("ftree,updn", "ftree updn minhop? dfsssp? lash?"),
            ("minhop", "minhop updn? dfsssp? lash?"),
            ("dfsssp, no_fallback", "dfsssp"),
            ("updn,minhop,ftree", "updn minhop ftree dfsssp? lash?"),
            ("auto", "minhop? updn? dfsssp? lash?"),
            ("auto,no_fallback", "minhop? updn? dfsssp? lash?"),
            ("ftree,auto,no_fallback", "ftree minhop? updn? dfsssp? lash?"),
            ("exec:./mine.py -v,updn,no_fallback", "exec:./mine.py -v updn"),
        ] {
            let chain: Chain = list.parse().unwrap();
            let step = |(step, must_be_free): (Step<'_>, bool)| {
                let name = match step {
                    Step::Engine(engine) => engine.name.to_owned(),
                    Step::Program(name, _) => name.to_string(),
                };
                name + if must_be_free { "?" } else { "" }
            };
            assert_eq!(chain.steps().map(step).collect::<Vec<_>>().join(" "), tried);
            assert_eq!(chain.to_string(), list.replace(", ", ","));
            assert_eq!(chain.to_string().parse::<Chain>().unwrap(), chain);
        }
        assert_eq!(Chain::default().to_string(), "auto");
        assert_eq!("a".parse::<Chain>(), Err(ChainError::Unknown("a".to_owned())));
        for empty in [" ,no_fallback", ""] {
            assert_eq!(empty.parse::<Chain>(), Err(ChainError::Empty));
        }
        let message = "a".parse::<Chain>().unwrap_err().to_string();
        assert!(message.starts_with("no engine is called `a`; there are minhop, updn"), "{message}");
    }

    fn routed(chain: &str, fabric: &Fabric) -> Routing {
        let lids = Lids::in_guid_order(fabric, 0).unwrap();
        chain.parse::<Chain>().unwrap().route(fabric, &lids, &EngineOptions::default()).unwrap()
    }

    #[test]
    fn min_hop_is_the_default_only_where_it_cannot_deadlock() {
        let tree = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
        let ring = ring(5, 1, &GenerateOptions::default()).unwrap();
        let report = routed("auto", &tree).report;
        assert_eq!((report.engine.as_str(), report.fallbacks.len()), ("minhop", 0));
        // The operator's own choice is taken as it is.
        let report = routed("minhop", &ring).report;
        assert_eq!((report.engine.as_str(), report.fallbacks.len()), ("minhop", 0));
        assert!(report.unsatisfied[0].starts_with("this routing may deadlock: "), "{report:?}");
        for chain in ["auto", "ftree"] {
            let report = routed(chain, &ring).report;
            assert_eq!((report.engine.as_str(), &report.unsatisfied[..]), ("updn", &[][..]), "{chain}");
            let last = report.fallbacks.last().unwrap();
            assert!(last.starts_with("minhop: this routing may deadlock: "), "{last}");
            assert_eq!(report.fallbacks.len(), if chain == "auto" { 1 } else { 2 });
        }
    }

    #[test]
    fn a_routing_that_may_deadlock_is_the_last_resort() {
        static CARELESS: Engine = Engine { name: "careless", run: careless, ..ENGINES[0] };
        let fabric = ring(5, 1, &GenerateOptions::default()).unwrap();
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        let input = Input { fabric: &fabric, lids: &lids, options: &EngineOptions::default() };
        let routing = first_proven(
            &[
                (Step::Engine(&CARELESS), false),
                (Step::Engine(&ENGINES[0]), true),
                (Step::Engine(&CARELESS), true),
            ],
            &input,
            true,
            None,
        );
        let report = routing.unwrap().report;
        assert_eq!((report.engine.as_str(), report.fallbacks.len()), ("minhop", 2));
        assert!(report.fallbacks.iter().all(|sentence| sentence.starts_with("careless: ")), "{report:?}");
        assert!(report.unsatisfied[0].starts_with("this routing may deadlock: "), "{report:?}");
    }

    /// Sends everything for the first LID by a port that leads nowhere.
    fn careless(input: &Input<'_>) -> Result<Routing, String> {
        let mut routing = Routing::on_one_lane("careless", super::super::minhop(input.fabric, input.lids));
        for table in &mut routing.routes.tables {
            table.set(Lid(1), PortNum(99));
        }
        Ok(routing)
    }

    /// Min-hop that calls itself free of deadlock.
    fn boastful(input: &Input<'_>) -> Result<Routing, String> {
        Ok(Routing::on_one_lane("boastful", super::super::minhop(input.fabric, input.lids)))
    }

    #[test]
    fn an_engine_that_breaks_its_word_is_passed_over() {
        static CARELESS: Engine = Engine { name: "careless", run: careless, ..ENGINES[0] };
        static BOASTFUL: Engine =
            Engine { name: "boastful", deadlock_free: true, run: boastful, ..ENGINES[0] };
        let fabric = ring(5, 1, &GenerateOptions::default()).unwrap();
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        let named = [&CARELESS, &BOASTFUL, &ENGINES[0]].map(Named::Engine).to_vec();
        let chain = Chain { named, auto: false, falls_back: false, runner: Runner::default() };
        let routing = chain.route(&fabric, &lids, &EngineOptions::default()).unwrap();
        assert_eq!(routing.report.engine, "minhop");
        let [first, second] = &routing.report.fallbacks[..] else { panic!("{:?}", routing.report) };
        assert!(first.starts_with("careless: its tables do not bring every packet home: "), "{first}");
        assert!(second.starts_with("boastful: this routing may deadlock: "), "{second}");
        let [unsatisfied] = &routing.report.unsatisfied[..] else { panic!("{:?}", routing.report) };
        assert!(unsatisfied.starts_with("this routing may deadlock: "), "{unsatisfied}");
    }

    /// Two partitions with every second host each, the first with links of its own.
    fn interleaved(fabric: &Fabric, strictness: Strictness) -> EngineOptions {
        let hosts = fabric.iter().filter(|(_, node)| !node.is_switch());
        let guids: Vec<_> = hosts.flat_map(|(_, node)| node.end_ports()).map(|(_, port)| port.guid).collect();
        let partition = |pkey: u16, isolation| Partition {
            name: format!("p{pkey}"),
            pkey,
            members: guids
                .iter()
                .skip(usize::from(pkey) - 1)
                .step_by(2)
                .map(|guid| Member { guid: *guid, full: true })
                .collect(),
            isolation,
        };
        let list = vec![partition(1, Isolation::Phy), partition(2, Isolation::Def)];
        EngineOptions { partitions: Some(Partitions { list, strictness }), ..EngineOptions::default() }
    }

    #[test]
    fn no_engine_breaks_a_strict_policy() {
        let fabric = ring(6, 1, &GenerateOptions::default()).unwrap();
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        let chain: Chain = "updn".parse().unwrap();
        let refusals = chain.route(&fabric, &lids, &interleaved(&fabric, Strictness::Strict)).unwrap_err();
        let refused: Vec<String> = refusals.iter().map(ToString::to_string).collect();
        assert_eq!(refused.len(), 4, "{refused:?}");
        for (refusal, engine) in refused.iter().zip(["updn", "minhop", "dfsssp", "lash"]) {
            let start = format!("{engine}: links shared against policies of partitions: ");
            assert!(refusal.starts_with(&start) && refusal.contains("; p1 shares "), "{refusal}");
        }
        let routing = chain.route(&fabric, &lids, &interleaved(&fabric, Strictness::BestEffort)).unwrap();
        let [unsatisfied] = &routing.report.unsatisfied[..] else { panic!("{:?}", routing.report) };
        assert!(refused[0].ends_with(unsatisfied.as_str()), "{unsatisfied}");
    }

    /// By run of [`careless_once_more`]: how many threads there were, and how many runs that one has seen.
    static RUNS: Mutex<Vec<(usize, u32)>> = Mutex::new(Vec::new());

    thread_local! {
        static SEEN_HERE: Cell<u32> = const { Cell::new(0) };
    }

    fn careless_once_more(input: &Input<'_>) -> Result<Routing, String> {
        SEEN_HERE.set(SEEN_HERE.get() + 1);
        RUNS.lock().unwrap().push((rayon::current_num_threads(), SEEN_HERE.get()));
        careless(input)
    }

    #[test]
    fn engines_and_verifier_share_the_threads_that_were_asked_for() {
        static CARELESS: Engine = Engine { name: "careless", run: careless_once_more, ..ENGINES[0] };
        let fabric = ring(5, 1, &GenerateOptions::default()).unwrap();
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        // The verifier looks at the first routing before the second is made.
        let named = [&CARELESS; 2].map(Named::Engine).to_vec();
        let chain = Chain { named, auto: false, falls_back: false, runner: Runner::default() };
        let options = EngineOptions { threads: 1, ..EngineOptions::default() };
        assert_eq!(chain.route(&fabric, &lids, &options).unwrap_err().len(), 2);
        assert_eq!(*RUNS.lock().unwrap(), [(1, 1), (1, 2)], "all in one pool of one thread");
    }

    #[test]
    fn an_option_that_nobody_reads() {
        let chain: Chain = "updn,minhop".parse().unwrap();
        assert_eq!(chain.check_options(&["roots"]), Ok(()));
        let error = chain.check_options(&["roots", "order"]).unwrap_err();
        assert_eq!(error.to_string(), "the option order means nothing to updn, minhop");
    }
}
