//! Errors of a file: line, column, the wrong thing and what is allowed.

use weft_experiment::ExperimentFile;
use weft_topology::LoadError;

const TOPOLOGY: &str = include_str!("../../../../topologies/dftree-1.topo");

const GOOD: &str = r#"title = "a test"
duration = 10

[fabric]
topology = "tree.topo"

[link]
link-2 = "A/4"

[variants]
pm.mode = ["off", "on"]

[rates]
lanes = 2

[flow.1-5]
from = "host-1"
to = "host-5"
start = 2

[window]
all = [3, 10]

[[fault]]
at = 4
cut = "link-2"

[[expect]]
flow = "1-5"
window = "all"
when = { pm.mode = "on" }
value = 12.9
model = "closed form: the host's limit"
"#;

fn load(path: &str, _from: &str) -> Result<String, LoadError> {
    if path == "tree.topo" { Ok(TOPOLOGY.to_owned()) } else { Err(LoadError::new("no such file")) }
}

/// What is said of the good file with one thing changed.
fn said(from: &str, to: &str) -> String {
    assert_eq!(GOOD.matches(from).count(), 1, "{from}");
    let text = GOOD.replace(from, to);
    match ExperimentFile::parse("x.toml", &text).and_then(|file| file.check(&mut load)) {
        Ok(()) => "nothing".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// Routing learns where there are counts, and an engine that reads what was learned.
#[test]
fn learning_takes_counts_and_an_engine_that_reads_weights() {
    let with = |lines: &str| said("[rates]", &format!("{lines}\n[rates]"));
    let engine = |lines: &str| with(&format!("[engine]\n{lines}\n[pm]\nlearn_weights = 5"));
    assert!(engine("chain = \"ftree\"").contains("`learn_weights` takes a performance manager that counts"));
    let counts = |chain: &str| {
        with(&format!("[pm]\nmode = \"watch\"\nlearn_weights = 5\n[engine]\nchain = \"{chain}\""))
    };
    assert!(counts("ftree").contains("`learn_weights` means nothing to ftree"), "{}", counts("ftree"));
    assert!(with("[pm]\nlearn_weights = 0").contains("a whole number from 1 to 1000000"));
    assert!(with("[engine]\norder = \"received\"").contains("write `learn_weights = 5` in [pm]"));
}

/// What a paper's value repeats is a number of the file, and near to it.
#[test]
fn a_given_value_repeats_a_key_of_the_file() {
    let line = "model = \"closed form: the host's limit\"\n";
    let given = |text: &str| said(line, &format!("{line}paper = 12.9\ngiven = \"{text}\"\n"));
    for good in [
        "host_limit_gbps",
        "3 * lanes + host_limit_gbps / 2 + start / 4",
        "13.9 - 2 / flow.1-5.start",
        "at * 3",
    ] {
        assert_eq!(given(good), "nothing", "{good}");
    }
    let place = "x.toml:35:9: ";
    for (text, message) in [
        (
            "lanes",
            "`given` comes to 2.0000, and the paper prints 12.9; a printed value is given where an input is within 15 % of it",
        ),
        (
            "host_limit",
            "`given` names `host_limit`, which is no number of this file; name a key of this file; what another file brings stands in [inputs]",
        ),
        ("12.9", "`given` names the keys of this file whose value the paper's repeats; as in"),
        ("12.9 +", "`given` names the keys of this file"),
        ("", "`given` names the keys of this file"),
        ("lanes*6", "`given` names `lanes*6`"),
        ("lanes x 6", "`x` in `given` is no sum, difference, product or quotient; write spaces round"),
    ] {
        let said = given(text);
        let wanted = format!("{place}{message}");
        assert!(said.starts_with(&wanted), "{text}: {said}");
    }
    let twice = "[rates]\nlanes = 2\n\n[inputs]\nstart = 12\n";
    let text = GOOD.replace("[rates]\nlanes = 2\n", twice);
    let ambiguous = text.replace(line, &format!("{line}paper = 12.9\ngiven = \"start\"\n"));
    let error = ExperimentFile::parse("x.toml", &ambiguous).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "`start` has several values in this file; name its tables too, as in `vm.VMa.stop_copy`"
        ),
        "{error}"
    );
    let named = ambiguous.replace("given = \"start\"", "given = \"inputs.start\"");
    let file = ExperimentFile::parse("x.toml", &named).unwrap();
    assert_eq!(file.plain().expects[0].paper.as_ref().unwrap().given, "inputs.start");
    let wrong = named.replace("start = 12\n", "start = \"12\"\n");
    let error = ExperimentFile::parse("x.toml", &wrong).unwrap_err().to_string();
    assert!(error.contains("`start` takes a number of the unit in the key's name"), "{error}");
    // With other hardware the paper's value is no input, and no error.
    let ndr = weft_device::Profile::find("ndr-2024").unwrap();
    let usual = GOOD.replace(line, &format!("{line}paper = 12.9\ngiven = \"host_limit_gbps\"\n"));
    let file = ExperimentFile::parse_with_profile("x.toml", &usual, ndr).unwrap();
    assert_eq!(file.plain().expects[0].paper.as_ref().unwrap().given, "");
    let alone = said(line, &format!("{line}given = \"lanes\"\n"));
    assert!(
        alone.contains("`source`, `why`, `given` and `paper_is_limit` are about `paper`, which is not here"),
        "{alone}"
    );
}

