//! Identities of processes: the fabric's own certificate authority and the certificates it issues.
//!
//! A certificate names its node by GUID, as a DNS name under `.weft`, because TLS compares DNS names. An agent
//! that runs several devices holds one certificate with all their names; a manager's names its role.

use std::fmt;
use std::time::Duration;

use quinn::rustls::pki_types::pem::PemObject;
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ED25519,
};
use ring::hmac;
use time::{Date, OffsetDateTime};
use webpki::{EndEntityCert, KeyUsage};
use weft_wire::Guid;

use crate::clock::{now, unix_now};

/// The name a node's certificate carries, such as `g0008f10500200b50.weft`.
pub fn node_name(guid: Guid) -> String {
    format!("g{:016x}.weft", guid.0)
}

/// The name that the certificate of a process with a role carries, such as `sm.weft`.
pub(crate) fn role_name(role: &str) -> String {
    format!("{role}.weft")
}

/// The end of the names of nodes that a process may attach to. They are not the names of nodes themselves, so a manager
/// cannot pass for an agent.
const ATTACH: &str = ".attach.weft";

/// The name by which every process of a laboratory shows pages over HTTPS: who scrapes many knows one name. It is no role's.
pub const PAGES: &str = "pages.http.weft";

/// The name that lets a certificate's holder attach to a node, such as `g0008f10500200b50.attach.weft`.
fn attach_name(node: Guid) -> String {
    format!("g{:016x}{ATTACH}", node.0)
}

