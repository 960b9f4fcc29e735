//! `weft down`

use weft_lab::orphans;
use weft_lab::site::{self, Stopped};
use weft_lab::teardown::clear_unfinished;
use weft_wire::count_of;

use crate::cli::DownArgs;

pub(super) fn run(lab: Option<&str>, args: &DownArgs) -> anyhow::Result<()> {
    weft_process::raise_file_limit();
    let base = crate::front::base();
    let left = clear_unfinished(&base)?;
    if left > 0 {
        crate::output::say(&format!("cleared what {} left", count_of(left, "crashed launcher")));
    }
    let orphans = orphans::end(&base, lab)?;
    for (name, ended) in &orphans {
        let (processes, killed) = (count_of(ended.processes, "process"), killed(ended.killed));
        crate::output::say(&format!("ended {processes} of `{name}`, whose folder is gone{killed}"));
    }
    let labs = match (args.all, lab) {
        (true, _) => {
            let mut labs = base.labs()?;
            labs.extend(base.unfinished()?);
            labs
        }
        // Down again is still down: a name that no one has is no error.
        (false, Some(name)) => vec![base.lab(name)?],
        (false, None) if base.labs()?.is_empty() => base.unfinished()?,
        (false, None) => vec![base.select(None)?],
    };
    if labs.is_empty() && orphans.is_empty() {
        crate::output::say("no laboratory is running");
    }
    for lab in labs {
        let name = lab.name();
        if !lab.exists()? {
            if !orphans.contains_key(name) {
                crate::output::say(&format!("no laboratory `{name}` is running"));
            }
            continue;
        }
        let Stopped { here, hosts } = site::of(&lab)?.stop(args.forget)?;
        let hosts =
            if hosts.is_empty() { String::new() } else { format!(" on {}, and here", hosts.join(", ")) };
        let (processes, killed) = (count_of(here.processes, "process"), killed(here.killed));
        crate::output::say(&format!("took down `{name}`{hosts}: {processes} ended{killed}"));
    }
    Ok(())
}

/// How many of those that were ended did not end by themselves.
fn killed(count: usize) -> String {
    if count > 0 { format!(", {count} of them killed") } else { String::new() }
}
