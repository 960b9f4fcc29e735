//! Frames that go into a cable of impairments, and when and how they come out.

use proptest::collection::vec;
use proptest::prelude::*;
use weft_fault::Rate;

use super::*;

const SMP: Kind = Kind::Management { bytes: 290 };
const DATA: Kind = Kind::Data { lane: 0, bytes: 2074 };

fn share(ppm: u32) -> Share {
    Share::try_from(ppm).unwrap()
}

fn lag(nanos: u64) -> Lag {
    Lag::try_from(nanos).unwrap()
}

fn of(all: &[Impairment]) -> Impairments {
    let mut impairments = Impairments::default();
    all.iter().for_each(|how| impairments.add(*how, 7));
    impairments
}

/// What becomes of frames that come one after the other, a microsecond apart.
fn fates(impairments: &mut Impairments, kind: Kind, count: u64) -> Vec<Fate> {
    (0..count).map(|number| impairments.judge(Time::from_micros(number), kind)).collect()
}

fn count(fates: &[Fate], wanted: impl Fn(What) -> bool) -> usize {
    fates.iter().filter(|fate| wanted(fate.what)).count()
}

#[test]
fn shares_and_rates_are_met() {
    // Six standard deviations of 100 000 draws of 5 % are 414.
    let loss = fates(&mut of(&[Impairment::Loss(share(50_000))]), DATA, 100_000);
    assert!(count(&loss, |what| what == What::Lost).abs_diff(5_000) < 414);
    let all = fates(&mut of(&[Impairment::Loss(share(1_000_000))]), SMP, 1_000);
    assert_eq!(count(&all, |what| what == What::Lost), 1_000);
    let twice = fates(&mut of(&[Impairment::Duplicate(share(50_000))]), SMP, 100_000);
    assert!(count(&twice, |what| what == What::Twice).abs_diff(5_000) < 414);
    // 2320 bits at 1e-5: 2.32 % of the packets have a wrong one, with 285 as six standard deviations.
    let rate = Rate::try_from(10_000_000_000).unwrap();
    let damaged = fates(&mut of(&[Impairment::BitErrors(rate)]), SMP, 100_000);
    assert!(count(&damaged, |what| matches!(what, What::Damaged { .. })).abs_diff(2_320) < 285);
    // At the highest rate hardly a packet is whole, and what is counted of one has a bound.
    let worst = Rate::try_from(1_000_000_000_000).unwrap();
    let damaged = fates(&mut of(&[Impairment::BitErrors(worst)]), DATA, 1_000);
    assert!(count(&damaged, |what| matches!(what, What::Damaged { bit_errors: 1..=BIT_ERRORS_MAX })) > 980);
}

#[test]
fn only_lane_15_duplicates_and_flow_control_is_never_lost() {
    let everything = [Impairment::Loss(share(1_000_000)), Impairment::Duplicate(share(1_000_000))];
    let credit = fates(&mut of(&everything), Kind::Credit { lane: 3 }, 100);
    assert_eq!(count(&credit, |what| what == What::Whole), 100);
    let data = fates(&mut of(&everything[1..]), DATA, 100);
    assert_eq!(count(&data, |what| what == What::Whole), 100);
}

#[test]
fn delays_add_up_and_jitter_keeps_the_order() {
    let delays = [Impairment::Delay(lag(2_000_000)), Impairment::Delay(lag(500_000))];
    for (number, fate) in (0..).zip(fates(&mut of(&delays), SMP, 100)) {
        assert_eq!(fate.at, Time::from_micros(number) + Time::from_micros(2_500));
    }
    let jitter = fates(&mut of(&[Impairment::Jitter(lag(1_000_000))]), DATA, 1_000);
    assert!(jitter.is_sorted_by_key(|fate| fate.at));
    let late = |fate: &Fate, number| fate.at.saturating_sub(Time::from_micros(number));
    let lags: Vec<Time> = (0..).zip(&jitter).map(|(number, fate)| late(fate, number)).collect();
    assert!(lags.iter().all(|lag| *lag < Time::from_millis(1)) && lags[0] != lags[1]);
}

#[test]
fn reordered_packets_are_overtaken() {
    let how = Impairment::Reorder { share: share(100_000), by: lag(10_000) };
    let all = fates(&mut of(&[how]), SMP, 1_000);
    for (number, fate) in all.iter().enumerate() {
        let came = Time::from_micros(number as u64);
        let overtook = all[number + 1..].iter().filter(|later| later.at < fate.at).count();
        assert_eq!(fate.at, if fate.is_overtaken { came + Time::from_micros(10) } else { came });
        assert!(fate.is_overtaken || overtook == 0);
    }
    assert!(all.iter().filter(|fate| fate.is_overtaken).count().abs_diff(100) < 57);
}

#[test]
fn a_seed_decides_and_no_impairment_depends_on_another() {
    let loss = Impairment::Loss(share(200_000));
    let lost = |impairments: &mut Impairments| {
        fates(impairments, SMP, 1_000).iter().map(|fate| fate.what == What::Lost).collect::<Vec<_>>()
    };
    let alone = lost(&mut of(&[loss]));
    assert_eq!(lost(&mut of(&[loss])), alone);
    let others = [Impairment::Jitter(lag(1_000)), Impairment::Duplicate(share(500_000)), loss];
    assert_eq!(lost(&mut of(&others)), alone);
    let mut two = of(&[loss]);
    two.add(loss, 8);
    two.remove(loss, 7);
    assert_ne!(lost(&mut two), alone, "another seed, another choice");
    two.remove(loss, 8);
    assert!(two.is_empty());
}

proptest! {
    /// Flow control counts the packets of its lane before it: what it arrives behind is what it was sent behind.
    #[test]
    fn no_packet_passes_flow_control(frames in vec((0..3_u8, 0..2_u8, 0..50_000_u64), 1..200)) {
        let mut impairments = of(&[
            Impairment::Jitter(lag(100_000)),
            Impairment::Reorder { share: share(400_000), by: lag(300_000) },
            Impairment::Loss(share(100_000)),
        ]);
        let (mut now, mut arrivals) = (Time::ZERO, [Vec::new(), Vec::new()]);
        for (kind, lane, gap) in frames {
            now += Time::from_nanos(gap);
            let is_credit = kind == 0;
            let kind = if is_credit { Kind::Credit { lane } } else { Kind::Data { lane, bytes: 100 } };
            let fate = impairments.judge(now, kind);
            prop_assert!(fate.at >= now);
            arrivals[usize::from(lane)].push((fate.at, is_credit));
        }
        for arrivals in &arrivals {
            for (place, (at, is_credit)) in arrivals.iter().enumerate() {
                let later = &arrivals[place + 1..];
                // What arrives at the same moment does so in the order in which it was sent.
                if *is_credit {
                    prop_assert!(later.iter().all(|(other, _)| other >= at));
                } else {
                    prop_assert!(later.iter().filter(|(_, credit)| *credit).all(|(other, _)| other >= at));
                }
            }
        }
    }
}
