//! `[fabric]`, `[rates]`, `[engine]`, `[sm]`, `[pm]`, `[congestion]` and `[hosts]`.

use weft_device::{Crossbar, DataPathOptions, LaneShare, Profile};
use weft_host::stack::{HandlerTimes, Notices, PathCache};
use weft_machine::Time;
use weft_pm::DetectorKind;
use weft_routing::{Chain, Engine, PftreeOrder};
use weft_sm::{CongestionOptions, Signalling};
use weft_topology::LinkRate;
use weft_wire::Mtu;

use super::error::{Wrong, choices};
use super::partitions;
use super::reader::{Role, Table, as_quantity, as_text, wrong_kind};
use super::tree::Kind;
use crate::{CongestionSpec, EngineSpec, FabricSpec, HostsSpec, PmMode, PmSpec, Rates, Shape, SmSpec};

/// Data lanes there can be beside lane 15: management's own lane is one of them.
const LANES_MAX: i64 = 15;
/// The papers' hosts move at most this much in each direction, in Gb/s (8 lanes of PCIe 1.1).
const HOST_LIMIT_GBPS: f64 = 12.9;
/// Longer ones are none that a credit loop would serve.
const CABLE_M_MAX: i64 = 100_000;
/// Ticks of 4 ns in a second.
const TICKS_MAX: i64 = 250_000_000;

pub(super) fn fabric(top: &mut Table<'_>) -> Result<FabricSpec, Wrong> {
    const KINDS: [&str; 4] = ["xgft", "ring", "mesh", "torus"];
    let mut table = top.table("fabric")?;
    let file = table.name_of("topology", Role::Topology)?;
    let kind = table.word("generate", &KINDS)?;
    let spec = match (file, kind) {
        (Some(file), None) => FabricSpec::File(file),
        (None, Some(kind)) => generated(&mut table, kind)?,
        (file, _) => {
            let message = match file {
                Some(_) => "[fabric] names both a topology file and a generator",
                None => "[fabric] names no cabling",
            };
            let wrong = Wrong::new(table.at, message);
            return Err(wrong.allowed(
                "write `topology = \"../topologies/dftree-1.topo\"`, or `generate` and one of `xgft`, `ring`, `mesh` and `torus`",
            ));
        }
    };
    table.finish(spec)
}

fn generated(table: &mut Table<'_>, kind: usize) -> Result<FabricSpec, Wrong> {
    let at = table.at;
    let missing =
        |what: &str| Wrong::new(at, format!("missing key `{what}` in [fabric] (for what it generates)"));
    let on_switch = |table: &mut Table<'_>| -> Result<u32, Wrong> {
        table.number("hosts_per_switch", 0..=254)?.ok_or_else(|| missing("hosts_per_switch"))
    };
    let shape = match kind {
        0 => {
            let (children, parents): (Vec<u32>, Vec<u32>) =
                (table.numbers("children", 1..=49_151)?, table.numbers("parents", 1..=49_151)?);
            if children.is_empty() || children.len() != parents.len() {
                let wrong = Wrong::new(at, "a tree takes `children` and `parents`, lists of equal length");
                return Err(wrong.allowed("the 648-port tree is children = [18, 36], parents = [1, 18]"));
            }
            Shape::Xgft { children, parents, parallel: table.numbers("parallel", 1..=254)? }
        }
        1 => Shape::Ring {
            switches: table.number("switches", 2..=10_000)?.ok_or_else(|| missing("switches"))?,
            hosts: on_switch(table)?,
        },
        _ => {
            let sides: Vec<u32> = table.numbers("sides", 2..=1000)?;
            if sides.is_empty() {
                return Err(missing("sides"));
            }
            let hosts = on_switch(table)?;
            if kind == 2 { Shape::Mesh { sides, hosts } } else { Shape::Torus { sides, hosts } }
        }
    };
    Ok(FabricSpec::Generated {
        shape,
        radix: table.number("radix", 1..=254)?,
        hosts: table.number("hosts", 1..=49_151)?,
        rate: table.parsed::<LinkRate>("rate")?.unwrap_or_default().to_string(),
        host_rate: table.parsed::<LinkRate>("host_rate")?.map(|rate| rate.to_string()),
        first_host: table.number("first_host", 0..=1)?.unwrap_or(0),
    })
}

