//! The latency and bandwidth test: its steps, one after the other.

use weft_host::traffic::Work;
use weft_machine::{Random, Time};
use weft_topology::NodeIndex;

use super::traffic::Flows;
use crate::file::{At, Wrong};
use crate::{BeffPart, BeffSpec, BeffTag, FlowPlan};

/// The part of a step in which flows are started; in the rest what is under way arrives.
const BUSY_PERCENT: u64 = 80;

impl Flows<'_> {
    /// Ping-pong over pairs, the natural ring, random rings: small messages, then large ones. Rings with small messages
    /// are ping-pongs of all neighbours at the same time, with large ones streams to both neighbours.
    pub(super) fn beff(&mut self, spec: &BeffSpec) -> Result<(), Wrong> {
        let hosts = self.names.hosts(&spec.hosts)?;
        if hosts.len() < 3 {
            return Err(Wrong::new(At::default(), format!("[beff.{}] needs 3 hosts or more", spec.name)));
        }
        let mut random = Random::of_purpose(self.seed, &spec.name);
        let pairs = pairs(&hosts, spec.pairs, &mut random);
        let rings: Vec<Vec<NodeIndex>> = (0..spec.random_rings)
            .map(|_| {
                let mut ring = hosts.clone();
                random.shuffle(&mut ring);
                ring
            })
            .collect();
        let steps = 2 * (pairs.len() + 1 + rings.len()) as u64;
        let end = Time::from_nanos(spec.step.as_nanos().saturating_mul(steps)) + spec.start;
        if end > self.experiment.duration {
            let message =
                format!("[beff.{}] takes {steps} steps and ends at {} s", spec.name, end.as_secs_f64());
            let allowed = format!("the run ends at {} s", self.experiment.duration.as_secs_f64());
            return Err(Wrong::new(At::default(), message).allowed(allowed));
        }
        let mut step = 0;
        for bandwidth in [false, true] {
            for (a, b) in &pairs {
                self.step(spec, BeffPart::PingPong, bandwidth, step, &[(*a, *b)])?;
                step += 1;
            }
            self.step(spec, BeffPart::NaturalRing, bandwidth, step, &neighbours(&hosts, bandwidth))?;
            step += 1;
            for ring in &rings {
                self.step(spec, BeffPart::RandomRing, bandwidth, step, &neighbours(ring, bandwidth))?;
                step += 1;
            }
        }
        Ok(())
    }

    fn step(
        &mut self,
        spec: &BeffSpec,
        part: BeffPart,
        bandwidth: bool,
        step: u64,
        pairs: &[(NodeIndex, NodeIndex)],
    ) -> Result<(), Wrong> {
        let nanos = spec.step.as_nanos();
        let start = spec.start + Time::from_nanos(nanos * step);
        let bytes = if bandwidth { spec.large_bytes } else { spec.small_bytes };
        let packet = self.experiment.rates.mtu_bytes();
        let options = Self::beff_options(bytes, packet, spec.move_by);
        let streams = bandwidth && part != BeffPart::PingPong;
        for (from, to) in pairs {
            let name = format!("{}/{step}/{}-{}", spec.name, self.names.name(*from), self.names.name(*to));
            let plan = FlowPlan {
                group: Some(spec.name.clone()),
                start,
                stop: start + Time::from_nanos(nanos / 100 * BUSY_PERCENT),
                beff: Some(BeffTag { test: spec.name.clone(), part, bandwidth }),
                ..self.plan(name, if streams { Work::Stream } else { Work::PingPong }, &options)
            };
            self.pair(*from, *to, plan, &options, None)?;
        }
        Ok(())
    }
}

/// Pairs for ping-pong in order: all, or a random selection.
fn pairs(hosts: &[NodeIndex], most: Option<u32>, random: &mut Random) -> Vec<(NodeIndex, NodeIndex)> {
    let with_later = |(nth, a): (usize, &NodeIndex)| {
        let a = *a;
        hosts[nth + 1..].iter().map(move |b| (a, *b)).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = hosts.iter().enumerate().flat_map(with_later).collect();
    if let Some(most) = most {
        random.shuffle(&mut all);
        all.truncate(most as usize);
        all.sort_unstable();
    }
    all
}

/// Each host with the next, and where both directions are wanted with the one before.
fn neighbours(ring: &[NodeIndex], both: bool) -> Vec<(NodeIndex, NodeIndex)> {
    let next = (0..ring.len()).map(|nth| (ring[nth], ring[(nth + 1) % ring.len()]));
    let back = (0..ring.len()).map(|nth| (ring[(nth + 1) % ring.len()], ring[nth]));
    if both { next.chain(back).collect() } else { next.collect() }
}
