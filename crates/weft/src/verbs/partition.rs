//! `weft partition`: who may talk to whom in a running laboratory.

use serde_json::json;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_control::sm::SmStatus;
use weft_control::{KeyBlock, PartitionsTaken, PlannedRoutes};
use weft_lab::managers::{in_charge, subnet_managers};
use weft_lab::partitions::{Change, Edited, Heard, PartitionRow, Preview, Tenants};
use weft_lab::view::Lab;
use weft_topology::NodeIndex;
use weft_wire::{PortNum, count_of};

use crate::cli::partition::{ChangeArgs, PartitionLsArgs, PartitionVerb};
use crate::output::{Table, or_dash, print, print_json, say, say_labelled};

pub(super) fn run(folder: &LabFolder, verb: &PartitionVerb) -> anyhow::Result<()> {
    let lab = Lab::load(folder)?;
    let tenants = Tenants::of(&lab)?;
    let (change, args, done) = match verb {
        PartitionVerb::Ls(args) => return list(&lab, &tenants, args),
        PartitionVerb::Add(args) => {
            let (name, pkey) = (args.partition.name.clone(), args.partition.pkey);
            let done = format!("{name} is added");
            (Change::Add { name, pkey, ipoib: args.ipoib.is_some() }, args.change, done)
        }
        PartitionVerb::Rm(args) => {
            (Change::Remove { name: args.name.clone() }, args.change, format!("{} is removed", args.name))
        }
        PartitionVerb::Join(args) => {
            let (name, host) = (args.name.clone(), args.host.clone());
            let done = format!("{host} is a {} member of {name}", args.membership);
            (Change::Join { name, host, membership: args.membership }, args.change, done)
        }
        PartitionVerb::Leave(args) => {
            let (name, host) = (args.name.clone(), args.host.clone());
            let done = format!("{host} has left {name}");
            (Change::Leave { name, host }, args.change, done)
        }
        PartitionVerb::Policy(args) => {
            let (name, isolation) = (args.name.clone(), args.policy);
            let done = format!("{name} has the policy {isolation}");
            (Change::Isolate { name, isolation }, args.change, done)
        }
    };
    if args.dry_run {
        preview(&lab, &tenants, &change, args)
    } else {
        carry_out(&tenants, &change, args, &done)
    }
}

fn list(lab: &Lab, tenants: &Tenants<'_>, args: &PartitionLsArgs) -> anyhow::Result<()> {
    let rows = tenants.rows()?;
    let Some(rows) = rows else {
        if args.json {
            return print_json(&json!([]));
        }
        say("there is no partitions file: all ports are full members of the default partition");
        return Ok(());
    };
    if args.json {
        let mut value = serde_json::to_value(&rows)?;
        for row in value.as_array_mut().into_iter().flatten().filter(|_| !args.members) {
            row.as_object_mut().and_then(|row| row.remove("members"));
        }
        return print_json(&value);
    }
    print(&table(&rows, args.members))?;
    let managers = subnet_managers(&lab.folder, &lab.record)?;
    let status = in_charge(&managers).and_then(|manager| manager.told.status());
    let sentences = status.map(SmStatus::partition_sentences).unwrap_or_default();
    sentences.iter().for_each(|sentence| say(sentence));
    Ok(())
}

fn table(rows: &[PartitionRow], with_members: bool) -> String {
    if !with_members {
        let mut table = Table::headed("partition | P_Key | full | limited");
        for row in rows {
            table.row(&[&row.name, &row.p_key, &row.full, &row.limited]);
        }
        return table.to_string();
    }
    let mut table = Table::headed("partition | P_Key | member | membership | GUID");
    for row in rows {
        for member in &row.members {
            table.row(&[
                &row.name,
                &row.p_key,
                &or_dash(member.node.as_ref()),
                &member.membership,
                &member.guid,
            ]);
        }
    }
    table.to_string()
}

/// The SMPs of a change, and nothing is done.
fn preview(lab: &Lab, tenants: &Tenants<'_>, change: &Change, args: ChangeArgs) -> anyhow::Result<()> {
    let edited = tenants.edited(change)?;
    let planned = tenants.preview(&edited.text)?;
    let blocks: usize = planned.routes.iter().map(|routes| routes.blocks as usize).sum();
    let (writes, smps) = (&planned.writes, planned.writes.len() + blocks);
    if args.json {
        return print_json(&json!({ "smps": smps, "writes": writes, "routes": planned.routes }));
    }
    let mut text = String::new();
    for KeyBlock { node, port, block } in writes {
        let index = lab.fabric.by_guid(node.0);
        let kind = if index.is_some_and(|at| lab.fabric.node(at).is_switch()) { "switch" } else { "host" };
        let name = index.map_or_else(|| node.to_string(), |index: NodeIndex| lab.fabric.label(index));
        let port = if *port == PortNum::ZERO { String::new() } else { format!(" port {port}") };
        text += &format!("Set(P_KeyTable) block {block} of {kind} {name}{port}\n");
    }
    text += &planned.routes.iter().map(routes_in_words).collect::<String>();
    text += &format!("{}; nothing is written\n", count_of(smps, "SMP"));
    print(&text)
}

