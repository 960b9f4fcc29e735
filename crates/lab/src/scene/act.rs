//! Orders of the page, carried out as the verbs do it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use weft_bundle::failure::{Failure, code_of, hint_of};
use weft_bundle::folder::LabFolder;
use weft_bundle::folder::front::{Front, Listener, Phases, Work};
use weft_control::agent::{Captured, PortEnd, Tap, TappedPort};
use weft_control::flow::{FlowChoice, FlowOrder, FlowShape};
use weft_control::traffic::Work as FlowWork;
use weft_control::{ErrorCode, HexGuid, ReplyBody, Request, Role};
use weft_fault::{Impairment, Lag, Share, Way};
use weft_page::{Act, Done, Refusal, Stagehand};
use weft_process::{Client, ClientError};
use weft_topology::PortRef;
use weft_wire::{PACKET_SIZE_MAX, erf};

use crate::agents::{PATIENCE, connect};
use crate::check::if_cut;
use crate::faults;
use crate::faults::lasting::{self, Placed, process_of};
use crate::flows::{self, Units};
use crate::view::Lab;

/// How long a fault of the page lasts at most.
const LASTS_MAX: f64 = 86_400.0;
/// How long a capture takes if nothing else is said, and at most.
const CAPTURE: f64 = 10.0;
const CAPTURE_MAX: f64 = 60.0;
/// What a capture holds at most.
const CAPTURE_BYTES_MAX: usize = 32 << 20;

/// Alarms that somebody has seen.
#[derive(Clone, Debug, Default)]
pub struct Acknowledged(Arc<Mutex<BTreeSet<String>>>);

impl Acknowledged {
    pub(super) fn has(&self, alarm: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(alarm)
    }

    /// Forgets alarms that are over.
    pub(super) fn keep(&self, lasts: impl Fn(&str) -> bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|alarm| lasts(alarm));
    }

    fn add(&self, alarm: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(alarm);
    }
}

/// Carries out orders of the page.
#[derive(Clone, Debug)]
pub struct Hands {
    folder: LabFolder,
    role: Role,
    acknowledged: Acknowledged,
}

impl Hands {
    /// Those of a role.
    pub fn new(folder: &LabFolder, role: Role, acknowledged: Acknowledged) -> Self {
        Self { folder: folder.clone(), role, acknowledged }
    }
}

impl Stagehand for Hands {
    fn may_act(&self) -> bool {
        self.role == Role::Operator
    }

    fn act(&self, act: Act) -> Result<Done, Refusal> {
        let heard = Arc::new(Heard::default());
        let front = Front { program: self.folder.front().program.clone(), listener: heard.clone() };
        let folder = self.folder.clone().with_front(front);
        match self.carry_out(&folder, act) {
            Ok(Done::Words(words)) if words.is_empty() => Ok(Done::Words(heard.words())),
            Ok(done) => Ok(done),
            Err(error) => Err(refusal(&error)),
        }
    }
}

impl Hands {
    fn carry_out(&self, folder: &LabFolder, act: Act) -> anyhow::Result<Done> {
        let lab = || Lab::load(folder);
        // What was done, the listener has heard.
        let heard = Done::Words(String::new());
        match act {
            Act::FlowStart { from, to, name, rate_mbps, ping_pong } => {
                let order = order(folder, [&from, &to], rate_mbps, ping_pong)?;
                return begin(folder, FlowOrder { name, ..order });
            }
            Act::FlowStop { id } => {
                let choice = FlowChoice { names: vec![id.clone()], ..FlowChoice::default() };
                flows::stop(folder, choice)?;
                return Ok(Done::Words(format!("flow `{id}` is stopped")));
            }
            Act::Kill { node } => {
                faults::kill(&lab()?, &process_of(&node))?;
                return Ok(Done::Words(format!("killed {node}")));
            }
            Act::Restart { node } => {
                if let Some(child) = faults::restart(&lab()?, &process_of(&node))? {
                    reap(child);
                }
                return Ok(Done::Words(format!("restarted {node}")));
            }
            Act::Freeze { node, seconds } => {
                if let Some(child) = faults::freeze(&lab()?, &process_of(&node), lasts(seconds)?)? {
                    reap(child);
                }
            }
            Act::LinkDown { cable, seconds } => {
                let lab = lab()?;
                lasting::unplug(&lab, &port(&lab, &cable)?, lasts(seconds)?)?;
            }
            Act::LinkUp { cable } => {
                let lab = lab()?;
                lasting::plug(&lab, &port(&lab, &cable)?)?;
            }
            Act::Loss { cable, percent, seconds } => {
                let share: Share = format!("{percent}%").parse()?;
                impair(&lab()?, &cable, Impairment::Loss(share), seconds)?;
            }
            Act::Delay { cable, ms, seconds } => {
                let nanos = ms * 1e6;
                let lag = Lag::try_from(if nanos > 0.0 { nanos as u64 } else { 0 })?;
                impair(&lab()?, &cable, Impairment::Delay(lag), seconds)?;
            }
            Act::Clear { fault } => {
                let id =
                    fault.parse().map_err(|_| Failure::bad_input(format!("no fault is called `{fault}`")))?;
                lasting::clear(&lab()?, &[id], false)?;
                return Ok(Done::Words(format!("cleared {fault}")));
            }
            Act::IfCut { cable } => {
                let lab = lab()?;
                let cut = if_cut(&lab, ends(&lab, &cable)?[0])?;
                return Ok(Done::Words(cut.to_string().trim_end().to_owned()));
            }
            Act::Capture { cable, seconds } => return capture(&lab()?, &cable, seconds),
            Act::Acknowledge { alarm } => {
                self.acknowledged.add(alarm);
                return Ok(Done::Words("acknowledged".to_owned()));
            }
        }
        Ok(heard)
    }
}

