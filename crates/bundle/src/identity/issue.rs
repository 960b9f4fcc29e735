//! Identities: one for each process of a laboratory, issued by its authority.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context;
use weft_agent_config::{AgentPart, CableConfig};
use weft_control::fault::BadIdentity;
use weft_link::{Authority, Credentials, Identity, RevocationList, Serial, Validity};
use weft_wire::Guid;

use crate::failure::Failure;
use crate::folder::bundle::{self, Bundle};
use crate::folder::{self};
use crate::names::{HUB, OPENSM, PM, SM, VMM};
use crate::record::{LabRecord, OtherPlace};

/// The most nodes that a certificate names: TLS refuses those of more than 64 KiB.
const CERTIFIED_MAX: usize = 2000;

/// The hub and people: no processes of the fabric, with identities all the same.
const PEOPLE: [&str; 3] = [HUB, "operator", "viewer"];

/// Issues identities into a bundle.
pub struct Issuer<'a> {
    bundle: &'a Bundle,
    authority: Authority,
}

impl<'a> Issuer<'a> {
    /// With a new authority.
    pub fn begin(bundle: &'a Bundle, lab: &str) -> anyhow::Result<Self> {
        let authority = Authority::new(lab).context("cannot make the laboratory's authority")?;
        folder::write(&bundle.authority(), authority.certificate_pem().as_bytes())?;
        folder::write(&bundle.authority_key(), authority.key_pem().as_bytes())?;
        Ok(Self { bundle, authority })
    }

    /// With the authority that the bundle was made with.
    pub fn resume(bundle: &'a Bundle, lab: &str) -> anyhow::Result<Self> {
        let read = |path: PathBuf| {
            let text = crate::input::read_to_string(&path);
            text.map_err(|error| {
                Failure::new(format!("cannot read {}: {error}", path.display()))
                    .hint("only the folder that `weft plan` wrote has the authority's key; `weft identity` takes it with --in DIR")
            })
        };
        let authority = Authority::load(lab, &read(bundle.authority())?, &read(bundle.authority_key())?);
        Ok(Self { bundle, authority })
    }

    /// The same for another bundle of this authority.
    pub fn into_bundle<'b>(self, bundle: &'b Bundle) -> anyhow::Result<Issuer<'b>> {
        let authority = self.of_same_authority(bundle)?.authority;
        Ok(Issuer { bundle, authority })
    }

    /// An error where another bundle is of another authority.
    pub fn of_same_authority(self, bundle: &Bundle) -> anyhow::Result<Self> {
        let path = bundle.authority();
        let own = crate::input::text(&path)?;
        if own != self.authority.certificate_pem() {
            let shown = self.bundle.path().display();
            return Err(Failure::new(format!("{shown} has another authority than the laboratory"))
                .hint("name the folder that the laboratory was started from"));
        }
        Ok(self)
    }

    /// An agent's; gives the nodes that it names.
    pub fn issue_agent(&self, part: &AgentPart) -> anyhow::Result<Vec<Guid>> {
        let guids = proves(part)?;
        self.keep(&part.name, &self.authority.issue(&guids).context("cannot issue a certificate")?)?;
        Ok(guids)
    }

    /// An agent's that runs or is to be added: it names what its cables show now, and what the one before names, which the
    /// agent and those who talk to it may go by.
    pub fn issue_more(&self, part: &AgentPart) -> anyhow::Result<()> {
        let devices = || part.devices.iter().map(|device| device.guid);
        let mut guids: BTreeSet<Guid> = proves(part)?.into_iter().collect();
        let path = self.bundle.identity(&part.name);
        if path.exists() {
            let before = read(self.bundle, &path)?;
            guids.extend(devices().filter(|guid| before.is_for(*guid)));
        }
        let guids: Vec<Guid> = guids.into_iter().collect();
        self.keep(&part.name, &self.authority.issue(&guids).context("cannot issue a certificate")?)
    }

    /// Those of managers, the hub and people.
    pub fn issue_roles(&self, record: &LabRecord) -> anyhow::Result<()> {
        roles(record).iter().try_for_each(|holder| self.issue_role(holder))
    }

    /// Issues identities again: for another year, with other keys, for all that the ones before are for.
    pub fn again<'n>(
        &self,
        record: &LabRecord,
        mut names: impl Iterator<Item = &'n String>,
    ) -> anyhow::Result<()> {
        let roles = roles(record);
        names.try_for_each(|name| match roles.iter().find(|holder| holder.name == *name) {
            Some(holder) => self.issue_role(holder),
            None => self.issue_more(&bundle::load(&self.bundle.agent(name))?),
        })
    }

    /// Issues an identity that no peer takes, beside an agent's own.
    pub fn issue_bad(&self, agent: &str, bad: BadIdentity, other: Option<Guid>) -> anyhow::Result<()> {
        let part: AgentPart = bundle::load(&self.bundle.agent(agent))?;
        let own = proves(&part)?;
        let authority = self.authority.clone();
        let identity = match bad {
            BadIdentity::Expired => authority.valid(Validity::over()).issue(&own),
            BadIdentity::Future => authority.valid(Validity::to_come()).issue(&own),
            BadIdentity::Foreign => Authority::new(&part.lab).and_then(|foreign| foreign.issue(&own)),
            // A GUID that no node has does as well.
            BadIdentity::Other => authority.issue(&[other.unwrap_or(Guid(u64::MAX))]),
        };
        folder::replace(
            &bad_identity(&self.bundle.identity(agent), bad),
            identity.context("cannot issue a certificate")?.pem().as_bytes(),
        )
    }

    /// Puts serial numbers on the list of revoked identities, and writes it into the other bundle, too. Of several at the same
    /// time each waits for the one before.
    pub fn revoke(&self, serials: &[Serial], other: Option<&Bundle>) -> anyhow::Result<RevocationList> {
        let key = self.bundle.authority_key();
        let turn = std::fs::File::open(&key).with_context(|| format!("cannot read {}", key.display()))?;
        turn.lock().with_context(|| format!("cannot lock {}", key.display()))?;
        let earlier = revoked(self.bundle)?;
        let list = self.authority.revoke(earlier.as_ref(), serials).context("cannot sign the list")?;
        [Some(self.bundle), other].into_iter().flatten().try_for_each(|bundle| keep(bundle, list.pem()))?;
        Ok(list)
    }

    fn issue_role(&self, holder: &RoleHolder) -> anyhow::Result<()> {
        let identity = self.authority.issue_role(holder.role, holder.attaches.as_slice());
        self.keep(&holder.name, &identity.context("cannot issue a certificate")?)
    }

    fn keep(&self, name: &str, identity: &Identity) -> anyhow::Result<()> {
        folder::rewrite(&self.bundle.identity(name), identity.pem().as_bytes())
    }
}