/// Why an identity could not be made, read or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// Making or signing a certificate failed.
    #[error("cannot make a certificate")]
    Issue(#[from] rcgen::Error),
    /// The PEM text holds no certificate or no key.
    #[error("cannot read a certificate or key")]
    Pem(#[from] quinn::rustls::pki_types::pem::Error),
    /// TLS refuses the certificate or key.
    #[error("TLS refuses the identity")]
    Tls(#[from] quinn::rustls::Error),
    /// The verifier cannot be built from the authority's certificate.
    #[error("the authority's certificate is unusable")]
    Authority(#[from] quinn::rustls::server::VerifierBuilderError),
    /// The certificate is valid no more.
    #[error("the certificate expired on {0}")]
    Expired(Date),
    /// The certificate is not valid yet.
    #[error("the certificate is valid from {0} on; is this machine's clock right?")]
    NotYetValid(Date),
    /// The authority did not issue the certificate, or it is none.
    #[error("the laboratory's authority did not issue the certificate ({0})")]
    Foreign(webpki::Error),
    /// The text holds no list of revoked identities.
    #[error("cannot read a list of revoked identities ({0})")]
    List(webpki::Error),
    /// A running process got an identity of another authority.
    #[error("the identity is of another authority than this process's")]
    OtherAuthority,
    /// A list that lacks what a process knows to be revoked, and has what that process does not know: the missing serial numbers.
    #[error(
        "the list of revoked identities lacks what is revoked already: {0}; revoke that with --serial, too"
    )]
    OtherList(String),
}

/// From when and until when certificates are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Not before this.
    pub from: OffsetDateTime,
    /// Not after this.
    pub until: OffsetDateTime,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Validity {
    /// From a day ago, for clocks that are not quite right, until this many days from now.
    pub fn days(days: u32) -> Self {
        let now = now();
        Self { from: now - DAY, until: now + DAY * days }
    }
}

impl Validity {
    /// Of a day that is over.
    pub fn over() -> Self {
        let now = now();
        Self { from: now - 3 * DAY, until: now - 2 * DAY }
    }

    /// Of a day that is to come.
    pub fn to_come() -> Self {
        let now = now();
        Self { from: now + 2 * DAY, until: now + 3 * DAY }
    }
}

/// An identity's validity.
pub(crate) const IDENTITY_DAYS: u32 = 365;
/// The authority's: identities are renewed with it.
const AUTHORITY_DAYS: u32 = 10 * 365;

/// The fabric's certificate authority, made once per laboratory.
#[derive(Clone)]
pub struct Authority {
    lab: String,
    ca_cert: String,
    private_key: String,
    validity: Validity,
}

impl Authority {
    /// A new authority with a fresh key. Its identities are valid for a year.
    pub fn new(lab: &str) -> Result<Self, IdentityError> {
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let mut params = authority_params(lab);
        limit(&mut params, Validity::days(AUTHORITY_DAYS));
        let cert = params.self_signed(&key)?;
        Ok(Self::load(lab, &cert.pem(), &key.serialize_pem()))
    }

    /// One that was written down: its certificate and its key, as PEM texts.
    pub fn load(lab: &str, ca_cert: &str, private_key: &str) -> Self {
        let validity = Validity::days(IDENTITY_DAYS);
        Self {
            lab: lab.to_owned(),
            ca_cert: ca_cert.to_owned(),
            private_key: private_key.to_owned(),
            validity,
        }
    }

    /// The same with identities of another validity.
    #[must_use]
    pub fn valid(self, validity: Validity) -> Self {
        Self { validity, ..self }
    }

    /// The laboratory's name.
    pub(crate) fn lab(&self) -> &str {
        &self.lab
    }

    /// Its certificate, as PEM text.
    pub fn certificate_pem(&self) -> &str {
        &self.ca_cert
    }

    /// Its private key, as PEM text.
    pub fn key_pem(&self) -> &str {
        &self.private_key
    }

    /// A certificate and key for an agent that runs the devices with these GUIDs.
    pub fn issue(&self, guids: &[Guid]) -> Result<Identity, IdentityError> {
        self.issue_to(guids.iter().map(|guid| node_name(*guid)).collect())
    }

    /// A certificate and key for a process that is no agent, such as `sm`, and the nodes that it may attach to over
    /// QUIC.
    pub fn issue_role(&self, role: &str, attaches: &[Guid]) -> Result<Identity, IdentityError> {
        let nodes = attaches.iter().map(|node| attach_name(*node));
        self.issue_to(std::iter::once(role_name(role)).chain(nodes).collect())
    }

    fn issue_to(&self, mut names: Vec<String>) -> Result<Identity, IdentityError> {
        // The issuer is rebuilt from its parameters, so the authority's certificate need not be parsed.
        let issuer = Issuer::new(authority_params(&self.lab), KeyPair::from_pem(&self.private_key)?);
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let first = names.first().map_or_else(|| "weft".to_owned(), String::clone);
        names.push(PAGES.to_owned());
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, first);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        limit(&mut params, self.validity);
        let cert = params.signed_by(&key, &issuer)?;
        Ok(Identity::from_pem(&self.ca_cert, cert.pem() + &key.serialize_pem()))
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("lab", &self.lab).finish_non_exhaustive()
    }
}