fn order(
    folder: &LabFolder,
    [from, to]: [&str; 2],
    rate_mbps: Option<f64>,
    ping_pong: bool,
) -> anyhow::Result<FlowOrder> {
    let lab = Lab::load_for(folder, [from, to].into_iter())?;
    let (from, to) = (flows::end(&lab, from)?, flows::end(&lab, to)?);
    let work = if ping_pong { FlowWork::PingPong } else { FlowWork::Stream };
    let mut shape = FlowShape { work, ..FlowShape::default() };
    let units = Units { dilation: lab.record.dilation };
    shape.bytes_per_second = match rate_mbps {
        Some(rate) if rate.is_finite() && rate > 0.0 && rate < 1e9 => {
            let rate = if units.dilation.is_some() { rate * 8.0 / 1e3 } else { rate };
            Some(units.bytes_per_second(rate, &shape))
        }
        Some(_) => return Err(Failure::bad_input("a rate is above 0 megabytes per second").into()),
        // Cables that take time bound flows by themselves.
        None if units.dilation.is_some() => None,
        None => Some(flows::default_rate(flows::list(folder)?.len() + 1)),
    };
    Ok(FlowOrder { name: None, set: None, from, to, shape })
}

fn begin(folder: &LabFolder, order: FlowOrder) -> anyhow::Result<Done> {
    let begun = flows::start(folder, &[order])?;
    match (begun.names.first(), begun.refused.first()) {
        (Some(name), _) => Ok(Done::Words(format!("flow `{name}` has begun"))),
        (None, Some(refused)) => {
            Err(Failure::new(format!("flow `{}` has not begun: {}", refused.name, refused.reason)).into())
        }
        (None, None) => anyhow::bail!("the flow has not begun"),
    }
}

fn lasts(seconds: Option<f64>) -> anyhow::Result<Option<Duration>> {
    let Some(seconds) = seconds else { return Ok(None) };
    if !(seconds > 0.0 && seconds <= LASTS_MAX) {
        return Err(
            Failure::bad_input(format!("a fault lasts for more than 0 s and at most {LASTS_MAX} s")).into()
        );
    }
    Ok(Some(Duration::from_secs_f64(seconds)))
}

/// The ends of a cable by its id.
fn ends(lab: &Lab, cable: &str) -> anyhow::Result<[PortRef; 2]> {
    let found = cable.parse().ok().and_then(|at| lab.fabric.cables().nth(at));
    let found = found.ok_or_else(|| Failure::bad_input(format!("there is no cable {cable}")))?;
    Ok([found.a, found.b])
}

/// A port of a cable as people name it: of an adapter, where it leads to one.
fn port(lab: &Lab, cable: &str) -> anyhow::Result<String> {
    let ends = ends(lab, cable)?;
    let host = ends.into_iter().find(|end| !lab.fabric.node(end.node).is_switch());
    Ok(lab.fabric.port_label(host.unwrap_or(ends[0])))
}

fn impair(lab: &Lab, cable: &str, how: Impairment, seconds: Option<f64>) -> anyhow::Result<()> {
    let port = port(lab, cable)?;
    lasting::impair(lab, how, Placed { port: &port, way: Way::Both, lasts: lasts(seconds)?, seed: None })
}

/// Waits for a child in a thread of its own.
fn reap(mut child: std::process::Child) {
    let wait = move || drop(child.wait());
    // Without a thread it is waited for when this process ends.
    let _ = std::thread::Builder::new().name("restart".into()).spawn(wait);
}

