//! Starts that go well, and starts of which something fails.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);

fn plan(agents: usize, others: &[(&str, ProcessKind)]) -> Vec<(String, ProcessKind)> {
    let agents = (0..agents).map(|nth| (format!("a{nth}"), ProcessKind::Agent));
    agents.chain(others.iter().map(|(name, kind)| ((*name).to_owned(), *kind))).collect()
}

fn start_of(processes: &[(String, ProcessKind)]) -> Start {
    Start::new(
        processes,
        StartOptions { patience: PATIENCE, nodes: Some(3), cores: 1, has_first_sm: true },
        Duration::ZERO,
    )
}

fn starts(start: &mut Start) -> Vec<String> {
    std::iter::from_fn(|| start.next_start()).collect()
}

fn begins(start: &mut Start) -> Vec<String> {
    std::iter::from_fn(|| start.next_begin()).collect()
}

fn links(up: u32) -> Links {
    Links { up, total: 2, to_dial: u32::from(up < 2) }
}

const MANAGERS: [(&str, ProcessKind); 4] = [
    ("sm", ProcessKind::Sm),
    ("sm-2", ProcessKind::Sm),
    ("pm", ProcessKind::Pm),
    ("ibsim", ProcessKind::Ibsim),
];

#[test]
fn everything_has_its_turn() {
    let mut start = start_of(&plan(2, &MANAGERS));
    assert_eq!(starts(&mut start), ["a0", "a1", "sm", "pm", "ibsim"]);
    start.ready("pm", SECOND);
    start.ready("sm", SECOND);
    start.ready("a0", SECOND);
    assert_eq!(begins(&mut start), ["pm"], "agents wait for each other, and the manager for their links");
    start.ready("a1", SECOND);
    assert_eq!(begins(&mut start), ["a0", "a1"]);
    assert!(start.may_begin("a1") && !start.may_begin("sm") && start.may_begin("stranger"));
    start.links("a0", links(2), SECOND);
    start.links("a1", links(1), SECOND);
    assert_eq!(start.step(), Step::Links);
    assert_eq!(start.progress(), Progress { agents_ready: 2, agents: 2, links_up: 3, cable_ends: 4 });
    start.links("a1", links(2), SECOND);
    assert_eq!(begins(&mut start), ["sm"]);
    start.subnet_up(2);
    assert_eq!(start.step(), Step::Subnet, "one node is not there yet");
    start.subnet_up(3);
    assert_eq!(starts(&mut start), ["sm-2"]);
    start.ready("ibsim", SECOND);
    assert_eq!(start.step(), Step::Others);
    start.ready("sm-2", SECOND);
    assert_eq!((start.step(), start.poll_timeout()), (Step::Done, None));
    assert_eq!(begins(&mut start), ["ibsim", "sm-2"]);
}

#[test]
fn flapping_is_no_progress_of_a_start() {
    let mut start = start_of(&plan(1, &MANAGERS));
    starts(&mut start);
    start.ready("a0", SECOND);
    start.links("a0", links(1), SECOND);
    let due = Some(SECOND + PATIENCE);
    assert_eq!((start.step(), start.poll_timeout()), (Step::Links, due));
    for (nth, up) in (2..).zip([0, 1, 0, 1]) {
        start.links("a0", links(up), SECOND * nth);
        assert_eq!(start.poll_timeout(), due, "a cable that flaps keeps nobody waiting");
    }
    start.links("a0", links(2), SECOND * 7);
    assert_eq!((start.step(), start.poll_timeout()), (Step::Subnet, Some(SECOND * 7 + PATIENCE)));
    start.swept(5, SECOND * 8);
    start.swept(4, SECOND * 9);
    start.swept(5, SECOND * 10);
    assert_eq!(start.poll_timeout(), Some(SECOND * 8 + PATIENCE), "a sweep that gets no further");
    start.handle_timeout(SECOND * 8 + PATIENCE);
    assert_eq!((start.step(), starts(&mut start)), (Step::Others, vec!["sm-2".to_owned()]));
}

#[test]
fn without_a_manager_the_links_are_the_end() {
    let mut start = start_of(&plan(1, &[]));
    assert_eq!(starts(&mut start), ["a0"]);
    assert!(start.hears_little_of("a0") && !start.hears_little_of("ibsim-7"));
    start.ready("a0", SECOND);
    start.links("a0", links(2), SECOND);
    assert_eq!(start.step(), Step::Done);
    assert!(!start.hears_little_of("a0"));
}

#[test]
fn a_running_process_is_not_started_again() {
    let mut start = start_of(&plan(2, &MANAGERS[..1]));
    start.ready("a1", SECOND);
    assert_eq!(start.next_start().as_deref(), Some("a0"));
    start.started("a0", SECOND);
    assert_eq!(starts(&mut start), ["sm"]);
}

