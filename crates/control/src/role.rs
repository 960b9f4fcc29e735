//! Roles, and the requests that each may send.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorCode, Request};

/// What a client may do. A Unix socket of mode 0600 makes its owner an operator; certificates name a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// May look, and changes nothing.
    Viewer,
    /// May look, and order an agent's slots of virtual machines.
    VmManager,
    /// May do everything.
    Operator,
}

impl Role {
    /// What the role in a certificate allows; `None` for one that no client has.
    pub fn of_certificate(named: Option<&str>) -> Option<Self> {
        match named? {
            "operator" | "hub" => Some(Self::Operator),
            "vmm" => Some(Self::VmManager),
            "viewer" | "sm" | "pm" => Some(Self::Viewer),
            _ => None,
        }
    }

    /// The least role that may make a request.
    pub fn needed_for(request: &Request) -> Self {
        match request {
            Request::Hello
            | Request::Health
            | Request::Events(_)
            | Request::Cancel { .. }
            | Request::Metrics
            | Request::LogFilter
            | Request::RevokedIdentities
            | Request::Clients
            | Request::SmStatus
            | Request::PmStatus
            | Request::PmPorts(_)
            | Request::AgentStatus
            | Request::Devices(_)
            | Request::Ports(_)
            | Request::LaneCounts(_)
            | Request::Faults
            | Request::Flows(_)
            | Request::Account(_)
            | Request::Slots(_)
            | Request::VmmStatus
            | Request::Vms(_)
            | Request::VmPlan(_)
            | Request::PlanPartitions { .. }
            | Request::RoutingOptions
            | Request::LabStatus(_)
            | Request::LabFlows(_)
            | Request::Past(_) => Self::Viewer,
            Request::Vm(_) | Request::VmGeneration { .. } => Self::VmManager,
            Request::Relay { request, .. } => Self::needed_for(request),
            // A capture shows what packets hold.
            Request::Capture { .. }
            | Request::SetLogFilter { .. }
            | Request::NoteFault { .. }
            | Request::RenewIdentity
            | Request::Revoke { .. }
            | Request::Shutdown
            | Request::Kill
            | Request::SmSweep
            | Request::SmInstruct { .. }
            | Request::ReadPartitions
            | Request::PmRefresh
            | Request::SetFault { .. }
            | Request::ClearFault { .. }
            | Request::ConnectCable { .. }
            | Request::DisconnectCable { .. }
            | Request::ReadPlan
            | Request::StartProcess { .. }
            | Request::WriteCables { .. }
            | Request::Host { .. }
            | Request::FlowStart { .. }
            | Request::FlowStop(_)
            | Request::VmCreate(_)
            | Request::VmDestroy { .. }
            | Request::VmMigrate(_)
            | Request::VmForget { .. }
            | Request::ResetLateness
            | Request::Begin => Self::Operator,
        }
    }

    /// Refuses what the role may not do.
    ///
    /// # Errors
    /// [`ErrorCode::Forbidden`].
    pub fn check(self, request: &Request) -> Result<(), Error> {
        let needed = Self::needed_for(request);
        if self >= needed {
            return Ok(());
        }
        let message = format!("permission denied: `{}` needs the {needed} role", request.name());
        Err(Error::new(ErrorCode::Forbidden, message).hint("connect with an operator's identity"))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Viewer => "viewer",
            Self::VmManager => "VM manager",
            Self::Operator => "operator",
        })
    }
}