fn routes_in_words(routes: &PlannedRoutes) -> String {
    if let Some(why) = &routes.refused {
        return format!("the engine would refuse: {why}\n");
    }
    let count = |number: u32, what| count_of(number as usize, what);
    let (rows, blocks) = (count(routes.rows, "row"), count(routes.blocks, "block"));
    let tables = count(routes.switches, "switch");
    let mut text = format!("{}: {rows} of forwarding tables in {blocks} of {tables} differ\n", routes.engine);
    routes.unsatisfied.iter().for_each(|sentence| text += &format!("{}: {sentence}\n", routes.engine));
    text
}

/// A change whose policies the engine cannot keep is refused before anything is written. What a new policy would change.
fn ensure_routable(
    tenants: &Tenants<'_>,
    change: &Change,
    edited: &Edited,
) -> anyhow::Result<Option<Preview>> {
    let policy = match change {
        Change::Isolate { name, isolation } => Some(format!("the policy {isolation} of {name}")),
        _ if edited.is_strict => None,
        _ => return Ok(None),
    };
    let planned = tenants.preview(&edited.text)?;
    match planned.refusal() {
        None => Ok(Some(planned).filter(|_| policy.is_some())),
        Some(why) => {
            let what = policy.unwrap_or_else(|| "a policy of the partitions file".to_owned());
            Err(Failure::bad_input(format!("{what} cannot be met: {why}"))
                .hint("`best-effort ;` in the partitions file has engines go as far as they can"))
        }
    }
}

fn carry_out(tenants: &Tenants<'_>, change: &Change, args: ChangeArgs, done: &str) -> anyhow::Result<()> {
    let (edited, heard, planned) = {
        let _turn = tenants.lock()?;
        let edited = tenants.edited(change)?;
        let planned = ensure_routable(tenants, change, &edited)?;
        let heard = tenants.write(&edited)?;
        (edited, heard, planned)
    };
    let in_charge: Vec<PartitionsTaken> =
        heard.iter().filter_map(|heard| heard.taken).filter(|taken| taken.in_charge).collect();
    let total = |of: fn(&PartitionsTaken) -> u64| in_charge.iter().map(of).sum::<u64>();
    let smps = total(|taken| taken.smps);
    let (waiting, kept) = (total(|taken| taken.waiting.into()), total(|taken| taken.kept.into()));
    let left_out = total(|taken| taken.left_out.into());
    if args.json {
        print_json(&json!({
            "smps": smps, "waiting": waiting, "kept": kept, "left_out": left_out, "managers": heard
        }))?;
    }
    if left_out > 0 {
        ensure_room(tenants, change)?;
    }
    if !args.json {
        let first = if edited.is_first { " (the laboratory has a partitions file now)" } else { "" };
        let same = if edited.is_same && smps == 0 { ", as before" } else { "" };
        print(&format!("{done}{same}: {}{first}\n", count_of(smps as usize, "SMP")))?;
        warn(waiting, kept, left_out);
        planned.iter().for_each(warn_of_policies);
    }
    undone(&heard, !in_charge.is_empty())
}

/// What the routing does not keep, and that no engine looks at policies.
fn warn_of_policies(planned: &Preview) {
    if planned.routes.is_empty() {
        say_labelled(
            "note:",
            "36",
            "no engine of this laboratory reads policies: `weft up --engine pftree-ext`",
        );
    }
    for sentence in planned.routes.iter().flat_map(|routes| &routes.unsatisfied) {
        say_labelled("warning:", "33", sentence);
    }
}

/// A host that has joined by the file alone is no member: its port has no room for all its keys.
fn ensure_room(tenants: &Tenants<'_>, change: &Change) -> anyhow::Result<()> {
    let Change::Join { name, host, .. } = change else { return Ok(()) };
    match tenants.left_out(host)? {
        0 => Ok(()),
        missing => {
            let keys = count_of(missing as usize, "P_Key");
            let why = format!(
                "the file has {host} in {name}, and its port has no room for {keys} of its partitions"
            );
            Err(Failure::new(why)
                .hint("`weft partition leave` makes room, or a higher `weft up --p-key-capacity`"))
        }
    }
}

fn warn(waiting: u64, kept: u64, left_out: u64) {
    if left_out > 0 {
        let keys = count_of(left_out as usize, "key");
        let text =
            format!("{keys} left out, as ports have no room for them; `weft partition ls` names the ports");
        say_labelled("warning:", "33", &text);
    }
    if waiting > 0 {
        let keys = count_of(waiting as usize, "key");
        say_labelled("note:", "36", &format!("{keys} wait until a place in the port's table has rested"));
    }
    if kept > 0 {
        let ports = count_of(kept as usize, "port");
        say_labelled(
            "warning:",
            "33",
            &format!("not acknowledged by {ports}; `weft partition ls` names them"),
        );
    }
}

/// Managers that have not taken the change: without one in charge nothing is written.
fn undone(heard: &[Heard], has_master: bool) -> anyhow::Result<()> {
    let silent: Vec<String> = heard
        .iter()
        .filter_map(|heard| heard.silent.as_ref().map(|why| format!("{}: {why}", heard.manager)))
        .collect();
    if has_master {
        silent.iter().for_each(|silent| say_labelled("note:", "36", silent));
        return Ok(());
    }
    let why =
        if silent.is_empty() { "no subnet manager is the master".to_owned() } else { silent.join("; ") };
    Err(Failure::new(format!("the file is changed, and no port has heard of it: {why}"))
        .hint("a manager reads the file when it starts; `weft status` tells how they are"))
}
