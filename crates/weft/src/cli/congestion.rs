//! The arguments about congestion control, named as OpenSM's options.

use clap::Args;
use weft_sm::CongestionOptions;

/// What the subnet manager sets congestion control to.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Congestion control")]
pub(crate) struct CongestionArgs {
    /// Whether switches and hosts are set up for congestion control; otherwise they are left as they are
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set)]
    pub(crate) congestion_control: bool,

    /// The key that agents of congestion control ask for
    #[arg(long, value_name = "KEY", default_value_t = 0)]
    pub(crate) cc_key: u64,

    /// How easily a switch marks packets: 0 never, 15 with the shortest queue
    #[arg(long, value_name = "0-15", default_value_t = usual().sw_cong_setting_threshold, value_parser = clap::value_parser!(u8).range(0..=15))]
    pub(crate) cc_sw_cong_setting_threshold: u8,

    /// Packets of fewer 64-byte units are not marked
    #[arg(long, value_name = "UNITS", default_value_t = usual().sw_cong_setting_packet_size)]
    pub(crate) cc_sw_cong_setting_packet_size: u8,

    /// The mean number of packets between two that are marked
    #[arg(long, value_name = "COUNT", default_value_t = usual().sw_cong_setting_marking_rate)]
    pub(crate) cc_sw_cong_setting_marking_rate: u16,

    /// What hosts slow down: 0 queue pairs, 1 service levels
    #[arg(long, value_name = "0-1", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1))]
    pub(crate) cc_ca_cong_setting_port_control: u16,

    /// The service levels that are set, bit by bit
    #[arg(long, value_name = "BITS", default_value_t = usual().ca_cong_setting_control_map)]
    pub(crate) cc_ca_cong_setting_control_map: u16,

    /// How long until a host's index into its table of delays goes down by one, in 1.024 µs
    #[arg(long, value_name = "TIME", default_value_t = usual().ca_cong_setting_ccti_timer)]
    pub(crate) cc_ca_cong_setting_ccti_timer: u16,

    /// What a notification adds to the index
    #[arg(long, value_name = "COUNT", default_value_t = usual().ca_cong_setting_ccti_increase)]
    pub(crate) cc_ca_cong_setting_ccti_increase: u8,

    /// The index at which an event is logged; 0 is none
    #[arg(long, value_name = "INDEX", default_value_t = usual().ca_cong_setting_trigger_threshold)]
    pub(crate) cc_ca_cong_setting_trigger_threshold: u8,

    /// The lowest index
    #[arg(long, value_name = "INDEX", default_value_t = 0)]
    pub(crate) cc_ca_cong_setting_ccti_min: u8,

    /// The delays from index 0 on, in times of a packet: multiplier over 2 to the shift; by default 3:0 to 3:127
    #[arg(long, value_name = "SHIFT:MULTIPLIER,…", value_delimiter = ',', value_parser = delay)]
    pub(crate) cc_cct: Vec<u16>,
}

/// What is not said.
fn usual() -> CongestionOptions {
    CongestionOptions::default()
}

fn delay(text: &str) -> Result<u16, String> {
    let parts = text.split_once(':').and_then(|(shift, multiplier)| {
        let (shift, multiplier): (u16, u16) = (shift.parse().ok()?, multiplier.parse().ok()?);
        (shift < 4 && multiplier < 1 << 14).then_some(shift << 14 | multiplier)
    });
    parts.ok_or_else(|| {
        "a delay is SHIFT:MULTIPLIER, with a shift up to 3 and a multiplier up to 16383".into()
    })
}

#[cfg(test)]
mod tests {
    use super::delay;

    #[test]
    fn a_delay_is_two_numbers() {
        assert_eq!((delay("0:0"), delay("2:5"), delay("3:16383")), (Ok(0), Ok(0x8005), Ok(0xffff)));
        for wrong in ["", "1", "4:0", "0:16384", "a:1", "1:-1", "1:1:1"] {
            assert!(delay(wrong).is_err(), "{wrong}");
        }
    }
}
