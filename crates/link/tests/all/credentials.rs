//! Identities that are revoked and renewed while links stand and clients talk.

use std::time::Duration;

use common::{Agent, HIGH, LINK, LOW, PATIENCE, VL15, cable, config, free_address, run};
use tokio::time::timeout;
use weft_link::{
    Authority, Call, Credentials, Doorway, DownReason, Identity, IdentityError, LinkEvent, Peer, Protocol,
    RefusalReason, RevocationList, Validity,
};
use weft_wire::Guid;

use crate::common;

/// What acceptance asks of a revocation.
const REACHES: Duration = Duration::from_secs(5);

struct Both {
    authority: Authority,
    identities: [Identity; 2],
    low: Agent,
    high: Agent,
}

/// Two agents whose link is up; LOW dials.
async fn linked() -> Both {
    let authority = Authority::new("test").unwrap();
    let identities = [LOW, HIGH].map(|guid| authority.issue(&[guid]).unwrap());
    let (low_at, high_at) = (free_address(), free_address());
    let mut high = Agent::start(high_at, &identities[1], config(1), vec![cable(HIGH, LOW, low_at)]);
    let mut low = Agent::start(low_at, &identities[0], config(2), vec![cable(LOW, HIGH, high_at)]);
    low.events.up().await;
    high.events.up().await;
    Both { authority, identities, low, high }
}

impl Both {
    fn list(&self, revoked: usize) -> RevocationList {
        let serial = self.identities[revoked].serial().unwrap();
        self.authority.revoke(None, &[serial]).unwrap()
    }
}

/// Waits for a link's end among refusals.
async fn down(agent: &mut Agent) -> DownReason {
    let wait = async {
        loop {
            if let LinkEvent::Down { reason, .. } = agent.events.next().await {
                return reason;
            }
        }
    };
    timeout(REACHES, wait).await.expect("the link stands for longer than a revocation may take")
}

async fn refused(agent: &mut Agent) -> RefusalReason {
    let wait = async {
        loop {
            if let LinkEvent::Refused { reason, .. } = agent.events.next().await {
                return reason;
            }
        }
    };
    timeout(PATIENCE, wait).await.expect("it is dialled again")
}

async fn up(agent: &mut Agent) {
    let wait = async { while !matches!(agent.events.next().await, LinkEvent::Up { .. }) {} };
    timeout(PATIENCE, wait).await.expect("it comes up again");
}

#[test]
fn a_revoked_dialler_reconnects_with_a_new_identity() {
    run(async {
        let mut both = linked().await;
        let list = both.list(0);
        assert!(both.high.credentials.revoke(&list).unwrap());
        assert!(!both.high.credentials.revoke(&list).unwrap(), "the same list is no news");
        assert_eq!(down(&mut both.high).await, DownReason::Revoked);
        assert_eq!(down(&mut both.low).await, DownReason::RevokedByPeer);
        let reason = refused(&mut both.high).await;
        assert!(matches!(&reason, RefusalReason::Certificate(why) if why.contains("evoked")), "{reason:?}");
        assert!(!both.high.links.is_up(LINK) && !both.low.links.is_up(LINK));
        both.low.credentials.renew(both.authority.issue(&[LOW]).unwrap()).unwrap();
        up(&mut both.high).await;
        up(&mut both.low).await;
    });
}

#[test]
fn a_revoked_acceptor_is_refused_until_it_has_a_new_identity() {
    run(async {
        let mut both = linked().await;
        both.low.credentials.revoke(&both.list(1)).unwrap();
        assert_eq!(down(&mut both.low).await, DownReason::Revoked);
        let reason = refused(&mut both.low).await;
        assert!(matches!(reason, RefusalReason::Certificate(_)), "{reason:?}");
        both.high.credentials.renew(both.authority.issue(&[HIGH]).unwrap()).unwrap();
        up(&mut both.low).await;
    });
}

#[test]
fn links_stay_up_when_identities_are_renewed() {
    run(async {
        let mut both = linked().await;
        for (agent, guid) in [(&both.low, LOW), (&both.high, HIGH)] {
            agent.credentials.renew(both.authority.issue(&[guid]).unwrap()).unwrap();
        }
        let serials = both.identities.each_ref().map(|identity| identity.serial().unwrap());
        both.low.send(VL15, b"there");
        assert_eq!(both.high.events.packet().await, (VL15, "there".into()));
        both.high.send(VL15, b"and back");
        assert_eq!(both.low.events.packet().await, (VL15, "and back".into()));
        let list = both.authority.revoke(None, &serials).unwrap();
        both.low.credentials.revoke(&list).unwrap();
        both.high.credentials.revoke(&list).unwrap();
        down(&mut both.low).await;
        up(&mut both.low).await;
        up(&mut both.high).await;
    });
}

