//! Images of other people's programs, from Debian's packages: nothing is pulled. Each package keeps its licence in
//! `/usr/share/doc`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, ensure};

use super::rootfs::{document, put, strip};
use super::{docker, sbom};

/// The packages of the image of tools.
pub(super) const TOOLS: &str = "opensm,infiniband-diags";
/// Where the image of tools has weft's stand-in for libibumad; compose files name it.
const LIBRARY: &str = "usr/lib/weft/libweft_umad.so";
/// Where it has weft's program, which finds the library from there.
const PROGRAM: &str = "usr/bin/weft";
/// What the image's processes find without a path, and where weft may write.
const ENVIRONMENT: [&str; 2] = ["ENV PATH=/usr/sbin:/usr/bin:/sbin:/bin", "ENV WEFT_HOME=/run/weft/home"];
/// What only apt needs.
const LEFTOVERS: [&str; 2] = ["var/cache/apt/archives", "var/lib/apt/lists"];

/// What such an image is made of.
pub(super) struct Tools {
    /// Debian packages.
    pub(super) packages: String,
    /// weft's stand-in for libibumad and its program, if the programs are to use them.
    pub(super) weft: Option<Weft>,
}

/// What of weft is in the image.
pub(super) struct Weft {
    pub(super) library: PathBuf,
    pub(super) program: PathBuf,
}

/// Makes one.
pub(super) fn make(root: &Path, tools: &Tools, tag: &str) -> Result<()> {
    let rootfs = root.join("target/tools/rootfs");
    if rootfs.exists() {
        fs::remove_dir_all(&rootfs).with_context(|| format!("cannot remove {}", rootfs.display()))?;
    }
    fs::create_dir_all(&rootfs).with_context(|| format!("cannot make {}", rootfs.display()))?;
    bootstrap(&tools.packages, &rootfs)?;
    for leftovers in LEFTOVERS {
        let _ = fs::remove_dir_all(rootfs.join(leftovers));
    }
    if let Some(weft) = &tools.weft {
        put(&weft.library, &rootfs.join(LIBRARY))?;
        put(&weft.program, &rootfs.join(PROGRAM))?;
        for own in [LIBRARY, PROGRAM] {
            strip(&rootfs.join(own));
        }
    }
    document(root, &sbom::Inside::of_root(&rootfs, tools.weft.is_some())?, &rootfs)?;
    // Whoever its user is may write where a volume or memory is mounted.
    let run = rootfs.join("run/weft");
    fs::create_dir_all(&run).with_context(|| format!("cannot make {}", run.display()))?;
    fs::set_permissions(&run, fs::Permissions::from_mode(0o1777))?;
    import(&rootfs, tag)
}

/// Fills a folder with the packages and what they need.
fn bootstrap(packages: &str, rootfs: &Path) -> Result<()> {
    let release = fs::read_to_string("/etc/os-release").context("cannot tell which Debian this is")?;
    let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let suite = suite.context("cannot tell which Debian this is: /etc/os-release has no VERSION_CODENAME")?;
    let status = Command::new("debootstrap")
        .args(["--variant=minbase", &format!("--include={packages}"), suite])
        .arg(rootfs)
        .stdout(Stdio::null())
        .env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()))
        .status();
    let hint = "Debian has it in the package debootstrap";
    let status = status.map_err(|error| anyhow!("cannot start debootstrap: {error}\nhint: {hint}"))?;
    ensure!(status.success(), "debootstrap failed with {status}\nhint: it must be run as root");
    Ok(())
}

/// Makes the folder an image.
fn import(rootfs: &Path, tag: &str) -> Result<()> {
    let mut tar = Command::new("tar")
        .args(["--numeric-owner", "-c", "."])
        .current_dir(rootfs)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start tar")?;
    let packed = tar.stdout.take().context("tar has no output")?;
    let imported = Command::new("docker")
        .arg("import")
        .args(ENVIRONMENT.iter().chain(&["USER 65532:65532"]).flat_map(|change| ["--change", change]))
        .args(["-", tag])
        .stdin(packed)
        .stdout(Stdio::null())
        .status()
        .context("cannot start docker")?;
    ensure!(tar.wait().context("cannot wait for tar")?.success(), "tar failed");
    ensure!(imported.success(), "docker cannot import {}", rootfs.display());
    let size = docker::said(&["image", "inspect", "--format", "{{.Size}}", tag])?;
    let megabytes = size.trim().parse::<f64>().context("docker tells no size")? / 1e6;
    eprintln!("made the image {tag} of {megabytes:.0} MB");
    Ok(())
}
