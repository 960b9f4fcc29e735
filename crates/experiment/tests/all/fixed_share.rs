//! A fixed share of a link for each lane, used or not, as a model of the papers' switches: such an arbiter's results, in closed
//! form, beside every line of dFtree's experiments I and II and vFtree's 4a and 4b. It does not fit, so nothing in this
//! repository says that they did.

use weft_experiment::Paper;

/// A DDR link's data rate, and what a host moves, in Gb/s.
const LINK: f64 = 16.0;
const HOST: f64 = 12.9;

/// A printed figure, and what three arbiters give: one that leaves nothing idle; fixed shares on every port; fixed shares
/// between switches alone.
struct Line {
    what: &'static str,
    printed: f64,
    working: f64,
    fixed: f64,
    between: f64,
}

/// The share of one lane of `lanes` on a link.
fn share(lanes: f64) -> f64 {
    LINK / lanes
}

fn lines() -> Vec<Line> {
    let line = |what, printed, working, fixed, between| Line { what, printed, working, fixed, between };
    // With a fixed share at the hot spot's own port, its host gets no more than the contributors' lane.
    let (third, quarter) = (HOST / 3.0, HOST / 4.0);
    let total = |victim: f64| (HOST + 2.0 * victim) / (HOST + 2.0 * quarter) * 100.0 - 100.0;
    vec![
        line("I, 2 lanes: the victim", 7.5, LINK - quarter, share(2.0), share(2.0)),
        line("I, 2 lanes: 6-5", 6.8, HOST / 2.0, share(2.0) / 2.0, HOST / 2.0),
        line("I, 2 lanes: 1-5", 3.0, quarter, share(2.0) / 4.0, quarter),
        line("II, 2 lanes: the victim", 7.5, LINK - quarter, share(2.0), share(2.0)),
        line("4a, 2 lanes: the victims", 7.0, LINK - quarter, share(2.0), share(2.0)),
        line("4a, 3 lanes: the gain in %", 38.0, total(LINK - third), total(share(3.0)), total(share(3.0))),
        line("4b, 1 lane: the victim", 2.1, HOST / 6.0, HOST / 6.0, HOST / 6.0),
        line("4b, 2 lanes: the victim", 7.5, LINK - 2.0 * quarter, share(2.0), share(2.0)),
        // 6-9 and the victim share a lane of link 5.
        line("4b, 3 lanes: the victim", 4.5, third, share(3.0) / 2.0, share(3.0) / 2.0),
        line("4b, 3 lanes: 6-9", 4.5, third, share(3.0) / 2.0, share(3.0) / 2.0),
        line("4b, 4 lanes: the victim", 7.5, LINK - 2.0 * third, share(4.0), share(4.0)),
        line("4b, 4 lanes: contributors", 4.5, third, share(4.0), share(4.0)),
    ]
}

fn agrees(line: &Line, ours: f64) -> bool {
    let (source, why) = (String::new(), String::new());
    Paper { value: line.printed, is_limit: false, source, why, given: String::new() }.agrees(Some(ours))
}

#[test]
fn no_arbiter_of_fixed_shares_fits_what_is_printed() {
    let lines = lines();
    let missed = |of: fn(&Line) -> f64| {
        let missed = lines.iter().filter(|line| !agrees(line, of(line)));
        missed.map(|line| line.what).collect::<Vec<_>>()
    };
    let between = missed(|line| line.between);
    assert_eq!(
        between,
        [
            "4a, 3 lanes: the gain in %",
            "4b, 3 lanes: the victim",
            "4b, 3 lanes: 6-9",
            "4b, 4 lanes: the victim"
        ]
    );
    let fixed = missed(|line| line.fixed);
    assert!(between.iter().all(|what| fixed.contains(what)), "{fixed:?}");
    assert_eq!(
        fixed.len() - between.len(),
        2,
        "the hot spot's contributors would have too little: {fixed:?}"
    );
    // An arbiter that leaves nothing idle misses what fixed shares were thought of for, and no more.
    assert_eq!(
        missed(|line| line.working),
        [
            "I, 2 lanes: the victim",
            "II, 2 lanes: the victim",
            "4a, 2 lanes: the victims",
            "4a, 3 lanes: the gain in %",
            "4b, 2 lanes: the victim"
        ]
    );
}

#[test]
fn agreement_with_a_paper_is_within_15_percent() {
    let empty = String::new;
    let paper = |value, is_limit| Paper { value, is_limit, source: empty(), why: empty(), given: empty() };
    let agrees = |value: f64, is_limit, ours: f64| paper(value, is_limit).agrees(Some(ours));
    assert_eq!([2.56, 2.54, 3.44, 3.46].map(|ours| agrees(3.0, false, ours)), [true, false, true, false]);
    assert_eq!([0.0, 0.77, 0.88, 0.9].map(|ours| agrees(0.77, true, ours)), [true, true, true, false]);
    assert_eq!([0.0, 0.1].map(|ours| agrees(0.0, false, ours)), [true, false]);
    assert!(!paper(3.0, false).agrees(None), "what was not measured");
}
