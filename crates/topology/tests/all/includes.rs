//! Files that include others.

use weft_topology::{LoadError, parse_with};

#[test]
fn included_files() {
    let files = |name: &str, from: &str| match name {
        "switches" => Ok(format!("# from {from}\nSwitch 4 \"a\"\n[1] \"h\"\n")),
        "broken" => Ok("Switch 4 \"b\"\n[1] oops\n".to_owned()),
        "endless" => Ok("include \"endless\"\n".to_owned()),
        _ => Err(LoadError::new(format!("there is no {name}"))),
    };
    let parse_files = |text: &str| parse_with("net", text, &mut |name, from| files(name, from));
    let fabric = parse_files("include \"switches\"\nCa 1 \"h\"\n").unwrap();
    assert_eq!(fabric.counts().cables, 1);
    let error = |text: &str| parse_files(text).unwrap_err().to_string();
    assert_eq!(error("include \"x\"\n"), "net:1:9: cannot include this file: there is no x: `\"x\"`");
    assert!(error("\ninclude \"broken\"\n").starts_with("broken:2:5: expected the id"));
    assert_eq!(
        error("include \"endless\"\n"),
        "endless:1:9: too large: more than 9 levels of include: `\"endless\"`"
    );
    assert!(
        error("include \"switches\"\n[2] \"h\"\n").starts_with("net:2:1: this port line belongs to no node")
    );
    let error = parse_files(&"include \"switches\"\n".repeat(2)).unwrap_err();
    assert_eq!((error.file.as_str(), error.line, error.column), ("switches", 2, 10));
}

#[test]
fn an_included_file_looks_for_its_own_beside_it() {
    let mut asked = Vec::new();
    let parsed = parse_with("a/net", "include \"sub/b\"\n", &mut |name, from| {
        asked.push((name.to_owned(), from.to_owned()));
        Ok(if name == "sub/b" { "include \"c\"\n" } else { "Switch 4 \"s\"\n[9] \"s\"\n" }.to_owned())
    });
    let own = |(name, from): (&str, &str)| (name.to_owned(), from.to_owned());
    assert_eq!(asked, [("sub/b", "a/net"), ("c", "a/sub/b")].map(own));
    assert!(parsed.unwrap_err().to_string().starts_with("a/sub/c:2:"));
}
