//! A laboratory of its own for each live run.

use std::time::{Duration, Instant};

use weft_bundle::config::hub::HubConfig;
use weft_bundle::config::run::RunOptions;
use weft_bundle::folder::Base;
use weft_bundle::names::SM;
use weft_bundle::plan::vfs::unplugged;
use weft_bundle::plan::wanted::{Wanted, WantedPm, WantedSm, random_sa_key};
use weft_experiment::{Plan, Recording};
use weft_lab::scene::{Guests, TapeTo, Taping};
use weft_lab::start;
use weft_lab::view::Lab;
use weft_machine::Time;

use super::live::Live;
use super::stage::perform;

/// Links of a laboratory whose processes may be kept waiting by traffic.
const LINK_TIMEOUT_MS: u64 = 5000;
/// How long a laboratory may take to come up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes one run in a laboratory of its own, which ends with it.
pub(super) fn in_laboratory(
    base: &Base,
    name: &str,
    plan: &Plan,
    tape: Option<&TapeTo>,
    tell: &dyn Fn(Time) -> anyhow::Result<()>,
) -> anyhow::Result<Recording> {
    let mut sm = plan.sm.clone();
    let adapters = plan.vms.as_ref().map(|vms| vms.adapters.as_slice()).unwrap_or_default();
    let is_dynamic = plan.vms.as_ref().is_some_and(|vms| vms.is_dynamic);
    if plan.vms.is_some() {
        sm.keys.sa_key = random_sa_key();
    }
    let wanted = Wanted {
        adapters,
        empty_slots: is_dynamic,
        sa_key: sm.keys.sa_key,
        sm: Some(WantedSm { at: plan.sm_at, options: sm, partitions: None }),
        pms: plan.pm.clone().map(|options| WantedPm { at: plan.pm_at, options }).into_iter().collect(),
        vmms: plan.vms.iter().map(|vms| vms.vmm_at).collect(),
        device: plan.device.clone(),
        hosts: Some(plan.stack.clone()),
        cables: (plan.cable_delay, plan.cable_delays.clone()),
        link_timeout_ms: Some(LINK_TIMEOUT_MS),
        ..Wanted::bare(&plan.fabric, plan.file.clone())
    };
    let empty = adapters.iter().filter(|_| is_dynamic).flat_map(|adapter| adapter.vfs.iter().copied());
    let manager = [(SM.to_owned(), plan.sm_at)];
    let goal = start::goal(&unplugged(&plan.fabric, empty), manager, PATIENCE);
    let run = start::Run { options: &RunOptions::default(), hub: HubConfig::default(), tape: None };
    start::with(base, name, &start::From::Plan(&wanted), run, goal, Instant::now(), |mut launcher| {
        let lab = Lab::load(&base.lab(name)?)?;
        let folder = lab.folder.clone();
        let mut stage = Live::new(plan, &mut launcher, lab)?;
        let guests = Guests::default();
        let taping = tape.map(|to| Taping::begin(&folder, to, guests.clone())).transpose()?;
        if taping.is_some() {
            stage.tell_guests(guests);
        }
        stage.begin()?;
        let recording = perform(plan, &mut stage, tell)?;
        taping.map_or(Ok(()), |taping| taping.end().map(drop))?;
        Ok(recording)
    })
}
