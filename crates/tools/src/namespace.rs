//! A mount namespace in which `/sys/class` has an InfiniBand device.
//!
//! sysfs takes no new folders, so a folder of its own is laid over `/sys/class`: everything that was there, bound to
//! its place, and the device's tree beside it. Only the program and its children see it, and nothing is left of it.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;
use weft_bundle::failure::Failure;

/// Ways to a mount namespace: as the same user in a user namespace, or as one who may mount.
const WAYS: [&[&str]; 2] = [&["--map-current-user", "--keep-caps", "--mount"], &["--mount"]];

/// Takes over the tree, lays it over `/sys/class`, removes it, and becomes the program.
const SCRIPT: &str = r#"
set -e
tree=$1
shift
stage=$tree/stage
mkdir "$stage"
mount -t tmpfs weft "$stage"
for class in /sys/class/*; do
    name=${class##*/}
    case $name in infiniband | infiniband_mad) continue ;; esac
    mkdir "$stage/$name"
    mount --rbind "$class" "$stage/$name"
done
cp -R "$tree/class/." "$stage"
mount --rbind "$stage" /sys/class
umount -l "$stage"
rm -r "$tree"
exec env "$@"
"#;

/// A command that runs a program over the tree, once the program and its `NAME=VALUE` environment are added.
pub(crate) fn command(tree: &Path) -> anyhow::Result<Command> {
    let mut refusal = String::new();
    for way in WAYS {
        let mut probe = Command::new("unshare");
        let probed = probe.args(way).arg("true").stdin(Stdio::null()).output();
        let probed = probed.context("`--sysfs` needs `unshare` of util-linux")?;
        if probed.status.success() {
            let mut command = Command::new("unshare");
            command.args(way).args(["sh", "-c", SCRIPT, "weft-shell"]).arg(tree);
            return Ok(command);
        }
        refusal = String::from_utf8_lossy(&probed.stderr).trim().to_owned();
    }
    std::fs::remove_dir_all(tree).with_context(|| format!("cannot remove {}", tree.display()))?;
    Err(Failure::new(format!("this machine allows no mount namespace ({refusal})"))
        .hint("`weft sysfs` writes the same files for programs that can be told where to look"))
}

/// `NAME=VALUE` for `env`.
pub(crate) fn assignment(name: &str, value: &OsString) -> OsString {
    let mut assignment = OsString::from(name);
    assignment.push("=");
    assignment.push(value);
    assignment
}
