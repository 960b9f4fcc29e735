//! Programs of congestion control. No manager here has it on.

use super::{Case, case};
use crate::Site;
use crate::site::{expect_equal, expect_field, field};

pub(super) const CASES: &[Case] = &[
    case(
        "ibccquery OPERATION LID",
        "every attribute of a switch and of an HCA, and the refusals of the others'",
        read,
    ),
    case("ibccconfig OPERATION LID", "`ibccquery` shows what was set, and then that it was taken back", set),
];

fn query(site: &Site<'_>, operation: &str, lid: &str) -> Result<String, String> {
    site.read("ibccquery", &[operation, lid]).map_err(|error| format!("{operation}: {error}"))
}

fn read(site: &Site<'_>) -> Result<(), String> {
    let (switch, host) = (site.lid(site.far_switch().0).to_string(), site.lid(site.other_host()).to_string());
    for (lid, log_type, blocks) in [(&switch, "1", "0"), (&host, "2", "64")] {
        expect_field(&query(site, "ClassPortInfo", lid)?, "ClassVersion", "2")?;
        expect_field(&query(site, "CongestionInfo", lid)?, "ControlTableCap", blocks)?;
        expect_field(&query(site, "CongestionKeyInfo", lid)?, "CC_Key", "0x0000000000000000")?;
        expect_field(&query(site, "CongestionLog", lid)?, "LogType", log_type)?;
        let time = |text: String| field(&text, "Timestamp").and_then(|time| time.parse::<u32>().ok());
        let (before, after) = (time(query(site, "Timestamp", lid)?), time(query(site, "Timestamp", lid)?));
        if before.zip(after).is_none_or(|(before, after)| before >= after) {
            return Err(format!("the time was {before:?} and then {after:?}"));
        }
    }
    expect_field(&query(site, "SwitchCongestionSetting", &switch)?, "Threshold", "0x00")?;
    expect_field(&query(site, "SwitchPortCongestionSetting", &switch)?, "Valid", "0")?;
    expect_field(&query(site, "CACongestionSetting", &host)?, "CCTI_Increase", "0")?;
    expect_field(&query(site, "CongestionControlTable", &host)?, "CCTI_Limit", "0")?;
    for (operation, lid) in [
        ("SwitchCongestionSetting", &host),
        ("SwitchPortCongestionSetting", &host),
        ("CACongestionSetting", &switch),
        ("CongestionControlTable", &switch),
    ] {
        expect_equal(operation, &query(site, operation, lid).is_err(), &true)?;
    }
    Ok(())
}

fn set(site: &Site<'_>) -> Result<(), String> {
    let (switch, host) = (site.lid(site.far_switch().0).to_string(), site.lid(site.other_host()).to_string());
    let config = |line: &str| -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        site.read("ibccconfig", &words).map(|_| ()).map_err(|error| format!("{line}: {error}"))
    };
    for (threshold, marking_rate) in [(0xe, 77), (0, 0)] {
        config(&format!("SS {switch} 0x1f 0x2 0x0 {threshold} 0 0 0:0 {marking_rate}"))?;
        let setting = query(site, "SS", &switch)?;
        expect_field(&setting, "Threshold", &format!("0x{threshold:02x}"))?;
        expect_field(&setting, "Marking_Rate", &marking_rate.to_string())?;
    }
    for (valid, packet_size) in [(1, 9), (0, 0)] {
        config(&format!("SP {switch} 1 {valid} 0 0 {packet_size} 0"))?;
        let port = site.read("ibccquery", &["SP", &switch, "1"])?;
        expect_field(&port, "Valid", &valid.to_string())?;
        expect_field(&port, "Packet_Size", &packet_size.to_string())?;
    }
    for (timer, increase, limit, delay) in [(150, 2, 1, 5), (0, 0, 0, 0)] {
        config(&format!("CS {host} 0 0x1 {timer} {increase} 0 0"))?;
        let setting = query(site, "CS", &host)?;
        expect_field(&setting, "CCTI_Timer", &timer.to_string())?;
        expect_field(&setting, "CCTI_Increase", &increase.to_string())?;
        config(&format!("CT {host} {limit} 0 {}", vec![format!("0:{delay}"); limit + 1].join(" ")))?;
        let table = query(site, "CT", &host)?;
        expect_field(&table, "CCTI_Limit", &limit.to_string())?;
        // Of a limit of 0 it shows no delays.
        if limit > 0 {
            expect_field(&table, "CCT_Multiplier", &delay.to_string())?;
        }
    }
    Ok(())
}
