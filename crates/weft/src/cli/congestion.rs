//! The arguments about congestion control, named as OpenSM's options.

use clap::Args;
use weft_sm::CongestionOptions;

/// Options of congestion control.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Congestion control")]
pub(crate) struct CongestionArgs {
    /// Configure congestion control in switches and hosts; false leaves them alone
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set)]
    pub(crate) congestion_control: bool,

    /// CC_Key of the congestion control agents
    #[arg(long, value_name = "KEY", default_value_t = 0)]
    pub(crate) cc_key: u64,

    /// Marking threshold of switches: 0 never marks, 15 marks with the shortest queue
    #[arg(long, value_name = "0-15", default_value_t = usual().sw_cong_setting_threshold, value_parser = clap::value_parser!(u8).range(0..=15))]
    pub(crate) cc_sw_cong_setting_threshold: u8,

    /// Smallest packet to mark, in 64-byte units
    #[arg(long, value_name = "UNITS", default_value_t = usual().sw_cong_setting_packet_size)]
    pub(crate) cc_sw_cong_setting_packet_size: u8,

    /// Mean number of packets between two marked ones
    #[arg(long, value_name = "COUNT", default_value_t = usual().sw_cong_setting_marking_rate)]
    pub(crate) cc_sw_cong_setting_marking_rate: u16,

    /// Unit that hosts slow down: 0 queue pairs, 1 service levels
    #[arg(long, value_name = "0-1", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1))]
    pub(crate) cc_ca_cong_setting_port_control: u16,

    /// Bit mask of the service levels to configure
    #[arg(long, value_name = "BITS", default_value_t = usual().ca_cong_setting_control_map)]
    pub(crate) cc_ca_cong_setting_control_map: u16,

    /// Time after which a host's CCT index falls by one, in units of 1.024 µs
    #[arg(long, value_name = "TIME", default_value_t = usual().ca_cong_setting_ccti_timer)]
    pub(crate) cc_ca_cong_setting_ccti_timer: u16,

    /// Increase of the CCT index per notification
    #[arg(long, value_name = "COUNT", default_value_t = usual().ca_cong_setting_ccti_increase)]
    pub(crate) cc_ca_cong_setting_ccti_increase: u8,

    /// CCT index at which an event is logged; 0 logs none
    #[arg(long, value_name = "INDEX", default_value_t = usual().ca_cong_setting_trigger_threshold)]
    pub(crate) cc_ca_cong_setting_trigger_threshold: u8,

    /// Lowest CCT index
    #[arg(long, value_name = "INDEX", default_value_t = 0)]
    pub(crate) cc_ca_cong_setting_ccti_min: u8,

    /// Delays from index 0 on, in packet times: multiplier / 2^shift [default: 3:0 to 3:127]
    #[arg(long, value_name = "SHIFT:MULTIPLIER,…", value_delimiter = ',', value_parser = delay)]
    pub(crate) cc_cct: Vec<u16>,
}

/// Values of options that are not given.
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
