//! Random schedules: virtual machines are created, moved and destroyed while agents, the subnet manager and the VM manager die at any
//! moment, hosts are cut off, and messages are lost, doubled and late. Every schedule has the VM manager die around one kind of record by
//! name: before it is written, while it is, when it is on disk, and when what it allows has been sent.
//!
//! Always: a virtual machine runs in one slot at most, and resumes from where it was frozen last; a GUID and a LID are plugged in once; no
//! command goes out before its record is on disk; a request has one answer. At rest: every virtual machine runs in exactly one slot, or is
//! lost, and then something of it died; every identity of prepopulated slots is somewhere; rows lead where machines are.
//!
//! `WEFT_SCHEDULES` says how many (200 if not said), `WEFT_SEED` replays one and prints all messages on failure.

use std::collections::BTreeSet;

use seeds::run_part;
use support::subnet::{Kind, SubnetManager};
use support::world::{Fault, Happening, Moment, Network, Side, World};
use weft_machine::{Random, Time};
use weft_sim::TraceMode;
use weft_vm::{
    Content, Create, Detach, Event, Hypervisor, Migrate, Options, Record, Reply, Request, Route, Scheme,
    Step, VmError, VmName,
};

use crate::counts::Counts;
use crate::seeds;
use crate::support;

const SCHEDULES: u64 = 200;

/// The seeds of each part that are run twice.
const TWICE: u64 = 5;

/// How many seeds a part has at least for everything to happen in one of them.
const ALL_KINDS: u64 = 50;

/// The same for moves that turn from back to forward. 1000 seeds had 13, so one part of 250 in twenty-five has none.
const RARE_KINDS: u64 = 1000;

/// When the first fault comes, and when all have ended.
const FAULTS: (Time, Time) = (Time::from_secs(1), Time::from_secs(20));

/// How long everything may take to come to rest when all faults have ended: clients wait no longer than 4 s, LIDs than 2 s.
const PATIENCE: Time = Time::from_secs(120);

/// The name of a count that few schedules have.
const RESCUED: &str = "rescued";

const MOMENTS: [Moment; 4] = [Moment::Before, Moment::Torn, Moment::After, Moment::Later];

/// What happened in a schedule.
fn counts(world: &World) -> Counts {
    let replies = |wanted: fn(&Result<Reply, VmError>) -> bool| {
        world.replies.values().filter(|reply| wanted(reply)).count() as u64
    };
    let events =
        |wanted: fn(&Event) -> bool| world.events.iter().filter(|(_, event)| wanted(event)).count() as u64;
    Counts::from([
        ("created", replies(|reply| matches!(reply, Ok(Reply::Created(_))))),
        ("moved", events(|event| matches!(event, Event::MoveStep { step: Step::Done, .. }))),
        ("undone", events(|event| matches!(event, Event::MoveStep { step: Step::Undone, .. }))),
        ("destroyed", replies(|reply| matches!(reply, Ok(Reply::Destroyed)))),
        ("lost", events(|event| matches!(event, Event::Lost { .. }))),
        ("forgotten", replies(|reply| matches!(reply, Ok(Reply::Forgotten)))),
        ("refused", world.sm.refused),
        ("in doubt", replies(|reply| matches!(reply, Err(VmError::InDoubt { .. })))),
        // Moves that went on because only the destination had survived.
        (RESCUED, rescued(world)),
        ("adopted", events(|event| matches!(event, Event::Adopted { .. }))),
        ("died at record", world.died_at),
        ("torn", world.disk.torn),
        ("journals lost", world.journals_lost),
        ("old commands", world.agents.iter().map(|agent| agent.refused).sum()),
    ])
}

/// Moves that turned from back to forward.
fn rescued(world: &World) -> u64 {
    let steps = world.events.iter().filter_map(|(_, event)| match event {
        Event::MoveStep { vm, step, .. } => Some((vm, *step)),
        _ => None,
    });
    let steps: Vec<(&String, Step)> = steps.collect();
    let back = |step: Step| matches!(step, Step::Undo | Step::Back);
    let turns = |i: &usize| {
        let (vm, step) = steps[*i];
        let before = steps[..*i].iter().rev().find(|(other, _)| *other == vm);
        step == Step::Reroute && before.is_some_and(|(_, step)| back(*step))
    };
    (0..steps.len()).filter(turns).count() as u64
}

