//! The image of weft that tests in containers use.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{output_of, weft_program};

/// The image of the program that was built with this test; it goes when this is dropped.
pub struct Image(String);

impl Image {
    /// Makes it.
    ///
    /// # Panics
    /// When `cargo xtask image` fails.
    pub fn make() -> Self {
        Self::packed("weft-test", &[])
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
        let image = Self(format!("{name}:{}", std::process::id()));
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["xtask", "image", "--tag", &image.0, "--binary"]).arg(weft_program()).args(options);
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
        let container = docker(&["create", &self.0, "weft"]).trim().to_owned();
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
        let image = Self(format!("weft-idle:{}", std::process::id()));
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
        import.args(["import", "--change", "ENV PATH=/bin", "-", &image.0]).stdin(archive);
        output_of(&mut import);
        assert!(packed.wait().expect("it was started").success(), "tar fails");
        image
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ =
            Command::new("docker").args(["image", "rm", "--force", &self.0]).stdout(Stdio::null()).status();
    }
}
