//! A fabric with virtual functions, and whoever asks for moves.

use weft_machine::Time;
use weft_sm::{Activity, Event, GuidToLid, KeyOptions, Options, RoutingOptions, SweepOptions};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Adapter, Fabric, NodeIndex, PortRef, Virtualised};
use weft_wire::*;

use super::client::{Asked, exchange, lid_of, table};
use super::fake::{Fake, World};

/// The laboratory's own key.
pub const KEY: SmKey = SmKey(0x77);

pub struct Site {
    pub world: World,
    pub adapters: Vec<Adapter>,
    id: u64,
}

pub fn options(engine: &str) -> Options {
    let engines = format!("{engine},no_fallback").parse().expect("an engine");
    Options {
        keys: KeyOptions { sa_key: KEY, ..KeyOptions::default() },
        routing: RoutingOptions { chain: engines, ..RoutingOptions::default() },
        sweeps: SweepOptions { sweep_interval_ms: 0, ..SweepOptions::default() },
        ..Options::default()
    }
}

/// Two levels: four leaves of four hosts with two functions each, and two spines.
pub fn tree() -> Site {
    with(options("ftree"))
}

/// The same tree by other options.
pub fn with(options: Options) -> Site {
    Site::new(&xgft(&[4, 4], &[1, 2], &GenerateOptions::default()).expect("a tree"), 2, options)
}

impl Site {
    pub fn new(physical: &Fabric, functions: u16, options: Options) -> Self {
        Self::without(physical, functions, options, &[])
    }

    /// Some functions, by host and number, are not plugged in.
    pub fn without(physical: &Fabric, functions: u16, options: Options, off: &[(usize, usize)]) -> Self {
        let Virtualised { fabric, adapters } = physical.virtualised(functions).expect("hosts");
        let own = PortRef::new(adapters[0].pf, PortNum(1));
        let mut fake = Fake::new(fabric, own);
        for (host, function) in off {
            fake.kill(adapters[*host].vfs[*function]);
        }
        let mut world = World::new(fake, options, &GuidToLid::default());
        world.run_until(Activity::Up);
        // Tables are kept when they have been proved.
        world.run_for(Time::from_millis(10));
        Self { world, adapters, id: 1 }
    }

    pub fn vf(&self, (host, function): (usize, usize)) -> NodeIndex {
        self.adapters[host].vfs[function]
    }

    pub fn port_guid(&self, at: (usize, usize)) -> Guid {
        self.world.fake.identity(self.vf(at)).1
    }

    pub fn vswitch_guid(&self, host: usize) -> Guid {
        self.world.fake.fabric.node(self.adapters[host].vswitch).guid
    }

    pub fn lid(&self, at: (usize, usize)) -> Lid {
        lid_of(&self.world, self.vf(at), PortNum(1))
    }

    /// A request about the identity that is at one place, and another place.
    pub fn ask(&self, kind: VmMoveKind, from: (usize, usize), to: (usize, usize)) -> VmMove {
        let port = |function: usize| PortNum(3 + function as u8);
        VmMove {
            kind,
            from_switch: self.vswitch_guid(from.0),
            from_port: port(from.1),
            to_switch: self.vswitch_guid(to.0),
            to_port: port(to.1),
            guid: self.port_guid(from),
            epoch: 1,
            ..VmMove::default()
        }
    }

    pub fn swap(&self, from: (usize, usize), to: (usize, usize)) -> VmMove {
        VmMove { partner: self.port_guid(to), partner_is_idle: 1, ..self.ask(VmMoveKind::Swap, from, to) }
    }

    pub fn request(&mut self, method: Method, attribute: AttributeId, ask: &VmMove) -> Asked {
        self.id += 1;
        let own = self.world.fake.own;
        let from = lid_of(&self.world, own.node, own.port);
        let asked = Asked { key: KEY, from, id: self.id, ..Asked::new(method, attribute) };
        asked.with_bytes(0, &ask.encode())
    }

