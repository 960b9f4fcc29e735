//! `weft-vmm`: the same as the hidden `weft vmm`, for containers.

fn main() -> std::process::ExitCode {
    weft::vmm_main()
}
