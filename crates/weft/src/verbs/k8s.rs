//! `weft k8s`

use weft_bundle::failure::Failure;
use weft_bundle::folder::bundle::Bundle;
use weft_deploy::kubernetes::{Cluster, is_namespace, is_object_name, render};

use super::containers;
use crate::cli::compose::KubernetesArgs;
use crate::output::print;

pub(super) fn run(name: Option<&str>, args: &KubernetesArgs) -> anyhow::Result<()> {
    let user = containers::user_of(&args.user)?;
    if user.0 == 0 {
        return Err(Failure::bad_input("Kubernetes starts no process of weft as root")
            .hint("give --user another number, such as 65532:65532"));
    }
    for namespace in args.namespace.iter().chain([&args.scrape_from]) {
        check_namespace(namespace)?;
    }
    if let Some(class) =
        args.storage_class.as_ref().filter(|class| !class.is_empty() && !is_object_name(class))
    {
        return Err(Failure::bad_input(format!("`{class}` cannot be a storage class of Kubernetes"))
            .hint("`kubectl get storageclass` lists those of a cluster"));
    }
    let (folder, record) = containers::bundle(name, &args.containers, None)?;
    let namespace = args.namespace.as_ref().unwrap_or(&record.lab);
    check_namespace(namespace)?;
    let cluster = Cluster {
        image: &args.containers.image,
        tools: &args.containers.tools,
        user,
        namespace,
        door: args.door,
        storage_class: args.storage_class.as_deref(),
        scrape_from: &args.scrape_from,
        prometheus: args.containers.prometheus.as_deref(),
        grafana: args.containers.grafana.as_deref(),
    };
    print(&render(&record, &Bundle::at(&folder), &cluster)?)
}

fn check_namespace(name: &str) -> anyhow::Result<()> {
    if is_namespace(name) {
        return Ok(());
    }
    Err(Failure::bad_input(format!("`{name}` cannot be a namespace of Kubernetes"))
        .hint("give --namespace up to 63 lower-case letters, digits and `-`"))
}
