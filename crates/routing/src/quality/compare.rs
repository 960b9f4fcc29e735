//! Several routings of one fabric, side by side.

use std::fmt;

use serde::Serialize;
use weft_topology::Fabric;

use crate::lids::Lids;
use crate::routing::Routing;

use super::UnknownLid;
use super::participants::Participants;
use super::paths::Paths;
use super::pattern::Traffic;
use super::simulate::{SimulateOptions, simulate};
use super::summary::Summary;
use super::survey::{Balance, Directions, survey};

/// Routings of one fabric under the same traffic: every run has the same flows for all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The pattern or the two.
    pub traffic: String,
    /// How many runs.
    pub runs: u32,
    /// The seed.
    pub seed: u64,
    /// One for each routing, in the order given.
    pub rows: Vec<ComparisonRow>,
}

/// How one routing does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparisonRow {
    /// Its name.
    pub name: String,
    /// How many data lanes it uses.
    pub lanes: u8,
    /// How many pairs of participants arrive, of all in the first group.
    pub pairs: u64,
    /// How many do not.
    pub failures: u64,
    /// The mean number of cables between switches over those pairs.
    pub hops_mean: f64,
    /// The greatest number of cables between switches.
    pub hops_max: usize,
    /// How many pairs take more cables than the least possible.
    pub detours: u64,
    /// The share of bandwidth per run: under `bisect` the effective bisection bandwidth.
    pub bandwidth: Summary,
    /// The greatest congestion of any flow in any run.
    pub congestion_max: u64,
    /// The delay of the first group per run, as [`Metric::DepMaxDelay`](super::Metric::DepMaxDelay).
    pub delay: Summary,
    /// How evenly all pairs of participants use the links between switches.
    pub balance: Balance,
}

/// Runs the same traffic over several routings of a fabric, in the current rayon pool.
///
/// # Errors
///
/// When a participant has a LID that no one has.
pub fn compare(
    fabric: &Fabric,
    lids: &Lids,
    routings: &[(&str, &Routing)],
    participants: &Participants,
    traffic: impl Into<Traffic>,
    options: &SimulateOptions,
) -> Result<Comparison, UnknownLid> {
    let traffic = traffic.into();
    let mut rows = Vec::with_capacity(routings.len());
    for (name, routing) in routings {
        let paths = Paths::new(fabric, lids, &routing.routes);
        let survey = survey(&paths, &participants.first, &participants.first)?;
        let simulation = simulate(&paths, participants, traffic, options)?;
        let directions = Directions::new(&paths, routing.ranks.as_ref());
        rows.push(ComparisonRow {
            name: (*name).to_owned(),
            lanes: routing.report.lanes,
            pairs: survey.pairs,
            failures: survey.failures,
            hops_mean: survey.hops_mean(),
            hops_max: survey.hops_max(),
            detours: survey.detours,
            bandwidth: simulation.bandwidth(),
            congestion_max: simulation.congestion_max,
            delay: simulation.dep_max_delay.summary,
            balance: survey.balance(&directions),
        });
    }
    Ok(Comparison { traffic: traffic.to_string(), runs: options.runs, seed: options.seed, rows })
}

impl fmt::Display for Comparison {
    /// A table: a heading and a line for each routing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heading = [
            "engine",
            "lanes",
            "hops mean",
            "max",
            "detours",
            "lost",
            "bandwidth",
            "± 95 %",
            "worst",
            "delay",
            "link min",
            "mean",
            "max",
            "deviation",
        ];
        let mut table = vec![heading.map(str::to_owned)];
        for row in &self.rows {
            let links = &row.balance.flows.all;
            table.push([
                row.name.clone(),
                row.lanes.to_string(),
                format!("{:.3}", row.hops_mean),
                row.hops_max.to_string(),
                row.detours.to_string(),
                row.failures.to_string(),
                format!("{:.4}", row.bandwidth.mean),
                format!("{:.4}", row.bandwidth.interval()),
                row.congestion_max.to_string(),
                format!("{:.2}", row.delay.mean),
                format!("{:.0}", links.min),
                format!("{:.1}", links.mean),
                format!("{:.0}", links.max),
                format!("{:.1}", links.deviation),
            ]);
        }
        let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..heading.len()).map(width).collect();
        write!(f, "{}, {} runs, seed {}", self.traffic, self.runs, self.seed)?;
        for row in &table {
            let (name, rest) = (&row[0], &row[1..]);
            write!(f, "\n{name:<width$}", width = widths[0])?;
            for (cell, width) in rest.iter().zip(&widths[1..]) {
                write!(f, "  {cell:>width$}")?;
            }
        }
        Ok(())
    }
}
