//! The image of weft that tests in containers use.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{output_of, weft_program};

/// An image that is there already, and that tests in containers use in place of one of their own: the static one that
/// `cargo xtask image` makes, for instance.
const GIVEN: &str = "WEFT_TEST_IMAGE";

/// The image of the program that was built with this test; it goes when this is dropped, unless it was given.
pub struct Image {
    name: String,
    is_given: bool,
}

impl Image {
    /// Makes it, or takes the one that `WEFT_TEST_IMAGE` names.
    ///
    /// # Panics
    /// When `cargo xtask image` fails, or a given image is not there or of another version than the program of these tests.
    pub fn make() -> Self {
        match std::env::var(GIVEN) {
            Ok(name) if !name.is_empty() => Self::given(name),
            _ => Self::packed("weft-test", &[]),
        }
    }

    fn given(name: String) -> Self {
        let version = output_of(Command::new("docker").args([
            "run",
            "--rm",
            "--pull",
            "never",
            "--network",
            "none",
            &name,
            "--version",
        ]));
        assert_eq!(version, output_of(Command::new(weft_program()).arg("--version")), "{GIVEN}={name}");
        eprintln!("containers are of the image {name}");
        Self { name, is_given: true }
    }

    fn named(name: &str) -> Self {
        Self { name: format!("{name}:{}", std::process::id()), is_given: false }
    }

    /// The image of tools, with the program and the library that were built with this test. Needs debootstrap, and to be root.
    ///
    /// # Panics
    /// When `cargo xtask image` fails.
    pub fn tools() -> Self {
        let library = weft_program().with_file_name("libweft_umad.so");
        Self::packed("weft-tools", &["--tools".as_ref(), "--library".as_ref(), library.as_os_str()])
    }

    fn packed(name: &str, options: &[&OsStr]) -> Self {
        let image = Self::named(name);
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["xtask", "image", "--tag", &image.name, "--binary"]).arg(weft_program()).args(options);
        output_of(command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")));
        image
    }

    /// What its bill of materials says is inside.
    ///
    /// # Panics
    /// When there is none, or a part has no address.
    pub fn parts(&self) -> Vec<String> {
        let docker = |arguments: &[&str]| output_of(Command::new("docker").args(arguments));
        // It is not started, so the command does not matter, but an image without one wants it.
        let container = docker(&["create", &self.name, "weft"]).trim().to_owned();
        let mut copied = Command::new("docker")
            .args(["cp", &format!("{container}:/usr/share/doc/weft"), "-"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("docker is there");
        let piped = copied.stdout.take().expect("piped");
        let listed = Command::new("tar").args(["-xO", "weft/sbom.cdx.json"]).stdin(piped).output();
        assert!(copied.wait().expect("it was started").success(), "docker cp fails");
        docker(&["rm", &container]);
        let bill: Value = serde_json::from_slice(&listed.expect("tar is there").stdout).expect("it is JSON");
        let components = bill["components"].as_array().expect("it lists what is inside");
        assert!(components.iter().all(|part| part["purl"].is_string()), "{bill}");
        let name = |part: &Value| part["name"].as_str().expect("all have names").to_owned();
        components.iter().map(name).collect()
    }

    /// An image of `sleep` and what it loads.
    ///
    /// # Panics
    /// When Docker does not import it.
    pub fn idle() -> Self {
        let image = Self::named("weft-idle");
        let program = "/bin/sleep";
        let loaded = output_of(Command::new("ldd").arg(program));
        let files = loaded.split_whitespace().filter(|word| word.starts_with('/')).chain([program]);
        let mut packed = Command::new("tar")
            .args(["--create", "--dereference", "--absolute-names"])
            .args(files)
            .stdout(Stdio::piped())
            .spawn()
            .expect("tar is there");
        let archive = packed.stdout.take().expect("piped");
        let mut import = Command::new("docker");
        import.args(["import", "--change", "ENV PATH=/bin", "-", &image.name]).stdin(archive);
        output_of(&mut import);
        assert!(packed.wait().expect("it was started").success(), "tar fails");
        image
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if self.is_given {
            return;
        }
        let _ = Command::new("docker")
            .args(["image", "rm", "--force", &self.name])
            .stdout(Stdio::null())
            .status();
    }
}
