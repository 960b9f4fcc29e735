//! Who an agent is: the fabric's own certificate authority and the certificates it issues.
//!
//! A certificate names its node by GUID, as a DNS name under `.weft`, because TLS compares DNS names. An agent
//! that runs several devices holds one certificate with all their names.

use std::fmt;

use quinn::rustls::pki_types::pem::PemObject;
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ED25519,
};
use ring::hmac;
use serde::{Deserialize, Serialize};
use weft_wire::Guid;

/// The name a node's certificate carries, such as `g0008f10500200b50.weft`.
pub fn node_name(guid: Guid) -> String {
    format!("g{:016x}.weft", guid.0)
}

/// Why an identity could not be made or read.
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
}

/// The fabric's certificate authority, made once per laboratory and kept by its launcher.
#[derive(Clone, Serialize, Deserialize)]
pub struct Authority {
    lab: String,
    ca_cert: String,
    private_key: String,
}

impl Authority {
    /// A new authority with a fresh key.
    pub fn new(lab: &str) -> Result<Self, IdentityError> {
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let cert = authority_params(lab).self_signed(&key)?;
        Ok(Self { lab: lab.to_owned(), ca_cert: cert.pem(), private_key: key.serialize_pem() })
    }

    /// A certificate and key for an agent that runs the devices with these GUIDs.
    pub fn issue(&self, guids: &[Guid]) -> Result<Identity, IdentityError> {
        // The issuer is rebuilt from its parameters, so the authority's certificate need not be parsed.
        let issuer = Issuer::new(authority_params(&self.lab), KeyPair::from_pem(&self.private_key)?);
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let names: Vec<String> = guids.iter().map(|guid| node_name(*guid)).collect();
        let mut params = CertificateParams::new(names.clone())?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, names.first().map_or("weft", String::as_str));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let cert = params.signed_by(&key, &issuer)?;
        Ok(Identity {
            ca_cert: self.ca_cert.clone(),
            cert_chain: cert.pem(),
            private_key: key.serialize_pem(),
        })
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("lab", &self.lab).finish_non_exhaustive()
    }
}

fn authority_params(lab: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, format!("weft laboratory {lab}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

/// What an agent proves itself with, as PEM text so that it can stand in a configuration file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The authority's certificate, which peers' certificates must come from.
    pub ca_cert: String,
    /// The agent's own certificate.
    pub cert_chain: String,
    /// The agent's private key, PKCS #8.
    pub private_key: String,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The private key stays out of logs.
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Identity {
    pub(crate) fn ca(&self) -> Result<CertificateDer<'static>, IdentityError> {
        Ok(CertificateDer::from_pem_slice(self.ca_cert.as_bytes())?)
    }

    pub(crate) fn chain(&self) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
        Ok(CertificateDer::pem_slice_iter(self.cert_chain.as_bytes()).collect::<Result<_, _>>()?)
    }

    pub(crate) fn key(&self) -> Result<PrivateKeyDer<'static>, IdentityError> {
        Ok(PrivateKeyDer::from_pem_slice(self.private_key.as_bytes())?)
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

/// Whether `cert` is for the node with this GUID.
pub(crate) fn covers(cert: &CertificateDer<'_>, guid: Guid) -> bool {
    let Ok(name) = quinn::rustls::pki_types::ServerName::try_from(node_name(guid)) else { return false };
    webpki::EndEntityCert::try_from(cert)
        .is_ok_and(|cert| cert.verify_is_valid_for_subject_name(&name).is_ok())
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
    fn derived_keys_survive_saving_and_differ_by_purpose_and_identity() {
        let authority = Authority::new("x").unwrap();
        let saved = serde_json::to_string(&authority.issue(&[Guid(1)]).unwrap()).unwrap();
        let identity: Identity = serde_json::from_str(&saved).unwrap();
        let again: Identity = serde_json::from_str(&saved).unwrap();
        let other = authority.issue(&[Guid(1)]).unwrap();
        assert_eq!(identity.derived_key("a").unwrap(), again.derived_key("a").unwrap());
        assert_ne!(identity.derived_key("a").unwrap(), identity.derived_key("b").unwrap());
        assert_ne!(identity.derived_key("a").unwrap(), other.derived_key("a").unwrap());
    }

    #[test]
    fn a_saved_authority_issues_certificates_of_the_same_authority() {
        let authority = Authority::new("x").unwrap();
        let again: Authority = serde_json::from_str(&serde_json::to_string(&authority).unwrap()).unwrap();
        assert_eq!(authority.issue(&[]).unwrap().ca_cert, again.issue(&[Guid(1)]).unwrap().ca_cert);
    }

    #[test]
    fn garbage_is_an_error() {
        let identity = Identity {
            ca_cert: "no".into(),
            cert_chain: "-----BEGIN CERTIFICATE-----\n!!".into(),
            private_key: String::new(),
        };
        assert!(identity.ca().is_err());
        assert!(identity.chain().is_err());
        assert!(identity.derived_key("a").is_err());
    }
}
