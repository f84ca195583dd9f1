//! Whose word is taken for who a model server is: the system's certificate authorities, and those
//! in files that the user names.
//!
//! It reads files and knows nothing of requests. The variables are the ones that other programs
//! read, so that a machine which is set up for a company's own authority needs nothing more.

use std::{io, path::PathBuf, sync::Arc};

use ennead_runtime::step1_settings_resolution::Certificates;
use rustls::{
    CertificateError, RootCertStore,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, pem::PemObject},
};
use rustls_platform_verifier::Verifier;
use thiserror::Error;

use ennead_tools::source_file::open_chosen;

use crate::world::environment::Environment;

/// Names a file of authorities that are trusted in addition to the system's.
const EXTRA: &str = "NODE_EXTRA_CA_CERTS";

/// Names a file of authorities, too. On Unix the library that reads the system's takes this file in
/// their place if the environment of the process names it, as OpenSSL does.
const FILE: &str = "SSL_CERT_FILE";

/// Bytes of a file of certificates. Those of systems have a few hundred thousand.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The trusted authorities cannot be found out.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(super) enum TrustError {
    /// A file cannot be read.
    #[error("cannot read `{}`, which {variable} names", path.display())]
    Unreadable {
        /// Variable that names the file.
        variable: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// A file has no certificate that can be used.
    #[error("`{}`, which {variable} names, holds no certificate in PEM", path.display())]
    NoCertificate {
        /// Variable that names the file.
        variable: &'static str,
        /// Path of the file.
        path: PathBuf,
    },
    /// What the system trusts cannot be used.
    #[error("cannot use the certificates of the system")]
    System(#[source] rustls::Error),
}

/// Returns the files that an environment names.
pub(super) fn named(environment: &Environment) -> Certificates {
    let file = |variable| environment.variable(variable).map(Into::into);
    Certificates::new(file(EXTRA), file(FILE))
}

/// Merges what a session sets, or else the environment. Empty names are left out, so that equal values mean the same
/// files.
pub(super) fn resolved(settings: &Certificates, environment: &Certificates) -> Certificates {
    let either = |settings: &Option<Arc<str>>, environment: &Option<Arc<str>>| {
        settings.clone().or_else(|| environment.clone()).filter(|it| !it.is_empty())
    };
    Certificates::new(
        either(&settings.extra, &environment.extra),
        either(&settings.file, &environment.file),
    )
}

/// Checks servers by what the system and these files say.
pub(super) fn verifier(
    files: &Certificates,
    provider: Arc<CryptoProvider>,
) -> Result<Verifier, TrustError> {
    let mut extra = Vec::new();
    for (variable, path) in [(EXTRA, &files.extra), (FILE, &files.file)] {
        if let Some(path) = path {
            extra.append(&mut read(variable, PathBuf::from(&**path))?);
        }
    }
    Verifier::new_with_extra_roots(extra, provider).map_err(TrustError::System)
}

fn read(variable: &'static str, path: PathBuf) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let bytes = match open_chosen(&path).and_then(|it| it.read(MAX_BYTES)) {
        Ok(bytes) => bytes,
        Err(cause) => return Err(TrustError::Unreadable { variable, path, cause: cause.into() }),
    };
    // Bundles may have some that are too old to be used; the others count all the same.
    let is_usable = |it: &CertificateDer<'static>| RootCertStore::empty().add(it.clone()).is_ok();
    let found: Vec<_> =
        CertificateDer::pem_slice_iter(&bytes).flatten().filter(is_usable).collect();
    if found.is_empty() { Err(TrustError::NoCertificate { variable, path }) } else { Ok(found) }
}

/// Returns the error of the TLS library behind a failed connection.
pub(super) fn refusal<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a rustls::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        // An I/O error hides what it was made of from `source`.
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let found = error.downcast_ref().or_else(|| inner?.downcast_ref());
        if found.is_some() {
            return found;
        }
        cause = match inner {
            Some(inner) => Some(inner as &(dyn std::error::Error + 'static)),
            None => error.source(),
        };
    }
    None
}

/// Returns what a person can do about it.
pub(super) fn advice(refusal: &rustls::Error) -> Option<String> {
    match refusal {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            Some(format!("if the certificate authority is your own, name its PEM file in {EXTRA}"))
        }
        rustls::Error::InvalidMessage(_) => {
            Some("the server does not seem to speak TLS at this address".into())
        }
        _ => None,
    }
}
