//! Measurements of `weft bench smp --lft`, held against what must hold whatever the machine is like.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// LFT Sets per second that six switch processes that are not held back are wanted to acknowledge by the best window.
const WANTED_PER_SECOND: f64 = 60_000.0;

/// Reads a report: what was measured beside what is wanted, in lines for people. Fails where the fit of k and r (equations 1 to 5) or a rate cannot be.
pub(crate) fn judge(folder: &str) -> Result<String> {
    let path = Path::new(folder).join("report.json");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let report: Value =
        serde_json::from_str(&text).with_context(|| format!("invalid JSON: {}", path.display()))?;
    judged(&report).with_context(|| format!("in {}", path.display()))
}

fn judged(report: &Value) -> Result<String> {
    let held_us = number(report, "/measured/processing_us")?;
    let costs = Costs::of(report)?;
    costs.judge(held_us)?;
    let best = best_rate(report, held_us)?;
    let Costs { k, k_interval, r, r_interval } = costs;
    let beside = match held_us > 0.0 {
        true => format!("{held_us} us an SMP allow {:.0}", per_second_at_most(report, held_us)?),
        false => format!("wanted {WANTED_PER_SECOND:.0}: {:.2} times", best / WANTED_PER_SECOND),
    };
    Ok(format!(
        "LFT Sets per second, best window: {best:.0}; {beside}\nk {k:.2} +- {k_interval:.2} us, r {r:.2} +- {r_interval:.2} us"
    ))
}

/// The constants of the equations in microseconds, with half of their 95 % intervals.
struct Costs {
    k: f64,
    k_interval: f64,
    r: f64,
    r_interval: f64,
}

impl Costs {
    fn of(report: &Value) -> Result<Self> {
        Ok(Self {
            k: number(report, "/costs/lid_routed/slope")?,
            k_interval: number(report, "/costs/lid_routed/slope_interval")?,
            r: number(report, "/costs/r")?,
            r_interval: number(report, "/costs/r_interval")?,
        })
    }

    /// An SMP takes time that the fit tells from none; a directed route takes none away, and a device that is held back takes that long, within
    /// their intervals.
    fn judge(&self, held_us: f64) -> Result<()> {
        let Self { k, k_interval, r, r_interval } = self;
        if k - k_interval <= 0.0 {
            bail!("k is {k:.2} +- {k_interval:.2} us: the fit does not tell it from 0");
        }
        if k + k_interval < held_us {
            bail!("k is {k:.2} +- {k_interval:.2} us, and devices take {held_us} us for an SMP");
        }
        if r + r_interval < 0.0 {
            bail!("r is {r:.2} +- {r_interval:.2} us: directed routes would be faster than LID-routed ones");
        }
        Ok(())
    }
}

/// The most LFT Sets per second that all switches in turns have acknowledged. Where devices are held back, one that does an SMP at a time
/// cannot be faster.
fn best_rate(report: &Value, held_us: f64) -> Result<f64> {
    let series = report["measured"]["series"].as_array().context("no series")?;
    let to_all = series.iter().filter(|one| one["target"].is_null() && one["kind"] == "lft-set");
    let mut best = 0.0;
    for one in to_all {
        let (smps, seconds) = (number(one, "/smps")?, number(one, "/seconds")?);
        let switches = switches(report)?;
        let least = (smps / switches).ceil() * held_us / 1e6;
        if seconds < least {
            bail!(
                "{smps} SMPs took {seconds:.3} s, and {switches} switches need {least:.3} s at {held_us} us each"
            );
        }
        best = f64::max(best, smps / seconds);
    }
    if best > 0.0 { Ok(best) } else { bail!("no LFT Sets to all switches were measured") }
}

fn per_second_at_most(report: &Value, held_us: f64) -> Result<f64> {
    Ok(switches(report)? * 1e6 / held_us)
}

fn switches(report: &Value) -> Result<f64> {
    let names = report["measured"]["switches"].as_array().context("no switches")?;
    if names.is_empty() { bail!("no switches") } else { Ok(names.len() as f64) }
}

fn number(report: &Value, pointer: &str) -> Result<f64> {
    report.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("no number at {pointer}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Six switches: k and r with their intervals, and how many SMPs took a second.
    fn report(held_us: u32, (k, r): ((f64, f64), (f64, f64)), smps: u32) -> Value {
        let series =
            |target: Value, kind, smps| json!({"target": target, "kind": kind, "smps": smps, "seconds": 1.0});
        json!({
            "costs": {"lid_routed": {"slope": k.0, "slope_interval": k.1}, "r": r.0, "r_interval": r.1},
            "measured": {
                "processing_us": held_us,
                "switches": ["a", "b", "c", "d", "e", "f"],
                "series": [
                    series(Value::Null, "lft-set", smps / 2),
                    series(Value::Null, "lft-set", smps),
                    series(Value::Null, "get", 1_000_000),
                    series(json!("a"), "lft-set", 1_000_000),
                ],
            },
        })
    }

    #[test]
    fn the_best_rate_stands_beside_the_wanted_one() {
        let costs = ((200.0, 30.0), (5.0, 40.0));
        let text = judged(&report(0, costs, 90_000)).unwrap();
        assert!(
            text.contains("best window: 90000; wanted 60000: 1.50 times\nk 200.00 +- 30.00 us"),
            "{text}"
        );
        // Timings are reported; a slow machine fails nothing.
        assert!(judged(&report(0, costs, 6_000)).unwrap().contains(": 0.10 times"));
        // Closed form: six devices at 390 us do 15 384 a second, whatever the window.
        let held = ((450.0, 1.0), (2.0, 1.0));
        assert!(judged(&report(390, held, 15_380)).unwrap().contains("390 us an SMP allow 15385"));
        let error = judged(&report(390, held, 15_390)).unwrap_err().to_string();
        assert!(error.contains("switches need 1.000"), "{error}");
    }

    #[test]
    fn a_fit_that_cannot_be_is_refused() {
        for (held, costs, said) in [
            (0, ((-1.0, 0.5), (0.0, 1.0)), "does not tell it from 0"),
            (0, ((10.0, 12.0), (0.0, 1.0)), "does not tell it from 0"),
            (390, ((300.0, 50.0), (0.0, 1.0)), "devices take 390 us"),
            (0, ((100.0, 1.0), (-5.0, 4.0)), "faster than LID-routed"),
        ] {
            let error = judged(&report(held, costs, 600)).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        judged(&report(0, ((100.0, 1.0), (-5.0, 6.0)), 600)).unwrap();
        judged(&json!({"measured": {"processing_us": 0}})).unwrap_err();
        let mut without = report(0, ((100.0, 1.0), (0.0, 1.0)), 600);
        without["measured"]["series"] = json!([]);
        judged(&without).unwrap_err();
    }
}