/// Captures what crosses a cable, at the end whose agent runs.
fn capture(lab: &Lab, cable: &str, seconds: Option<f64>) -> anyhow::Result<Done> {
    let seconds = seconds.unwrap_or(CAPTURE);
    if !(seconds > 0.0 && seconds <= CAPTURE_MAX) {
        return Err(
            Failure::bad_input(format!("a capture takes more than 0 s and at most {CAPTURE_MAX} s")).into()
        );
    }
    for end in ends(lab, cable)? {
        let Some((agent, _)) = lab.record.device(lab.fabric.node(end.node).guid) else { continue };
        let Some(client) = connect(&lab.folder, &agent.name)? else { continue };
        let at = PortEnd { node: HexGuid(lab.fabric.node(end.node).guid), port: end.port };
        let bytes = captured(client, at, Duration::from_secs_f64(seconds))?;
        let name: String =
            lab.fabric.port_label(end).chars().map(|c| if c == ':' { '-' } else { c }).collect();
        return Ok(Done::File { name: format!("{name}.pcap"), bytes });
    }
    Err(Failure::new("the agents at both ends are not running").hint("restart one of them"))
}

fn captured(mut client: Client, end: PortEnd, lasts: Duration) -> anyhow::Result<Vec<u8>> {
    let tap = Tap::Ports(vec![TappedPort { end, received: true }]);
    let request = client.post(Request::Capture { tap })?;
    let (mut file, mut end_at) = (erf::file_header().to_vec(), Instant::now() + lasts);
    let mut is_ending = false;
    loop {
        let left = end_at.saturating_duration_since(Instant::now());
        let line = if left.is_zero() { None } else { client.next_line(left)? };
        match line.map(|line| line.body) {
            Some(ReplyBody::Captured(packet)) => append(&mut file, &packet),
            Some(ReplyBody::Error(error)) => return Err(ClientError::Refused(error).into()),
            Some(ReplyBody::Answer(_)) if is_ending => return Ok(file),
            Some(_) => {}
            None if is_ending => return Ok(file),
            None => {
                client.post(Request::Cancel { request })?;
                (is_ending, end_at) = (true, Instant::now() + PATIENCE);
            }
        }
        if file.len() > CAPTURE_BYTES_MAX && !is_ending {
            end_at = Instant::now();
        }
    }
}

fn append(file: &mut Vec<u8>, captured: &Captured) {
    let bytes = &captured.packet.0;
    let packet = bytes.get(..PACKET_SIZE_MAX).unwrap_or(bytes);
    let Captured { time_ns, sent, damaged, lost, .. } = *captured;
    if file.len() <= 2 * CAPTURE_BYTES_MAX {
        erf::Record { time_ns, sent, damaged, lost, port: None, packet }.encode_into(file);
    }
}

fn refusal(error: &anyhow::Error) -> Refusal {
    let refused = error.chain().find_map(|cause| cause.downcast_ref::<ClientError>());
    let is_forbidden =
        matches!(refused, Some(ClientError::Refused(error)) if error.code == ErrorCode::Forbidden);
    let status = match code_of(error) {
        _ if is_forbidden => 403,
        2 => 400,
        _ => 409,
    };
    Refusal { status, error: format!("{error:#}"), hint: hint_of(error) }
}

/// Keeps the lines that are for people.
#[derive(Debug, Default)]
struct Heard(Mutex<Vec<String>>);

impl Heard {
    fn words(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.is_empty() { "done".to_owned() } else { lines.join("; ") }
    }
}

impl Listener for Heard {
    fn line(&self, line: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
    }

    fn problem(&self, error: &anyhow::Error) {
        self.line(&format!("{error:#}"));
    }

    fn work(&self) -> Box<dyn Work> {
        Box::new(Silent)
    }

    fn start(&self, _: &[&'static str]) -> Box<dyn Phases> {
        Box::new(Silent)
    }
}

/// Says nothing.
#[derive(Debug)]
struct Silent;

impl Listener for Silent {
    fn line(&self, line: &str) {
        tracing::debug!("{line}");
    }

    fn problem(&self, error: &anyhow::Error) {
        tracing::debug!("{error:#}");
    }

    fn work(&self) -> Box<dyn Work> {
        Box::new(Self)
    }

    fn start(&self, _: &[&'static str]) -> Box<dyn Phases> {
        Box::new(Self)
    }
}

impl Work for Silent {
    fn is_at(&mut self, _: &dyn Fn() -> String) {}
}

impl Phases for Silent {
    fn is_at(&mut self, _: usize, _: u64, _: u64) {}
    fn has_ended(&mut self, _: usize, _: Duration) {}
    fn end(&mut self) {}
}

/// A laboratory whose handling no one hears of.
pub(super) fn quiet(folder: &LabFolder) -> LabFolder {
    let front = Front { program: folder.front().program.clone(), listener: Arc::new(Silent) };
    folder.clone().with_front(front)
}
