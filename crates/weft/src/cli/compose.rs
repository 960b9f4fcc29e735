//! The options of `weft compose` and `weft k8s`.

use std::path::PathBuf;

use clap::Args;

use super::plan::PlanArgs;

/// What containers are planned with, whatever starts them.
#[derive(Debug, Args)]
pub(crate) struct ContainerArgs {
    /// Topology file, as `ibnetdiscover` prints it
    #[arg(required_unless_present = "bundle")]
    pub(crate) file: Option<PathBuf>,

    /// Print the file of a bundle that was written before, and plan nothing
    #[arg(long, value_name = "DIR")]
    pub(crate) bundle: Option<PathBuf>,

    /// Folder of the bundle; it must be empty or not exist [default: the laboratory's name]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Image of all processes
    #[arg(long, value_name = "IMAGE", default_value = "weft")]
    pub(crate) image: String,

    /// With --sm opensm: image with OpenSM, which `cargo xtask image --tools` makes
    #[arg(long, value_name = "IMAGE", default_value = "weft-tools")]
    pub(crate) tools: String,

    /// With --metrics: image with Prometheus, which is to scrape the laboratory and has weft's rules and consoles
    #[arg(long, value_name = "IMAGE")]
    pub(crate) prometheus: Option<String>,

    /// Image of Grafana, which is to show weft's dashboards
    #[arg(long, value_name = "IMAGE", requires = "prometheus")]
    pub(crate) grafana: Option<String>,

    /// What the laboratory is planned with
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
}

/// `compose`
#[derive(Debug, Args)]
pub(crate) struct ComposeArgs {
    /// UDP port at which the hub lets clients in, on all addresses of the host, or ADDR:PORT; `docker stack deploy` takes a
    /// port alone
    #[arg(long, value_name = "[ADDR:]PORT", default_value = "7443")]
    pub(crate) door: String,

    /// TCP port at which Prometheus lets clients in, on all addresses of the host, or ADDR:PORT
    #[arg(long, value_name = "[ADDR:]PORT", default_value = "127.0.0.1:9090", requires = "prometheus")]
    pub(crate) prometheus_door: String,

    /// TCP port at which Grafana lets clients in, on all addresses of the host, or ADDR:PORT
    #[arg(long, value_name = "[ADDR:]PORT", default_value = "127.0.0.1:3000", requires = "grafana")]
    pub(crate) grafana_door: String,

    /// User and group that processes run as, who must own the bundle [default: yours]
    #[arg(long, value_name = "UID:GID")]
    pub(crate) user: Option<String>,

    /// What does not depend on Docker
    #[command(flatten)]
    pub(crate) containers: ContainerArgs,
}

/// `k8s`
#[derive(Debug, Args)]
pub(crate) struct KubernetesArgs {
    /// UDP port of all nodes at which the hub lets clients in
    #[arg(long, value_name = "PORT", default_value_t = 30743, value_parser = clap::value_parser!(u16).range(30_000..=32_767))]
    pub(crate) door: u16,

    /// User and group that processes run as
    #[arg(long, value_name = "UID:GID", default_value = "65532:65532")]
    pub(crate) user: String,

    /// Namespace that is made for the laboratory [default: its name]
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// Storage class of the volumes that the hub and the VM manager claim; '' takes volumes that were made by hand [default: the
    /// cluster's default class, without which these pods stay Pending]
    #[arg(long, value_name = "NAME")]
    pub(crate) storage_class: Option<String>,

    /// With --metrics: namespace of the Prometheus that may scrape
    #[arg(long, value_name = "NAME", default_value = "monitoring")]
    pub(crate) scrape_from: String,

    /// What does not depend on Kubernetes
    #[command(flatten)]
    pub(crate) containers: ContainerArgs,
}
