//! A running process's identity and the authorities that it trusts: both can change while it runs.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use quinn::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use quinn::rustls::client::{ResolvesClientCert, WebPkiServerVerifier};
use quinn::rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring as provider, verify_tls12_signature,
    verify_tls13_signature,
};
use quinn::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use quinn::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use quinn::rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use quinn::rustls::sign::CertifiedKey;
use quinn::rustls::version::TLS13;
use quinn::rustls::{
    CertificateError, CipherSuite, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    ServerConfig, SignatureScheme,
};

use quinn::Connection;
use tokio::sync::watch;

use crate::clock::{WallClock, unix_now};
use crate::identity::{Identity, IdentityError};
use crate::reason::CloseCode;
use crate::revocation::{RevocationList, Serial};

/// The words for a peer with a revoked identity.
pub(crate) const REVOKED: &[u8] = b"the identity is revoked";

/// The identity of a process, and which identities of its laboratory it does not believe any more. Clones are the same:
/// what changes in one is used by every handshake from then on.
#[derive(Clone)]
pub struct Credentials {
    shared: Arc<Shared>,
}

struct Shared {
    roots: Arc<RootCertStore>,
    crypto: Arc<CryptoProvider>,
    /// The authority's name.
    hints: Vec<DistinguishedName>,
    now: RwLock<Arc<Now>>,
    /// Tells that identities were revoked.
    revocations: watch::Sender<()>,
    /// Conversations with peers, which end when their identity is revoked.
    kept: Mutex<Vec<Weak<Connection>>>,
}

#[derive(Clone)]
struct Now {
    identity: Identity,
    own: Arc<CertifiedKey>,
    clients: Arc<dyn ClientCertVerifier>,
    servers: Arc<WebPkiServerVerifier>,
    revoked: Option<Arc<RevocationList>>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Credentials {
    /// Those of a process with this identity, which believes all others of the same authority.
    ///
    /// # Errors
    /// When the identity is unusable.
    pub fn new(identity: Identity) -> Result<Self, IdentityError> {
        let mut roots = RootCertStore::empty();
        roots.add(identity.ca()?)?;
        let roots = Arc::new(roots);
        // One suite and one key exchange, the fastest ones: both ends are weft.
        let mut crypto: CryptoProvider = provider::default_provider();
        crypto.cipher_suites.retain(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256);
        crypto.kx_groups = vec![provider::kx_group::X25519];
        let crypto = Arc::new(crypto);
        let own = own(&identity, &crypto)?;
        let (clients, servers) = verifiers(&roots, &crypto, None)?;
        let hints = clients.root_hint_subjects().to_vec();
        let now = RwLock::new(Arc::new(Now { identity, own, clients, servers, revoked: None }));
        let (revocations, kept) = (watch::Sender::new(()), Mutex::default());
        Ok(Self { shared: Arc::new(Shared { roots, crypto, hints, now, revocations, kept }) })
    }

    /// Uses another identity of the same authority from now on. Connections that stand go on.
    ///
    /// # Errors
    /// When the identity is unusable, or of another authority.
    pub fn renew(&self, identity: Identity) -> Result<(), IdentityError> {
        identity.check()?;
        if identity.ca()? != self.identity().ca()? {
            return Err(IdentityError::OtherAuthority);
        }
        let own = own(&identity, &self.shared.crypto)?;
        self.change(|now| (now.identity, now.own) = (identity, own));
        Ok(())
    }

    /// Presents another identity from now on, whether peers will take it or not. What this process believes stays as it is, and
    /// so do connections that stand.
    ///
    /// # Errors
    /// When there is no certificate and key in it.
    pub fn present(&self, identity: &Identity) -> Result<(), IdentityError> {
        let own = own(identity, &self.shared.crypto)?;
        self.change(|now| now.own = own);
        Ok(())
    }

    /// Believes none of these identities from now on, and ends the connections with them. Says whether the list is news: one that
    /// is behind, as where two were made at nearly the same time, is not.
    ///
    /// # Errors
    /// When the list is not the authority's, or lacks what is revoked already while it has something else.
    pub fn revoke(&self, list: &RevocationList) -> Result<bool, IdentityError> {
        if let Some(before) = &self.now().revoked {
            if before.lacks(list).is_empty() {
                return Ok(false);
            }
            let missing = list.lacks(before);
            if !missing.is_empty() {
                return Err(IdentityError::OtherList(some_of(&missing)));
            }
        }
        let (clients, servers) = verifiers(&self.shared.roots, &self.shared.crypto, Some(list))?;
        // The own certificate tells whether the authority has signed the list.
        let own = self.identity().chain()?;
        let first = own.first().ok_or(quinn::rustls::pki_types::pem::Error::NoItemsFound)?;
        let verify = |at| clients.verify_client_cert(first, &[], at);
        let verified = match verify(unix_now()) {
            // Of one that has expired the list is not looked at; at its end it was valid.
            Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
                verify(not_after)
            }
            verified => verified,
        };
        match verified {
            Ok(_) | Err(Error::InvalidCertificate(CertificateError::Revoked)) => {}
            Err(error) => return Err(error.into()),
        }
        self.change(|now| {
            (now.clients, now.servers, now.revoked) = (clients, servers, Some(Arc::new(list.clone())));
        });
        self.shared.revocations.send_replace(());
        for connection in self.kept().iter().filter_map(Weak::upgrade) {
            if self.is_revoked(&connection) {
                connection.close(CloseCode::Revoked.var_int(), REVOKED);
            }
        }
        Ok(true)
    }