pub(crate) fn rates(top: &mut Table<'_>) -> Result<Rates, Wrong> {
    let mut table = top.table("rates")?;
    let shaped = table.flag("shaped", true)?;
    let dilation = table.number("dilation", 1..=1_000_000)?.unwrap_or(1000);
    let profile = profile(&mut table)?;
    let usual = profile.map_or(HOST_LIMIT_GBPS, |profile| f64::from(profile.host_limit_mbps) / 1000.0);
    let limit = table.quantity("host_limit_gbps", "Gb/s", 4000.0)?.unwrap_or(usual);
    let bus = table.quantity("host_bus_gbps", "Gb/s", 4000.0)?.unwrap_or_default();
    let mtu = match table.get("mtu") {
        None => Mtu::Bytes2048,
        Some(value) => {
            let sizes = [256, 512, 1024, 2048, 4096];
            let mtus = [Mtu::Bytes256, Mtu::Bytes512, Mtu::Bytes1024, Mtu::Bytes2048, Mtu::Bytes4096];
            let size = if let Kind::Integer(size) = value.kind { size } else { 0 };
            let found = sizes.iter().position(|known| *known == size);
            mtus[found.ok_or_else(|| wrong_kind(value, "mtu", "256, 512, 1024, 2048 or 4096 bytes"))?]
        }
    };
    let deepest = DataPathOptions::buffer_packets_max(mtu);
    let buffer_packets = table.number("buffer_packets", 1..=i64::from(deepest)).map_err(|wrong| {
        wrong.allowed(format!("2048 blocks of 64 bytes is the deepest buffer, {deepest} packets at this MTU"))
    })?;
    let mut crossbar = match table.get("crossbar") {
        None => profile.map_or_else(Crossbar::default, |profile| profile.crossbar),
        Some(value) => as_text(value, "crossbar")?
            .parse()
            .map_err(|error| Wrong::new(value.at, format!("`crossbar`: {error}")))?,
    };
    crossbar.latency_ns = table.number("switch_latency_ns", 0..=60_000)?.unwrap_or(crossbar.latency_ns);
    let lane_share = table.choice("lane_share", &LaneShare::ALL, LaneShare::name)?.unwrap_or_default();
    let cut_through = table.flag("cut_through", profile.is_some_and(|profile| profile.cut_through))?;
    let lanes = table.number("lanes", 1..=LANES_MAX)?.unwrap_or(1);
    let usual = profile.map_or((0, 0), |profile| (profile.cable_m, profile.message_overhead_ns));
    let cable_m = table.number("cable_m", 0..=CABLE_M_MAX)?.unwrap_or(usual.0);
    let message_overhead_ns = table.number("message_overhead_ns", 0..=1_000_000)?.unwrap_or(usual.1);
    table.finish(())?;
    Ok(Rates {
        shaped,
        dilation,
        host_limit_mbps: (limit * 1000.0).round() as u32,
        host_bus_mbps: (bus * 1000.0).round() as u32,
        mtu,
        buffer_packets,
        crossbar,
        lane_share,
        cut_through,
        lanes,
        profile: profile.map(|profile| profile.name.to_owned()),
        cable_m,
        cables: cables(top)?,
        message_overhead_ns,
    })
}