/// Flow control promises 2048 blocks at most (IBA 7.9.4.2); a packet of MTU 256, 2048 and 4096 takes 6, 34 and 66 with the
/// largest headers.
#[test]
fn buffers_are_as_deep_as_can_be_promised() {
    for (mtu, most) in [(256, 341), (2048, 60), (4096, 31)] {
        let rates =
            |packets: u32| said("lanes = 2", &format!("lanes = 2\nmtu = {mtu}\nbuffer_packets = {packets}"));
        assert_eq!(rates(most), "nothing");
        let error = rates(most + 1);
        let wanted = format!("a whole number from 1 to {most}, not {}", most + 1);
        assert!(error.contains(&wanted) && error.contains("2048 blocks of 64 bytes"), "{error}");
    }
}

#[test]
fn the_good_file_is_good() {
    assert_eq!(said("a test", "another"), "nothing");
}

#[test]
fn unknown_keys_are_told_with_the_nearest() {
    let error = said("start = 2", "strat = 2");
    assert!(
        error.starts_with(
            "x.toml:19:1: unknown key `strat` in [flow.1-5]; did you mean `start`? There are `work`"
        ),
        "{error}"
    );
    let error = said("[rates]", "[rate]");
    assert!(error.starts_with("x.toml:13:2: unknown key `rate`; did you mean `rates`?"), "{error}");
    let error = said("lanes = 2", "lanse = 2");
    assert!(error.contains("did you mean `lanes`? There are `shaped`, `dilation`"), "{error}");
    // A key that a variant sets is looked at where the variant stands.
    let text = GOOD.replace("pm.mode", "pm.mod");
    let error = ExperimentFile::parse("x.toml", &text).expect_err("no such key").to_string();
    assert!(error.starts_with("x.toml:11:4: unknown key `mod` in [pm]; did you mean `mode`?"), "{error}");
}

#[test]
fn unknown_names_are_told_with_examples() {
    assert_eq!(
        said("to = \"host-5\"", "to = \"host-55\""),
        "x.toml:18:6: no node has the id, description or GUID `host-55`; did you mean `host-5`? the 6 hosts are \
         called host-1, host-2, host-3, host-4, …"
    );
    assert_eq!(
        said("to = \"host-5\"", "to = \"A\""),
        "x.toml:18:6: `A` is a switch, and a host is meant; the 6 hosts are called host-1, host-2, host-3, host-4, …"
    );
    assert_eq!(
        said("cut = \"link-2\"", "cut = \"link-3\""),
        "x.toml:26:7: `link-3` names no port; ports are written `node/port`, as `A/4`; the names of [link] are `link-2`"
    );
    assert_eq!(
        said("link-2 = \"A/4\"", "link-2 = \"A/9\""),
        "x.toml:8:10: `A/9` names no port of A; A has the ports 1 to 4"
    );
    assert_eq!(
        said("topology = \"tree.topo\"", "topology = \"bush.topo\""),
        "x.toml:5:12: the topology file `bush.topo` cannot be read: no such file"
    );
}