/// Draws what happens.
struct Schedule {
    random: Random,
    hosts: u8,
}

impl Schedule {
    fn one_in(&mut self, count: u32) -> bool {
        self.random.below(count) == 0
    }

    fn host(&mut self) -> u8 {
        self.random.below(self.hosts.into()) as u8
    }

    fn vm(&mut self) -> VmName {
        format!("vm-{}", self.random.below(6)).parse().unwrap()
    }

    fn moment(&mut self) -> Time {
        let millis = (FAULTS.1 - FAULTS.0).as_millis() as u32;
        FAULTS.0 + Time::from_millis(self.random.below(millis).into())
    }

    fn span(&mut self, millis: u32) -> Time {
        Time::from_millis(self.random.below(millis).into())
    }

    fn request(&mut self, world: &World) -> Request {
        match self.random.below(20) {
            0..3 => {
                let host = (!self.one_in(3)).then(|| world.host(self.host()));
                let count = self.one_in(6).then(|| self.random.below(3) + 1);
                Request::Create(Create { count, ..Create::new(self.vm(), host) })
            }
            3..15 => {
                let (vm, host) = (self.vm(), world.host(self.host()));
                let detach = if self.one_in(2) { Detach::Late } else { Detach::Early };
                let hypervisor = Hypervisor {
                    pre_copy: self.span(500),
                    stop_copy: self.span(300),
                    resume: self.span(200),
                };
                Request::Migrate(Migrate {
                    vm,
                    host,
                    cold: self.one_in(4),
                    detach,
                    hypervisor,
                    route: Route::default(),
                })
            }
            15 => Request::Destroy(self.vm()),
            16 => Request::List,
            17 => {
                let (vm, host) = (self.vm(), world.host(self.host()));
                Request::Plan { vm, host, route: Route::default() }
            }
            _ => Request::Forget { vm: self.vm(), force: !self.one_in(3) },
        }
    }

    fn faults(&mut self, world: &mut World) {
        for _ in 0..self.random.below(9) {
            let at = self.moment();
            let back = (at + self.span(6000)).min(FAULTS.1);
            let host = self.host();
            let (fault, mended) = match self.random.below(10) {
                0..2 => (Fault::KillAgent(host), Fault::RestartAgent(host)),
                2..6 => (Fault::Cut(host), Fault::Mend(host)),
                6..8 => (Fault::KillSm, Fault::RestartSm),
                _ => (Fault::KillManager, Fault::RestartManager),
            };
            world.at(at, Happening::Fault(fault));
            world.at(back, Happening::Fault(mended));
        }
        if self.one_in(12) {
            let at = self.moment();
            world.at(at, Happening::Fault(Fault::KillManager));
            world.at(at, Happening::Fault(Fault::LoseJournal));
            world.at(at + Time::from_millis(50), Happening::Fault(Fault::RestartManager));
        }
    }

    /// Everything is put right.
    fn settle(&mut self, world: &mut World) {
        let (end, mut all) = (FAULTS.1, vec![Fault::RestartSm, Fault::RestartManager]);
        for host in 0..self.hosts {
            all.extend([Fault::RestartAgent(host), Fault::Mend(host)]);
        }
        all.into_iter().for_each(|fault| world.at(end, Happening::Fault(fault)));
    }
}

fn world(seed: u64, random: &mut Random) -> World {
    let ms = Time::from_millis;
    let scheme = if random.below(2) == 0 { Scheme::Prepopulated } else { Scheme::Dynamic };
    let options = Options {
        scheme,
        timeout: ms(200),
        patience: ms(1000),
        sm_retry: ms(300),
        sm_timeout: ms(2000),
        lid_patience: ms(2000),
        answer_within: ms(4000),
        gather: ms(500),
        at_once: 1 + random.below(6),
        compact_after: u64::from(random.below(400)),
        ..Options::default()
    };
    let kinds = [Kind::Moves, Kind::Moves, Kind::Refuses, Kind::Later, Kind::Unknown];
    let kind = kinds[random.below(kinds.len() as u32) as usize];
    let hosts = 2 + random.below(4) as u8;
    let vfs = 1 + random.below(4) as u8;
    // Addresses of every other schedule move ahead of their machines.
    let silence = ms(u64::from(random.below(2)) * 200);
    let mut world = World::new(seed, hosts, vfs, options, SubnetManager::new(kind));
    world.sm.silence = silence;
    world.network = Network {
        lost_per_mille: random.below(80),
        doubled_per_mille: random.below(80),
        delay_max: 100 + random.below(60_000),
    };
    // The manager dies around each kind of record in turn.
    let kinds = Record::NAMES.len() as u64;
    let record = Record::NAMES[(seed % kinds) as usize];
    let moment = MOMENTS[(seed / kinds % MOMENTS.len() as u64) as usize];
    world.die_at = Some((record.to_owned(), moment));
    if random.below(2) == 0 {
        world.strikes.push(("undo", Side::Source));
    }
    for _ in 0..random.below(4) {
        let step =
            ["reserve", "freeze", "import", "reroute", "commit", "undo", "back", "resume", "undo", "back"];
        let side = if random.below(2) == 0 { Side::Source } else { Side::Destination };
        world.strikes.push((step[random.below(10) as usize], side));
    }
    world
}