fn profile(table: &mut Table<'_>) -> Result<Option<&'static Profile>, Wrong> {
    let Some(value) = table.get("profile") else { return Ok(None) };
    let name = as_text(value, "profile")?;
    let known = Profile::ALL.map(|profile| profile.name);
    let wrong = || Wrong::new(value.at, format!("there is no profile `{name}`"));
    Profile::find(&name).map(Some).ok_or_else(|| wrong().allowed(choices(&name, &known)))
}

/// Lengths of single cables: `[cable_m]` with `link-1 = 30`.
fn cables(top: &mut Table<'_>) -> Result<Vec<(String, u32)>, Wrong> {
    let mut table = top.table("cable_m")?;
    let mut cables = Vec::new();
    for entry in table.all() {
        match entry.value.kind {
            Kind::Integer(metres) if (0..=CABLE_M_MAX).contains(&metres) => {
                table.place(Role::Port, &entry.key, entry.value.at);
                cables.push((entry.key.clone(), metres as u32));
            }
            _ => {
                let wanted = format!("a length in whole metres, 0 to {CABLE_M_MAX}");
                return Err(wrong_kind(&entry.value, &entry.key, &wanted));
            }
        }
    }
    Ok(cables)
}

pub(super) fn engine(top: &mut Table<'_>) -> Result<EngineSpec, Wrong> {
    let mut table = top.table("engine")?;
    let chain = match table.get("chain") {
        None => "ftree".to_owned(),
        Some(value) => {
            let chain = as_text(value, "chain")?;
            chain.parse::<Chain>().map_err(|error| Wrong::new(value.at, format!("`chain`: {error}")))?;
            chain
        }
    };
    let mut spec = EngineSpec {
        lanes: table.number("lanes", 1..=LANES_MAX)?,
        roots: table.names_of("roots", Role::Node)?,
        max_reverse_hops: table.number("max_reverse_hops", 0..=255)?,
        io_nodes: table.names_of("io_nodes", Role::Host)?,
        order: table.names_of("order", Role::Host)?,
        learn_order: false,
        management_nodes: table.names_of("management_nodes", Role::Host)?,
        lfts: table.names_of("lfts", Role::Topology)?,
        lid_matrix: table.names_of("lid_matrix", Role::Topology)?,
        sl2vl: table.names_of("sl2vl", Role::Topology)?,
        psl: table.names_of("psl", Role::Topology)?,
        partitions: partitions::partitions(top, &mut table)?,
        pftree_order: table.choice("pftree_order", &PftreeOrder::ALL, PftreeOrder::name)?,
        weights: partitions::weights(&mut table)?,
        isolation_share: table.quantity("isolation_share", "one (a share)", 1.0)?,
        chain,
    };
    check_engine(&mut table, &spec)?;
    if spec.order == ["received"] {
        (spec.order, spec.learn_order) = (Vec::new(), true);
    }
    if let Some((key, _)) = spec.saved().uneven() {
        let wrong = Wrong::new(table.at, format!("`{key}` and `lfts` name different numbers of files"));
        return Err(wrong.allowed("a file for each of `lfts`, in the same order, or none"));
    }
    table.finish(spec)
}

/// An option that no engine of the chain reads is a mistake, as it is on the command line.
fn check_engine(table: &mut Table<'_>, spec: &EngineSpec) -> Result<(), Wrong> {
    let given = [
        ("lanes", spec.lanes.is_some()),
        ("roots", !spec.roots.is_empty()),
        ("max_reverse_hops", spec.max_reverse_hops.is_some()),
        ("io_nodes", !spec.io_nodes.is_empty()),
        ("order", !spec.order.is_empty()),
        ("lfts", !spec.lfts.is_empty()),
        ("lid_matrix", !spec.lid_matrix.is_empty()),
        ("sl2vl", !spec.sl2vl.is_empty()),
        ("psl", !spec.psl.is_empty()),
        ("pftree_order", spec.pftree_order.is_some()),
        ("weights", !spec.weights.is_empty()),
        ("isolation_share", spec.isolation_share.is_some()),
    ];
    let Ok(chain) = spec.chain.parse::<Chain>() else { return Ok(()) };
    for (option, _) in given.into_iter().filter(|(_, given)| *given) {
        if let (Err(error), Some(value)) = (chain.check_options(&[option]), table.get(option)) {
            return Err(Wrong::new(value.at, error.to_string()));
        }
    }
    Ok(())
}

/// Whether an engine of the chain reads an option.
pub(crate) fn engine_reads(chain: &Chain, option: &str) -> bool {
    chain.engines().any(|engine: &Engine| engine.options.contains(&option))
}

pub(super) fn sm(top: &mut Table<'_>, rates: &Rates) -> Result<(SmSpec, Option<String>), Wrong> {
    let mut table = top.table("sm")?;
    let spec = SmSpec {
        management_lane: table.flag("management_lane", true)?,
        signalling: table.choice("signalling", &Signalling::ALL, Signalling::name)?.unwrap_or_default(),
        one_sweep_per_cable: table.flag("one_sweep_per_cable", true)?,
        hoq_life: life(&mut table, "hoq_life_us")?,
        switch_life: life(&mut table, "switch_life_us")?,
        weights: table.numbers("weights", 0..=255)?,
        sweep_interval: table.seconds("sweep_interval")?,
    };
    if let (true, false, Some(value)) = (spec.management_lane, spec.weights.is_empty(), table.get("weights"))
    {
        let wrong = Wrong::new(
            value.at,
            "`weights` means nothing where management has a lane of its own: the others are alike",
        );
        return Err(wrong.allowed("write `management_lane = false` in [sm] to choose weights"));
    }
    if spec.management_lane && i64::from(rates.lanes) == LANES_MAX {
        let wrong = Wrong::new(table.at, format!("{LANES_MAX} lanes for traffic leave none for management"));
        return Err(wrong.allowed("write fewer `lanes` in [rates], or `management_lane = false` in [sm]"));
    }
    let at = table.name_of("at", Role::Host)?;
    table.finish((spec, at))
}

/// A lifetime in microseconds of fabric time; `"off"`, or nothing, is for ever.
fn life(table: &mut Table<'_>, key: &'static str) -> Result<Option<Time>, Wrong> {
    const MICROSECONDS_MAX: f64 = 2_000_000.0;
    let Some(value) = table.get(key) else { return Ok(None) };
    match &value.kind {
        Kind::Text(text) if text == "off" => Ok(None),
        Kind::Text(text) => {
            let message = format!("`{key}` cannot be `{text}`");
            Err(Wrong::new(value.at, message).allowed("it takes microseconds of fabric time, or \"off\""))
        }
        _ => {
            let micros = as_quantity(value, key, "microseconds of fabric time", MICROSECONDS_MAX)?;
            Ok(Some(Time::from_nanos((micros * 1000.0).round() as u64)))
        }
    }
}

/// The least number of sweeps between two reports of what hosts receive; 0 makes none. Routing has to learn something from them.
fn learning(table: &mut Table<'_>, mode: PmMode, engine: &EngineSpec) -> Result<u32, Wrong> {
    let Some(every) = table.number("learn_weights", 1..=1_000_000)? else {
        let wrong = || {
            Wrong::new(table.at, "`order = \"received\"` of [engine] takes a performance manager's counts")
        };
        let allowed = "write `learn_weights = 5` in [pm], or another number of sweeps";
        return if engine.learn_order { Err(wrong().allowed(allowed)) } else { Ok(0) };
    };
    let at = table.get("learn_weights").map_or(table.at, |value| value.at);
    if !matches!(mode, PmMode::Watch | PmMode::On) {
        let wrong = Wrong::new(at, "`learn_weights` takes a performance manager that counts");
        return Err(wrong.allowed("write `mode = \"watch\"` or `mode = \"on\"` in [pm]"));
    }
    let chain: Chain = engine.chain.parse().unwrap_or_default();
    if !engine.weights.is_empty() && !engine.learn_order {
        return Err(Wrong::new(
            at,
            "`learn_weights` takes the place of [[engine.weights]]: leave out one of them",
        ));
    }
    if !engine.learn_order && chain.check_options(&["weights"]).is_err() {
        let wrong = Wrong::new(at, format!("`learn_weights` means nothing to {}", engine.chain));
        return Err(wrong.allowed("pftree-wt or pftree-combined, or `order = \"received\"` in [engine]"));
    }
    Ok(every)
}

pub(super) fn pm(
    top: &mut Table<'_>,
    rates: &Rates,
    engine: &EngineSpec,
) -> Result<(PmSpec, Option<String>), Wrong> {
    let mut table = top.table("pm")?;
    let at = table.at;
    let mode: PmMode = table.choice("mode", &PmMode::ALL, PmMode::name)?.unwrap_or_default();
    let hysteresis: Vec<u32> = table.numbers("hysteresis", 1..=1000)?;
    let hysteresis = match hysteresis.as_slice() {
        [] => (1, 1),
        [both] => (*both, *both),
        [begin, end] => (*begin, *end),
        _ => {
            return Err(Wrong::new(
                at,
                "`hysteresis` takes two numbers of sweeps: to begin and to end a hot spot",
            ));
        }
    };
    let slow_sl = table.number("slow_sl", 0..=15)?;
    let detector = table.choice("detector", &DetectorKind::ALL, DetectorKind::name)?.unwrap_or_default();
    let mut options = weft_pm::Options { detector, ..weft_pm::Options::default() };
    let threshold = table.number("threshold_ticks", 0..=TICKS_MAX)?;
    options.set_thresholds(true, threshold, table.number("further_threshold_ticks", 0..=TICKS_MAX)?);
    let spec = PmSpec {
        mode,
        interval: table.seconds("interval")?.unwrap_or(Time::from_secs(2)),
        detector,
        threshold: options.threshold,
        further_threshold: options.further_threshold,
        utilisation_limit: table.quantity("utilisation_limit", "one (a share)", 1.0)?.unwrap_or(0.5),
        slow_sl: slow_sl.unwrap_or(rates.lanes.saturating_sub(1).max(1)),
        hysteresis,
        learn_weights: learning(&mut table, mode, engine)?,
        lanes: table.flag("lanes", false)?,
        hot_spots: table.names_of("hot_spots", Role::Host)?,
    };
    if spec.interval == Time::ZERO {
        return Err(Wrong::new(at, "`interval` of [pm] must be more than 0 seconds"));
    }
    let moves = matches!(mode, PmMode::On | PmMode::Oracle);
    if moves && slow_sl.is_none() && rates.lanes < 2 {
        let wrong = Wrong::new(at, "a slow lane needs a second lane, and `lanes` of [rates] is 1");
        return Err(wrong.allowed("write `lanes = 2` in [rates]"));
    }
    let place = table.name_of("at", Role::Host)?;
    table.finish((spec, place))
}

pub(super) fn congestion(top: &mut Table<'_>) -> Result<Option<CongestionSpec>, Wrong> {
    let mut table = top.table("congestion")?;
    let (on, usual) = (table.flag("on", false)?, CongestionOptions::default());
    let spec = CongestionSpec {
        threshold: table.number("threshold", 0..=15)?.unwrap_or(usual.sw_cong_setting_threshold),
        marking_rate: table.number("marking_rate", 0..=65_535)?.unwrap_or(usual.sw_cong_setting_marking_rate),
        packet_size: table.number("packet_size", 0..=255)?.unwrap_or(usual.sw_cong_setting_packet_size),
        increase: table.number("increase", 0..=255)?.unwrap_or(usual.ca_cong_setting_ccti_increase),
        timer: table.number("timer", 0..=65_535)?.unwrap_or(usual.ca_cong_setting_ccti_timer),
        limit: table.number("limit", 1..=4095)?.unwrap_or(127),
        slope: table.number("slope", 0..=1000)?.unwrap_or(1),
        shift: table.number("shift", 0..=3)?.unwrap_or(3),
    };
    table.finish(on.then_some(spec))
}

pub(super) fn hosts(top: &mut Table<'_>) -> Result<HostsSpec, Wrong> {
    let mut table = top.table("hosts")?;
    let spec = HostsSpec {
        window_packets: table.number("window_packets", 1..=65_536)?,
        ack_timeout: table.seconds("ack_timeout")?,
        retries: table.number("retries", 0..=1000)?,
        heed_repath: table.flag("heed_repath", true)?,
        path_cache: table.choice("path_cache", &PathCache::ALL, PathCache::name)?.unwrap_or_default(),
        notices: table.choice("notices", &Notices::ALL, Notices::name)?.unwrap_or_default(),
        handler_times: HandlerTimes {
            notice: table.seconds("notice_time")?.unwrap_or_default(),
            ask: table.seconds("ask_time")?.unwrap_or_default(),
            query_qp: table.seconds("query_qp_time")?.unwrap_or_default(),
            migrate: table.seconds("migrate_time")?.unwrap_or_default(),
        },
    };
    table.finish(spec)
}
