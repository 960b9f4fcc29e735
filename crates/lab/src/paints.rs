//! The look of a running laboratory's cables in a picture: by state, by what they carry, or by what waits for them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weft_control::agent::{PortEnd, PortStatus};
use weft_picture::{Look, Paint};
use weft_topology::PortRef;

use crate::agents::read_ports;
use crate::view::Lab;

/// What the colours of cables stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// Whether both ends have a link.
    #[default]
    State,
    /// Bytes that crossed in the busier direction, from PortXmitData of both ends.
    Data,
    /// Time in which an end had packets and no credit, from PortXmitWait of both ends.
    Wait,
    /// Pairs of hosts that cross it by the tables.
    Load,
}

/// What a cable showed in a second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rates {
    /// MB/s of wall-clock time.
    pub(crate) megabytes: f64,
    /// Ticks of PortXmitWait.
    pub(crate) waits: f64,
}

type Ports = BTreeMap<PortRef, PortStatus>;

/// Looks at the agents of a laboratory: twice, a time apart, where rates are wanted.
///
/// # Errors
/// When its agents cannot be asked.
pub fn look(lab: &Lab, colour: Colour, apart: Duration) -> anyhow::Result<Look> {
    let began = Instant::now();
    let before = ports(lab)?;
    let has_rates = matches!(colour, Colour::Data | Colour::Wait);
    let after = if has_rates { Some(later(lab, began, apart)?) } else { None };
    let seconds = began.elapsed().as_secs_f64();
    let now = after.as_ref().unwrap_or(&before);
    let mut look = Look { title: title(lab, colour), ..Look::default() };
    let mut all: Vec<(PortRef, Rates)> = Vec::new();
    for cable in lab.fabric.cables() {
        let ends = [cable.a, cable.b].map(|end| now.get(&end));
        let [Some(a), Some(b)] = ends else {
            look.cables.insert(cable.a, Paint::Down);
            look.notes.insert(cable.a, "an agent does not answer".to_owned());
            continue;
        };
        if !(a.link_up && b.link_up) {
            look.cables.insert(cable.a, Paint::Down);
            look.notes.insert(cable.a, format!("{}/{}", a.state, b.state));
            continue;
        }
        let both = [cable.a, cable.b].map(|end| rates(before.get(&end), now.get(&end), seconds));
        let most = |pick: fn(&Rates) -> f64| pick(&both[0]).max(pick(&both[1]));
        let own = Rates { megabytes: most(|rates| rates.megabytes), waits: most(|rates| rates.waits) };
        look.notes.insert(
            cable.a,
            match colour {
                Colour::State | Colour::Load => format!("{} {}", a.state, a.rate),
                Colour::Data => format!("{:.3} MB/s", own.megabytes),
                Colour::Wait => format!("{:.0} ticks of PortXmitWait a second", own.waits),
            },
        );
        all.push((cable.a, own));
    }
    paint(&mut look, colour, &all);
    Ok(look)
}

/// What each port sends, and how long it waits, in two looks a time apart.
///
/// # Errors
/// When the agents cannot be asked.
pub(crate) fn loads(lab: &Lab, apart: Duration) -> anyhow::Result<BTreeMap<PortRef, Rates>> {
    let began = Instant::now();
    let before = ports(lab)?;
    let after = later(lab, began, apart)?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(after.iter().map(|(at, now)| (*at, rates(before.get(at), Some(now), seconds))).collect())
}

#[allow(clippy::disallowed_methods, reason = "a rate is that of a time which has to pass")]
fn later(lab: &Lab, began: Instant, apart: Duration) -> anyhow::Result<Ports> {
    std::thread::sleep(apart.saturating_sub(began.elapsed()));
    ports(lab)
}

fn ports(lab: &Lab) -> anyhow::Result<Ports> {
    let agents = lab.record.agents.iter().map(|agent| agent.name.as_str());
    let told = read_ports(&lab.folder, agents)?.told;
    let place = |end: &PortEnd| Some(PortRef::new(lab.fabric.by_guid(end.node.0)?, end.port));
    Ok(told.into_values().filter_map(|port| Some((place(&port.end)?, port))).collect())
}

fn rates(before: Option<&PortStatus>, now: Option<&PortStatus>, seconds: f64) -> Rates {
    let Some((before, now)) = before.zip(now) else { return Rates::default() };
    let more = |pick: fn(&PortStatus) -> u64| pick(now).saturating_sub(pick(before)) as f64 / seconds;
    Rates {
        megabytes: more(|port| port.totals.xmit_words) * 4.0 / 1e6,
        waits: more(|port| port.totals.xmit_wait),
    }
}

/// Colours are relative to the cable that shows most: where packets take no time, rates have no absolute meaning.
fn paint(look: &mut Look, colour: Colour, all: &[(PortRef, Rates)]) {
    let pick = |rates: &Rates| match colour {
        Colour::State | Colour::Load => 0.0,
        Colour::Data => rates.megabytes,
        Colour::Wait => rates.waits,
    };
    let most = all.iter().map(|(_, rates)| pick(rates)).fold(0.0, f64::max);
    (look.scale, look.scale_end) = match colour {
        Colour::State | Colour::Load => return,
        Colour::Data => (Some("data of the busier direction".to_owned()), format!("{most:.2} MB/s")),
        Colour::Wait => {
            (Some("PortXmitWait of the end that waits more".to_owned()), format!("{most:.0} ticks/s"))
        }
    };
    let share = |rates: &Rates| if most > 0.0 { pick(rates) / most } else { 0.0 };
    look.cables.extend(all.iter().map(|(cable, rates)| (*cable, Paint::Share(share(rates)))));
}

fn title(lab: &Lab, colour: Colour) -> String {
    let what = match colour {
        Colour::State => "links",
        Colour::Data => "data",
        Colour::Wait => "credit wait",
        Colour::Load => "load",
    };
    format!("{}: {what}", lab.folder.name())
}