fn play(world: &mut World, random: Random) -> Result<(), String> {
    let mut schedule = Schedule { random, hosts: world.agents.len() as u8 };
    world.start_manager()?;
    schedule.faults(world);
    for number in 0..4 {
        let request = World::create(&format!("vm-{number}"), Some(world.host(schedule.host())));
        world.at(Time::from_millis(700), Happening::Ask(request));
    }
    for _ in 0..20 + schedule.random.below(60) {
        let (at, request) = (schedule.span(FAULTS.1.as_millis() as u32), schedule.request(world));
        world.at(at, Happening::Ask(request));
    }
    schedule.settle(world);
    world.run_until(FAULTS.1)?;
    world.network = Network { lost_per_mille: 0, doubled_per_mille: 0, delay_max: 1000 };
    world.die_at = None;
    world.strikes.clear();
    world.rest(PATIENCE)?;
    // Commands that are late come within three seconds, and each may need a look at a host.
    world.run_until(world.now + Time::from_secs(5))?;
    for host in 0..schedule.hosts {
        world.feed(weft_vm::Input::HostUp(world.host(host)))?;
    }
    world.rest(PATIENCE)
}

fn runs(content: &Content) -> bool {
    matches!(content, Content::Running(_))
}

/// What holds when all faults have ended and everything has come to rest.
fn check_rest(world: &World) -> Result<(), String> {
    let list = world.manager.as_ref().unwrap().list();
    if !world.sm.held.is_empty() && world.journals_lost == 0 {
        return Err(format!("the subnet manager still holds {:?}", world.sm.held));
    }
    let mut known = BTreeSet::new();
    for port in &list {
        let name: VmName = port.vm.parse().unwrap();
        let runs = world.running(&name);
        match &port.vm_state[..] {
            "running" => {
                let slot = runs.ok_or_else(|| format!("{name} is listed as running, and does not run"))?;
                if (slot.host.to_string(), slot.vf) != (port.system_name.clone(), port.vf) {
                    return Err(format!("{name} runs in {slot}, and is listed as {port:?}"));
                }
                let lid = world.slots().find(|(at, _)| *at == slot).and_then(|(_, content)| content.port());
                if lid.is_some_and(|own| own.lid.0 != port.virtual_port_lid) {
                    return Err(format!("{name} has {lid:?}, and is listed as {port:?}"));
                }
            }
            "lost" => {
                if runs.is_some() || !world.mourned.contains(&name) {
                    return Err(format!("{name} is listed as lost, and nothing of it died: {port:?}"));
                }
            }
            "in doubt" if world.journals_lost > 0 && runs.is_none() => {}
            _ => return Err(format!("at rest: {port:?}")),
        }
        known.insert(name);
    }
    for (slot, content) in world.slots() {
        match content {
            Content::Running(occupant) | Content::Frozen(occupant) | Content::Imported(occupant)
                if !known.contains(&occupant.vm) && (runs(content) || world.journals_lost == 0) =>
            {
                return Err(format!("{slot} has {content:?}, which is not listed"));
            }
            Content::Reserved(_) => return Err(format!("{slot} has {content:?}")),
            Content::Frozen(_) | Content::Imported(_) if world.journals_lost == 0 => {
                return Err(format!("{slot} has {content:?}"));
            }
            _ => {}
        }
    }
    check_identities(world)?;
    check_rows(world)?;
    check_promises(world, &known)
}

