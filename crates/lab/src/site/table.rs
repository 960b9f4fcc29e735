//! The table of verbs and sites: on which laboratories a verb acts, and what to do instead where it does not.

use weft_bundle::failure::Failure;

/// A kind of site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All processes run on this machine.
    Machine,
    /// Each host has a share, which ssh reaches; only the hub that verbs ask runs here.
    Hosts,
    /// All processes are behind a hub's door, and something else starts them, as a container engine does.
    Door,
}

/// What of a laboratory a verb acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acts {
    /// Its processes, wherever they run.
    OnProcesses,
    /// Its folder on this machine alone.
    OnFolder,
}

/// Why a verb does not act on a kind of site. `{}` stands for the name of the laboratory, or of the process.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    what: &'static str,
    hint: &'static str,
    /// Whether the command line is wrong, or it is a failure like others.
    is_input: bool,
}

impl Refusal {
    /// The same as an error.
    pub fn failure(&self, name: &str) -> anyhow::Error {
        let what = self.what.replace("{}", name);
        let failure = if self.is_input { Failure::bad_input(what) } else { Failure::new(what) };
        failure.hint(self.hint.replace("{}", name))
    }
}

impl Row {
    fn verbs(&self) -> impl Iterator<Item = &'static str> {
        self.verbs.split(", ")
    }
}

/// A verb's standing on one kind of site.
type Standing = Result<Acts, Refusal>;

/// Verbs that have the same standing.
struct Row {
    /// As they are typed, with commas. A word in capitals stands for what a verb names.
    verbs: &'static str,
    hosts: Standing,
    door: Standing,
}

const ACTS: Standing = Ok(Acts::OnProcesses);
const ON_FOLDER: Standing = Ok(Acts::OnFolder);

const fn no(what: &'static str, hint: &'static str) -> Standing {
    Err(Refusal { what, hint, is_input: true })
}

const fn not_on_hosts(hint: &'static str) -> Standing {
    no("this verb does not act on `{}`, whose processes run on other hosts", hint)
}

const fn not_by_door(hint: &'static str) -> Standing {
    no("this verb does not act on a remote laboratory", hint)
}

const fn row(verbs: &'static str, hosts: Standing, door: Standing) -> Row {
    Row { verbs, hosts, door }
}

const NO_IBSIM: &str = "leave out --ibsim, whose server runs where the laboratory does";
const NO_NODES: &str =
    "nodes come and go where the laboratory's processes are started; cables can be moved from here";
const NO_PARTITIONS: &str = "partitions are changed where the laboratory's files and its subnet managers are";
const WHERE_IT_RUNS: &str = "run it where the process runs";
const ON_ITS_HOST: &str = "run it where the process runs: `ssh HOST weft --lab {} …`";
const NO_LAB: &str = "leave out --at: it works without a laboratory";
const TAKE_DOWN: &str = "take it down where it was started: `docker compose -f FILE down`, `docker stack rm NAME`, or `kubectl delete namespace NAME`";
const BAD_IDENTITY: Standing = no(
    "remote agents get their identities where they are started",
    "`weft identity revoke NAME` has every process refuse an agent",
);
const RENEWED_THERE: Standing = no(
    "remote processes get their identities where they are started",
    "renew without --at, replace the process's file, then `weft --at … ask NAME renew-identity`",
);
const FROZEN_THERE: Standing = Err(Refusal {
    what: "`{}` is remote, and is frozen where it runs",
    hint: "of a container: `docker pause CONTAINER`, `docker unpause CONTAINER`",
    is_input: false,
});
const OTHER_PROGRAM: Standing = no(
    "OpenSM cannot be asked to end, as it is another program",
    "kill it where it runs, as with `docker kill CONTAINER`",
);

/// Verbs on this machine's laboratories act on all of them. What stands in no row needs no laboratory.
const TABLE: &[Row] = &[
    row(
        "ps, status, top, links, trace, graph, ui, tape, check, events, ask, relay, capture, shell, sysfs, vm, flow, traffic, fault, chaos",
        ACTS,
        ACTS,
    ),
    row("sm disable, sm standby, sm discover, identity", ACTS, ACTS),
    row("topo diff, topo connect, topo disconnect, topo move", ACTS, ACTS),
    row("identity renew", ACTS, RENEWED_THERE),
    row("fault freeze MANAGER, fault thaw MANAGER", ACTS, FROZEN_THERE),
    row("fault kill OPENSM, fault restart OPENSM", ACTS, OTHER_PROGRAM),
    row("fault bad-identity", BAD_IDENTITY, BAD_IDENTITY),
    row("topo add-host, topo add-switch, topo remove", not_on_hosts(NO_NODES), not_by_door(NO_NODES)),
    row("partition", not_on_hosts(NO_PARTITIONS), not_by_door(NO_PARTITIONS)),
    row("shell --ibsim", not_on_hosts(NO_IBSIM), not_by_door(NO_IBSIM)),
    row("record, bench smp, bench sa, bench move", not_on_hosts(ON_ITS_HOST), not_by_door(WHERE_IT_RUNS)),
    row("replay, metrics", ON_FOLDER, not_by_door(WHERE_IT_RUNS)),
    row("hub", ON_FOLDER, not_by_door(NO_LAB)),
    row("up, down", ON_FOLDER, not_by_door(TAKE_DOWN)),
];

