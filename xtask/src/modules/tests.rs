//! Small crates, one for each rule: with the rule they have a knot or none, and without it the other.

use std::collections::BTreeMap;
use std::path::Path;

use super::known::Known;
use super::rooms::{Knot, Rooms};
use super::sources::{Sources, module};

/// The knots of a crate, which is given as names of files and their texts.
fn knots_of(files: &[(&str, &str)]) -> Vec<Knot> {
    let file = |(name, text): &(&str, &str)| {
        Some((module(Path::new(name))?, (*name).to_owned(), (*text).to_owned()))
    };
    Rooms::of(&Sources::of(&files.iter().filter_map(file).collect::<Vec<_>>()).unwrap()).knots()
}

/// The rooms of each knot.
fn of(files: &[(&str, &str)]) -> Vec<String> {
    let shown = |knot: &Knot| knot.members.iter().map(|room| room.join("::")).collect::<Vec<_>>().join(" ");
    knots_of(files).iter().map(shown).collect()
}

const NONE: [&str; 0] = [];

#[test]
fn the_list_of_knots_is_right() {
    super::check(&crate::root()).unwrap();
}

#[test]
fn the_chores_are_checked_too() {
    assert!(super::crates().any(|(name, folder)| name == "xtask" && folder == "xtask/src"));
    assert!(super::crates().any(|(name, folder)| name == "wire" && folder == "crates/wire/src"));
}

#[test]
fn files_in_a_circle_are_a_knot() {
    let two =
        [("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", "fn f() { super::a::g(); }")];
    assert_eq!(of(&two), ["a b"]);
    let three = [
        ("a.rs", "use super::{b::{B, C as D}};"),
        ("b.rs", "use crate::c;"),
        ("c.rs", "m!(1 + crate::a::X);"),
        ("lib.rs", ""),
    ];
    assert_eq!(of(&three), ["a b c"]);
    let nested = [
        ("a.rs", "use crate::b::inner::X;"),
        ("b/mod.rs", "mod inner;"),
        ("b/inner.rs", "use crate::a::Y;"),
        ("lib.rs", ""),
    ];
    assert_eq!(of(&nested), ["a b"]);
}

#[test]
fn a_knot_has_the_sites_of_its_edges() {
    let two = [
        ("a.rs", "//! A.\n\nuse crate::b::B;\nuse crate::c::C;"),
        ("b.rs", "fn f() {\n    super::a::g();\n}"),
        ("c.rs", ""),
    ];
    let room = |name: &str| vec![name.to_owned()];
    let edges = [
        (room("a"), room("b"), vec!["a.rs:3".to_owned()]),
        (room("b"), room("a"), vec!["b.rs:2".to_owned()]),
    ];
    assert_eq!(knots_of(&two)[0].edges, edges);
}

#[test]
fn folders_are_rooms_though_no_file_needs_itself() {
    let folders = [
        ("lib.rs", ""),
        ("a/mod.rs", ""),
        ("a/high.rs", "use crate::b::low::X;"),
        ("a/low.rs", ""),
        ("b/mod.rs", ""),
        ("b/high.rs", "use crate::a::low::X;"),
        ("b/low.rs", ""),
    ];
    assert_eq!(of(&folders), ["a b"]);
    let file = [
        ("lib.rs", ""),
        ("a/mod.rs", ""),
        ("a/x.rs", "use crate::b::B;"),
        ("a/y.rs", ""),
        ("b.rs", "use crate::a::y::Y;"),
    ];
    assert_eq!(of(&file), ["a b"]);
    let deeper = [
        ("lib.rs", ""),
        ("p/mod.rs", ""),
        ("p/a/mod.rs", ""),
        ("p/b/mod.rs", ""),
        ("p/a/x.rs", "use crate::p::b::y::X;"),
        ("p/a/y.rs", ""),
        ("p/b/x.rs", "use super::super::a::y::X;"),
        ("p/b/y.rs", ""),
    ];
    assert_eq!(of(&deeper), ["p::a p::b"]);
}

#[test]
fn one_direction_is_no_knot() {
    let down = [
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", ""),
        ("b/mod.rs", ""),
        ("a/x.rs", "use crate::b::y::Y;"),
        ("a/y.rs", "use super::x::X;"),
        ("b/y.rs", ""),
    ];
    assert_eq!(of(&down), NONE);
    let ancestors = [
        ("lib.rs", "mod a; pub fn f() {} use a::A;"),
        ("a/mod.rs", "mod b; use b::B; pub struct A; fn g() { crate::f() }"),
        ("a/b.rs", "use super::A; use crate::a::A as C; use crate::f;"),
    ];
    assert_eq!(of(&ancestors), NONE);
}

