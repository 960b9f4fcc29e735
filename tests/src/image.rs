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