pub(crate) fn authority_params(lab: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, format!("weft laboratory {lab}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn limit(params: &mut CertificateParams, validity: Validity) {
    (params.not_before, params.not_after) = (validity.from, validity.until);
}

/// What a process proves itself with, as PEM texts.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The authority's certificate, which peers' certificates must come from.
    ca_cert: String,
    /// The process's own certificate and its private key, PKCS #8.
    own: String,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The private key stays out of logs.
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Identity {
    /// An identity from the authority's certificate, and the process's certificate and key in one text. Nothing is read of
    /// them yet: see [`Identity::check`].
    pub fn from_pem(ca_cert: &str, own: String) -> Self {
        Self { ca_cert: ca_cert.to_owned(), own }
    }

    /// The process's certificate and private key in one PEM text.
    pub fn pem(&self) -> &str {
        &self.own
    }

    /// The authority's certificate as PEM text.
    pub fn ca_pem(&self) -> &str {
        &self.ca_cert
    }

    /// Checks that certificate and key can be read, that the authority issued the certificate and that it is valid now.
    pub fn check(&self) -> Result<(), IdentityError> {
        self.key()?;
        let ca = self.ca()?;
        let anchor = webpki::anchor_from_trusted_cert(&ca).map_err(IdentityError::Foreign)?;
        let chain = self.chain()?;
        let own = chain.first().ok_or(quinn::rustls::pki_types::pem::Error::NoItemsFound)?;
        let verified = EndEntityCert::try_from(own).and_then(|own| {
            let (algorithms, usage) = ([webpki::ring::ED25519], KeyUsage::client_auth());
            own.verify_for_usage(&algorithms, &[anchor], &[], unix_now(), usage, None, None).map(drop)
        });
        verified.map_err(|error| match error {
            webpki::Error::CertExpired { not_after, .. } => IdentityError::Expired(date(not_after)),
            webpki::Error::CertNotValidYet { not_before, .. } => IdentityError::NotYetValid(date(not_before)),
            error => IdentityError::Foreign(error),
        })
    }

    /// Whether the certificate names the node with this GUID.
    pub fn is_for(&self, guid: Guid) -> bool {
        self.chain().is_ok_and(|chain| chain.first().is_some_and(|own| covers(own, guid)))
    }

    pub(crate) fn ca(&self) -> Result<CertificateDer<'static>, IdentityError> {
        Ok(CertificateDer::from_pem_slice(self.ca_cert.as_bytes())?)
    }

    pub(crate) fn chain(&self) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
        Ok(CertificateDer::pem_slice_iter(self.own.as_bytes()).collect::<Result<_, _>>()?)
    }

    pub(crate) fn key(&self) -> Result<PrivateKeyDer<'static>, IdentityError> {
        Ok(PrivateKeyDer::from_pem_slice(self.own.as_bytes())?)
    }

    /// 32 bytes that only the holder of the private key knows and that survive a restart.
    ///
    /// The keys of stateless resets and of connection ids come from here: a restarted agent then recognises
    /// the ids it gave out in its former life and answers with resets that its peers believe.
    pub(crate) fn derived_key(&self, purpose: &str) -> Result<[u8; 32], IdentityError> {
        let private_key = self.key()?;
        let tag =
            hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, private_key.secret_der()), purpose.as_bytes());
        let mut derived = [0; 32];
        for (to, from) in derived.iter_mut().zip(tag.as_ref()) {
            *to = *from;
        }
        Ok(derived)
    }
}

/// The day of a moment, in UTC.
fn date(moment: UnixTime) -> Date {
    let seconds = i64::try_from(moment.as_secs()).unwrap_or(i64::MAX);
    OffsetDateTime::from_unix_timestamp(seconds).map_or(Date::MAX, OffsetDateTime::date)
}

/// Whether `cert` is for the node with this GUID.
pub(crate) fn covers(cert: &CertificateDer<'_>, guid: Guid) -> bool {
    let Ok(name) = quinn::rustls::pki_types::ServerName::try_from(node_name(guid)) else { return false };
    webpki::EndEntityCert::try_from(cert)
        .is_ok_and(|cert| cert.verify_is_valid_for_subject_name(&name).is_ok())
}

/// The role that a certificate names, such as `operator`; none for an agent's.
pub(crate) fn role(cert: &CertificateDer<'_>) -> Option<String> {
    let cert = EndEntityCert::try_from(cert).ok()?;
    let roles = cert.valid_dns_names().filter_map(|name| name.strip_suffix(".weft"));
    roles.filter(|role| !role.contains('.') && node_of(role).is_none()).map(str::to_owned).next()
}

/// The nodes that a certificate lets its holder attach to.
pub(crate) fn attaches(cert: &CertificateDer<'_>) -> Vec<Guid> {
    let Ok(cert) = EndEntityCert::try_from(cert) else { return Vec::new() };
    cert.valid_dns_names().filter_map(|name| node_of(name.strip_suffix(ATTACH)?)).collect()
}