/// The standing of verbs without a laboratory.
const WITHOUT: Row = row("chaos --virtual", not_on_hosts(NO_LAB), not_by_door(NO_LAB));

/// Whether a line names this verb: all of its words at the beginning, and its options anywhere.
fn names(line: &str, verb: &str) -> bool {
    let words = line.split(' ').take_while(|word| *word != "--");
    let is_option = |word: &&str| word.starts_with("--");
    let mut named = words.clone().filter(|word| !is_option(word));
    verb.split(' ').all(|wanted| match is_option(&wanted) {
        true => words.clone().any(|word| word == wanted),
        false => named.next() == Some(wanted),
    })
}

/// What a verb acts on where processes run like that. `line`: the verb as it is typed, with or without what it names.
///
/// # Errors
/// When it does not act on such a laboratory.
pub fn of(line: &str, kind: Kind) -> Result<Acts, &'static Refusal> {
    let rows = TABLE.iter().chain([&WITHOUT]);
    let named = rows.flat_map(|row| row.verbs().map(move |verb| (verb, row)));
    let longest = named.filter(|(verb, _)| names(line, verb)).max_by_key(|(verb, _)| verb.split(' ').count());
    let row = longest.map_or(&WITHOUT, |(_, row)| row);
    let standing = match kind {
        Kind::Machine => return Ok(Acts::OnProcesses),
        Kind::Hosts => &row.hosts,
        Kind::Door => &row.door,
    };
    standing.as_ref().copied()
}

/// The verbs that need a laboratory.
pub fn verbs() -> impl Iterator<Item = &'static str> {
    TABLE.iter().flat_map(Row::verbs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_row_that_names_a_verb_counts() {
        let hint = |line, kind| of(line, kind).map_err(|refusal| refusal.hint);
        for (line, hosts, door) in [
            ("topo move S4:3 S3:2", Ok(Acts::OnProcesses), Ok(Acts::OnProcesses)),
            ("topo remove H4", Err(NO_NODES), Err(NO_NODES)),
            ("topo gen ring", Err(NO_LAB), Err(NO_LAB)),
            ("shell --at H3 -- ibstat --ibsim", Ok(Acts::OnProcesses), Ok(Acts::OnProcesses)),
            ("shell --ibsim -- ibstat", Err(NO_IBSIM), Err(NO_IBSIM)),
            ("chaos --virtual x.topo", Err(NO_LAB), Err(NO_LAB)),
            ("metrics --list", Ok(Acts::OnFolder), Err(WHERE_IT_RUNS)),
            ("sm", Err(NO_LAB), Err(NO_LAB)),
        ] {
            assert_eq!((hint(line, Kind::Hosts), hint(line, Kind::Door)), (hosts, door), "{line}");
            assert_eq!(of(line, Kind::Machine), Ok(Acts::OnProcesses), "{line}");
        }
        assert_eq!(of("fault freeze H2", Kind::Door), Ok(Acts::OnProcesses));
        assert!(of("fault freeze MANAGER", Kind::Door).is_err_and(|refusal| {
            refusal.failure("pm").to_string() == "`pm` is remote, and is frozen where it runs"
        }));
    }

    /// docs/hub.md has the table as this prints it.
    #[test]
    fn the_documents_have_this_table() {
        let shown = |standing: &Standing| match standing {
            Ok(_) => "yes".to_owned(),
            Err(refusal) if refusal.what.starts_with("this verb") => format!("no: {}", refusal.hint),
            Err(Refusal { what, hint, .. }) => format!("no: {}; {hint}", what.replace("{}", "NAME")),
        };
        let mut table =
            "| verbs | hosts by ssh (`up --hosts`) | a hub's door (`--at`) |\n|---|---|---|\n".to_owned();
        for Row { verbs, hosts, door } in TABLE {
            let (hosts, door) = (shown(hosts).replace("{}", "NAME"), shown(door));
            table += &format!("| `{}` | {hosts} | {door} |\n", verbs.replace(", ", "`, `"));
        }
        let document = include_str!("../../../../docs/hub.md");
        assert!(document.contains(&table), "docs/hub.md lacks this table:\n{table}");
    }
}
