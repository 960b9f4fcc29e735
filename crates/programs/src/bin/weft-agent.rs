//! `weft-agent`: the same as the hidden `weft agent`, for containers.

fn main() -> std::process::ExitCode {
    weft::agent_main()
}
