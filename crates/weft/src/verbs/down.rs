//! `weft down`

use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_lab::orphans;
use weft_lab::spread::{Spread, ended_on};
use weft_lab::teardown::{clear_unfinished, take_down};
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
        // Down again is still down: a name that nobody has is no error.
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
        let hosts = match Spread::load(&lab)? {
            Some(spread) => end_parts(&spread, &lab, args.forget)?,
            None => String::new(),
        };
        let done = take_down(&lab)?;
        let (processes, killed) = (count_of(done.processes, "process"), killed(done.killed));
        crate::output::say(&format!("took down `{name}`{hosts}: {processes} ended{killed}"));
    }
    Ok(())
}

/// How many of those that were ended did not end by themselves.
fn killed(count: usize) -> String {
    if count > 0 { format!(", {count} of them killed") } else { String::new() }
}

/// Takes down what runs on other hosts. As long as some is left, the laboratory stays known here.
fn end_parts(spread: &Spread, lab: &LabFolder, forget: bool) -> anyhow::Result<String> {
    let left = ended_on(spread, lab.name(), &spread.hosts)?;
    let hosts = || spread.hosts.iter().filter(|host| left.iter().all(|(other, _)| other != *host));
    let ended = hosts().map(String::as_str).collect::<Vec<_>>().join(", ");
    let Some((host, why)) = left.first() else { return Ok(format!(" on {ended}, and here")) };
    for (host, why) in left.iter().skip(usize::from(!forget)) {
        crate::output::say(&format!("warning: what runs on {host} is left: {why}"));
    }
    if forget {
        return Ok(format!(" on {ended}, and here"));
    }
    let others = if left.len() > 1 { format!(" and {} more", left.len() - 1) } else { String::new() };
    let name = lab.name();
    Err(Failure::new(format!("`{name}` runs on, on {host}{others}: {why}"))
        .hint(format!(
            "`weft down --lab {name}` tries again; `weft down --lab {name} --forget` leaves the host alone, where \
             `weft down --lab {name}` ends what runs"
        ))
        .into())
}
