//! `weft ask`: one request of the control protocol, and its answer as JSON.

use std::io::ErrorKind;
use std::time::Duration;

use serde_json::{Map, Value};
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_bundle::names::{HUB, what};
use weft_bundle::record::LabRecord;
use weft_control::{Answer, ReplyBody, Request};
use weft_lab::site;
use weft_lab::view::Lab;
use weft_process::{Client, ClientError};

use crate::cli::ask::AskArgs;
use crate::output::print;

/// How long a process has to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait for what follows an answer before looking again.
const FOLLOW: Duration = Duration::from_secs(3600);

pub(super) fn run(folder: &LabFolder, args: &AskArgs) -> anyhow::Result<()> {
    let request = request(args)?;
    let follows = matches!(request, Request::Events(_) | Request::Capture { .. });
    let mut client = connect(folder, args)?;
    client.post(request).map_err(|error| broken(args, error))?;
    let mut patience = PATIENCE;
    loop {
        let Some(line) = client.next_line(patience).map_err(|error| broken(args, error))? else {
            if follows {
                continue;
            }
            return Err(Failure::new(format!("`{}` does not answer", args.process))
                .hint("`weft ps` lists the processes, and `weft fault ls` those that are frozen"));
        };
        let text = match line.body {
            ReplyBody::Answer(answer) if *answer == Answer::EventsEnded => return Ok(()),
            ReplyBody::Answer(answer) => serde_json::to_string(&answer)?,
            ReplyBody::Event(event) => serde_json::to_string(&event)?,
            ReplyBody::Captured(captured) => serde_json::to_string(&captured)?,
            ReplyBody::Error(error) => {
                let failure = Failure::new(format!("{}: {error} ({})", args.process, error.code.name()));
                return Err(failure.hint_if_any(error.hint));
            }
        };
        print(&format!("{}\n", weft_wire::printable_json(&text)))?;
        if !follows {
            return Ok(());
        }
        patience = FOLLOW;
    }
}

fn broken(args: &AskArgs, error: ClientError) -> anyhow::Error {
    let failure = Failure::new(format!("`{}`: {:#}", args.process, anyhow::Error::from(error)));
    match args.identity {
        Some(_) => {
            failure.hint("the identity must be an operator's or a viewer's; the agent's log tells more")
        }
        None => failure.hint("`weft ps` tells whether it runs"),
    }
}

/// The request that the user has named, with its fields.
fn request(args: &AskArgs) -> anyhow::Result<Request> {
    if !Request::NAMES.contains(&args.request.as_str()) {
        return Err(Failure::bad_input(format!("unknown request `{}`", args.request))
            .hint(format!("there are: {}", Request::NAMES.join(", "))));
    }
    let fields: Map<String, Value> = match &args.fields {
        None => Map::new(),
        Some(text) => serde_json::from_str(text).map_err(|error| {
            Failure::bad_input(format!("invalid fields: {error}"))
                .hint("give a JSON object, such as '{\"limit\": 10}'; docs/control.md lists the fields")
        })?,
    };
    let mut whole = fields;
    whole.insert("type".into(), args.request.clone().into());
    serde_json::from_value(Value::Object(whole)).map_err(|error| {
        Failure::bad_input(format!("invalid request `{}`: {error}", args.request))
            .hint("docs/control.md lists the fields")
    })
}

fn connect(folder: &LabFolder, args: &AskArgs) -> anyhow::Result<Client> {
    // What is there by this name is meant, whatever nodes are called.
    let dials_agents = site::of(folder)?.dials_agents();
    let identity = args.identity.as_ref().filter(|_| dials_agents);
    if identity.is_none() && folder.control(&args.process).exists() {
        return local(folder, &args.process);
    }
    let lab = Lab::load(folder)?;
    if identity.is_none()
        && let Some(failure) = not_running(&lab.record, &args.process)
    {
        return Err(failure);
    }
    let named = lab.record.agents.iter().find(|agent| agent.name == args.process);
    let agent = match named {
        Some(agent) => agent,
        None => {
            let guid = lab.fabric.node(lab.find(&args.process)?).guid;
            let device = lab.record.device(guid);
            device
                .map(|(agent, _)| agent)
                .ok_or_else(|| Failure::new(format!("no agent runs `{}`", args.process)))?
        }
    };
    match identity {
        Some(identity) => site::dial::connect(&folder.bundle(), agent, identity),
        None => local(folder, &agent.name),
    }
}

fn local(folder: &LabFolder, name: &str) -> anyhow::Result<Client> {
    Client::connect(&folder.control(name)).map_err(|error| {
        // One that is there and takes no connection may be frozen.
        let is_gone = matches!(&error, ClientError::Connect { source, .. }
            if matches!(source.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound));
        let record = LabRecord::load(folder).ok().filter(|_| is_gone);
        record.and_then(|record| not_running(&record, name)).unwrap_or_else(|| {
            Failure::new(format!("{:#}", anyhow::Error::from(error)))
                .hint("`weft ps` lists the processes, and `weft fault ls` those that are frozen")
        })
    })
}

/// That a process of this name, which the laboratory was planned with and which is no agent, does not run.
fn not_running(record: &LabRecord, name: &str) -> Option<anyhow::Error> {
    if name == HUB {
        return Some(Failure::new("the hub does not run").hint("start one with `weft hub --detached`"));
    }
    record.others().find(|(own, _)| own == name)?;
    let what = what(name).unwrap_or_else(|| format!("`{name}`"));
    Some(Failure::new(format!("{what} does not run")).hint(format!("`weft fault restart {name}` starts it")))
}
