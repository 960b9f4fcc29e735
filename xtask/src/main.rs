//! The project's chores: `cargo xtask ci` is everything that must hold before a change lands.
//!
//! `layers`, `tidy` and `wasm` can be run alone; the first two are tests as well, so `cargo nextest run` never misses them.
//! `deny` holds licences and sources of dependencies against deny.toml.
//! `schema` writes the published schemas and the tables of docs/control.md; a test finds them out of date.
//! `image` packs the program into a container image, and `image --tools` OpenSM and infiniband-diags. `fidelity OUT…` writes docs/fidelity.md from docs/fidelity.toml and the reports that `weft run --report OUT` wrote; `fidelity` alone takes those of the page. `fuzz --minutes N` searches with every fuzz target. `long OUT` is what takes hours.

mod ci;
mod deny;
mod fidelity;
mod files;
mod fuzz;
mod image;
mod layers;
mod lengths;
mod modules;
mod schema;
mod signatures;
mod smp;
mod tidy;
mod voice;
mod wasm;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

fn main() -> ExitCode {
    let chore = std::env::args().nth(1).unwrap_or_default();
    match run(&chore) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(chore: &str) -> Result<()> {
    match chore {
        "ci" => ci::run(&root()),
        "deny" => deny::check(&root()),
        "fidelity" => fidelity::write(&root(), &std::env::args().skip(2).collect::<Vec<_>>()),
        "fuzz" => fuzz::search(&root(), &std::env::args().skip(2).collect::<Vec<_>>()),
        "long" => long(&std::env::args().nth(2).context("name a folder for reports: cargo xtask long OUT")?),
        "image" => image::make(&root(), &std::env::args().skip(2).collect::<Vec<_>>()),
        "layers" => layers::check().and_then(|()| modules::check(&root())),
        "schema" => schema::write(&root()),
        "tidy" => tidy::check(&root()),
        "wasm" => wasm::check(&root()),
        other => {
            bail!(
                "no chore {other:?}\nhint: one of ci, deny, fidelity, fuzz, image, layers, long, schema, tidy, wasm"
            )
        }
    }
}

/// Tests that go further when the environment says so.
const LONG_TESTS: &str = "test(/^(churn|tenants|vm_levels|vm_peers|vm_schedules|vm_silence|vm_numbers)::/)";

/// Tests with machines and engines of their own.
const LONG_LABORATORIES: &str = "test(/^(hosts|rough|swarm|kinds|old_compose|tools_image|prepopulated|apart|containers|docs|page|vm_silence)::/)";

/// The image that is shipped, of the static program: in the long tier tests' containers are of it, those of the usual ones too.
const IMAGE: &str = "weft";

/// How long each fuzz target searches.
const FUZZ_MINUTES: &str = "5";

/// Schedules on processes wait more than they work: with five of each part at once, they keep two cores busy.
const AT_ONCE: (&str, &str) = ("WEFT_AT_ONCE", "5");

/// The long tier: every experiment with all its seeds, in virtual time, the study of migrations, and all engines beside OpenSM's on hundreds of fabrics.
/// Everything runs even if something fails; then it fails. Runs that have ended are not made again when it is started again.
fn long(out: &str) -> Result<()> {
    let out = std::path::absolute(out).with_context(|| format!("cannot find {out}"))?;
    let out = out.to_str().context("the folder's name must be UTF-8")?;
    let run = |arguments: &[&str]| cargo(&[&["run", "--profile", "dist", "--locked"], arguments].concat());
    let nextest = |package: &str, filter: &str, environment: &[(&str, &str)]| {
        let all = ["nextest", "run", "--release", "--locked", "--profile", "long", "-p", package];
        cargo_with(&[&all[..], &["-E", filter]].concat(), environment)
    };
    let parts = [
        run(&["-p", "weft", "--", "run", "experiments/", "--all", "--virtual", "--resume", "--report", out]),
        conditions(run, out),
        run(&["-p", "weft-sim", "--example", "crossbars"]),
        nextest(
            "weft-sim",
            LONG_TESTS,
            &[("WEFT_SCHEDULES", "1000"), ("WEFT_MOVES", "100"), ("WEFT_TREES", "6"), ("WEFT_ROWS", "3")],
        ),
        nextest("weft-sim", "test(/^chaos::/)", &[("WEFT_SCHEDULES", "10000")]),
        nextest("weft-vm", "test(/^simulation::/)", &[("WEFT_SCHEDULES", "1000")]),
        nextest("weft-routing", "test(/^moves::/)", &[("WEFT_TREES", "4")]),
        run(&[
            "-p",
            "weft",
            "--",
            "study",
            "migrations",
            "--table4",
            "--report",
            &format!("{out}/migrations"),
        ]),
        fuzz::search(&root(), &["--minutes".to_owned(), FUZZ_MINUTES.to_owned()]),
        smp_costs(run, out),
        // Laboratories need the programs, and OpenSM the library that stands in for libibumad.
        cargo(&["build", "--release", "--workspace", "--locked"]),
        cargo(&["xtask", "image", "--tag", IMAGE]),
        nextest("weft-judges", LONG_LABORATORIES, &[("WEFT_TEST_IMAGE", IMAGE)]),
        nextest("weft-judges", "test(/^takeovers::/)", &[("WEFT_ROUNDS", "20")]),
        run(&["-p", "weft-judges", "--example", "containers_beside_idle"]),
        live(run, out),
        nextest("weft", "test(/^vm_schedules::/)", &[("WEFT_SCHEDULES", "1000"), AT_ONCE]),
        nextest(
            "weft",
            "test(/^vm_schedules::/)",
            &[("WEFT_SCHEDULES", "100"), ("WEFT_LIDS", "prepopulated"), AT_ONCE],
        ),
        nextest("weft", "test(/^chaos::/)", &[("WEFT_CHAOS_MINUTES", "20")]),
        run(&["-p", "weft-judges", "--example", "moves_beside_opensm"]),
        run(&["-p", "weft-judges", "--example", "routes_beside_opensm"]),
        run(&["-p", "weft-judges", "--example", "routes_beside_opensm", "8", "200", "parallel"]),
    ];
    let failed: Vec<String> =
        parts.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("\n")) }
}

