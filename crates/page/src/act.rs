//! Orders of a person to the laboratory, by the page.

use serde::Deserialize;

/// An order, as the page sends it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Act {
    /// Begin a flow.
    FlowStart {
        /// The sending host, or `vm:NAME`.
        from: String,
        /// The receiving one.
        to: String,
        /// Its name.
        name: Option<String>,
        /// Megabytes per second at most.
        rate_mbps: Option<f64>,
        /// Whether each message is answered.
        #[serde(default)]
        ping_pong: bool,
    },
    /// End a flow.
    FlowStop {
        /// Its name.
        id: String,
    },
    /// Kill a process, or the agent of a node.
    Kill {
        /// Its name.
        node: String,
    },
    /// Start it again.
    Restart {
        /// Its name.
        node: String,
    },
    /// Freeze it.
    Freeze {
        /// Its name.
        node: String,
        /// For how long; until it is cleared without it.
        seconds: Option<f64>,
    },
    /// Unplug a cable.
    LinkDown {
        /// The cable.
        cable: String,
        /// For how long.
        seconds: Option<f64>,
    },
    /// Plug it in.
    LinkUp {
        /// The cable.
        cable: String,
    },
    /// Lose packets.
    Loss {
        /// The cable.
        cable: String,
        /// How many of a hundred.
        percent: f64,
        /// For how long.
        seconds: Option<f64>,
    },
    /// Delay packets.
    Delay {
        /// The cable.
        cable: String,
        /// By so much.
        ms: f64,
        /// For how long.
        seconds: Option<f64>,
    },
    /// Say what a cut of a cable would do.
    IfCut {
        /// The cable.
        cable: String,
    },
    /// End a fault.
    Clear {
        /// Its name.
        fault: String,
    },
    /// Capture what crosses a cable.
    Capture {
        /// The cable.
        cable: String,
        /// For how long.
        seconds: Option<f64>,
    },
    /// Note that somebody has seen an alarm.
    Acknowledge {
        /// Which one.
        alarm: String,
    },
}

/// What came of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// Words for people.
    Words(String),
    /// A file to keep.
    File {
        /// Its name.
        name: String,
        /// What it holds.
        bytes: Vec<u8>,
    },
}

/// Why an order was not carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The status of HTTP: 400 where the order is wrong, 403 where the role is, 409 where the laboratory refuses.
    pub status: u16,
    /// What is wrong.
    pub error: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Carries out orders. Called in a thread that may wait.
pub trait Stagehand: Send + Sync + 'static {
    /// Whether whoever asks may give orders.
    fn may_act(&self) -> bool;

    /// Carries out an order.
    ///
    /// # Errors
    /// Why it was not.
    fn act(&self, act: Act) -> Result<Done, Refusal>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_the_page_sends_them() {
        let read = |text| serde_json::from_str::<Act>(text);
        let start = r#"{"do":"flow-start","from":"host-0","to":"host-3","name":null,"rate_mbps":null,"ping_pong":false}"#;
        assert!(matches!(read(start), Ok(Act::FlowStart { name: None, .. })));
        let down = read(r#"{"do":"link-down","cable":"17","seconds":30}"#).unwrap();
        assert_eq!(down, Act::LinkDown { cable: "17".into(), seconds: Some(30.0) });
        for wrong in [r#"{"do":"kill"}"#, r#"{"do":"kill","node":"a","x":1}"#, r#"{"do":"rm"}"#, "[]", ""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
