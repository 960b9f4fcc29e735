//! `weft status`

use anyhow::Context;
use weft_umad::lock;

use crate::lab::{LabFolder, LabRecord, Place};
use crate::output::{print, print_json};
use crate::sm_process::SmStatus;

pub(super) fn run(folder: &LabFolder, json: bool) -> anyhow::Result<()> {
    let record = LabRecord::load(folder)?;
    let lock = folder.place(Place::SmLock);
    let holder = lock::holder(&lock).with_context(|| format!("cannot ask who locks {}", lock.display()))?;
    let status = SmStatus::load(&folder.place(Place::SmStatus))?;
    if json {
        let running = holder.is_some();
        return print_json(&serde_json::json!({ "lab": folder.name(), "running": running, "sm": status }));
    }
    let mut text = format!("laboratory `{}` of {}\n", folder.name(), record.topology);
    text += match (&record.sm, holder) {
        (None, _) => "no subnet manager (--no-sm)\n",
        (Some(_), None) => "the subnet manager is not running; this is what it said last:\n",
        (Some(_), Some(_)) => "the subnet manager is running\n",
    };
    if let Some(status) = status {
        text += &status.to_string();
    }
    print(&text)
}
