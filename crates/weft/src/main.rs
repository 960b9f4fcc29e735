//! `weft`: one program for everything.

fn main() -> std::process::ExitCode {
    weft::main()
}