/// Every experiment but those on 648 hosts, also with other buffers, packet sizes and rate scale. docs/conditions.md is the page that this makes.
fn conditions(run: impl Fn(&[&str]) -> Result<()>, out: &str) -> Result<()> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root().join("experiments")).context("cannot read experiments/")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".toml") && !name.starts_with("tree-648") {
            files.push(format!("experiments/{name}"));
        }
    }
    files.sort();
    let report = format!("{out}/conditions");
    let head =
        ["-p", "weft", "--", "run", "--virtual", "--conditions", "--resume", "--report", report.as_str()];
    run(&head.into_iter().chain(files.iter().map(String::as_str)).collect::<Vec<_>>())
}

/// Experiments with moves on processes.
fn live(run: impl Fn(&[&str]) -> Result<()>, out: &str) -> Result<()> {
    let report = format!("{out}/live");
    let files = [
        "vm-peers",
        "migration-cost",
        "live-migration-3",
        "unlike-hosts",
        "migration-signalling-2",
        "isolation",
        "dftree-1-shares",
    ];
    let done = files.map(|name| {
        run(&["-p", "weft", "--", "run", &format!("experiments/{name}.toml"), "--report", &report])
    });
    done.into_iter().collect()
}

/// The constants of the equations on six switches: not held back, for the rate that is wanted, and as slow as the paper's, for figure 7.
fn smp_costs(run: impl Fn(&[&str]) -> Result<()>, out: &str) -> Result<()> {
    let file = format!("{out}/six.topo");
    let weft = |verb: &[&str]| run(&[&["-p", "weft", "--", "--lab", "bench-smp"], verb].concat());
    weft(&["topo", "gen", "xgft", "--children", "2,4", "--parents", "1,2", "-o", &file])?;
    let freely = smp_bench(weft, &["up", &file], &format!("{out}/rates/smp"));
    let report = format!("{out}/smp");
    let held = smp_bench(weft, &["up", &file, "--smp-processing-us", "390"], &report);
    freely.and(held)?;
    fidelity::is_near(&report, "4608 LFT updates", 0.05)
}

/// Measures in a laboratory, which is taken down however that ends, and shows what the report comes to.
fn smp_bench(weft: impl Fn(&[&str]) -> Result<()>, up: &[&str], report: &str) -> Result<()> {
    weft(up)?;
    let measured = weft(&["bench", "smp", "--lft", "--allow-busy", "--report", report]);
    let ended = weft(&["down"]);
    measured.and(ended)?;
    eprintln!("{}", smp::judge(report)?);
    Ok(())
}

fn cargo(arguments: &[&str]) -> Result<()> {
    cargo_with(arguments, &[])
}

fn cargo_with(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    eprintln!("+ cargo {}", arguments.join(" "));
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root())
        .status()
        .context("cannot start cargo")?;
    if status.success() { Ok(()) } else { bail!("`cargo {}` failed", arguments.join(" ")) }
}

/// The project's root: the folder above this package.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root").to_owned()
}
