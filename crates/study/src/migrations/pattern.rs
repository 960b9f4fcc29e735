//! The migrations of a pattern, in order.

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::case::{Pattern, VFS};
use super::placement::Placement;

/// One migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The virtual machine.
    pub machine: usize,
    /// The host that it leaves.
    pub from: usize,
    /// The host that it comes to.
    pub to: usize,
}

/// A placement that changes, and how.
struct Story {
    placement: Placement,
    migrations: Vec<Migration>,
}

/// The migrations of a pattern from a placement. Each finds a free virtual function where it goes.
pub fn migrations(pattern: Pattern, placement: &Placement, random: &mut Pcg64) -> Vec<Migration> {
    let mut story = Story { placement: placement.clone(), migrations: Vec::new() };
    match pattern {
        Pattern::Random => story.random(random),
        Pattern::Consolidate => story.consolidate(),
        Pattern::Grouping => story.group(random),
        Pattern::ToUniform => story.spread(),
    }
    story.migrations
}

impl Story {
    fn migrate(&mut self, machine: usize, to: usize) {
        let from = self.placement.host(machine);
        self.migrations.push(Migration { machine, from, to });
        self.placement.put(machine, to);
    }

    /// Twice as many migrations as hosts, each of a random machine to a random other host with room.
    fn random(&mut self, random: &mut Pcg64) {
        let (hosts, machines) = (self.placement.hosts(), self.placement.machines());
        for _ in 0..2 * hosts {
            let machine = random.random_range(0..machines);
            let own = self.placement.host(machine);
            let room: Vec<usize> =
                (0..hosts).filter(|host| *host != own && self.placement.has_room(*host)).collect();
            let Some(to) = room.get(random.random_range(0..room.len().max(1))) else { continue };
            self.migrate(machine, *to);
        }
    }

    /// The machine furthest to the right goes to the function furthest to the left, as long as that is to its left.
    fn consolidate(&mut self) {
        let mut right = self.placement.hosts();
        let mut left = 0;
        loop {
            while left < right && !self.placement.has_room(left) {
                left += 1;
            }
            while right > left && self.placement.on(right - 1).is_empty() {
                right -= 1;
            }
            if left + 1 >= right {
                return;
            }
            let Some(machine) = self.placement.on(right - 1).last() else { return };
            self.migrate(*machine, left);
        }
    }

    /// Two random halves of the machines, the first one's hosts left of the second one's. Hosts are filled from the left: what is
    /// of the other group leaves for the rightmost host with room, then machines of the group come, the rightmost first.
    fn group(&mut self, random: &mut Pcg64) {
        let machines = self.placement.machines();
        let mut order: Vec<usize> = (0..machines).collect();
        order.shuffle(random);
        let (first, second) = order.split_at(machines.div_ceil(2));
        let mut begin = 0;
        for group in [first, second] {
            let mut is_own = vec![false; machines];
            group.iter().for_each(|machine| is_own[*machine] = true);
            let mut wanted = group.len();
            while wanted > 0 {
                let here = wanted.min(VFS);
                self.fill(begin, here, &is_own);
                (begin, wanted) = (begin + 1, wanted - here);
            }
        }
    }

    /// Gives a host `count` machines of a group and no other.
    fn fill(&mut self, host: usize, count: usize, is_own: &[bool]) {
        let foreign: Vec<usize> =
            self.placement.on(host).iter().copied().filter(|machine| !is_own[*machine]).collect();
        for machine in foreign {
            let away = (host + 1..self.placement.hosts()).rev().find(|other| self.placement.has_room(*other));
            let Some(away) = away else { return };
            self.migrate(machine, away);
        }
        let mut right = self.placement.hosts();
        while self.placement.on(host).len() < count && right > host + 1 {
            let next = self.placement.on(right - 1).iter().copied().rfind(|machine| is_own[*machine]);
            match next {
                Some(machine) => self.migrate(machine, host),
                None => right -= 1,
            }
        }
    }

