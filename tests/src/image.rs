//! The image of weft that tests in containers use.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{output_of, weft_program};

/// The image of the program that was built with this test; it goes when this is dropped.
pub struct Image(String);

impl Image {
    /// Makes it.
    ///
    /// # Panics
    /// When `cargo xtask image` fails.
    pub fn make() -> Self {
        let image = Self(format!("weft-test:{}", std::process::id()));
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["xtask", "image", "--tag", &image.0, "--binary"]).arg(weft_program());
        output_of(command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")));
        image
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
