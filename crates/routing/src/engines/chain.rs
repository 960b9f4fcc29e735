//! Engines in the order in which they are tried.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use weft_topology::Fabric;

use super::{ENGINES, Engine, Input, Refusal, in_pool};
use crate::lids::Lids;
use crate::options::EngineOptions;
use crate::partitions::{Isolation, Partitions, Strictness};
use crate::routing::Routing;
use crate::verify::{Expectations, IsolationReport, verify_routing};

/// Says that min-hop is not to be tried after all others.
const NO_FALLBACK: &str = "no_fallback";

/// Engines in the order in which they are tried. The last resort is min-hop, as in OpenSM, unless the list has the
/// word `no_fallback`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Chain {
    engines: Vec<&'static Engine>,
    /// Whether min-hop stands at the end although the list does not name it.
    falls_back: bool,
}

/// Why a list of engines is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// No such engine.
    #[error("no engine is called `{0}`; there are {known}", known = names())]
    Unknown(String),
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
    ENGINES.map(|engine| engine.name).join(", ")
}

impl Chain {
    /// Reads a list like `ftree,updn` or `dfsssp,no_fallback`.
    fn from_list(list: &str) -> Result<Self, ChainError> {
        let (mut engines, mut fallback) = (Vec::new(), true);
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match Engine::by_name(name) {
                Some(engine) => engines.push(engine),
                None if name == NO_FALLBACK => fallback = false,
                None => return Err(ChainError::Unknown(name.to_owned())),
            }
        }
        if engines.is_empty() {
            return Err(ChainError::Empty);
        }
        let falls_back = fallback && engines.iter().all(|engine| engine.name != "minhop");
        if falls_back {
            engines.push(&ENGINES[0]);
        }
        Ok(Self { engines, falls_back })
    }

    /// The engines, in order.
    pub fn engines(&self) -> impl Iterator<Item = &'static Engine> {
        self.engines.iter().copied()
    }

    /// Fails when an option is given that no engine of the chain reads.
    pub fn check_options(&self, given: &[&'static str]) -> Result<(), ChainError> {
        let reads = |option: &str| self.engines().any(|engine| engine.options.contains(&option));
        match given.iter().find(|option| !reads(option)) {
            None => Ok(()),
            Some(option) => {
                let engines = self.engines().map(|engine| engine.name).collect::<Vec<_>>().join(", ");
                Err(ChainError::Unread { option, engines })
            }
        }
    }

    /// The routing of the first engine that serves the fabric and keeps its word; its report tells why those before
    /// it did not. When none does, why not.
    ///
    /// The verifier looks at every routing before it is returned: all packets of hosts must arrive, on a lane that
    /// there is, and a routing that its engine calls free of deadlock must be. Policies of partitions must be kept
    /// where they are strict. What else a routing does not keep is told in its report as unsatisfied.
    ///
    /// The verifier uses as many threads as the engines.
    pub fn route(
        &self,
        fabric: &Fabric,
        lids: &Lids,
        options: &EngineOptions,
    ) -> Result<Routing, Vec<Refusal>> {
        let input = Input { fabric, lids, options };
        match in_pool(options.threads, || self.first_proven(&input)) {
            Ok(result) => result,
            Err(reason) => Err(self.engines().map(|engine| engine.refusal(reason.clone())).collect()),
        }
    }

    fn first_proven(&self, input: &Input<'_>) -> Result<Routing, Vec<Refusal>> {
        let mut refusals: Vec<Refusal> = Vec::new();
        for engine in self.engines() {
            match engine.run_here(input).and_then(|routing| proven(engine, input, routing)) {
                Ok(mut routing) => {
                    let reasons = refusals.iter().map(ToString::to_string);
                    routing.report.fallbacks.splice(0..0, reasons);
                    return Ok(routing);
                }
                Err(refusal) => refusals.push(refusal),
            }
        }
        Err(refusals)
    }
}

/// A routing that keeps what its engine promises and what policies demand. What it does not keep beyond that stands
/// in its report.
fn proven(engine: &Engine, input: &Input<'_>, mut routing: Routing) -> Result<Routing, Refusal> {
    let has_policy = |partitions: &&Partitions| {
        partitions.list.iter().any(|partition| partition.isolation != Isolation::Def)
    };
    let partitions = input.options.partitions.as_ref().filter(has_policy);
    let expected = Expectations { lanes: input.options.lanes, partitions, ..Expectations::default() };
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
    match verdict.cycles.first() {
        None => Ok(routing),
        Some(cycle) if engine.deadlock_free => refuse(format!("its routing may deadlock: {cycle}")),
        Some(cycle) => {
            routing.report.unsatisfied.push(format!("this routing may deadlock: {cycle}"));
            Ok(routing)
        }
    }
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
        Self::from_list(list)
    }
}

