//! Sealed tokens: what a finalize stream needs to go on travels with the client, so that any request of it can be served without a
//! session, and so does the transaction. Sealed, because a client must be able neither to read nor to forge it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, Generate, Key, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What a token is for. One cannot be used as the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What the stream is of; the same in every turn.
    Call,
    /// Where the stream stands; replaced by every turn.
    Cursor,
    /// Which transaction a client is in. It does not expire: how long a transaction lives is for its catalog to say.
    Transaction,
}

impl Kind {
    /// The kind's own text has no zero byte, so no principal makes one kind look like another.
    fn context_for(self, principal: &str) -> Vec<u8> {
        [self.context(), b"\0", principal.as_bytes()].concat()
    }

    fn context(self) -> &'static [u8] {
        match self {
            Self::Call => b"vgi-worker stream call 1",
            Self::Cursor => b"vgi-worker stream cursor 1",
            Self::Transaction => b"vgi-worker transaction 1",
        }
    }
}

/// Why a token is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It was not made by this worker as this kind of token, or was changed.
    #[error("the stream token is not one of this worker's, or was changed")]
    Invalid,
    /// It is too old.
    #[error("the stream token has expired")]
    Expired,
    /// It cannot be made.
    #[error("the stream token cannot be sealed")]
    Sealing,
}

const NONCE: usize = 24;
const EXPIRY: usize = 8;

/// Makes and opens tokens under one key.
pub struct Sealer {
    cipher: XChaCha20Poly1305,
    lifetime: Duration,
}

impl Sealer {
    /// A sealer with a new random key.
    #[must_use]
    pub fn random(lifetime: Duration) -> Self {
        Self::new(random_key(), lifetime)
    }

    /// A sealer with a key that other processes have too.
    #[must_use]
    pub fn new(key: [u8; 32], lifetime: Duration) -> Self {
        Self { cipher: XChaCha20Poly1305::new(&Key::<XChaCha20Poly1305>::from(key)), lifetime }
    }

    /// Seals content into base64 text, for this principal alone.
    ///
    /// # Errors
    /// When the content cannot be written.
    pub fn seal<T: Serialize>(&self, kind: Kind, principal: &str, content: &T) -> Result<String, TokenError> {
        let expiry = since_epoch().saturating_add(self.lifetime);
        let expiry = if kind == Kind::Transaction { Duration::from_millis(u64::MAX) } else { expiry };
        let expiry = u64::try_from(expiry.as_millis()).map_err(|_| TokenError::Sealing)?;
        let mut plain = expiry.to_le_bytes().to_vec();
        serde_json::to_writer(&mut plain, content).map_err(|_| TokenError::Sealing)?;
        let nonce = XNonce::generate();
        let payload = Payload { msg: &plain, aad: &kind.context_for(principal) };
        let sealed = self.cipher.encrypt(&nonce, payload).map_err(|_| TokenError::Sealing)?;
        Ok(STANDARD.encode([nonce.as_slice(), sealed.as_slice()].concat()))
    }

    /// Opens a token of this kind and principal.
    ///
    /// # Errors
    /// When it was not sealed here as this kind and for this principal, was changed, or has expired.
    pub fn open<T: DeserializeOwned>(&self, kind: Kind, principal: &str, token: &str) -> Result<T, TokenError> {
        let bytes = STANDARD.decode(token).map_err(|_| TokenError::Invalid)?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE>().ok_or(TokenError::Invalid)?;
        let payload = Payload { msg: sealed, aad: &kind.context_for(principal) };
        let plain = self.cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| TokenError::Invalid)?;
        let (expiry, content) = plain.split_first_chunk::<EXPIRY>().ok_or(TokenError::Invalid)?;
        if since_epoch() >= Duration::from_millis(u64::from_le_bytes(*expiry)) {
            return Err(TokenError::Expired);
        }
        serde_json::from_slice(content).map_err(|_| TokenError::Invalid)
    }
}

/// A new key.
pub(crate) fn random_key() -> [u8; 32] {
    Key::<XChaCha20Poly1305>::generate().into()
}

/// Sixteen random bytes: enough that no two executions of any worker share them.
pub(crate) fn random_id() -> [u8; 16] {
    Generate::generate()
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn what_was_sealed_is_opened() {
        let sealer = Sealer::random(HOUR);
        let token = sealer.seal(Kind::Cursor, "", &("position", 7)).unwrap();
        assert_eq!(sealer.open::<(String, u64)>(Kind::Cursor, "", &token).unwrap(), ("position".to_owned(), 7));
        assert_ne!(token, sealer.seal(Kind::Cursor, "", &("position", 7)).unwrap());
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let sealer = Sealer::random(HOUR);
        let bytes = STANDARD.decode(sealer.seal(Kind::Call, "", &1).unwrap()).unwrap();
        for position in 0..bytes.len() {
            let mut forged = bytes.clone();
            forged[position] ^= 1;
            assert_eq!(
                sealer.open::<u64>(Kind::Call, "", &STANDARD.encode(&forged)),
                Err(TokenError::Invalid),
                "{position}"
            );
            assert_eq!(
                sealer.open::<u64>(Kind::Call, "", &STANDARD.encode(&bytes[..position])),
                Err(TokenError::Invalid)
            );
        }
    }

    #[test]
    fn a_token_of_another_kind_or_key_is_refused() {
        let sealer = Sealer::random(HOUR);
        let token = sealer.seal(Kind::Call, "", &1).unwrap();
        assert_eq!(sealer.open::<u64>(Kind::Cursor, "", &token), Err(TokenError::Invalid));
        assert_eq!(Sealer::random(HOUR).open::<u64>(Kind::Call, "", &token), Err(TokenError::Invalid));
        assert_eq!(sealer.open::<u64>(Kind::Call, "", "not base64!"), Err(TokenError::Invalid));
    }

    #[test]
    fn a_token_is_its_principals_own() {
        let sealer = Sealer::random(HOUR);
        let token = sealer.seal(Kind::Call, "ann", &1).unwrap();
        assert_eq!(sealer.open::<u64>(Kind::Call, "ann", &token), Ok(1));
        assert_eq!(sealer.open::<u64>(Kind::Call, "bob", &token), Err(TokenError::Invalid));
        assert_eq!(sealer.open::<u64>(Kind::Call, "", &token), Err(TokenError::Invalid));
    }

    #[test]
    fn a_key_that_is_shared_opens_the_others_tokens() {
        let token = Sealer::new([3; 32], HOUR).seal(Kind::Call, "", &1).unwrap();
        assert_eq!(Sealer::new([3; 32], HOUR).open::<u64>(Kind::Call, "", &token), Ok(1));
    }

    #[test]
    fn an_old_token_is_refused() {
        let sealer = Sealer::random(Duration::ZERO);
        let token = sealer.seal(Kind::Cursor, "", &1).unwrap();
        assert_eq!(sealer.open::<u64>(Kind::Cursor, "", &token), Err(TokenError::Expired));
        let token = sealer.seal(Kind::Transaction, "", &1).unwrap();
        assert_eq!(sealer.open::<u64>(Kind::Transaction, "", &token), Ok(1));
    }
}