    /// The status and the answer.
    pub fn tell(&mut self, asked: &Asked) -> (u16, VmMove) {
        let (head, data) = exchange(&mut self.world, asked);
        assert_eq!((head.method(), head.attribute_id()), (Method::GetResp, sa_attribute::VM_MOVE));
        (head.status(), VmMove::from_bytes(&data))
    }

    pub fn set(&mut self, ask: &VmMove) -> (u16, VmMove) {
        let asked = self.request(Method::Set, sa_attribute::VM_MOVE, ask);
        self.tell(&asked)
    }

    /// What must be done is done.
    pub fn done(&mut self, ask: &VmMove) -> VmMove {
        let (status, answer) = self.set(ask);
        let what = answer.reason_text();
        assert_eq!((status, answer.result), (status::OK, VmMoveResult::Done), "{what}: {answer:?}");
        answer
    }

    /// What is refused changes nothing, and says why.
    pub fn refused(&mut self, ask: &VmMove) -> (u16, VmMoveResult, String) {
        let before = self.lft_sets();
        let (status, answer) = self.set(ask);
        assert_ne!(status, status::OK, "{answer:?}");
        assert_eq!(self.lft_sets(), before, "{answer:?}");
        (status, answer.result, answer.reason_text())
    }

    pub fn plan(&mut self, ask: &VmMove) -> (VmMove, Vec<VmMoveWrite>) {
        let asked = self.request(Method::Get, sa_attribute::VM_MOVE, ask);
        let (status, answer) = self.tell(&asked);
        assert_eq!((status, answer.result), (status::OK, VmMoveResult::Planned), "{}", answer.reason_text());
        (answer, self.table(ask).expect("a table"))
    }

    /// What a request for the table of a move is answered.
    pub fn table(&mut self, ask: &VmMove) -> Result<Vec<VmMoveWrite>, u16> {
        let asked = self.request(Method::GetTable, sa_attribute::VM_MOVE_WRITE, ask);
        table(&mut self.world, &asked)
    }

    pub fn lft_sets(&self) -> u64 {
        self.world.fake.sets_of(AttributeId::LinearForwardingTable)
    }

    /// The tables of all switches, by node.
    pub fn tables(&self) -> Vec<Vec<PortNum>> {
        self.world.fake.devices.iter().map(|device| device.lft[..1024].to_vec()).collect()
    }

    /// Switches whose tables differ: physical ones and vSwitches.
    pub fn differing(&self, before: &[Vec<PortNum>]) -> (usize, usize) {
        let now = self.tables();
        let differ = (0..now.len()).filter(|at| now[*at] != before[*at]).map(|at| NodeIndex(at as u32));
        let is_virtual = |node: &NodeIndex| self.adapters.iter().any(|adapter| adapter.vswitch == *node);
        let (inner, outer): (Vec<_>, Vec<_>) = differ.partition(is_virtual);
        (outer.len(), inner.len())
    }

    /// A function is unplugged; its switch says so.
    pub fn unplug(&mut self, at: (usize, usize)) {
        let neighbours = self.world.fake.kill(self.vf(at));
        self.world.traps(&neighbours);
    }

    /// A function is plugged in under other GUIDs; its switch says so.
    pub fn plug(&mut self, at: (usize, usize), identity: (Guid, Guid)) {
        let neighbours = self.world.fake.plug(self.vf(at), identity);
        self.world.traps(&neighbours);
    }

    /// The identities at two places change them, as by a hypervisor at each.
    pub fn exchange(&mut self, a: (usize, usize), b: (usize, usize)) {
        let identities = [a, b].map(|at| self.world.fake.identity(self.vf(at)));
        self.unplug(a);
        self.unplug(b);
        self.world.run_for(Time::from_millis(3));
        self.plug(b, identities[0]);
        self.plug(a, identities[1]);
    }

    pub fn events(&self, wanted: impl Fn(&Event) -> bool) -> usize {
        self.world.events.iter().filter(|(_, event)| wanted(event)).count()
    }

    pub fn heavy_sweeps(&self) -> usize {
        self.events(|event| matches!(event, Event::SweepStarted { kind: weft_sm::SweepKind::Heavy, .. }))
    }
}
