//! A running process's identity: read from its bundle, and read again on request.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use weft_control::fault::BadIdentity;
use weft_control::{Error, ErrorCode};
use weft_link::{Credentials, IdentityError, RevocationList};
use weft_wire::Guid;

use crate::folder::bundle::Bundle;
use crate::identity::issue;

/// A process's credentials, and where they come from.
#[derive(Clone, Debug)]
pub struct Papers {
    bundle: Bundle,
    /// The file of the identity.
    path: PathBuf,
    /// A node that it must name.
    node: Option<Guid>,
    credentials: Credentials,
    /// What the process presents instead of its identity, on purpose.
    bad: Arc<Mutex<Option<BadIdentity>>>,
}

impl Papers {
    /// Reads the identity in a file, and which ones its authority has revoked.
    pub fn load(bundle: &Bundle, path: PathBuf, node: Option<Guid>) -> anyhow::Result<Self> {
        let credentials = issue::credentials(bundle, &path, node)?;
        Ok(Self { bundle: bundle.clone(), path, node, credentials, bad: Arc::default() })
    }

    /// The credentials as they are now and will be.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }
}

impl weft_process::Papers for Papers {
    fn renew(&self) -> Result<(), Error> {
        let bad = *self.bad.lock().unwrap_or_else(PoisonError::into_inner);
        self.read_again()?;
        // What it presents on purpose it goes on presenting.
        bad.map_or(Ok(()), |bad| self.present(Some(bad)))
    }

    fn present(&self, bad: Option<BadIdentity>) -> Result<(), Error> {
        let hold = |bad| *self.bad.lock().unwrap_or_else(PoisonError::into_inner) = bad;
        match bad {
            None => {
                // Also where the own one is of no use now: the next renewal does not bring the bad one back.
                hold(None);
                self.read_again()?;
            }
            Some(bad) => {
                let path = issue::bad_identity(&self.path, bad);
                let failed = |error| Error::new(ErrorCode::NotFound, format!("{error:#}"));
                let identity = issue::read(&self.bundle, &path).map_err(failed)?;
                self.credentials.present(&identity).map_err(|error| of_no_use(words(error)))?;
            }
        }
        hold(bad);
        Ok(())
    }

    fn revoke(&self, list: &str) -> Result<bool, Error> {
        let of_no_use = |error| Error::new(ErrorCode::InvalidRequest, words(error));
        let list = RevocationList::parse(list).map_err(of_no_use)?;
        self.credentials.revoke(&list).map_err(of_no_use)
    }

    fn revoked(&self) -> Option<String> {
        self.credentials.revoked().map(|list| list.pem().to_owned())
    }
}

/// The papers of a process whose identity cannot be used, and why: it can verify nothing.
#[derive(Clone, Debug)]
pub struct Unusable(pub String);

impl Unusable {
    fn refuse(&self) -> Error {
        let message = format!("the own identity cannot be used: {}", self.0);
        Error::new(ErrorCode::Failed, message)
            .hint("issue another with `weft identity renew NAME`, and restart the process")
    }
}

impl weft_process::Papers for Unusable {
    fn renew(&self) -> Result<(), Error> {
        Err(self.refuse())
    }

    fn present(&self, _: Option<BadIdentity>) -> Result<(), Error> {
        Err(self.refuse())
    }

    fn revoke(&self, _: &str) -> Result<bool, Error> {
        let error = self.refuse();
        let message = format!("the list cannot be verified, and is not kept: {}", error.message);
        Err(Error { message, ..error })
    }

    fn revoked(&self) -> Option<String> {
        None
    }

    fn can_verify(&self) -> bool {
        false
    }
}

impl Papers {
    /// Reads the own identity again, and uses it.
    fn read_again(&self) -> Result<(), Error> {
        let identity = issue::load(&self.bundle, &self.path, self.node);
        let identity = identity.map_err(|error| of_no_use(format!("{error:#}")))?;
        self.credentials.renew(identity).map_err(|error| of_no_use(words(error)))
    }
}

fn of_no_use(why: String) -> Error {
    Error::new(ErrorCode::Failed, why)
}

fn words(error: IdentityError) -> String {
    format!("{:#}", anyhow::Error::from(error))
}
