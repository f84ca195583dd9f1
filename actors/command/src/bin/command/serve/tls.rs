//! The certificate and the key of the server.

use std::{path::Path, sync::Arc};

use ennead_command::exit::{Exit, Failure};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

/// Reads both, and offers HTTP/1.1.
///
/// # Errors
///
/// When one cannot be read, or the key is not that of the certificate.
pub(crate) fn config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, Failure> {
    let bad = |file: &Path, why: &dyn std::fmt::Display| {
        Failure::new(Exit::BadInput, format!("cannot use {}: {why}", file.display()))
    };
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain: Vec<_> = chain.map_err(|it| bad(certificate, &it))?;
    if chain.is_empty() {
        return Err(bad(certificate, &"it holds no certificate"));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|it| bad(key, &it))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|it| bad(certificate, &it))?
        .with_no_client_auth()
        .with_single_cert(chain, private);
    let mut config = config.map_err(|it| bad(key, &it))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
