//! Revoked identities of a laboratory, signed by its authority (RFC 5280, section 5).

use std::collections::BTreeMap;

use quinn::rustls::pki_types::pem::PemObject;
use quinn::rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rcgen::{CertificateRevocationListParams, Issuer, KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber};
use time::{Duration, OffsetDateTime};
use webpki::{BorrowedCertRevocationList, EndEntityCert};

use crate::clock::now;
use crate::identity::{Authority, IDENTITY_DAYS, Identity, IdentityError, authority_params};

/// For how long a list says that it is the newest. No process refuses an older one: it is of more use than none.
const LIST_VALIDITY: Duration = Duration::days(365);
/// An identity that was revoked longer ago than this has expired: it had been issued before. A month is for clocks that differ.
const ENTRY_VALIDITY: Duration = Duration::days(IDENTITY_DAYS as i64 + 30);

/// The number by which an authority knows a certificate that it issued.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Serial(Vec<u8>);

impl Serial {
    /// That of a certificate; `None` when it is none.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        EndEntityCert::try_from(certificate).ok().map(|certificate| Self::from_bytes(certificate.serial()))
    }

    /// Without the zeros in front, which DER may or may not have.
    fn from_bytes(bytes: &[u8]) -> Self {
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        Self(bytes.iter().skip(zeros).copied().collect())
    }
}

impl std::fmt::Display for Serial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::str::FromStr for Serial {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digit = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
        let byte = |pair: &[u8]| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
        match bytes {
            Some(bytes) if (1..=20).contains(&bytes.len()) => Ok(Self::from_bytes(&bytes)),
            _ => Err("a serial number is 2 to 40 hexadecimal digits"),
        }
    }
}

/// The identities that are revoked, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationList {
    pem: String,
    revoked: BTreeMap<Serial, OffsetDateTime>,
}

impl RevocationList {
    /// Reads a list. Its signature is checked when a process takes it ([`crate::Credentials::revoke`]).
    ///
    /// # Errors
    /// When the text is no list.
    pub fn parse(pem: &str) -> Result<Self, IdentityError> {
        let der = CertificateRevocationListDer::from_pem_slice(pem.as_bytes())?;
        let list = BorrowedCertRevocationList::from_der(&der).map_err(IdentityError::List)?;
        let entry = |revoked: Result<webpki::BorrowedRevokedCert<'_>, _>| {
            let revoked = revoked.map_err(IdentityError::List)?;
            let since = i64::try_from(revoked.revocation_date.as_secs()).unwrap_or(i64::MAX);
            let since = OffsetDateTime::from_unix_timestamp(since).unwrap_or(OffsetDateTime::UNIX_EPOCH);
            Ok((Serial::from_bytes(revoked.serial_number), since))
        };
        let revoked = list.into_iter().map(entry).collect::<Result<_, IdentityError>>()?;
        Ok(Self { pem: pem.to_owned(), revoked })
    }

    /// As PEM text.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Since when a certificate of this number has been revoked, if it is.
    pub fn since(&self, serial: &Serial) -> Option<OffsetDateTime> {
        self.revoked.get(serial).copied()
    }

    /// Whether a certificate of this number is revoked.
    pub fn has(&self, serial: &Serial) -> bool {
        self.revoked.contains_key(serial)
    }

    /// What another list revokes and this one does not, but for identities that have expired since.
    pub fn lacks(&self, other: &Self) -> Vec<Serial> {
        let now = now();
        let missing =
            other.revoked.iter().filter(|(serial, since)| !self.has(serial) && !is_over(**since, now));
        missing.map(|(serial, _)| serial.clone()).collect()
    }

    pub(crate) fn der(&self) -> Result<CertificateRevocationListDer<'static>, IdentityError> {
        Ok(CertificateRevocationListDer::from_pem_slice(self.pem.as_bytes())?)
    }
}

/// Whether an identity that was revoked at a time has expired.
fn is_over(since: OffsetDateTime, now: OffsetDateTime) -> bool {
    now - since > ENTRY_VALIDITY
}

