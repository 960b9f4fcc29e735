//! `weft-pm`: the same as the hidden `weft pm`, for containers.

fn main() -> std::process::ExitCode {
    weft::pm_main()
}
