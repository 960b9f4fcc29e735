//! `weft sysfs`

use std::time::Duration;

use weft_bundle::folder::LabFolder;
use weft_lab::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use weft_lab::view::Lab;
use weft_process::readable;
use weft_tools::sysfs::{DEVICE, write};

use crate::cli::shell::SysfsArgs;
use crate::output::say;

pub(super) fn run(folder: &LabFolder, args: &SysfsArgs) -> anyhow::Result<()> {
    let lab = Lab::load_live(folder)?;
    let node = lab.node_or_seat(args.node.as_deref())?;
    let mut stop = Signals::watch(&[SIGINT, SIGTERM, SIGHUP])?;
    write(&lab, node, &args.dir)?;
    let name = lab.fabric.label(node);
    say(&format!("wrote `{name}` as {DEVICE} to {}", args.dir.join("class/infiniband").display()));
    if let Some(seconds) = args.every {
        while !readable(&stop, Some(Duration::from_secs(seconds)))? {
            write(&lab, node, &args.dir)?;
        }
        stop.arrived();
    }
    Ok(())
}
