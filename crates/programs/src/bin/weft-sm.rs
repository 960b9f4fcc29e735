//! `weft-sm`: the same as the hidden `weft sm`, for containers.

fn main() -> std::process::ExitCode {
    weft::sm_main()
}
