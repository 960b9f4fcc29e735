//! The paper's printed values beside ours, for docs/fidelity.md: `cargo xtask fidelity` reads it.

use serde_json::{Value, json};

/// What docs/fidelity.md calls the report.
const FILE: &str = "example pftree_report";
const SOURCE: &str = "Zahid et al., Efficient network isolation and load balancing in multi-tenant HPC clusters (2016), sections 6.3 and 7.1";

/// Rows of a table of fidelity, in the order of the figures.
#[derive(Debug, Default)]
pub(crate) struct Rows(Vec<Value>);

/// A printed value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printed<'a> {
    /// Where it stands.
    pub(crate) place: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) value: f64,
    /// Whether the paper prints no value but that it is less than this one.
    pub(crate) is_limit: bool,
}

impl Printed<'static> {
    /// A number without a unit.
    pub(crate) fn number(place: &'static str, value: f64) -> Self {
        Self { place, unit: "", value, is_limit: false }
    }

    pub(crate) fn percent(place: &'static str, value: f64) -> Self {
        Self { unit: "%", ..Self::number(place, value) }
    }

    pub(crate) fn less(self) -> Self {
        Self { is_limit: true, ..self }
    }
}

impl Rows {
    /// Adds a row; `why` is for those that differ.
    pub(crate) fn add(&mut self, what: &str, printed: Printed<'_>, ours: Option<f64>, why: &str) {
        self.0.push(json!({
            "what": what,
            "unit": printed.unit,
            "paper": {
                "value": printed.value,
                "is_limit": printed.is_limit,
                "source": printed.place,
                "why": why,
                "given": "",
            },
            "ours": ours,
        }));
    }

    /// The report, as those of experiments are.
    pub(crate) fn report(self) -> String {
        let report = json!({ "file": FILE, "experiment": { "source": SOURCE }, "fidelity": self.0 });
        format!("{report:#}\n")
    }
}