/// Every prepopulated identity is in one slot.
fn check_identities(world: &World) -> Result<(), String> {
    if !world.is_prepopulated() || world.journals_lost > 0 {
        return Ok(());
    }
    let configured =
        world.agents.iter().flat_map(|agent| agent.slots.values().map(|slot| slot.configured.port_guid));
    let configured: BTreeSet<_> = configured.collect();
    let there: BTreeSet<_> =
        world.slots().filter_map(|(_, content)| content.port()).map(|port| port.port_guid).collect();
    if configured == there {
        Ok(())
    } else {
        Err(format!("identities are {there:?}, and were {configured:?}"))
    }
}

/// The subnet manager's rows of a virtual machine's address lead to it, unless a sweep has to put them right.
fn check_rows(world: &World) -> Result<(), String> {
    if !matches!(world.sm.kind, Kind::Moves | Kind::Later)
        || world.sm.restarts > 0
        || !world.is_prepopulated()
    {
        return Ok(());
    }
    let astray = world.events.iter().any(|(_, event)| {
        matches!(event, Event::Lost { .. } | Event::Gone { .. } | Event::Stuck { .. })
            || world.journals_lost > 0
    });
    for (slot, content) in world.slots() {
        let Content::Running(occupant) = content else { continue };
        let rows = world.sm.rows.get(&occupant.identity.port.port_guid);
        if let Some((epoch, row)) = rows.filter(|(_, row)| *row != slot && !astray) {
            return Err(format!(
                "{} runs in {slot}, and its rows of epoch {epoch} lead to {row}",
                occupant.vm
            ));
        }
    }
    Ok(())
}

/// A machine whose client has the answer that it runs is listed, unless a client asked to end it.
fn check_promises(world: &World, known: &BTreeSet<VmName>) -> Result<(), String> {
    let mut promised = BTreeSet::new();
    for (id, reply) in &world.replies {
        let Ok(Reply::Created(made)) = reply else { continue };
        let ended_later = |name: &VmName| {
            world.asked.range(id..).any(|(_, request)| match request {
                Request::Destroy(vm) => vm == name,
                Request::Forget { vm, .. } => vm == name,
                _ => false,
            })
        };
        // Replies come in another order than requests: a machine that was asked to end at any time is left out.
        let asked = |name: &VmName| {
            world.asked.values().any(
                |request| matches!(request, Request::Destroy(vm) | Request::Forget { vm, .. } if vm == name),
            )
        };
        promised.extend(made.iter().map(|(name, _)| name).filter(|name| !ended_later(name) && !asked(name)));
    }
    match promised.into_iter().find(|name| !known.contains(*name) && world.journals_lost == 0) {
        Some(name) => Err(format!("{name} ran, no one asked to end it, and it is not listed")),
        None => Ok(()),
    }
}

/// Requests have one answer each, unless the manager died.
fn check_answers(world: &World) -> Result<(), String> {
    let unanswered = world.asked.keys().filter(|id| !world.replies.contains_key(id)).count();
    if unanswered > 0 && world.life == 1 {
        return Err(format!("{unanswered} requests have no answer"));
    }
    Ok(())
}

/// What is wrong after the schedule of `seed`, if anything is; otherwise what happened, and a hash of all commands.
fn run(seed: u64, trace: TraceMode) -> Result<(Counts, u64), String> {
    let mut random = Random::of_purpose(seed, "schedule");
    let mut world = world(seed, &mut random);
    world.log = (trace == TraceMode::Lines).then(Vec::new);
    let checked =
        play(&mut world, random).and_then(|()| check_rest(&world)).and_then(|()| check_answers(&world));
    match checked {
        Ok(()) => Ok((counts(&world), world.hash)),
        Err(wrong) => {
            let log = world.log.take().unwrap_or_default().join("\n");
            Err(format!(
                "seed {seed} (WEFT_SEED={seed} replays it), {:?}\n{log}\n  {wrong}\n",
                world.options.scheme
            ))
        }
    }
}

/// The seeds of one of four parts, so that they run beside each other.
fn part(part: u64) {
    let Some((mut counts, seeds)) = run_part(part, (SCHEDULES, TWICE), run, Counts::sum) else { return };
    if seeds < RARE_KINDS {
        // A test of its own has it, and so have more seeds.
        counts.set(RESCUED, counts.get(RESCUED).max(1));
    }
    if seeds >= ALL_KINDS {
        counts.all_happened();
    }
}

seeds::four_parts!(part);
