//! Rates of a laboratory that carries out no experiment, as the user names them.

use std::path::Path;

use weft_bundle::failure::Failure;
pub use weft_experiment::Shaping;

/// The rates that a text names: `key=value,…` with the keys of an experiment's `[rates]`, or else an experiment's file.
///
/// # Errors
/// When the file cannot be read, or a key or value is wrong.
pub fn read(text: &str) -> anyhow::Result<Shaping> {
    let path = Path::new(text);
    let is_file = !text.contains('=') || path.is_file();
    let shaping = if is_file {
        let missing = |error| {
            Failure::bad_input(format!("--rates: cannot read {text}: {error}"))
                .hint("name an experiment's file, or write `dilation=1000,lanes=2`: docs/experiments.md lists the keys of [rates]")
        };
        Shaping::of_file(text, &weft_bundle::input::read_to_string(path).map_err(missing)?)
    } else {
        Shaping::of_line(text)
    };
    shaping.map_err(|error| Failure::bad_input(format!("--rates: {error}")).into())
}
