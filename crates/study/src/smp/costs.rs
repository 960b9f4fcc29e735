//! k and r by least squares.

use serde::Serialize;

use super::measured::{Kind, Measured, Route, Series};
use crate::fit::{Fit, is_distinct};

/// What the equations' constants come to, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Costs {
    /// Time over the number of LID-routed LFT updates: the slope is k.
    pub lid_routed: Fit,
    /// The same by directed routes: the slope is k + r.
    pub directed: Fit,
    /// k + r less k.
    pub r: f64,
    /// Half of its 95 % interval.
    pub r_interval: f64,
    /// Whether r differs from 0: its interval leaves 0 out.
    pub r_is_distinct: bool,
    /// Time of an LFT update over hops, LID-routed.
    pub hops_lid_routed: Option<Fit>,
    /// The same by directed routes.
    pub hops_directed: Option<Fit>,
}

impl Costs {
    /// Fits what was measured without pipelining. None where too little was.
    pub fn of(measured: &Measured) -> Option<Self> {
        let fit = |route| Fit::through(&unpipelined(measured, route));
        let (lid_routed, directed) = (fit(Route::LidRouted)?, fit(Route::Directed)?);
        let (r, r_interval) = directed.steeper_than(&lid_routed);
        let hops = |route| Fit::through(&by_hops(measured, Kind::LftSet, route));
        let (hops_lid_routed, hops_directed) = (hops(Route::LidRouted), hops(Route::Directed));
        let r_is_distinct = is_distinct(r, r_interval);
        Some(Self { lid_routed, directed, r, r_interval, r_is_distinct, hops_lid_routed, hops_directed })
    }

    /// The average time of an SMP to a switch and back.
    pub fn k(&self) -> f64 {
        self.lid_routed.slope
    }

    /// What the measurement says of r, where that is not its value: that it may be nothing, or that it cannot be right.
    pub fn doubt_of_r(&self) -> Option<String> {
        let interval = format!("r = {:.2} ± {:.2} µs", self.r, self.r_interval);
        if !self.r_is_distinct {
            return Some(format!("{interval} is not distinguishable from 0 (95 % interval)"));
        }
        let why = "directed routes were the faster ones, so something else than the route differed";
        (self.r < 0.0).then(|| format!("{interval} is below 0: {why}"))
    }

    /// What n·m SMPs take, in milliseconds: by directed routes (equations 2 and 4), and by LIDs (equation 5).
    pub fn takes_ms(&self, smps: f64) -> [f64; 2] {
        [smps * (self.k() + self.r) / 1e3, smps * self.k() / 1e3]
    }
}

/// The number of updates and their microseconds, of bursts with one SMP outstanding.
fn unpipelined(measured: &Measured, route: Route) -> Vec<(f64, f64)> {
    let fitting = measured.bursts.iter().filter(|burst| burst.window == 1 && burst.route == route);
    let points = fitting
        .flat_map(|burst| burst.seconds.iter().map(move |seconds| (f64::from(burst.smps), seconds * 1e6)));
    points.collect()
}

/// Hops and microseconds of an SMP, with one outstanding.
pub(super) fn by_hops(measured: &Measured, kind: Kind, route: Route) -> Vec<(f64, f64)> {
    let fits = |series: &&Series| {
        series.target.is_some() && series.window == 1 && (series.kind, series.route) == (kind, route)
    };
    measured.series.iter().filter(fits).map(|series| (series.hops, series.each_us())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::measured::Burst;
    use super::*;

    #[test]
    fn k_and_r_are_found_again() {
        let burst = |route, each: f64| {
            let times = move |smps: u32| (0..3).map(|_| f64::from(smps) * each / 1e6 + 1e-4).collect();
            let one = move |smps| Burst { smps, route, window: 1, seconds: times(smps) };
            [6, 60, 600].into_iter().map(one)
        };
        let mut measured = Measured {
            bursts: burst(Route::LidRouted, 40.0).chain(burst(Route::Directed, 52.0)).collect(),
            ..Measured::default()
        };
        let costs = Costs::of(&measured).unwrap();
        assert!((costs.k() - 40.0).abs() < 1e-6 && (costs.r - 12.0).abs() < 1e-6, "{costs:?}");
        assert!((costs.lid_routed.intercept - 100.0).abs() < 1e-6 && costs.r_interval < 1e-6, "{costs:?}");
        assert_eq!(costs.doubt_of_r(), None);
        let [directed, lid_routed] = costs.takes_ms(1000.0);
        assert!((directed - 52.0).abs() < 1e-6 && (lid_routed - 40.0).abs() < 1e-6);
        // Pipelined bursts say nothing of k.
        measured.bursts.retain(|burst| burst.route == Route::Directed);
        assert_eq!(Costs::of(&measured), None);
    }

    /// As many bursts are 5 ms longer as are 5 ms shorter, at every number of SMPs. So the lines do not change, and each has this
    /// interval: residuals are all of 5 ms, and their deviation has two degrees of freedom less than there are points.
    #[test]
    fn k_and_r_are_found_again_through_noise_with_its_interval() {
        const SMPS: [u32; 3] = [6, 60, 600];
        let burst = |route, each: f64| {
            let times =
                move |smps: u32| [0.005, -0.005].map(|noise| f64::from(smps) * each / 1e6 + 0.01 + noise);
            SMPS.map(|smps| Burst { smps, route, window: 1, seconds: times(smps).to_vec() })
        };
        let bursts = [burst(Route::LidRouted, 40.0), burst(Route::Directed, 52.0)].concat();
        let costs = Costs::of(&Measured { bursts, ..Measured::default() }).unwrap();
        let mean = SMPS.iter().map(|smps| f64::from(*smps)).sum::<f64>() / 3.0;
        let spread: f64 = SMPS.iter().map(|smps| 2.0 * (f64::from(*smps) - mean).powi(2)).sum();
        // Student's t for four degrees of freedom.
        let interval = 2.776 * 5000.0 * (6f64 / 4.0).sqrt() / spread.sqrt();
        assert!((costs.k() - 40.0).abs() < 1e-6 && (costs.r - 12.0).abs() < 1e-6, "{costs:?}");
        assert!((costs.lid_routed.slope_interval - interval).abs() < 1e-6, "{costs:?}");
        assert!((costs.r_interval - interval * 2f64.sqrt()).abs() < 1e-6, "{costs:?}");
        let doubt = costs.doubt_of_r().unwrap();
        assert_eq!(doubt, "r = 12.00 ± 36.60 µs is not distinguishable from 0 (95 % interval)");
        let faster = Costs { r: -40.0, r_is_distinct: true, ..costs };
        assert!(faster.doubt_of_r().unwrap().contains("is below 0"));
    }
}
