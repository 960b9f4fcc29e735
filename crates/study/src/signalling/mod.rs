//! The study of signalling a reconfiguration (paper 004, section VI-B, figures 9 to 11): meshes of 6 to 400 switches with a host each, one
//! cable in the middle cut, without packets.
//!
//! ```text
//!   mesh ──▶ LASH before and after ──▶ changed pairs ──▶ datagrams in closed form ──▶ rows
//!                                                    └─▶ equations 4 to 9 with the same n and m
//! ```
//!
//! Changes are those of weft's LASH. The paper's, of OpenSM's in IbMgtSim, are printed for 400 switches alone: 79 798, half of all pairs.

mod latency;

use serde::Serialize;
use weft_routing::Lids;
use weft_sm::signalling::{Case, messages, paper_bytes};
use weft_sm::{Options, Signalling};
use weft_topology::generate::{GenerateOptions, mesh};
use weft_topology::{Cable, Fabric};

pub use latency::{FIGURE_9, FIGURE_11_MS, Load, Times, mesh_load};

/// The sides of the paper's meshes.
pub const MESHES: [[u32; 2]; 9] =
    [[3, 2], [4, 4], [6, 6], [8, 8], [10, 10], [12, 12], [14, 14], [16, 16], [20, 20]];

/// Data lanes that LASH may take.
const LANES: u8 = 15;

/// Why a mesh could not be studied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StudyError(String);

impl StudyError {
    fn of(error: &impl ToString) -> Self {
        Self(error.to_string())
    }
}

/// One method on one mesh.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ByMethod {
    /// The method.
    pub method: Signalling,
    /// Datagrams of weft, in closed form: those that agents receive.
    pub mads: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes by the paper's equation with the same number of switches and changes.
    pub paper_bytes: u64,
    /// Milliseconds of a host by the paper's equation with the same, its times given.
    pub latency_ms: f64,
}

/// One mesh.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its switches, each with a host.
    pub switches: u64,
    /// Lanes that LASH takes before and after the cut.
    pub lanes: [u8; 2],
    /// Ordered pairs of hosts whose service level is another.
    pub changes: u64,
    /// All three methods.
    pub methods: Vec<ByMethod>,
}

/// The methods that are compared.
const METHODS: [Signalling; 3] = [Signalling::Wildcard, Signalling::Repath, Signalling::Hybrid];

impl Row {
    /// For a number of switches and of changes.
    pub fn of(switches: u64, lanes: [u8; 2], changes: u64) -> Self {
        // The wildcard's second notice comes of the second trap, as in the paper.
        let case = Case { hosts: switches, askers: switches, records: 2 * switches, changes, routings: 2 };
        let each = changes as f64 / switches as f64;
        let load = Load { queue_pairs: switches as f64 - 1.0, notices: each, moved: each };
        let by = |method| {
            let told = messages(method, &case);
            ByMethod {
                method,
                mads: told.total(),
                bytes: told.bytes(),
                paper_bytes: paper_bytes(method, switches, changes),
                latency_ms: Times::given().latency_ms(method, &load),
            }
        };
        Self { switches, lanes, changes, methods: METHODS.map(by).to_vec() }
    }
}

/// A mesh with its middle cable cut.
///
/// # Errors
/// Where the mesh cannot be made, or LASH does not route it.
pub fn study(sides: [u32; 2]) -> Result<Row, StudyError> {
    let fabric = made(sides)?;
    let cables = between_switches(&fabric);
    let cut = cables.get(cables.len() / 2).ok_or_else(|| StudyError("a mesh has cables".into()))?;
    let Changed { lanes, changes } = changed(&fabric, cut)?;
    Ok(Row::of(u64::from(sides[0] * sides[1]), lanes, changes))
}

/// Changes for each cable of a mesh, in order: how much the choice of the cable matters.
///
/// # Errors
/// As [`study`].
pub fn spread(sides: [u32; 2]) -> Result<Vec<u64>, StudyError> {
    let fabric = made(sides)?;
    between_switches(&fabric).iter().map(|cut| Ok(changed(&fabric, cut)?.changes)).collect()
}