#[test]
fn a_re_export_counts_as_the_module_it_is_from() {
    let of_root = |root: &str| {
        of(&[("lib.rs", root), ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::A; struct B;")])
    };
    assert_eq!(of_root("mod a; mod b; pub struct A;"), NONE);
    assert_eq!(of_root("mod a; mod b; pub use a::A;"), ["a b"]);
    assert_eq!(of_root("mod a; mod b; pub(crate) use self::a::{Other as A, C};"), ["a b"]);
    assert_eq!(of_root("mod a; mod b; use a::A;"), ["a b"]);
    assert_eq!(of_root("mod a; mod b; pub use somewhere::A;"), NONE);
    let globs = [
        ("lib.rs", "mod a; mod b; mod c; pub use a::*; pub use c::*;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "fn f(a: crate::A) {} struct B;"),
        ("c.rs", "use crate::b::B; pub struct C;"),
    ];
    assert_eq!(of(&globs), ["a b"]);
    let chain = [
        ("lib.rs", "pub use a::Inner;"),
        ("a/mod.rs", "pub use inner::Inner;"),
        ("a/inner.rs", "use crate::b::B; pub struct Inner;"),
        ("b.rs", "use crate::Inner as I; struct B;"),
    ];
    assert_eq!(of(&chain), ["a b"]);
}

#[test]
fn re_exports_that_name_each_other_end() {
    let endless = [
        ("lib.rs", "pub use a::A; pub use a::*;"),
        ("a.rs", "pub use crate::A; pub use crate::*; use crate::B;"),
    ];
    assert_eq!(of(&endless), NONE);
}

#[test]
fn paths_in_attributes_count() {
    let of_attribute = |item: &str| of(&[("lib.rs", ""), ("a.rs", item), ("b.rs", "use crate::a::A;")]);
    assert_eq!(of_attribute("struct A;"), NONE);
    assert_eq!(of_attribute("#[doc = \"crate::b::B\"] struct A;"), NONE);
    for attribute in [
        "try_from = \"crate::b::B\"",
        "into = \"Vec<crate::b::B>\"",
        "default = \"super::b::f\"",
        "with = \"crate::b\"",
        "bound(with = \"crate::b::f\")",
        "crate::b::f",
    ] {
        assert_eq!(of_attribute(&format!("#[serde({attribute})] struct A;")), ["a b"], "{attribute}");
        assert_eq!(
            of_attribute(&format!("struct A {{ #[serde({attribute})] x: u8 }}")),
            ["a b"],
            "{attribute}"
        );
        assert_eq!(
            of_attribute(&format!("m! {{ #[serde({attribute})] struct A; }}")),
            ["a b"],
            "{attribute}"
        );
    }
    assert_eq!(of_attribute("m! { struct A; \"crate::b::B\" }"), NONE);
}

#[test]
fn files_that_extend_a_machine_are_its_room() {
    let of_files = |machine: &str, extension: &str| {
        of(&[
            ("lib.rs", ""),
            ("device.rs", machine),
            ("smp.rs", extension),
            ("helper.rs", "use crate::device::Device; pub fn f() {}"),
        ])
    };
    let machine = "pub struct Device; impl Machine for Device {}";
    let extension =
        "use crate::device::Device; const N: u8 = 1; impl Device { pub fn g(&self) { crate::helper::f() } }";
    assert_eq!(of_files(machine, extension), ["device helper"]);
    // A type that is no machine, and a file that others can name.
    assert_eq!(of_files("pub struct Device; impl Default for Device {}", extension), NONE);
    assert_eq!(of_files(machine, &format!("{extension} pub(crate) fn h() {{}}")), NONE);
    assert_eq!(of_files(machine, "use crate::device::Device; fn f() { crate::helper::f() }"), NONE);
}

#[test]
fn tests_and_other_programs_do_not_count() {
    let inner = [("a.rs", "use crate::b::B;"), ("b.rs", "#[cfg(test)]\nmod tests { use crate::a::A; }")];
    assert_eq!(of(&inner), NONE);
    let file = [
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "#[cfg(test)] mod proofs;"),
        ("b/proofs.rs", "use crate::a::A;"),
    ];
    assert_eq!(of(&file), NONE);
    let imports = [
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "#[cfg(test)] use crate::a::A; #[cfg(test)] fn f() { crate::a::f() }"),
    ];
    assert_eq!(of(&imports), NONE);
    let program = [("a.rs", "use crate::b::B;"), ("b.rs", ""), ("bin/b.rs", "use crate::a::A;")];
    assert_eq!(of(&program), NONE);
}

#[test]
fn modules_inside_files_have_their_own_parents() {
    let inner = [("a.rs", "use crate::b::inner::B;"), ("b.rs", "mod inner { use super::super::a::A; }")];
    assert_eq!(of(&inner), ["a b"]);
    let own = [
        ("lib.rs", ""),
        ("a.rs", "mod b { struct B; } mod inner { use super::b::B; }"),
        ("b.rs", "use crate::a::A;"),
    ];
    assert_eq!(of(&own), NONE);
}

/// What the list says of a crate whose files `a`, `b` and `c` are a knot.
fn judged(list: &str) -> Vec<String> {
    let knot =
        knots_of(&[("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::C;"), ("c.rs", "use crate::a::A;")]);
    let found = BTreeMap::from([("x".to_owned(), knot), ("y".to_owned(), Vec::new())]);
    Known::read(list).unwrap().judge(&found)
}

#[test]
fn the_list_may_only_shrink() {
    assert_eq!(judged("# Known.\n\nx: a b c\n"), NONE);
    let unlisted = "x: a b c\n    a -> b: a.rs:1\n    b -> c: b.rs:1\n    c -> a: c.rs:1";
    assert_eq!(judged(""), [unlisted]);
    let gone = "xtask/knots.txt: delete the line `y: a b c`: the knot is gone";
    assert_eq!(judged("y: a b c"), [unlisted, gone]);
    // A room more than the list has, and one less.
    let gone = "xtask/knots.txt: delete the line `x: a b`: the knot is gone";
    assert_eq!(judged("x: a b"), [unlisted, gone]);
    assert_eq!(judged("x: a b c d"), ["xtask/knots.txt: the line `x: a b c d` is now `x: a b c`"]);
    assert!(Known::read("a b c").is_err());
}
