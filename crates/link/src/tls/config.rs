//! Both sides of a handshake.

use std::sync::Arc;

use rustls::{
    ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection,
    client::{AlwaysResolvesClientRawPublicKeys, Resumption},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
    server::AlwaysResolvesServerRawPublicKeys,
    sign::CertifiedKey,
    version::TLS13,
};

use crate::key::{PublicKey, SecretKey};

use super::verifier::Pinned;

/// The side that connects.
pub(crate) fn client(identity: &SecretKey, pinned: &PublicKey) -> Result<Connection, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let resolver = AlwaysResolvesClientRawPublicKeys::new(certified(&provider, identity)?);
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned::new(*pinned, &provider)))
        .with_client_cert_resolver(Arc::new(resolver));
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    // rustls wants a name; with pinned keys it means nothing, and it is not sent.
    let name = ServerName::try_from("thinwire").expect("a valid name");
    ClientConnection::new(Arc::new(config), name).map(Connection::Client)
}

/// The side that listens.
pub(crate) fn server(identity: &SecretKey, pinned: &PublicKey) -> Result<Connection, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let resolver = AlwaysResolvesServerRawPublicKeys::new(certified(&provider, identity)?);
    let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(Arc::new(Pinned::new(*pinned, &provider)))
        .with_cert_resolver(Arc::new(resolver));
    config.send_tls13_tickets = 0;
    ServerConnection::new(Arc::new(config)).map(Connection::Server)
}

fn certified(provider: &CryptoProvider, identity: &SecretKey) -> Result<Arc<CertifiedKey>, rustls::Error> {
    let key = provider.key_provider.load_private_key(PrivateKeyDer::Pkcs8(identity.pkcs8().clone_key()))?;
    let spki = CertificateDer::from(identity.public().to_spki());
    Ok(Arc::new(CertifiedKey::new(vec![spki], key)))
}