fn made(sides: [u32; 2]) -> Result<Fabric, StudyError> {
    mesh(&sides, 1, &GenerateOptions::default()).map_err(|error| StudyError::of(&error))
}

fn between_switches(fabric: &Fabric) -> Vec<Cable> {
    let is_switch = |cable: &Cable| [cable.a, cable.b].iter().all(|end| fabric.node(end.node).is_switch());
    fabric.cables().filter(is_switch).collect()
}

struct Changed {
    lanes: [u8; 2],
    changes: u64,
}

fn changed(fabric: &Fabric, cut: &Cable) -> Result<Changed, StudyError> {
    let mut options = Options::default();
    options.routing.chain = "lash,no_fallback".parse().map_err(|error| StudyError::of(&error))?;
    options.routing.engine.lanes = LANES;
    let lids = Lids::in_guid_order(fabric, 0).map_err(|error| StudyError::of(&error))?;
    let kept = fabric.cables().filter(|cable| cable != cut);
    let left = fabric.part(|_| true, kept).map_err(|error| StudyError::of(&error))?;
    let route = |fabric: &Fabric| options.route(fabric, &lids, LANES).map_err(|error| StudyError::of(&error));
    let (before, after) = (route(fabric)?, route(&left)?);
    let hosts: Vec<_> =
        lids.iter().filter(|of| !fabric.node(of.port.node).is_switch()).map(|of| of.base).collect();
    let pairs = hosts.iter().flat_map(|from| hosts.iter().map(move |to| (*from, *to)));
    let other =
        pairs.filter(|(from, to)| from != to && before.levels.of(*from, *to) != after.levels.of(*from, *to));
    let lanes = [&before, &after].map(|routing| routing.report.lanes);
    Ok(Changed { lanes, changes: other.count() as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meshes_are_the_papers() {
        let sizes = MESHES.map(|[a, b]| a * b);
        assert_eq!(sizes, [6, 16, 36, 64, 100, 144, 196, 256, 400]);
    }

    #[test]
    fn a_mesh_has_the_datagrams_of_its_own_changes() {
        let row = study([3, 2]).unwrap();
        assert_eq!(row.switches, 6);
        assert!((1..=30).contains(&row.changes), "the ring that is left needs another lane: {row:?}");
        let mads: Vec<u64> = row.methods.iter().map(|one| one.mads).collect();
        assert_eq!(mads, [108, 4 * row.changes, 54]);
    }

    /// Figures 10 and 11 with the printed number of changes: the methods stand in the paper's order, by weft's own counts too.
    #[test]
    fn with_the_printed_changes_the_hybrid_is_best_at_400() {
        let row = Row::of(400, [1, 1], FIGURE_9);
        let [wildcard, repath, hybrid] = &row.methods[..] else { panic!("three methods") };
        assert_eq!((wildcard.paper_bytes, hybrid.paper_bytes), (21_299_200, 10_649_600));
        assert_eq!(repath.paper_bytes, FIGURE_9 * 256);
        // 1 Report, 1 ReportResp, 1 question, 256 segments, 5 acknowledgements for each of 400 hosts.
        assert_eq!(hybrid.mads, 400 * 264);
        assert_eq!(wildcard.mads, 2 * hybrid.mads);
        assert_eq!(repath.mads, 4 * FIGURE_9);
        assert!(hybrid.bytes < wildcard.bytes && hybrid.bytes < repath.bytes);
        let latencies: Vec<f64> = row.methods.iter().map(|one| one.latency_ms.round()).collect();
        assert_eq!(latencies, FIGURE_11_MS);
    }

    #[test]
    fn which_cable_is_cut_matters() {
        let all = spread([4, 4]).unwrap();
        assert_eq!(all.len(), 24, "a cable for each two neighbours");
        assert!(all.iter().any(|changes| *changes != all[0]), "{all:?}");
    }
}
