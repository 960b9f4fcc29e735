//! `weft compose`

use weft_bundle::failure::Failure;
use weft_lab::deploy::compose::{Containers, InvalidPublish, Publish, render};
use weft_lab::deploy::watch::WATCH;

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
    if args.prometheus.is_some() && args.containers.bundle.is_none() && args.containers.plan.metrics.is_none()
    {
        return Err(nothing_to_scrape());
    }
    let (folder, record) = containers::bundle(name, &args.containers, Some(SERVICES_MAX))?;
    if args.prometheus.is_some() && record.metrics_port().is_none() {
        return Err(nothing_to_scrape());
    }
    print(&render(
        &record,
        &Containers {
            bundle: &folder,
            image: &args.containers.image,
            tools: &args.containers.tools,
            prometheus: args.prometheus.as_deref().map(|image| (image, &prometheus_door)),
            user,
            watch: folder.join(WATCH).is_dir(),
            door: &door,
        },
    ))
}

fn nothing_to_scrape() -> anyhow::Error {
    Failure::bad_input("--prometheus has nothing to scrape").hint("plan the laboratory with --metrics").into()
}

fn publish(text: &str, option: &str) -> anyhow::Result<Publish> {
    text.parse().map_err(|error: InvalidPublish| {
        Failure::bad_input(error.to_string()).hint(format!("give {option}, or an address and a port")).into()
    })
}