#[test]
fn wrong_values_are_told_with_what_is_allowed() {
    for (from, to, expected) in [
        (
            "start = 2",
            "start = \"2s\"",
            "x.toml:19:9: `start` takes a number of seconds without its unit, from 0 to 1000000, not the text `2s`",
        ),
        ("lanes = 2", "lanes = 16", "x.toml:14:9: `lanes` takes a whole number from 1 to 15, not 16"),
        (
            "lanes = 2",
            "lanes = 1",
            "x.toml:11:4: a slow lane needs a second lane, and `lanes` of [rates] is 1; write `lanes = 2` in [rates]",
        ),
        (
            "[\"off\", \"on\"]",
            "[\"of\", \"on\"]",
            "x.toml:11:12: `mode` cannot be `of`; did you mean `off`? There are `off`, `watch`, `on` and `oracle`",
        ),
        (
            "all = [3, 10]",
            "all = [3, 11]",
            "x.toml:22:7: the window `all` must end after it begins, and before the run; the run takes 10 s",
        ),
        (
            "window = \"all\"",
            "window = \"al\"",
            "x.toml:30:10: no window is called `al`; did you mean `all`? There are `all`",
        ),
        (
            "flow = \"1-5\"",
            "flow = \"1-6\"",
            "x.toml:29:8: no flow, pattern or mix is called `1-6`; did you mean `1-5`? There are `1-5`",
        ),
        (
            "pm.mode = \"on\"",
            "pm.mode = \"watch\"",
            "x.toml:31:20: `watch` is no choice of the axis `pm.mode`; there are `off` and `on`",
        ),
        (
            "value = 12.9",
            "within_percent = 5",
            "x.toml:28:1: `within_percent` says how near to `value`, which is not here",
        ),
        (
            "model = \"closed form: the host's limit\"",
            "",
            "x.toml:28:1: the bound does not say where it comes from; add `model = \"closed form: 16 - 12.9 / 4\"`, `model = \"paper: half of the printed 32 %\"`, or `model = \"regression\"` where it is an earlier result",
        ),
        (
            "closed form: the host's limit",
            "it came out so",
            "x.toml:33:9: `model` cannot be `it came out so`; write `model = \"closed form: 16 - 12.9 / 4\"`, `model = \"paper: half of the printed 32 %\"`, or `model = \"regression\"` where it is an earlier result",
        ),
        ("value = 12.9\n", "", "x.toml:28:1: `model` says where a bound comes from, and there is none"),
        (
            "title = \"a test\"",
            "title = a test",
            "x.toml:1:9: invalid TOML: string values must be quoted, expected literal string",
        ),
        (
            "title = \"a test\"\n",
            "",
            "x.toml:1:1: missing key `title` (what the experiment is called, in one line)",
        ),
    ] {
        assert_eq!(said(from, to), expected);
    }
}

#[test]
fn a_bus_is_shared_by_virtual_functions() {
    let without = said("lanes = 2", "lanes = 2\nhost_bus_gbps = 19");
    let words =
        "`host_bus_gbps` of [rates] is shared by virtual functions, and [vms] is not there; write `[vms]`";
    assert!(without.contains(words), "{without}");
    let negative = said("lanes = 2", "lanes = 2\nhost_bus_gbps = -1");
    assert!(negative.contains("`host_bus_gbps` takes"), "{negative}");
}

#[test]
fn predictions_are_requested_by_name_and_time() {
    let measured = "flow = \"1-5\"\nwindow = \"all\"\n";
    assert_eq!(said(measured, "what = \"predicted_deadlock\"\nafter = 4\n"), "nothing");
    let misspelt = said(measured, "what = \"predicted_deadlok\"\n");
    let wrong =
        "x.toml:29:8: `what` cannot be `predicted_deadlok`; did you mean `predicted_deadlock`? There are ";
    assert!(misspelt.starts_with(wrong), "{misspelt}");
    let in_words = said(measured, "what = \"predicted_deadlock\"\nafter = \"the cut\"\n");
    assert!(in_words.starts_with("x.toml:30:9: `after` takes a number of seconds"), "{in_words}");
    let a_span = said(measured, "what = \"predicted_deadlock\"\nwindow = \"all\"\n");
    assert!(a_span.starts_with("x.toml:30:1: unknown key `window` in [[expect]]"), "{a_span}");
}

/// A line is bounded, and says where the bound comes from, or it says why it is only shown.
#[test]
fn what_is_only_shown_has_no_bound() {
    let shown = "model = \"shown: it depends on arrivals\"";
    let closed = "model = \"closed form: the host's limit\"";
    let bounded = "x.toml:28:1: `model` says why nothing bounds this, and there is a bound";
    assert_eq!(said(closed, shown), bounded);
    assert_eq!(said(&format!("value = 12.9\n{closed}"), shown), "nothing");
}
