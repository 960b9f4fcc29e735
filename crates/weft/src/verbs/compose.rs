//! `weft compose`

use weft_bundle::failure::Failure;
use weft_bundle::folder::bundle::Bundle;
use weft_deploy::compose::{Containers, InvalidPublish, Publish, render};
use weft_deploy::watch;

use super::containers;
use crate::cli::compose::ComposeArgs;
use crate::output::print;

/// Services on one network: a bridge of Linux has 1023 ports.
const SERVICES_MAX: usize = 1000;

pub(super) fn run(name: Option<&str>, args: &ComposeArgs) -> anyhow::Result<()> {
    let door = publish(&args.door, "--door a port such as 7443")?;
    let prometheus_door = publish(&args.prometheus_door, "--prometheus-door a port such as 9090")?;
    let own = || (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let user = args.user.as_deref().map(containers::user_of).transpose()?.unwrap_or_else(own);
    let grafana_door = publish(&args.grafana_door, "--grafana-door a port such as 3000")?;
    let (folder, record) = containers::bundle(name, &args.containers, Some(SERVICES_MAX))?;
    print(&render(
        &record,
        &Containers {
            bundle: &folder,
            image: &args.containers.image,
            tools: &args.containers.tools,
            prometheus: args.containers.prometheus.as_deref().map(|image| (image, &prometheus_door)),
            grafana: args.containers.grafana.as_deref().map(|image| (image, &grafana_door)),
            user,
            watch: watch::is_in(&Bundle::at(&folder)),
            door: &door,
        },
    ))
}

fn publish(text: &str, option: &str) -> anyhow::Result<Publish> {
    text.parse().map_err(|error: InvalidPublish| {
        Failure::bad_input(error.to_string()).hint(format!("give {option}, or an address and a port"))
    })
}
