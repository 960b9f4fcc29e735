//! Content of the image: a bill of materials (CycloneDX 1.5), and the licences.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand, Package, PackageId, TargetKind};
use serde_json::{Value, json};

use super::command::said;

/// Names of files with the terms of a crate.
const TERMS: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];

/// The platform that programs are built for.
pub(super) fn host() -> Result<String> {
    let told = said("rustc", &["-vV"])?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc tells no host")
}

/// A library that the program loads.
struct Library {
    package: String,
    version: String,
    terms: String,
}

/// All that is inside.
pub(super) struct Inside {
    /// None if weft is not.
    crates: Vec<Package>,
    libraries: Vec<Library>,
}

impl Inside {
    /// The crates in the program, as cargo knows them, and the Debian packages of the libraries beside it.
    pub(super) fn of_program(libraries: &[PathBuf]) -> Result<Self> {
        let mut packages = BTreeMap::new();
        for library in libraries {
            // Outside Debian the libraries stand without their packages' names.
            if let Some(library) = debian(library) {
                packages.insert(library.package.clone(), library);
            }
        }
        Ok(Self { crates: in_program()?, libraries: packages.into_values().collect() })
    }

    /// The Debian packages that a root folder has, and the crates in weft's program if that is there.
    pub(super) fn of_root(rootfs: &Path, has_weft: bool) -> Result<Self> {
        let known = format!("--admindir={}", rootfs.join("var/lib/dpkg").display());
        let listed = said("dpkg-query", &[&known, "-W", "-f", "${Package} ${Version}\n"])?;
        let library = |line: &str| {
            let (package, version) = line.split_once(' ')?;
            let terms = fs::read(rootfs.join("usr/share/doc").join(package).join("copyright"));
            // Some refer to another package's, which is here too.
            let terms = terms.map(|terms| String::from_utf8_lossy(&terms).into_owned()).unwrap_or_default();
            Some(Library { package: package.to_owned(), version: version.to_owned(), terms })
        };
        let libraries = listed.lines().filter_map(library).collect();
        Ok(Self { crates: if has_weft { in_program()? } else { Vec::new() }, libraries })
    }

    /// The bill of materials.
    pub(super) fn bill(&self) -> Result<String> {
        let crates = self.crates.iter().filter(|package| package.source.is_some()).map(of_crate);
        let libraries = self.libraries.iter().map(|library| {
            let Library { package, version, .. } = library;
            let purl = format!("pkg:deb/debian/{package}@{version}");
            json!({"type": "library", "name": package, "version": version, "purl": purl})
        });
        let components: Vec<Value> = crates.chain(libraries).collect();
        let own = self.crates.iter().find(|package| package.name.as_str() == "weft");
        let about = own.map(|own| {
            json!({"component": {"type": "application", "name": "weft", "version": own.version.to_string(),
                "licenses": [{"expression": own.license}]}})
        });
        let bill = json!({"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": about.unwrap_or_else(|| json!({})), "components": components});
        Ok(serde_json::to_string_pretty(&bill)? + "\n")
    }

    /// The list of licences, and then the terms of all, each text once.
    pub(super) fn licences(&self) -> String {
        let mut text = String::from("What is inside, and under which terms.\n\n");
        let mut terms: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for package in self.crates.iter().filter(|package| package.source.is_some()) {
            let name = format!("{} {}", package.name, package.version);
            text += &format!("{name}: {}\n", package.license.as_deref().unwrap_or("see below"));
            for own in terms_of(package) {
                terms.entry(own).or_default().insert(name.clone());
            }
        }
        for library in &self.libraries {
            let name = format!("{} {}", library.package, library.version);
            text += &format!("{name}: see below\n");
            terms.entry(library.terms.clone()).or_default().insert(name);
        }
        for (own, names) in terms {
            let names: Vec<String> = names.into_iter().collect();
            text += &format!("\n---- {} ----\n\n{}\n", names.join(", "), own.trim_end());
        }
        text
    }
}

fn of_crate(package: &Package) -> Value {
    let (name, version) = (package.name.as_str(), package.version.to_string());
    let purl = format!("pkg:cargo/{name}@{version}");
    let licences: Vec<Value> =
        package.license.iter().map(|licence| json!({"expression": licence.replace('/', " OR ")})).collect();
    json!({"type": "library", "name": name, "version": version, "purl": purl, "licenses": licences})
}

/// The crates whose code is in the program: what weft depends on, but for what runs while it is compiled.
fn in_program() -> Result<Vec<Package>> {
    let options = ["--locked", "--filter-platform", &host()?].map(str::to_owned).to_vec();
    let metadata = MetadataCommand::new().other_options(options).exec()?;
    let resolve = metadata.resolve.as_ref().context("cargo resolves nothing")?;
    let nodes: BTreeMap<&PackageId, _> = resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    let packages: BTreeMap<&PackageId, &Package> =
        metadata.packages.iter().map(|package| (&package.id, package)).collect();
    let first =
        metadata.packages.iter().find(|package| package.name.as_str() == "weft").context("no weft")?;
    let (mut todo, mut seen) = (vec![&first.id], BTreeSet::from([&first.id]));
    while let Some(id) = todo.pop() {
        let node = nodes.get(id).context("a crate without a node")?;
        for needed in &node.deps {
            let is_linked = needed.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal);
            let package = packages.get(&needed.pkg).context("a crate without a package")?;
            let is_macro = package.targets.iter().any(|target| target.kind.contains(&TargetKind::ProcMacro));
            if is_linked && !is_macro && seen.insert(&needed.pkg) {
                todo.push(&needed.pkg);
            }
        }
    }
    let mut found: Vec<Package> =
        seen.iter().filter_map(|id| packages.get(id)).map(|p| (*p).clone()).collect();
    found.sort_by(|a, b| (a.name.as_str(), &a.version).cmp(&(b.name.as_str(), &b.version)));
    Ok(found)
}

/// The texts that a crate comes with.
fn terms_of(package: &Package) -> Vec<String> {
    let folder = package.manifest_path.parent().map(|folder| folder.as_std_path().to_owned());
    let entries = folder.and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let is_terms = |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
        path.is_file() && TERMS.iter().any(|begins| name.starts_with(begins))
    };
    let paths = entries.map(|entry| entry.path()).filter(|path| is_terms(path));
    paths.filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// The Debian package of a library.
fn debian(library: &Path) -> Option<Library> {
    let real = fs::canonicalize(library).ok()?;
    // Since /usr was merged, packages know files by either name.
    let names = [real.clone(), library.to_owned(), Path::new("/").join(real.strip_prefix("/usr").ok()?)];
    let owner = names.iter().find_map(|name| said("dpkg", &["-S", name.to_str()?]).ok())?;
    let package = owner.split(':').next()?.to_owned();
    let version = said("dpkg-query", &["-W", "-f", "${Version}", &package]).ok()?;
    let terms = fs::read_to_string(format!("/usr/share/doc/{package}/copyright")).ok()?;
    Some(Library { package, version, terms })
}