#[test]
fn the_dead_are_not_awaited_and_each_step_has_its_patience() {
    let mut start = start_of(&plan(3, &MANAGERS[..2]));
    starts(&mut start);
    start.ready("a0", SECOND);
    start.ended("a1", SECOND);
    assert!(begins(&mut start).is_empty(), "a2 is awaited still");
    start.handle_timeout(SECOND + PATIENCE - Duration::from_nanos(1));
    assert_eq!(start.step(), Step::Agents);
    start.handle_timeout(SECOND + PATIENCE);
    assert_eq!((start.step(), begins(&mut start)), (Step::Links, vec!["a0".to_owned()]));
    // One that comes later has its turn at once.
    start.ready("a2", SECOND + PATIENCE);
    assert_eq!(begins(&mut start), ["a2"]);
    start.links("a0", links(2), SECOND + PATIENCE);
    start.links("a2", links(1), SECOND + PATIENCE);
    let mut now = SECOND + 2 * PATIENCE;
    start.handle_timeout(now);
    assert_eq!(start.step(), Step::Subnet);
    start.ready("sm", now);
    assert_eq!(begins(&mut start), ["sm"], "it begins without the missing link");
    start.ended("sm", now);
    assert_eq!((start.step(), starts(&mut start)), (Step::Others, vec!["sm-2".to_owned()]));
    now += PATIENCE;
    start.handle_timeout(now);
    assert_eq!(start.step(), Step::Done);
}

#[test]
fn as_many_dial_as_may_and_a_stall_lets_others_in() {
    let mut start = start_of(&plan(1200, &[]));
    starts(&mut start);
    (0..1200).for_each(|nth| start.ready(&format!("a{nth}"), SECOND));
    let first = begins(&mut start);
    assert_eq!(first.len(), 512);
    start.links(&first[7], links(2), SECOND);
    assert_eq!(begins(&mut start).len(), 1);
    assert_eq!(start.poll_timeout(), Some(SECOND + STALL));
    start.handle_timeout(SECOND + STALL);
    assert_eq!(begins(&mut start).len(), 512);
    start.handle_timeout(SECOND + 2 * STALL);
    assert_eq!(begins(&mut start).len(), 1200 - 2 * 512 - 1);
    assert_eq!(start.poll_timeout(), Some(SECOND + 2 * STALL + PATIENCE));
}

proptest! {
    /// Whatever happens to whom in whatever order: nothing is begun twice in one life or unready, counts stay what they are
    /// counted from, and time alone brings every start to its end.
    #[test]
    fn every_start_ends(steps in proptest::collection::vec((0_u8..6, 0_usize..5, 0_u32..3, 0_u64..40_000), 0..120)) {
        let processes = plan(3, &MANAGERS[..2]);
        let mut start = start_of(&processes);
        let mut now = Duration::ZERO;
        let mut lives: BTreeMap<String, bool> = BTreeMap::new();
        for (action, whom, count, ms) in steps {
            now += Duration::from_millis(ms);
            let name = &processes[whom].0;
            match action {
                0 => {
                    start.ready(name, now);
                    lives.entry(name.clone()).or_insert(false);
                }
                1 => start.links(name, links(count), now),
                2 => {
                    start.ended(name, now);
                    lives.remove(name);
                }
                3 => start.subnet_up(count + 1),
                4 => drop(starts(&mut start)),
                _ => start.handle_timeout(now),
            }
            for name in begins(&mut start) {
                let begun = lives.get_mut(&name);
                prop_assert!(begun.as_ref().is_none_or(|begun| !**begun), "{name} begins twice");
                begun.into_iter().for_each(|begun| *begun = true);
            }
            let progress = start.progress();
            prop_assert!(progress.agents_ready <= progress.agents && progress.links_up <= progress.cable_ends);
        }
        for _ in 0..8 {
            now += PATIENCE;
            start.handle_timeout(now);
        }
        prop_assert_eq!(start.step(), Step::Done);
    }
}

#[test]
fn opensm_starts_with_links_and_is_ready_with_the_subnet() {
    let mut start = Start::new(
        &plan(1, &[("opensm", ProcessKind::Opensm)]),
        StartOptions { patience: PATIENCE, nodes: None, cores: 1, has_first_sm: true },
        Duration::ZERO,
    );
    assert_eq!(starts(&mut start), ["a0"]);
    start.ready("a0", SECOND);
    start.links("a0", links(2), SECOND);
    assert_eq!(starts(&mut start), ["opensm"]);
    start.started("opensm", SECOND);
    assert_eq!(start.step(), Step::Others);
    start.ready("opensm", SECOND);
    assert_eq!(start.step(), Step::Done);
}

/// A host's part of a laboratory whose first manager runs on another host.
#[test]
fn managers_that_stand_by_for_one_elsewhere_wait_for_no_subnet() {
    let processes = plan(1, &[("sm-2", ProcessKind::Sm)]);
    let options = StartOptions { patience: PATIENCE, nodes: None, cores: 1, has_first_sm: false };
    let mut start = Start::new(&processes, options, Duration::ZERO);
    assert_eq!(starts(&mut start), ["a0"]);
    start.ready("a0", SECOND);
    assert_eq!(starts(&mut start), [""; 0], "it is started when there are links");
    start.links("a0", links(2), SECOND);
    assert_eq!(starts(&mut start), ["sm-2"]);
    assert_eq!(start.step(), Step::Others);
    start.ready("sm-2", SECOND);
    assert_eq!((begins(&mut start), start.step()), (vec!["a0".to_owned(), "sm-2".to_owned()], Step::Done));
}
