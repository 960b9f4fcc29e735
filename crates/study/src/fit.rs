//! Straight lines through points by least squares.

use serde::Serialize;

/// Student's t for 95 %, both sides, by degrees of freedom from 1.
const T95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The same for more.
const T95_LARGE: f64 = 1.96;

/// A line `y = intercept + slope · x`, and how well it fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Fit {
    /// How many points it goes through.
    pub points: usize,
    /// The value at 0.
    pub intercept: f64,
    /// What each unit adds.
    pub slope: f64,
    /// The standard error of the slope.
    pub slope_error: f64,
    /// Half of the slope's 95 % confidence interval.
    pub slope_interval: f64,
    /// The standard deviation of the residuals, with two degrees of freedom less than points.
    pub residual_deviation: f64,
    /// The greatest distance of a point from the line.
    pub residual_max: f64,
    /// The share of the points' variance that the line explains.
    pub r_squared: f64,
}

impl Fit {
    /// The line for which the sum of squared residuals is least; none through fewer than three points, or through points
    /// that all have the same `x`.
    pub fn through(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let mean = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / count;
        let (x_mean, y_mean) = (mean(|point| point.0), mean(|point| point.1));
        let spread: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
        if points.len() < 3 || !spread.is_finite() || spread <= 0.0 {
            return None;
        }
        let slope = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum::<f64>() / spread;
        let intercept = y_mean - slope * x_mean;
        let residuals = || points.iter().map(|(x, y)| y - intercept - slope * x);
        let squares: f64 = residuals().map(|residual| residual * residual).sum();
        let total: f64 = points.iter().map(|(_, y)| (y - y_mean).powi(2)).sum();
        let freedom = points.len() - 2;
        let residual_deviation = (squares / freedom as f64).sqrt();
        let slope_error = residual_deviation / spread.sqrt();
        Some(Self {
            points: points.len(),
            intercept,
            slope,
            slope_error,
            slope_interval: slope_error * T95.get(freedom - 1).copied().unwrap_or(T95_LARGE),
            residual_deviation,
            residual_max: residuals().map(f64::abs).fold(0.0, f64::max),
            r_squared: if total > 0.0 { 1.0 - squares / total } else { 1.0 },
        })
    }

    /// Whether the slope's 95 % interval leaves 0 out. Where it does not, nothing is known of its sign.
    pub fn is_sloped(&self) -> bool {
        is_distinct(self.slope, self.slope_interval)
    }

    /// How much steeper this line is than another one, and half of the 95 % interval of that.
    pub fn steeper_than(&self, other: &Self) -> (f64, f64) {
        (self.slope - other.slope, self.slope_interval.hypot(other.slope_interval))
    }
}

/// The mean of some values, and half of its 95 % interval; none of fewer than two values.
pub fn mean_with_interval(values: &[f64]) -> Option<(f64, f64)> {
    let freedom = values.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / freedom as f64 / count).sqrt();
    Some((mean, error * T95.get(freedom - 1).copied().unwrap_or(T95_LARGE)))
}

/// Whether a value differs from 0, by half of its interval.
pub fn is_distinct(value: f64, half_interval: f64) -> bool {
    value.abs() > half_interval
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3 * b.abs().max(1e-3)
    }

    /// Student's t of two degrees of freedom is 4.303: three values one apart have a deviation of 1.
    #[test]
    fn a_mean_has_an_interval_from_two_values_on() {
        let (mean, interval) = mean_with_interval(&[1.0, 2.0, 3.0]).unwrap();
        assert!(near(mean, 2.0) && near(interval, 4.303 / 3.0_f64.sqrt()), "{mean}, {interval}");
        assert_eq!(mean_with_interval(&[1.0]), None);
        assert_eq!(mean_with_interval(&[]), None);
        assert_eq!(mean_with_interval(&[2.0; 5]), Some((2.0, 0.0)));
    }

    #[test]
    fn points_on_a_line_are_fitted_exactly() {
        let fit = Fit::through(&[(1.0, 5.0), (2.0, 7.0), (4.0, 11.0), (10.0, 23.0)]).unwrap();
        assert!(near(fit.slope, 2.0) && near(fit.intercept, 3.0) && near(fit.r_squared, 1.0), "{fit:?}");
        assert!(fit.slope_interval < 1e-9 && fit.residual_max < 1e-9, "{fit:?}");
    }

    /// Norris, a data set of linear regression that the NIST certifies (36 points); its certified values.
    #[test]
    fn the_nist_s_norris_data_give_the_certified_values() {
        const NORRIS: [(f64, f64); 36] = [
            (0.2, 0.1),
            (337.4, 338.8),
            (118.2, 118.1),
            (884.6, 888.0),
            (10.1, 9.2),
            (226.5, 228.1),
            (666.3, 668.5),
            (996.3, 998.5),
            (448.6, 449.1),
            (777.0, 778.9),
            (558.2, 559.2),
            (0.4, 0.3),
            (0.6, 0.1),
            (775.5, 778.1),
            (666.9, 668.8),
            (338.0, 339.3),
            (447.5, 448.9),
            (11.6, 10.8),
            (556.0, 557.7),
            (228.1, 228.3),
            (995.8, 998.0),
            (887.6, 888.8),
            (120.2, 119.6),
            (0.3, 0.3),
            (0.3, 0.6),
            (556.8, 557.6),
            (339.1, 339.3),
            (887.2, 888.0),
            (999.0, 998.5),
            (779.0, 778.9),
            (11.1, 10.2),
            (118.3, 117.6),
            (229.2, 228.9),
            (669.1, 668.4),
            (448.9, 449.2),
            (0.5, 0.2),
        ];
        let fit = Fit::through(&NORRIS).unwrap();
        assert!((fit.slope - 1.002_116_818_020_45).abs() < 1e-10, "{fit:?}");
        assert!((fit.intercept - -0.262_323_073_774_029).abs() < 1e-9, "{fit:?}");
        assert!((fit.slope_error - 0.429_796_848_199_937e-3).abs() < 1e-12, "{fit:?}");
        assert!((fit.residual_deviation - 0.884_796_396_144_373).abs() < 1e-9, "{fit:?}");
        assert!((fit.r_squared - 0.999_993_745_883_712).abs() < 1e-12, "{fit:?}");
    }

    #[test]
    fn no_line_goes_through_too_little() {
        assert_eq!(Fit::through(&[]), None);
        assert_eq!(Fit::through(&[(1.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(Fit::through(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    }

    #[test]
    fn intervals_are_student_s_and_add_up_in_squares() {
        // Residuals of 1, -2, 1 around y = x: deviation by one degree of freedom the root of 6, spread 2.
        let fit = Fit::through(&[(0.0, 1.0), (1.0, -1.0), (2.0, 3.0)]).unwrap();
        assert!(near(fit.slope, 1.0) && near(fit.residual_deviation, 6f64.sqrt()), "{fit:?}");
        assert!(near(fit.slope_interval, 12.706 * 3f64.sqrt()), "{fit:?}");
        let other = Fit { slope: 0.25, slope_interval: 0.0, ..fit };
        let (steeper, interval) = fit.steeper_than(&other);
        assert!(near(steeper, 0.75) && near(interval, fit.slope_interval));
    }
}