/// Where a process finds a bad identity, beside its own: `a0007.expired.pem`.
pub fn bad_identity(own: &Path, bad: BadIdentity) -> PathBuf {
    own.with_extension(format!("{bad}.pem"))
}

/// A process that is no agent.
struct RoleHolder {
    name: String,
    /// What its certificate names it.
    role: &'static str,
    /// The node that a manager may attach to.
    attaches: Option<Guid>,
}

fn roles(record: &LabRecord) -> Vec<RoleHolder> {
    let manager = |name, role, node| RoleHolder { name, role, attaches: Some(node) };
    let managers = record.subnet_managers().map(|(name, place)| manager(name, SM, place.node));
    let of = |role| move |place: &OtherPlace| manager(place.name.clone(), role, place.node);
    let (pms, vmms) = (record.pms.iter().map(of(PM)), record.vmms.iter().map(of(VMM)));
    // In containers OpenSM is a program beside an agent's, and on one machine it talks to none over the network.
    let opensms = record.opensms.iter().filter(|place| record.doors.contains_key(&place.name));
    let opensms = opensms.map(of(OPENSM));
    let people = PEOPLE.map(|role| RoleHolder { name: role.to_owned(), role, attaches: None });
    managers.chain(pms).chain(vmms).chain(opensms).chain(people).collect()
}

/// All that have an identity: agents, managers, the hub and people.
pub fn holders(record: &LabRecord) -> Vec<String> {
    let agents = record.agents.iter().map(|agent| agent.name.clone());
    agents.chain(roles(record).into_iter().map(|holder| holder.name)).collect()
}

/// Whether an identity is for people, and of no process.
pub fn is_persons(name: &str) -> bool {
    name != HUB && PEOPLE.contains(&name)
}

/// Writes a list of revoked identities, as PEM text, into a bundle.
pub fn keep(bundle: &Bundle, list: &str) -> anyhow::Result<()> {
    // A process may read the one before at this moment.
    folder::replace(&bundle.revoked(), list.as_bytes())
}

/// Whether an agent's identity names all nodes that it must prove to be.
pub fn covers(bundle: &Bundle, part: &AgentPart) -> anyhow::Result<bool> {
    let identity = read(bundle, &bundle.identity(&part.name))?;
    let first = part.devices.first().map(|device| device.guid);
    Ok(facing(&part.name, first, &part.cables)?.iter().all(|guid| identity.is_for(*guid)))
}

