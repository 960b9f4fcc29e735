//! Requests and replies of the VM manager's machine, as the control protocol has them.

use std::collections::BTreeMap;

use weft_control::vmm::{VmCreate, VmMigrate, VmMigration, VmPlace, VmStage, VmWay};
use weft_control::{Answer, Error, ErrorCode, Request as Asked};
use weft_machine::Time;
use weft_vm::{
    BadName, Create, Detach, Hypervisor, Migrate, Migration, MovePlan, PlanWrite, Reply, Request, Route,
    Silent, Slot, Stages, VmError,
};
use weft_wire::Guid;

/// A client's request; `None` for one that is for another kind of process.
pub(crate) fn request(asked: Asked) -> Option<Result<Request, Error>> {
    let made = match asked {
        Asked::VmCreate(VmCreate { rate_mbps: Some(0), .. }) => return Some(Err(error(&VmError::RateZero))),
        Asked::VmCreate(create) => self::create(create),
        Asked::VmDestroy { vm } => vm.parse().map(Request::Destroy),
        Asked::VmMigrate(migrate) => self::migrate(migrate),
        Asked::VmPlan(way) => plan(&way),
        Asked::VmForget { vm, force } => vm.parse().map(|vm| Request::Forget { vm, force }),
        _ => return None,
    };
    Some(made.map_err(|error: BadName| Error::new(ErrorCode::InvalidRequest, error.to_string())))
}

fn create(create: VmCreate) -> Result<Request, BadName> {
    let host = create.host.map(|host| host.parse()).transpose()?;
    let (vf, count, guid) = (create.vf, create.count, create.guid.map(|guid| guid.0));
    let (p_keys, rate_mbps) = (create.p_keys, create.rate_mbps.unwrap_or(0));
    let plain = Create::new(create.name.parse()?, host);
    Ok(Request::Create(Create { vf, count, guid, p_keys, rate_mbps, ..plain }))
}

fn migrate(migrate: VmMigrate) -> Result<Request, BadName> {
    let ms = Time::from_millis;
    let VmMigrate { way, cold, early_detach, pre_copy_ms, stop_copy_ms, resume_ms } = migrate;
    let hypervisor =
        Hypervisor { pre_copy: ms(pre_copy_ms), stop_copy: ms(stop_copy_ms), resume: ms(resume_ms) };
    Ok(Request::Migrate(Migrate {
        vm: way.vm.parse()?,
        host: way.host.parse()?,
        cold,
        detach: if early_detach { Detach::Early } else { Detach::Late },
        hypervisor,
        route: route(&way),
    }))
}

fn plan(way: &VmWay) -> Result<Request, BadName> {
    Ok(Request::Plan { vm: way.vm.parse()?, host: way.host.parse()?, route: route(way) })
}

fn route(way: &VmWay) -> Route {
    Route { method: way.method, order: way.update, late: way.late }
}

/// The answer to a client.
pub(crate) fn reply(result: Result<Reply, VmError>, names: &BTreeMap<Guid, String>) -> Result<Answer, Error> {
    Ok(match result.map_err(|error| crate::vmm::translate::error(&error))? {
        Reply::Created(made) => {
            let places = made.into_iter().map(|(vm, slot)| place(vm.to_string(), &slot));
            Answer::VmCreate { vms: places.collect() }
        }
        Reply::Destroyed | Reply::Forgotten => Answer::Done,
        Reply::Migrated(migration) => Answer::VmMigrate(Box::new(migrated(*migration, names))),
        Reply::List(list) => Answer::Vms { vports: list, more: false },
        Reply::Plan(plan) => planned(*plan, names),
    })
}

fn error(error: &VmError) -> Error {
    let code = match error {
        VmError::UnknownVm(_) | VmError::UnknownHost(_) | VmError::UnknownSlot { .. } => ErrorCode::NotFound,
        VmError::BadName(_)
        | VmError::GuidZero
        | VmError::FleetSize(_)
        | VmError::FleetShares
        | VmError::NoPartition(_)
        | VmError::DefaultPartition
        | VmError::PartitionTwice(_)
        | VmError::TooManyPKeys { .. }
        | VmError::RateZero => ErrorCode::InvalidRequest,
        VmError::QueueFull => ErrorCode::TooMany,
        VmError::NoPlan(_) | VmError::Undone { .. } | VmError::NotStarted { .. } => ErrorCode::Failed,
        _ => ErrorCode::Conflict,
    };
    Error { hint: error.hint(), ..Error::new(code, error.to_string()) }
}

fn place(vm: String, slot: &Slot) -> VmPlace {
    VmPlace { vm, host: slot.host.to_string(), vf: slot.vf }
}

fn migrated(migration: Migration, names: &BTreeMap<Guid, String>) -> VmMigration {
    let Migration { vm, from, to, stages, counts, silent, notes } = migration;
    let vm = vm.to_string();
    VmMigration {
        from: place(vm.clone(), &from),
        to: place(vm, &to),
        stages: crate::vmm::translate::stages(&stages),
        downtime_ns: stages.downtime.map(Time::as_nanos),
        runs_again_ns: stages.runs_again.map(Time::as_nanos),
        silent_after_ns: stages.silent_after.map(Time::as_nanos),
        total_ns: stages.total.as_nanos(),
        counts,
        silent: self::silent(silent, names),
        notes,
    }
}

fn stages(stages: &Stages) -> Vec<VmStage> {
    let told = |(stage, took): (&str, Time)| VmStage { stage: stage.to_owned(), took_ns: took.as_nanos() };
    stages.named().map(told).collect()
}

fn planned(plan: MovePlan, names: &BTreeMap<Guid, String>) -> Answer {
    let named = |write: PlanWrite| PlanWrite { name: name(names, write.switch), ..write };
    let writes = plan.writes.into_iter().map(named).collect();
    Answer::VmPlan { counts: plan.counts, writes, silent: silent(plan.silent, names) }
}

fn silent(switches: Vec<Silent>, names: &BTreeMap<Guid, String>) -> Vec<Silent> {
    switches.into_iter().map(|one| Silent { name: name(names, one.switch), ..one }).collect()
}

/// What people call a switch.
fn name(names: &BTreeMap<Guid, String>, switch: Guid) -> String {
    names.get(&switch).cloned().unwrap_or_default()
}
