//! The container image: a folder with the program, the libraries that it loads and the licences of all that is inside, packed by the
//! Dockerfile's target `pack`.

mod command;
mod docker;
mod rootfs;
mod sbom;
mod tools;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use command::said;
use rootfs::{document, put, strip, write};
use tools::{Tools, Weft};

/// What may be written to where a file system is mounted there. The user is not known yet, so any may.
const SCRATCH: [&str; 2] = ["run/weft", "tmp"];

/// The profile of the program in an image.
const PROFILE: &str = "container";

/// The arguments of `cargo xtask image`.
#[derive(Default)]
struct Options {
    /// The program; built without it.
    binary: Option<PathBuf>,
    /// The image's name.
    tag: Option<String>,
    /// Only fill this folder.
    stage: Option<PathBuf>,
    /// An image of these Debian packages instead.
    packages: Option<String>,
    /// The same of OpenSM and infiniband-diags, with weft and its stand-in for libibumad.
    tools: bool,
    /// That stand-in; built without it.
    library: Option<PathBuf>,
}

/// What an image with weft's programs has at most: a mark against regressions, since 20.4 was measured.
const MEGABYTES_MAX: f64 = 21.0;

/// Makes the image.
pub(crate) fn make(root: &Path, arguments: &[String]) -> Result<()> {
    let options = options(arguments)?;
    if options.stage.is_none() {
        docker::ready()?;
    }
    if options.tools || options.packages.is_some() {
        return make_tools(root, options);
    }
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => build(root)?,
    };
    let context = options.stage.clone().unwrap_or_else(|| root.join("target/image"));
    stage(root, &binary, &context)?;
    if options.stage.is_some() {
        return Ok(());
    }
    fs::copy(root.join("Dockerfile"), context.join("Dockerfile")).context("cannot copy the Dockerfile")?;
    let context = context.to_str().context("the folder's name must be UTF-8")?;
    let tag = options.tag.as_deref().unwrap_or("weft");
    docker::said(&["build", "--quiet", "--target", "pack", "--tag", tag, context])?;
    let size = docker::said(&["image", "inspect", "--format", "{{.Size}}", tag])?;
    let megabytes = size.trim().parse::<f64>().context("docker tells no size")? / 1e6;
    eprintln!("made the image {tag} of {megabytes:.1} MB");
    if options.binary.is_none() && megabytes > MEGABYTES_MAX {
        bail!("it has more than {MEGABYTES_MAX} MB");
    }
    Ok(())
}

/// Builds the program for an image: without libraries, which are larger than what of them is used.
fn build(root: &Path) -> Result<PathBuf> {
    let host = sbom::host()?;
    let is_static = format!("target.{host}.rustflags=[\"-Ctarget-feature=+crt-static\"]");
    let options = ["--config", &is_static, "--target", &host, "--profile", PROFILE, "--locked"];
    // At fixed addresses, as crates/weft/build.rs wants programs; with `-no-pie` alone the linker would ask for a loader.
    let mut program = vec!["-p", "weft", "--bin", "weft", "--", "-Crelocation-model=static"];
    // What is the same stands there once: a megabyte less. Other machines' linkers and back ends do not all know how.
    if host.starts_with("x86_64") {
        program.extend(["-Clink-arg=-Wl,--icf=all", "-Cllvm-args=-inline-threshold=20"]);
        program.push("-Cllvm-args=-enable-machine-outliner=always");
    }
    crate::cargo(&[&["rustc"], &options[..], &program].concat())?;
    Ok(root.join("target").join(host).join(PROFILE).join("weft"))
}

/// Makes an image of other people's programs.
fn make_tools(root: &Path, options: Options) -> Result<()> {
    let built = root.join("target/release");
    let has_weft = options.tools || options.library.is_some();
    let weft = has_weft.then(|| Weft {
        library: options.library.clone().unwrap_or_else(|| built.join("libweft_umad.so")),
        program: options.binary.clone().unwrap_or_else(|| built.join("weft")),
    });
    if has_weft && (options.library.is_none() || options.binary.is_none()) {
        crate::cargo(&["build", "--release", "--locked", "-p", "weft", "-p", "weft-umad-preload"])?;
    }
    let packages = options.packages.unwrap_or_else(|| tools::TOOLS.to_owned());
    let tag = options.tag.unwrap_or_else(|| "weft-tools".to_owned());
    tools::make(root, &Tools { packages, weft }, &tag)
}

fn options(arguments: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut arguments = arguments.iter();
    while let Some(option) = arguments.next() {
        if option == "--tools" {
            options.tools = true;
            continue;
        }
        let value = arguments.next();
        match (option.as_str(), value) {
            ("--binary", Some(value)) => options.binary = Some(value.into()),
            ("--tag", Some(value)) => options.tag = Some(value.clone()),
            ("--stage", Some(value)) => options.stage = Some(value.into()),
            ("--packages", Some(value)) => options.packages = Some(value.clone()),
            ("--library", Some(value)) => options.library = Some(value.into()),
            _ => bail!(
                "`{option}` makes no sense\n\
                 hint: cargo xtask image [--binary FILE] [--tag NAME] [--stage DIR], or cargo xtask image --tools [--binary FILE] [--library FILE] \
                 [--packages A,B] [--tag NAME]"
            ),
        }
    }
    Ok(options)
}

/// Fills a folder with what the builder needs.
fn stage(root: &Path, binary: &Path, context: &Path) -> Result<()> {
    // One that does not start here would not do so in a container.
    let path = binary.to_str().context("the program's path must be UTF-8")?;
    said(path, &["--version"]).context("the program does not run")?;
    let rootfs = context.join("rootfs");
    if rootfs.exists() {
        fs::remove_dir_all(&rootfs).with_context(|| format!("cannot remove {}", rootfs.display()))?;
    }
    let libraries = libraries(binary)?;
    put(binary, &rootfs.join("weft"))?;
    let program = rootfs.join("weft");
    strip(&program);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    for library in &libraries {
        put(library, &rootfs.join(library.strip_prefix("/").unwrap_or(library)))?;
    }
    write(&rootfs.join("etc/nsswitch.conf"), "hosts: files dns\n")?;
    for folder in SCRATCH {
        let folder = rootfs.join(folder);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777))?;
    }
    put(&root.join("LICENSE-MIT"), &context.join("LICENSE-MIT"))?;
    document(root, &sbom::Inside::of_program(&libraries)?, &rootfs)
}

/// The libraries that a program loads, its loader among them; none if it is static.
fn libraries(binary: &Path) -> Result<Vec<PathBuf>> {
    anyhow::ensure!(
        binary.exists(),
        "{} is not there\nhint: build it, or leave out --binary",
        binary.display()
    );
    let output = Command::new("ldd").arg(binary).output().context("cannot start ldd")?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    if told.contains("not found") {
        bail!("a library of {} is missing:\n{told}", binary.display());
    }
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    // Of a static program it says so on standard error, and there are no paths.
    Ok(told.lines().filter_map(path).filter(|path| path.exists()).collect())
}