impl Authority {
    /// The list of what an earlier one has, but for identities that have expired, and of these.
    ///
    /// # Errors
    /// When the list cannot be signed.
    pub fn revoke(
        &self,
        earlier: Option<&RevocationList>,
        serials: &[Serial],
    ) -> Result<RevocationList, IdentityError> {
        let issuer = Issuer::new(authority_params(self.lab()), KeyPair::from_pem(self.key_pem())?);
        let now = now();
        let mut revoked = earlier.map(|earlier| earlier.revoked.clone()).unwrap_or_default();
        revoked.retain(|_, since| !is_over(*since, now));
        for serial in serials {
            revoked.entry(serial.clone()).or_insert(now);
        }
        let entry = |(serial, since): (&Serial, &OffsetDateTime)| RevokedCertParams {
            serial_number: SerialNumber::from(serial.0.clone()),
            revocation_time: *since,
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: now,
            next_update: now + LIST_VALIDITY,
            // It only grows (RFC 5280, 5.2.3).
            crl_number: SerialNumber::from(u64::try_from(now.unix_timestamp_nanos()).unwrap_or_default()),
            issuing_distribution_point: None,
            revoked_certs: revoked.iter().map(entry).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        RevocationList::parse(&list.signed_by(&issuer)?.pem()?)
    }
}

impl Identity {
    /// The number of the own certificate.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn serial(&self) -> Result<Serial, IdentityError> {
        let chain = self.chain()?;
        let own = chain.first().ok_or(quinn::rustls::pki_types::pem::Error::NoItemsFound)?;
        Serial::of(own).ok_or(IdentityError::Foreign(webpki::Error::BadDer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_wire::Guid;

    #[test]
    fn a_list_has_what_was_revoked_and_nothing_else() {
        let authority = Authority::new("x").unwrap();
        let [one, other] = [1, 2].map(|guid| authority.issue(&[Guid(guid)]).unwrap().serial().unwrap());
        assert_ne!(one, other);
        let first = authority.revoke(None, std::slice::from_ref(&one)).unwrap();
        assert!(first.has(&one) && !first.has(&other));
        let both = authority.revoke(Some(&first), &[other.clone(), one.clone()]).unwrap();
        assert!(both.has(&one) && both.has(&other));
        assert_eq!(both.since(&one), first.since(&one));
        assert_eq!((both.lacks(&first), first.lacks(&both)), (vec![], vec![other]));
        assert_eq!(RevocationList::parse(both.pem()).unwrap(), both);
        assert!(authority.revoke(None, &[]).unwrap().revoked.is_empty());
    }

    /// An entry goes when its identity must have expired, and a list without it is not behind.
    #[test]
    fn a_list_does_not_keep_what_has_expired() {
        let authority = Authority::new("x").unwrap();
        let serials = [1, 2, 3].map(|guid| authority.issue(&[Guid(guid)]).unwrap().serial().unwrap());
        let mut list = authority.revoke(None, &serials).unwrap();
        let now = now();
        list.revoked.insert(serials[0].clone(), now - ENTRY_VALIDITY - Duration::HOUR);
        list.revoked.insert(serials[1].clone(), now - ENTRY_VALIDITY + Duration::HOUR);
        let next = authority.revoke(Some(&list), &[]).unwrap();
        assert_eq!(serials.each_ref().map(|serial| next.has(serial)), [false, true, true]);
        assert_eq!(next.lacks(&list), []);
        assert!(ENTRY_VALIDITY > Duration::days(IDENTITY_DAYS.into()), "it was valid for as long at most");
    }

    #[test]
    fn serial_numbers_round_trip_as_text() {
        let authority = Authority::new("x").unwrap();
        for guid in 1..50 {
            let serial = authority.issue(&[Guid(guid)]).unwrap().serial().unwrap();
            assert_eq!(serial.to_string().parse(), Ok(serial));
        }
        assert_eq!("00ff".parse::<Serial>(), "ff".parse());
        for wrong in ["", "f", "fff", "xy", "é1", &"00".repeat(21)] {
            assert!(wrong.parse::<Serial>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn garbage_is_no_list() {
        for text in ["", "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n", "no"] {
            assert!(RevocationList::parse(text).is_err(), "{text}");
        }
    }
}
