//! What a sweep costs the manager.

fn main() {
    divan::main();
}
