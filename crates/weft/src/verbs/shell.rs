//! `weft shell`

use std::process::ExitCode;

use weft_bundle::folder::LabFolder;
use weft_lab::view::Lab;
use weft_tools::{Options, Tool};

use crate::cli::shell::ShellArgs;
use crate::output::say;

pub(super) fn run(folder: &LabFolder, args: ShellArgs) -> anyhow::Result<ExitCode> {
    let ShellArgs { at, ibsim, sysfs, command } = args;
    let is_shell = command.is_empty();
    let tool = Tool::new(&Lab::load_live(folder)?, &Options { at, ibsim, sysfs, command })?;
    if is_shell {
        say(&format!("a shell at `{}`; leave it with `exit`", tool.place));
    }
    tool.run()
}