impl TryFrom<String> for Chain {
    type Error = ChainError;

    fn try_from(list: String) -> Result<Self, ChainError> {
        Self::from_list(&list)
    }
}

impl From<Chain> for String {
    fn from(chain: Chain) -> Self {
        chain.to_string()
    }
}

impl Default for Chain {
    /// Min-hop alone.
    fn default() -> Self {
        Self { engines: vec![&ENGINES[0]], falls_back: false }
    }
}

impl fmt::Display for Chain {
    /// The list that was read, with `no_fallback` where min-hop is not to be tried.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.engines.len() - usize::from(self.falls_back);
        let mut names: Vec<&str> = self.engines[..named].iter().map(|engine| engine.name).collect();
        if !self.falls_back && !names.contains(&"minhop") {
            names.push(NO_FALLBACK);
        }
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Mutex;

    use weft_topology::generate::{GenerateOptions, ring};
    use weft_wire::{Lid, PortNum};

    use super::*;
    use crate::partitions::{Member, Partition};

    #[test]
    fn a_list_is_what_it_was_read_from() {
        for (list, engines) in [
            ("ftree,updn", "ftree updn minhop"),
            ("minhop", "minhop"),
            ("dfsssp, no_fallback", "dfsssp"),
            ("updn,minhop,ftree", "updn minhop ftree"),
        ] {
            let chain: Chain = list.parse().unwrap();
            assert_eq!(chain.engines().map(|engine| engine.name).collect::<Vec<_>>().join(" "), engines);
            assert_eq!(chain.to_string(), list.replace(' ', ""));
            assert_eq!(chain.to_string().parse::<Chain>().unwrap(), chain);
        }
        assert_eq!(Chain::default().to_string(), "minhop");
        assert_eq!("a".parse::<Chain>(), Err(ChainError::Unknown("a".to_owned())));
        assert_eq!(" ,no_fallback".parse::<Chain>(), Err(ChainError::Empty));
        let message = "a".parse::<Chain>().unwrap_err().to_string();
        assert!(message.starts_with("no engine is called `a`; there are minhop, updn"), "{message}");
    }

    /// Sends everything for the first LID by a port that leads nowhere.
    fn careless(input: &Input<'_>) -> Result<Routing, Refusal> {
        let mut routing = Routing::on_one_lane("careless", super::super::minhop(input.fabric, input.lids));
        for table in &mut routing.routes.tables {
            table.set(Lid(1), PortNum(99));
        }
        Ok(routing)
    }

    /// Min-hop that calls itself free of deadlock.
    fn boastful(input: &Input<'_>) -> Result<Routing, Refusal> {
        Ok(Routing::on_one_lane("boastful", super::super::minhop(input.fabric, input.lids)))
    }

    #[test]
    fn an_engine_that_breaks_its_word_is_passed_over() {
        static CARELESS: Engine = Engine { name: "careless", run: careless, ..ENGINES[0] };
        static BOASTFUL: Engine =
            Engine { name: "boastful", deadlock_free: true, run: boastful, ..ENGINES[0] };
        let fabric = ring(5, 1, &GenerateOptions::default()).unwrap();
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        let chain = Chain { engines: vec![&CARELESS, &BOASTFUL, &ENGINES[0]], falls_back: false };
        let routing = chain.route(&fabric, &lids, &EngineOptions::default()).unwrap();
        assert_eq!(routing.report.engine, "minhop");
        let [first, second] = &routing.report.fallbacks[..] else { panic!("{:?}", routing.report) };
        assert!(first.starts_with("careless: its tables do not bring every packet home: "), "{first}");
        assert!(second.starts_with("boastful: its routing may deadlock: "), "{second}");
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
        assert_eq!(refused.len(), 2, "{refused:?}");
        for (refusal, engine) in refused.iter().zip(["updn", "minhop"]) {
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

    fn careless_once_more(input: &Input<'_>) -> Result<Routing, Refusal> {
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
        let chain = Chain { engines: vec![&CARELESS, &CARELESS], falls_back: false };
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