#[test]
fn a_client_is_hung_up_on_when_its_identity_is_revoked() {
    run(async {
        let authority = Authority::new("test").unwrap();
        let hub = Credentials::new(authority.issue_role("hub", &[]).unwrap()).unwrap();
        let mut doorway = Doorway::open(free_address(), &hub, &[Protocol::Control], |_| ()).unwrap();
        let address = doorway.address().unwrap();
        let [stays, goes] = ["viewer", "operator"].map(|role| authority.issue_role(role, &[]).unwrap());
        let serial = goes.serial().unwrap();
        let [stays, goes] = [stays, goes].map(|identity| Credentials::new(identity).unwrap());
        let peer = Peer::Role("hub".into());
        let call = |credentials: Credentials| {
            let peer = peer.clone();
            async move { Call::place(address, &peer, &credentials, Protocol::Control).await }
        };
        let (one, visitor) = tokio::join!(call(stays), doorway.next());
        let (other, second) = tokio::join!(call(goes.clone()), doorway.next());
        let (one, other, _visitors) = (one.unwrap(), other.unwrap(), [visitor.unwrap(), second.unwrap()]);
        hub.revoke(&authority.revoke(None, &[serial]).unwrap()).unwrap();
        let ended = timeout(REACHES, other.closed()).await.expect("it is hung up on");
        assert!(ended.to_string().contains("the identity is revoked"), "{ended}");
        assert!(one.end_reason().is_none());
        // And it does not come in again: the handshake is over for the client before the hub has seen its certificate.
        let again = async {
            match call(goes).await {
                Ok(call) => call.closed().await.to_string(),
                Err(error) => format!("{error:?}"),
            }
        };
        let again = tokio::select! {
            said = again => said,
            visitor = doorway.next() => panic!("{visitor:?} was let in"),
        };
        assert!(again.contains("evoked"), "{again}");
    });
}

#[test]
fn foreign_revocation_lists_and_identities_change_nothing() {
    let (authority, other) = (Authority::new("test").unwrap(), Authority::new("test").unwrap());
    let identity = |guid| authority.issue(&[Guid(guid)]).unwrap();
    let own = identity(1);
    let credentials = Credentials::new(own.clone()).unwrap();
    let serials = [2, 3].map(|guid| identity(guid).serial().unwrap());
    let foreign = other.revoke(None, &serials).unwrap();
    assert!(matches!(credentials.revoke(&foreign), Err(IdentityError::Tls(_))));
    let first = authority.revoke(None, &serials[..1]).unwrap();
    let second = authority.revoke(Some(&first), &serials).unwrap();
    assert!(credentials.revoke(&second).unwrap());
    assert!(!credentials.revoke(&first).unwrap(), "it is behind, and changes nothing");
    let apart = authority.revoke(None, &[identity(4).serial().unwrap()]).unwrap();
    let refused = credentials.revoke(&apart).unwrap_err().to_string();
    assert!(serials.iter().all(|serial| refused.contains(&serial.to_string())), "{refused}");
    assert_eq!(credentials.revoked().unwrap().lacks(&second), []);
    // A process may hear that its own identity is revoked, and goes on until it has another.
    let own_too = authority.revoke(Some(&second), &[own.serial().unwrap()]).unwrap();
    assert!(credentials.revoke(&own_too).unwrap());

    let stranger = other.issue(&[Guid(1)]).unwrap();
    assert!(matches!(credentials.renew(stranger), Err(IdentityError::OtherAuthority)));
    let day = Duration::from_secs(24 * 60 * 60);
    let now = time::OffsetDateTime::now_utc();
    let past = Validity { from: now - day * 3, until: now - day };
    let expired = authority.clone().valid(past).issue(&[Guid(1)]).unwrap();
    assert!(matches!(credentials.renew(expired), Err(IdentityError::Expired(_))));
    let mixed = Identity::from_pem(authority.certificate_pem(), "no".into());
    assert!(credentials.renew(mixed).is_err());
    assert_eq!(credentials.identity(), own);
    credentials.renew(identity(1)).unwrap();
    assert_ne!(credentials.identity(), own);
}
