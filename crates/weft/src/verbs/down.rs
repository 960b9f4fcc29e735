//! `weft down`

use super::count_of;
use crate::cli::DownArgs;
use crate::lab::teardown::{clear_unfinished, take_down};
use crate::lab::{Base, process};

pub(super) fn run(lab: Option<&str>, args: &DownArgs) -> anyhow::Result<()> {
    process::raise_file_limit();
    let base = Base::locate();
    let left = clear_unfinished(&base)?;
    if left > 0 {
        crate::output::say(&format!("cleared what {} left", count_of(left, "crashed launcher")));
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
    if labs.is_empty() {
        crate::output::say("no laboratory is running");
    }
    for lab in labs {
        let name = lab.name();
        if !lab.exists()? {
            crate::output::say(&format!("no laboratory `{name}` is running"));
            continue;
        }
        let done = take_down(&lab)?;
        let killed =
            if done.killed > 0 { format!(", {} of them killed", done.killed) } else { String::new() };
        crate::output::say(&format!("took down `{name}`: {} processes ended{killed}", done.processes));
    }
    Ok(())
}