/// The node that the first part of a name stands for.
fn node_of(label: &str) -> Option<Guid> {
    let digits = label.strip_prefix('g').filter(|digits| digits.len() == 16)?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten().map(Guid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_covers_its_nodes_and_no_other() {
        let authority = Authority::new("x").unwrap();
        let identity = authority.issue(&[Guid(0x10), Guid(0x11)]).unwrap();
        let chain = identity.chain().unwrap();
        assert!(covers(&chain[0], Guid(0x10)));
        assert!(covers(&chain[0], Guid(0x11)));
        assert!(!covers(&chain[0], Guid(0x12)));
        assert!(!covers(&CertificateDer::from(vec![1, 2, 3]), Guid(0x10)));
    }

    #[test]
    fn derived_keys_persist_and_differ_by_purpose_and_identity() {
        let authority = Authority::new("x").unwrap();
        let identity = authority.issue(&[Guid(1)]).unwrap();
        let again = Identity::from_pem(authority.certificate_pem(), identity.pem().to_owned());
        let other = authority.issue(&[Guid(1)]).unwrap();
        assert_eq!(identity.derived_key("a").unwrap(), again.derived_key("a").unwrap());
        assert_ne!(identity.derived_key("a").unwrap(), identity.derived_key("b").unwrap());
        assert_ne!(identity.derived_key("a").unwrap(), other.derived_key("a").unwrap());
    }

    #[test]
    fn a_saved_authority_issues_certificates_of_the_same_authority() {
        let authority = Authority::new("x").unwrap();
        let again = Authority::load("x", authority.certificate_pem(), authority.key_pem());
        let identity = again.issue(&[Guid(1)]).unwrap();
        let seen_by_others = Identity::from_pem(authority.certificate_pem(), identity.pem().to_owned());
        seen_by_others.check().unwrap();
        assert!(identity.is_for(Guid(1)) && !identity.is_for(Guid(2)));
        let sm = again.issue_role("sm", &[]).unwrap();
        sm.check().unwrap();
        assert!(!sm.is_for(Guid(1)));
        assert_eq!(role(&sm.chain().unwrap()[0]).as_deref(), Some("sm"));
        assert_eq!(role(&identity.chain().unwrap()[0]), None);
    }

    #[test]
    fn a_right_to_attach_is_no_node_s_name_and_no_node_has_it() {
        let authority = Authority::new("x").unwrap();
        let (first, last) = (Guid(1), Guid(u64::MAX));
        let sm = authority.issue_role("sm", &[first, last]).unwrap();
        assert!(!sm.is_for(first) && !sm.is_for(last));
        let own = &sm.chain().unwrap()[0];
        assert_eq!((role(own).as_deref(), attaches(own)), (Some("sm"), vec![first, last]));
        for other in [authority.issue(&[first]).unwrap(), authority.issue_role("operator", &[]).unwrap()] {
            assert_eq!(attaches(&other.chain().unwrap()[0]), []);
        }
    }

    #[test]
    fn an_identity_has_its_time_and_its_authority() {
        let authority = Authority::new("x").unwrap();
        let now = now();
        let check = |from: OffsetDateTime, until: OffsetDateTime| {
            authority.clone().valid(Validity { from, until }).issue(&[Guid(1)]).unwrap().check()
        };
        check(now - DAY, now + DAY).unwrap();
        let expired = check(now - DAY * 3, now - DAY * 2).unwrap_err();
        assert!(
            matches!(expired, IdentityError::Expired(date) if date == (now - DAY * 2).date()),
            "{expired}"
        );
        let early = check(now + DAY * 2, now + DAY * 3).unwrap_err();
        assert!(
            matches!(early, IdentityError::NotYetValid(date) if date == (now + DAY * 2).date()),
            "{early}"
        );
        let other = Authority::new("x").unwrap();
        let own = authority.issue(&[Guid(1)]).unwrap().pem().to_owned();
        let stranger = Identity::from_pem(other.certificate_pem(), own).check().unwrap_err();
        assert!(matches!(stranger, IdentityError::Foreign(_)), "{stranger}");
        let year = Validity::days(IDENTITY_DAYS);
        assert_eq!((year.until - year.from).whole_days(), 366);
    }

    #[test]
    fn garbage_is_an_error() {
        let identity = Identity::from_pem("no", "-----BEGIN CERTIFICATE-----\n!!".into());
        assert!(identity.ca().is_err());
        assert!(identity.chain().is_err());
        assert!(identity.derived_key("a").is_err());
        assert!(identity.check().is_err());
    }
}
