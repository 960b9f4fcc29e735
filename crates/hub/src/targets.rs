//! Prometheus' HTTP service discovery: the processes of a laboratory that serve metrics, as JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use weft_control::process::ProcessKind;

/// A process that serves metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name.
    pub process: String,
    /// Its kind.
    pub kind: ProcessKind,
    /// Where it serves them: `host:port`.
    pub address: String,
    /// Whether it speaks TLS and asks for the laboratory's token.
    pub is_guarded: bool,
    /// The description of the device that it runs, if it runs exactly one.
    pub node: Option<String>,
}

/// A group of targets, as Prometheus reads it.
#[derive(Serialize)]
struct Group<'a> {
    targets: [&'a str; 1],
    labels: BTreeMap<&'static str, Cow<'a, str>>,
}

/// The answer to Prometheus: a group for each process.
pub(crate) fn discovery(lab: &str, targets: &[Target]) -> serde_json::Result<String> {
    let groups: Vec<Group<'_>> = targets.iter().map(|target| group(lab, target)).collect();
    serde_json::to_string(&groups)
}

fn group<'a>(lab: &'a str, target: &'a Target) -> Group<'a> {
    let mut labels: BTreeMap<&'static str, Cow<'a, str>> = BTreeMap::from([
        ("__scheme__", if target.is_guarded { "https" } else { "http" }.into()),
        ("__metrics_path__", "/metrics".into()),
        ("job", target.kind.job().unwrap_or_default().into()),
        ("kind", target.kind.name().into()),
        ("lab", lab.into()),
        ("process", target.process.as_str().into()),
    ]);
    if let Some(node) = &target.node {
        labels.insert("node", node.as_str().into());
    }
    Group { targets: [&target.address], labels }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_says_how_it_is_scraped() {
        let target = |process: &str, kind, node: Option<&str>| Target {
            process: process.to_owned(),
            kind,
            address: "127.0.0.1:20001".to_owned(),
            is_guarded: kind == ProcessKind::Agent,
            node: node.map(str::to_owned),
        };
        let targets =
            [target("sm", ProcessKind::Sm, None), target("a0", ProcessKind::Agent, Some("h \"1\"\n"))];
        assert_eq!(
            discovery("x5", &targets).expect("texts are JSON"),
            concat!(
                r#"[{"targets":["127.0.0.1:20001"],"labels":{"__metrics_path__":"/metrics","__scheme__":"http","#,
                r#""job":"weft-sm","kind":"sm","lab":"x5","process":"sm"}},"#,
                r#"{"targets":["127.0.0.1:20001"],"labels":{"__metrics_path__":"/metrics","__scheme__":"https","#,
                r#""job":"weft-agent","kind":"agent","lab":"x5","node":"h \"1\"\n","process":"a0"}}]"#
            )
        );
        assert_eq!(discovery("x5", &[]).expect("a list"), "[]");
    }
}