    /// Ends a conversation when its peer's identity is revoked, for as long as what is returned is held.
    pub(crate) fn keep(&self, connection: Connection) -> Arc<Connection> {
        let connection = Arc::new(connection);
        let mut kept = self.kept();
        // As many are looked at as are there when the list has doubled, so each costs little.
        if kept.len() == kept.capacity() {
            kept.retain(|connection| connection.strong_count() > 0);
        }
        kept.push(Arc::downgrade(&connection));
        drop(kept);
        // It may have been revoked since the handshake.
        if self.is_revoked(&connection) {
            connection.close(CloseCode::Revoked.var_int(), REVOKED);
        }
        connection
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<Weak<Connection>>> {
        self.shared.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears when identities are revoked.
    pub(crate) fn revocations(&self) -> watch::Receiver<()> {
        self.shared.revocations.subscribe()
    }

    /// Whether the certificate of a connection's peer is revoked.
    pub(crate) fn is_revoked(&self, connection: &Connection) -> bool {
        let now = self.now();
        let serial = || Serial::of(&peer_certificate(connection)?);
        now.revoked.as_ref().is_some_and(|list| serial().is_some_and(|serial| list.has(&serial)))
    }

    /// The list of those that it does not believe.
    pub fn revoked(&self) -> Option<Arc<RevocationList>> {
        self.now().revoked.clone()
    }

    /// The identity that is used now.
    pub fn identity(&self) -> Identity {
        self.now().identity.clone()
    }

    pub(crate) fn crypto(&self) -> &Arc<CryptoProvider> {
        &self.shared.crypto
    }

    /// What a server of HTTPS shows itself with: clients prove themselves otherwise.
    ///
    /// # Errors
    /// When TLS refuses the cipher suites, which are weft's own.
    pub fn https(&self) -> Result<Arc<ServerConfig>, IdentityError> {
        let builder = ServerConfig::builder_with_details(self.shared.crypto.clone(), Arc::new(WallClock));
        let builder = builder.with_protocol_versions(&[&TLS13])?.with_no_client_auth();
        let mut config = builder.with_cert_resolver(self.party());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// As what handshakes of both kinds ask.
    pub(crate) fn party(&self) -> Arc<Party> {
        Arc::new(Party(self.shared.clone()))
    }

    fn now(&self) -> Arc<Now> {
        self.shared.now()
    }

    fn change(&self, change: impl FnOnce(&mut Now)) {
        change(Arc::make_mut(&mut self.shared.now.write().unwrap_or_else(PoisonError::into_inner)));
    }
}

impl Shared {
    fn now(&self) -> Arc<Now> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The certificate of a connection's peer.
pub(crate) fn peer_certificate(connection: &Connection) -> Option<CertificateDer<'static>> {
    let chain = connection.peer_identity()?.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    chain.into_iter().next()
}

/// Serial numbers in words, a few of them.
fn some_of(serials: &[Serial]) -> String {
    const SHOWN: usize = 4;
    let shown: Vec<String> = serials.iter().take(SHOWN).map(Serial::to_string).collect();
    let more = serials.len().saturating_sub(SHOWN);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

fn own(identity: &Identity, crypto: &CryptoProvider) -> Result<Arc<CertifiedKey>, IdentityError> {
    Ok(Arc::new(CertifiedKey::from_der(identity.chain()?, identity.key()?, crypto)?))
}

type Verifiers = (Arc<dyn ClientCertVerifier>, Arc<WebPkiServerVerifier>);

fn verifiers(
    roots: &Arc<RootCertStore>,
    crypto: &Arc<CryptoProvider>,
    revoked: Option<&RevocationList>,
) -> Result<Verifiers, IdentityError> {
    let lists = revoked.map(RevocationList::der).transpose()?;
    let clients = WebPkiClientVerifier::builder_with_provider(roots.clone(), crypto.clone())
        .with_crls(lists.clone())
        .build()
        .map_err(IdentityError::Authority)?;
    let servers = WebPkiServerVerifier::builder_with_provider(roots.clone(), crypto.clone())
        .with_crls(lists)
        .build()
        .map_err(IdentityError::Authority)?;
    Ok((clients, servers))
}

/// A process in a handshake: it asks the credentials as they are at that moment.
#[derive(Debug)]
pub(crate) struct Party(Arc<Shared>);

impl Party {
    fn algorithms(&self) -> &WebPkiSupportedAlgorithms {
        &self.0.crypto.signature_verification_algorithms
    }
}

impl ResolvesServerCert for Party {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.now().own.clone())
    }
}

impl ResolvesClientCert for Party {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.0.now().own.clone())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Both kinds of verifier check signatures alike.
macro_rules! tls_signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls12_signature(message, certificate, signed, self.algorithms())
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls13_signature(message, certificate, signed, self.algorithms())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.algorithms().supported_schemes()
        }
    };
}

impl ClientCertVerifier for Party {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.0.hints
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.0.now().clients.verify_client_cert(own, others, now)
    }

    tls_signatures!();
}

impl ServerCertVerifier for Party {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.0.now().servers.verify_server_cert(own, others, name, ocsp, now)
    }

    tls_signatures!();
}
