//! The peer's key is the pinned one, and the peer holds its secret half.

use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, PeerMisbehaved,
    SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key},
    pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime},
    server::danger::{ClientCertVerified, ClientCertVerifier},
};
use std::sync::Arc;

use crate::key::PublicKey;

/// Accepts one key.
#[derive(Debug)]
pub(super) struct Pinned {
    key: PublicKey,
    algorithms: WebPkiSupportedAlgorithms,
}

/// What the peer presented is not the pinned key.
#[derive(Debug, thiserror::Error)]
#[error("the peer's key is {presented}, pinned is {pinned}")]
pub(crate) struct WrongKey {
    pub(crate) presented: String,
    pub(crate) pinned: PublicKey,
}

impl Pinned {
    pub(super) fn new(key: PublicKey, provider: &CryptoProvider) -> Self {
        Self { key, algorithms: provider.signature_verification_algorithms }
    }

    fn check_key(&self, presented: &[u8], chain: &[CertificateDer<'_>]) -> Result<(), Error> {
        if presented == self.key.to_spki() && chain.is_empty() {
            return Ok(());
        }
        let presented = match PublicKey::from_spki(presented) {
            Some(key) => key.to_string(),
            None => format!("{} bytes that are no Ed25519 key", presented.len()),
        };
        let error = WrongKey { presented, pinned: self.key };
        Err(CertificateError::Other(OtherError(Arc::new(error))).into())
    }

    fn check_signature(
        &self,
        message: &[u8],
        spki: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let spki = SubjectPublicKeyInfoDer::from(spki.as_ref());
        verify_tls13_signature_with_raw_key(message, &spki, signature, &self.algorithms)
    }
}

/// TLS 1.2 is not offered; a peer that speaks it all the same misbehaves.
fn refuse_tls12() -> Result<HandshakeSignatureValid, Error> {
    Err(PeerMisbehaved::SelectedUnofferedCipherSuite.into())
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check_key(end_entity, intermediates).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        refuse_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, cert, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check_key(end_entity, intermediates).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        refuse_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, cert, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
