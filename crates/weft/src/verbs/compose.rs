//! `weft compose`

use super::containers;
use crate::cli::ComposeArgs;
use crate::deploy::compose::{Containers, Publish, render};
use crate::failure::Failure;
use crate::output::print;

/// Services on one network: a bridge of Linux has 1023 ports.
const SERVICES_MAX: usize = 1000;

pub(super) fn run(name: Option<&str>, args: &ComposeArgs) -> anyhow::Result<()> {
    let door: Publish = args.door.parse().map_err(|error: String| {
        Failure::bad_input(error).hint("give --door a port such as 7443, or an address and a port")
    })?;
    let own = || (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let user = args.user.as_deref().map(containers::user_of).transpose()?.unwrap_or_else(own);
    let (folder, record) = containers::bundle(name, &args.containers, Some(SERVICES_MAX))?;
    let image = &args.containers.image;
    print(&render(&record, &Containers { bundle: &folder, image, user, door: &door }))
}
