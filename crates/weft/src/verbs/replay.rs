//! `weft record` and `weft replay`: what an agent's node was fed, written down and fed again.

use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;
use weft_bundle::config::run::{RunOptions, recordings};
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_fault::Process;
use weft_lab::process::Holder;
use weft_lab::view::Lab;
use weft_lab::{faults, teardown};
use weft_node::recording::{Recording, Replayed, replay};

use crate::cli::fault::{RecordArgs, ReplayArgs};
use crate::output;

/// How much of a difference is shown.
const SHOWN_MAX: usize = 2000;

/// Restarts a node's agent, which then records what it is fed.
pub(super) fn record(folder: &LabFolder, args: &RecordArgs) -> anyhow::Result<()> {
    let lab = Lab::load(folder)?;
    let guid = lab.fabric.node(lab.find(&args.node)?).guid;
    let Some((agent, _)) = lab.record.device(guid) else { anyhow::bail!("no agent runs `{}`", args.node) };
    let mut run = RunOptions::load(folder)?;
    run.record_agent(&agent.name, (!args.off).then(|| recordings(&args.out)).transpose()?);
    run.store(folder)?;
    // In order, so that a recording under way gets its end mark.
    teardown::stop(Holder::of(&lab.folder.agent_lock(&agent.name))?.into_iter().collect())?;
    faults::restart(&lab, &Process::Agent(args.node.clone()))?;
    if let Some(file) = run.recording_of(&agent.name) {
        output::say(&format!("{} is recorded to {}", agent.name, file.display()));
    }
    Ok(())
}

/// Feeds a node what was recorded.
pub(super) fn run(args: &ReplayArgs) -> anyhow::Result<ExitCode> {
    let bytes = std::fs::read(&args.file).with_context(|| format!("cannot read {}", args.file.display()))?;
    let say = |error| Failure::bad_input(format!("{}: {error}", args.file.display()));
    let mut recording = Recording::open(&bytes).map_err(say)?;
    let name = recording.heading.name.clone();
    let replayed = replay(&mut recording).map_err(say)?;
    if args.json {
        output::print_json(&in_json(&name, &replayed))?;
    } else {
        output::print(&in_words(&name, &replayed))?;
    }
    Ok(if replayed.difference.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn in_words(name: &str, replayed: &Replayed) -> String {
    let Replayed { inputs, outputs, has_end, difference } = replayed;
    let mut text = format!("{name}: {inputs} inputs, {outputs} outputs as recorded\n");
    if let Some(difference) = difference {
        let input = difference.input.as_ref().map_or("a timeout".to_owned(), |input| format!("{input:?}"));
        let timer = difference.timer.map_or("nothing".to_owned(), |timer| timer.to_string());
        let output = difference.output.as_ref().map_or("nothing".to_owned(), |output| format!("{output:?}"));
        text += &format!(
            "output {} of {} after input {} at {} differs\ninput: {}\nnext timer: {timer}\nnow: {}\n",
            difference.output_number,
            difference.recorded,
            difference.input_number,
            difference.now,
            shortened(&input),
            shortened(&output),
        );
    } else if !has_end {
        text += "the recording was cut off: its process was killed or still runs\n";
    }
    text
}

fn in_json(name: &str, replayed: &Replayed) -> serde_json::Value {
    let difference = replayed.difference.as_ref().map(|difference| {
        json!({
            "input": difference.input_number,
            "now_ns": difference.now.as_nanos(),
            "output": difference.output_number,
            "outputs_recorded": difference.recorded,
            "timer": difference.timer.map(|timer| json!({
                "at_ns": timer.at.as_nanos(),
                "reason": timer.reason.to_string(),
            })),
            "fed": difference.input.as_ref().map(|input| shortened(&format!("{input:?}"))),
            "said": difference.output.as_ref().map(|output| shortened(&format!("{output:?}"))),
        })
    });
    json!({
        "agent": name,
        "inputs": replayed.inputs,
        "outputs": replayed.outputs,
        "complete": replayed.has_end,
        "difference": difference,
    })
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
