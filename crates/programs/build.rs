//! Links the programs to fixed addresses. A program that can lie anywhere has its tables of pointers put right when it
//! starts, which makes a copy of them in each process; a laboratory has hundreds, and they all share one without.

fn main() {
    println!("cargo::rustc-link-arg-bins=-no-pie");
    println!("cargo::rerun-if-changed=build.rs");
}