    /// A surplus machine of the leftmost host with too many goes to the leftmost host with too few.
    fn spread(&mut self) {
        let (hosts, machines) = (self.placement.hosts(), self.placement.machines());
        // Where it does not come out even, the first hosts have one more.
        let wanted = |host: usize| machines / hosts + usize::from(host < machines % hosts);
        let mut to = 0;
        for host in 0..hosts {
            while self.placement.on(host).len() > wanted(host) {
                while to < hosts && self.placement.on(to).len() >= wanted(to) {
                    to += 1;
                }
                let Some(machine) = self.placement.on(host).last().copied().filter(|_| to < hosts) else {
                    return;
                };
                self.migrate(machine, to);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::super::case::Start;
    use super::*;

    /// A start, its migrations, and where they lead; every step finds its machine at its host and room at the other.
    fn told(
        start: Start,
        pattern: Pattern,
        machines: usize,
        seed: u64,
    ) -> (Placement, Vec<Migration>, Placement) {
        let mut random = Pcg64::seed_from_u64(seed);
        let begin = Placement::new(start, 32, machines, &mut random);
        let all = migrations(pattern, &begin, &mut random);
        let mut end = begin.clone();
        for migration in &all {
            assert_eq!(end.host(migration.machine), migration.from, "seed {seed}");
            assert!(
                end.has_room(migration.to) && migration.from != migration.to,
                "seed {seed}: {migration:?}"
            );
            end.put(migration.machine, migration.to);
        }
        assert_eq!((end.machines(), end.hosts()), (machines, 32));
        (begin, all, end)
    }

    fn counts(placement: &Placement) -> Vec<usize> {
        (0..placement.hosts()).map(|host| placement.on(host).len()).collect()
    }

    #[test]
    fn a_uniform_start_is_uniform_and_a_random_one_is_not() {
        let mut random = Pcg64::seed_from_u64(1);
        let uniform = Placement::new(Start::Uniform, 32, 64, &mut random);
        assert_eq!(counts(&uniform), [2; 32]);
        let drawn = counts(&Placement::new(Start::Random, 32, 64, &mut random));
        assert!(drawn.iter().all(|count| *count <= VFS) && drawn.iter().sum::<usize>() == 64);
        assert!(drawn.contains(&4) && drawn.iter().any(|count| *count < 2));
    }

    #[test]
    fn random_migrations_are_twice_as_many_as_hosts() {
        for (seed, machines) in [(1, 32), (2, 64), (3, 96)] {
            assert_eq!(told(Start::Uniform, Pattern::Random, machines, seed).1.len(), 64);
        }
    }

    #[test]
    fn consolidation_packs_few_hosts_and_moves_only_vms_outside() {
        for (seed, machines) in [(1, 32), (2, 64), (3, 96), (4, 33)] {
            for start in [Start::Random, Start::Uniform] {
                let (begin, all, end) = told(start, Pattern::Consolidate, machines, seed);
                let used = machines.div_ceil(VFS);
                let mut expected = vec![VFS; machines / VFS];
                expected.extend((!machines.is_multiple_of(VFS)).then_some(machines % VFS));
                expected.resize(32, 0);
                assert_eq!(counts(&end), expected, "seed {seed}");
                assert!(all.iter().all(|one| one.to < one.from), "seed {seed}");
                let outside = (0..machines).filter(|machine| begin.host(*machine) >= used).count();
                assert!(all.len() >= outside, "seed {seed}");
            }
        }
    }

    #[test]
    fn groups_end_apart_and_packed() {
        for (seed, machines) in [(1, 32), (2, 64), (3, 96), (4, 30)] {
            for start in [Start::Random, Start::Uniform] {
                let (begin, _, end) = told(start, Pattern::Grouping, machines, seed);
                let half = machines.div_ceil(2);
                let mut expected = Vec::new();
                for group in [half, machines - half] {
                    expected.extend(vec![VFS; group / VFS]);
                    expected.extend((!group.is_multiple_of(VFS)).then_some(group % VFS));
                }
                expected.resize(32, 0);
                assert_eq!(counts(&end), expected, "seed {seed}");
                // Where machines end shows which group they are in; both came from everywhere.
                let border = half.div_ceil(VFS);
                let first = (0..machines).filter(|machine| end.host(*machine) < border);
                assert!(first.clone().count() == half && first.map(|one| begin.host(one)).max() > Some(16));
            }
        }
    }

    #[test]
    fn spreading_moves_only_what_is_too_much() {
        for (seed, machines) in [(1, 32), (2, 64), (3, 96)] {
            let (begin, all, end) = told(Start::Random, Pattern::ToUniform, machines, seed);
            assert_eq!(counts(&end), vec![machines / 32; 32], "seed {seed}");
            let surplus: usize = counts(&begin).iter().map(|count| count.saturating_sub(machines / 32)).sum();
            assert_eq!(all.len(), surplus, "seed {seed}");
        }
        assert!(told(Start::Uniform, Pattern::ToUniform, 64, 1).1.is_empty());
    }
}
