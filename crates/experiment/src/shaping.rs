//! Rates of a laboratory, with or without an experiment: from the keys of `[rates]` to options of devices, hosts, cables and lanes.

use std::cell::RefCell;

use weft_device::DeviceOptions;
use weft_host::stack::StackOptions;
use weft_machine::Time;
use weft_wire::VlCap;

use crate::file::{At, Table, Wrong, read_rates, words};
use crate::{ExperimentFile, FileError, Rates};

/// Rates that cannot be: which key or value is wrong, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidRates(String);

/// How a laboratory is shaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shaping {
    /// How fast and how deep everything is.
    pub rates: Rates,
    /// Whether management's datagrams have a service level and a lane of their own.
    pub management_lane: bool,
}

impl Shaping {
    /// The keys of `[rates]` in one line: `dilation=1000,host_limit_gbps=12.9,lanes=2`. Management has a lane of its own.
    ///
    /// # Errors
    /// Says what is wrong with a key or its value, and what is allowed.
    pub fn of_line(line: &str) -> Result<Self, InvalidRates> {
        let read = || -> Result<Rates, Wrong> {
            let (document, places) = (words("rates", line)?, RefCell::default());
            read_rates(&mut Table::new("", At::default(), &document, &places))
        };
        let rates = read().map_err(|wrong| match wrong.allowed.as_str() {
            "" => InvalidRates(wrong.message),
            allowed => InvalidRates(format!("{}; {allowed}", wrong.message)),
        })?;
        Self { rates, management_lane: true }.checked()
    }

    /// Those of an experiment's file, without its variants.
    ///
    /// # Errors
    /// Says what is wrong with the file, and where.
    pub fn of_file(name: &str, text: &str) -> Result<Self, InvalidRates> {
        let file =
            ExperimentFile::parse(name, text).map_err(|error: FileError| InvalidRates(error.to_string()))?;
        let plain = file.plain();
        Self { rates: plain.rates.clone(), management_lane: plain.sm.management_lane }.checked()
    }

    fn checked(self) -> Result<Self, InvalidRates> {
        let Rates { shaped, cables, lanes, .. } = &self.rates;
        if !shaped {
            return Err(InvalidRates("`shaped` is false, so there is nothing to shape".to_owned()));
        }
        if let Some((end, _)) = cables.first() {
            let words = format!("[cable_m] gives `{end}` a length of its own, which only an experiment does");
            return Err(InvalidRates(words));
        }
        if self.management_lane && *lanes >= 15 {
            return Err(InvalidRates(format!("{lanes} lanes for traffic leave none for management")));
        }
        Ok(self)
    }

    /// The smallest code for the lanes that are needed in all: those of traffic, and management's.
    pub(crate) fn lanes_code(&self) -> VlCap {
        lanes_code(self.rates.lanes + u8::from(self.management_lane))
    }

    /// What devices are made with; the rest is `plain`'s.
    pub fn device(&self, plain: DeviceOptions) -> DeviceOptions {
        let rates = &self.rates;
        let vl_cap = lanes_code(self.lanes_code().lanes().max(plain.vl_cap.lanes()));
        let entries = vl_cap.lanes();
        let mut data = plain.data.clone();
        data.shaped = rates.shaped;
        data.dilation = rates.dilation;
        data.host_limit_mbps = rates.host_limit_mbps;
        data.host_bus_mbps = rates.host_bus_mbps;
        data.buffer_packets = rates.buffer_packets.unwrap_or(0);
        data.crossbar = rates.crossbar;
        data.lane_share = rates.lane_share;
        data.cut_through = rates.cut_through;
        if rates.host_limit_mbps == 0 {
            // A limit of 0 says that hosts have none, whatever the crossbar's profile says.
            data.crossbar.host_bus_percent = 0;
        }
        DeviceOptions {
            mtu_cap: rates.mtu,
            vl_cap,
            vl_arbitration_high_cap: entries,
            vl_arbitration_low_cap: entries,
            data,
            ..plain
        }
    }

    /// What hosts are like.
    pub fn stack(&self) -> StackOptions {
        let Rates { dilation, message_overhead_ns, .. } = self.rates;
        StackOptions { dilation, message_overhead_ns, ..StackOptions::default() }
    }

    /// How long a signal takes over a cable of this length, in machine time.
    pub fn cable_delay(&self, metres: u32) -> Time {
        let fabric = u64::from(metres) * u64::from(weft_device::CABLE_NS_PER_M);
        Time::from_nanos(fabric * u64::from(self.rates.dilation))
    }

    /// A subnet manager's options with the lanes of traffic and of management.
    pub fn with_lanes(&self, options: weft_sm::Options) -> weft_sm::Options {
        let mut sl2vl = [0; 16];
        for sl in 0..self.rates.lanes.min(15) {
            sl2vl[usize::from(sl)] = sl;
        }
        let mut options = options.with_equal_lanes();
        options.lanes = weft_sm::LaneOptions {
            max_op_vls: self.lanes_code(),
            mtu_max: self.rates.mtu,
            qos: true,
            sl2vl,
            management_lane: self.management_lane,
            ..options.lanes
        };
        options
    }
}

/// The smallest code for at least this number of lanes.
fn lanes_code(lanes: u8) -> VlCap {
    match lanes {
        0 | 1 => VlCap::Vl0,
        2 => VlCap::Vl0To1,
        3 | 4 => VlCap::Vl0To3,
        5..=8 => VlCap::Vl0To7,
        _ => VlCap::Vl0To14,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_a_file_says() {
        let line =
            Shaping::of_line("dilation=1000,host_limit_gbps=12.9,crossbar=is4,lanes=2,cut_through=true");
        let file = "title = \"x\"\nduration = 1\n[fabric]\ntopology = \"x\"\n[rates]\ndilation = 1000\nhost_limit_gbps = 12.9\n\
            crossbar = \"is4\"\nlanes = 2\ncut_through = true\n";
        assert_eq!(line, Shaping::of_file("x.toml", file));
        let shaping = line.unwrap();
        let device = shaping.device(DeviceOptions::default());
        assert!(device.data.shaped && device.data.cut_through);
        assert_eq!((device.data.dilation, device.data.host_limit_mbps), (1000, 12_900));
        let sm = shaping.with_lanes(weft_sm::Options::default());
        assert_eq!((sm.lanes.max_op_vls, sm.lanes.sl2vl[1], sm.lanes.sl2vl[2]), (VlCap::Vl0To3, 1, 0));
        assert_eq!(shaping.stack().dilation, 1000);
    }

    #[test]
    fn a_wrong_line_is_refused_in_words() {
        for (line, says) in [
            ("", "no key"),
            ("dilation", "`dilation` has no value"),
            ("dilation=", "`dilation` has no value"),
            ("dilation=0", "dilation"),
            ("dilation=fast", "dilation"),
            ("lanes=99", "lanes"),
            ("lanes=15", "leave none for management"),
            ("dilatoin=1", "dilation"),
            ("lanes=1,lanes=2", "`lanes` twice"),
            ("crossbar=\"", "crossbar"),
            ("crossbar=none", "crossbar"),
            ("lane_share=halves", "lane_share"),
            ("shaped=false", "nothing to shape"),
        ] {
            let error = Shaping::of_line(line).unwrap_err().to_string();
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
