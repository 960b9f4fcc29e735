//! `weft plan`

use weft_bundle::folder::bundle::Draft;
use weft_bundle::place::groups::Groups;
use weft_bundle::place::hosts::Hosts;
use weft_bundle::plan;
use weft_bundle::plan::places::Places;
use weft_bundle::plan::wanted::Wanted;
use weft_bundle::ports::Search;
use weft_bundle::record::LabRecord;

use super::up;
use crate::cli::plan::PlanCommand;
use crate::output::say;

pub(super) fn run(name: Option<&str>, args: &PlanCommand) -> anyhow::Result<()> {
    let (file, out) = (&args.file, &args.out);
    let base = crate::front::base();
    // A name that `up` would refuse.
    let lab = base.lab(name.unwrap_or(up::DEFAULT_NAME))?;
    let cabling = up::cabling(file, &args.plan)?;
    let mut wanted = up::wanted(&cabling, file, &args.plan)?;
    wanted.hosted.clone_from(&args.hosts);
    // One host for each agent leaves managers none that could be named.
    if args.hosts.as_ref().is_some_and(|hosts| !matches!(hosts, Hosts::Listed(_)))
        && !std::mem::take(&mut wanted.vmms).is_empty()
    {
        say("no VM manager is planned: it would have no host; `--hosts a,b,c` gives it its agent's");
    }
    let draft = Draft::begin(out)?;
    let record = into(&draft, lab.name(), &wanted)?;
    let bundle = draft.finish()?;
    let agents = weft_wire::count_of(record.agents.len(), "agent");
    say(&format!("wrote {}: the laboratory `{}` of {agents}", bundle.path().display(), record.lab));
    Ok(())
}

/// Plans into a draft.
pub(super) fn into(draft: &Draft, lab: &str, wanted: &Wanted<'_>) -> anyhow::Result<LabRecord> {
    weft_process::raise_file_limit();
    let groups = Groups::new(wanted.fabric, wanted.adapters, wanted.pack);
    let places = Places::choose(&crate::front::base(), wanted, &groups, Search::for_later())?;
    plan::write(draft.bundle(), lab, wanted, &groups, &places)
}