/// The nodes that the identity of an agent with this part names, if it is issued now.
pub fn proves(part: &AgentPart) -> anyhow::Result<Vec<Guid>> {
    facing(&part.name, part.devices.first().map(|device| device.guid), &part.cables)
}

/// The nodes that an agent must prove to be: those with a cable to another agent, or else any one.
fn facing(agent: &str, first: Option<Guid>, cables: &[CableConfig]) -> anyhow::Result<Vec<Guid>> {
    let remote = cables.iter().filter(|cable| cable.remote_addr.is_some()).map(|cable| cable.local.guid);
    let mut guids: Vec<Guid> = remote.collect::<BTreeSet<_>>().into_iter().collect();
    if guids.len() > CERTIFIED_MAX {
        let count = guids.len();
        return Err(Failure::new(format!("{agent} would have {count} devices with cables to other agents"))
            .hint(format!("at most {CERTIFIED_MAX} can be: use `--pack all`, or a smaller number")));
    }
    if guids.is_empty() {
        guids.extend(first);
    }
    Ok(guids)
}

/// Reads the identity of a process, valid or not.
pub fn read(bundle: &Bundle, path: &Path) -> anyhow::Result<Identity> {
    let shown = path.display();
    let uid = rustix::process::geteuid().as_raw();
    let own = crate::input::read_to_string(path).map_err(|error| {
        let failure = Failure::new(format!("user {uid} cannot read the identity {shown}: {error}"));
        match error.kind() {
            std::io::ErrorKind::NotFound => failure
                .hint("name the file with --identity, or issue it with `weft identity renew NAME --in DIR`"),
            _ => failure.hint(format!("run the process as the file's owner, or `chown {uid} {shown}`")),
        }
    })?;
    let ca = crate::input::text(&bundle.authority())?;
    Ok(Identity::from_pem(&ca, own))
}

/// Reads the identity of a process and checks that it is one that its peers will take. `node`: one that it must name.
pub fn load(bundle: &Bundle, path: &Path, node: Option<Guid>) -> anyhow::Result<Identity> {
    let (identity, shown) = (read(bundle, path)?, path.display());
    let again = "issue another with `weft identity renew NAME --in DIR`";
    identity.check().map_err(|error| {
        let error = anyhow::Error::from(error);
        Failure::new(format!("the identity {shown} is of no use: {error:#}")).hint(again)
    })?;
    if node.is_some_and(|node| !identity.is_for(node)) {
        return Err(Failure::new(format!("the identity {shown} is another process's")).hint(again));
    }
    Ok(identity)
}

/// The same for use: with what is revoked in the bundle.
pub fn credentials(bundle: &Bundle, path: &Path, node: Option<Guid>) -> anyhow::Result<Credentials> {
    let identity = load(bundle, path, node)?;
    let credentials = Credentials::new(identity).context("cannot use the identity")?;
    if let Some(list) = revoked(bundle)? {
        let shown = bundle.revoked();
        credentials.revoke(&list).with_context(|| format!("cannot use {}", shown.display()))?;
    }
    Ok(credentials)
}

/// The list of revoked identities in a bundle, if there is one.
pub fn revoked(bundle: &Bundle) -> anyhow::Result<Option<RevocationList>> {
    let path = bundle.revoked();
    let text = match crate::input::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        read => read.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let list = RevocationList::parse(&text)
        .with_context(|| format!("invalid revocation list {}", path.display()))?;
    Ok(Some(list))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use weft_link::CableEnd;
    use weft_wire::PortNum;

    use super::*;

    #[test]
    fn an_agent_proves_to_be_those_that_others_see() {
        let remote: Option<weft_link::PeerAddress> = Some("127.0.0.1:20000".parse().unwrap());
        let cable = |guid, remote_addr: &Option<weft_link::PeerAddress>| {
            let end = |guid| CableEnd { guid: Guid(guid), port: PortNum(1) };
            CableConfig { local: end(guid), remote: end(9), remote_addr: remote_addr.clone(), delay_ns: 0 }
        };
        let cables = [cable(5, &None), cable(3, &remote), cable(3, &remote), cable(2, &remote)];
        assert_eq!(facing("a", Some(Guid(5)), &cables).unwrap(), [Guid(2), Guid(3)]);
        assert_eq!(facing("a", Some(Guid(5)), &cables[..1]).unwrap(), [Guid(5)]);
        let many: Vec<_> = (1..=2001).map(|guid| cable(guid, &remote)).collect();
        assert!(facing("a", None, &many[1..]).is_ok());
        let refused = facing("a0007", None, &many).unwrap_err().to_string();
        assert_eq!(refused, "a0007 would have 2001 devices with cables to other agents");
    }
}
