//! `weft events`

mod lines;
mod wanted;

use weft_bundle::folder::LabFolder;
use weft_lab::events::{Follower, Teller, Told, remembered, say_silent, say_without_hub};
use weft_lab::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use weft_lab::view::Lab;
use weft_process::utc_now;

use self::lines::{Form, Lines};
use self::wanted::Wanted;
use crate::cli::events::EventsArgs;
use crate::output::{print, say};

pub(super) fn run(folder: &LabFolder, args: &EventsArgs) -> anyhow::Result<()> {
    let wanted = Wanted::of(folder, args, utc_now())?;
    let form = match (args.json, args.fields) {
        (true, _) => Form::Json,
        (false, true) => Form::Fields,
        (false, false) => Form::Sentences,
    };
    // While a laboratory comes up or goes, its cabling may not be there: then nodes keep the names that they give.
    let lab = if args.json { None } else { Lab::load(folder).ok() };
    let lines = Lines::new(form, lab.as_ref().map(|lab| &lab.fabric));
    let show_all = |told: Vec<Told>| {
        let wanted = told.iter().filter(|told| wanted.takes(told));
        print(&wanted.map(|told| lines.of(told, utc_now())).collect::<String>())
    };
    if !args.follow {
        let (past, teller) = remembered(folder, &[])?;
        if teller == Teller::Processes {
            say_without_hub(folder);
        }
        say_silent(folder, &past.silent);
        return show_all(past.told);
    }
    // To stop listening is the way in which this ends.
    let stop = Signals::watch(&[SIGINT, SIGTERM, SIGHUP])?;
    let (mut follower, past) = Follower::begin(folder, args.since.is_some())?;
    say("following events; press Ctrl-C to end");
    show_all(past)?;
    while let Some(told) = follower.next(&stop)? {
        show_all(told)?;
    }
    Ok(())
}
