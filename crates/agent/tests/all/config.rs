//! Configurations that contradict themselves.

use common::{Fabric, HCA_A, SWITCH, end};
use weft_agent_config::{AgentPart, CableConfig, ConfigError};

use crate::common;

fn broken(change: impl FnOnce(&mut AgentPart)) -> Result<(), ConfigError> {
    let mut config = Fabric::packed().agents.remove(0).part;
    change(&mut config);
    config.check()
}

#[test]
fn every_contradiction_is_named() {
    let cable = |local, remote| CableConfig { local, remote, remote_addr: None, delay_ns: 0 };
    assert_eq!(broken(|_| ()), Ok(()));
    assert_eq!(broken(|config| config.devices.clear()), Err(ConfigError::NoDevice));
    assert_eq!(broken(|config| config.link_timeout_ms = 99), Err(ConfigError::LinkTimeout(99)));
    let twice = broken(|config| config.devices.push(config.devices[0].clone()));
    assert_eq!(twice, Err(ConfigError::DuplicateGuid(HCA_A)));
    for nowhere in [end(SWITCH, 0), end(SWITCH, 5), end(weft_wire::Guid(1), 1)] {
        let result = broken(|config| config.cables.push(cable(end(SWITCH, 3), nowhere)));
        assert_eq!(result, Err(ConfigError::NoSuchPort(nowhere)));
        let result = broken(|config| config.cables.push(cable(nowhere, end(SWITCH, 3))));
        assert_eq!(result, Err(ConfigError::NoSuchPort(nowhere)));
    }
    let itself = broken(|config| config.cables.push(cable(end(SWITCH, 3), end(SWITCH, 3))));
    assert_eq!(itself, Err(ConfigError::CabledToItself(end(SWITCH, 3))));
    let taken = broken(|config| config.cables.push(cable(end(SWITCH, 3), end(SWITCH, 1))));
    assert_eq!(taken, Err(ConfigError::CabledTwice(end(SWITCH, 1))));
    // A switch cabled to itself between two ports is real.
    assert_eq!(broken(|config| config.cables.push(cable(end(SWITCH, 3), end(SWITCH, 4)))), Ok(()));
}

#[test]
fn agent_config_round_trips_and_rejects_unknown_fields() {
    let config = Fabric::spread().agents.remove(1).part;
    let mut json = serde_json::to_value(&config).unwrap();
    let again: AgentPart = serde_json::from_value(json.clone()).unwrap();
    assert_eq!((again.devices, again.cables, again.bind), (config.devices, config.cables, config.bind));
    json["linktimeout"] = 7.into();
    let error = serde_json::from_value::<AgentPart>(json).unwrap_err().to_string();
    assert!(error.contains("linktimeout"), "{error}");
}
