//! The words of faults, as an experiment's file has them.

/// Every word that begins a fault, with what an experiment says of it. Those that take links are at `host-6`, away from the flow.
pub(crate) const WORDS: [&str; 16] = [
    "kill = \"host-6\"",
    "link-down = \"host-6/1\"",
    "freeze = \"host-6\"",
    "freeze = \"sm\"",
    "freeze = \"pm\"",
    "partition = [\"host-6\"]",
    "bad-identity = \"host-6\"\nas = \"foreign\"",
    "flap = \"host-6/1\"\nevery = \"300ms\"\ndown = \"100ms\"",
    "width = \"host-6/1\"\nto = \"1x\"",
    "speed = \"host-6/1\"\nto = \"sdr\"",
    "loss = \"host-6/1\"\npercent = 5",
    "delay = \"host-6/1\"\nby = \"2ms\"",
    "jitter = \"host-6/1\"\nby = \"2ms\"",
    "reorder = \"host-6/1\"\npercent = 5\nby = \"2ms\"",
    "duplicate = \"host-6/1\"\npercent = 50",
    "bit-errors = \"host-6/1\"\nrate = \"1e-7\"",
];
