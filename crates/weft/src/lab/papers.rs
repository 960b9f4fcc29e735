//! What a running process proves itself with: read from its bundle, and read again when it is told so.

use std::path::PathBuf;

use weft_control::{Error, ErrorCode};
use weft_link::{Credentials, IdentityError, RevocationList};
use weft_wire::Guid;

use super::bundle::Bundle;
use super::issue;

/// A process's credentials, and where they come from.
#[derive(Clone, Debug)]
pub(crate) struct Papers {
    bundle: Bundle,
    /// The file of the identity.
    path: PathBuf,
    /// A node that it must name.
    node: Option<Guid>,
    credentials: Credentials,
}

impl Papers {
    /// Reads the identity in a file, and which ones its authority has revoked.
    pub(crate) fn load(bundle: &Bundle, path: PathBuf, node: Option<Guid>) -> anyhow::Result<Self> {
        let credentials = issue::credentials(bundle, &path, node)?;
        Ok(Self { bundle: bundle.clone(), path, node, credentials })
    }

    /// The credentials as they are now and will be.
    pub(crate) fn credentials(&self) -> &Credentials {
        &self.credentials
    }
}

impl weft_process::Papers for Papers {
    fn renew(&self) -> Result<(), Error> {
        let of_no_use = |why: String| Error::new(ErrorCode::Failed, why);
        let identity = issue::load(&self.bundle, &self.path, self.node);
        let identity = identity.map_err(|error| of_no_use(format!("{error:#}")))?;
        self.credentials.renew(identity).map_err(|error| of_no_use(words(error)))
    }

    fn revoke(&self, list: &str) -> Result<bool, Error> {
        let of_no_use = |error| Error::new(ErrorCode::InvalidRequest, words(error));
        let list = RevocationList::parse(list).map_err(of_no_use)?;
        self.credentials.revoke(&list).map_err(of_no_use)
    }
}

fn words(error: IdentityError) -> String {
    format!("{:#}", anyhow::Error::from(error))
}
