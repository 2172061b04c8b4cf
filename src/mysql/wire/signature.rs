//! Signatures under keys that are made of the password, for MariaDB's log-ins ed25519 and parsec.
//!
//! mysql_common could do them, but takes a zero at the end of a nonce for no part of it: one log-in in 256
//! would fail.

use std::num::NonZeroU32;

use ed25519_dalek::VerifyingKey;
use ed25519_dalek::hazmat::{ExpandedSecretKey, raw_sign};
use ring::pbkdf2;
use sha2::{Digest, Sha512};

/// Bytes of a nonce, the server's and ours.
pub(crate) const NONCE: usize = 32;

/// The largest exponent of parsec's number of rounds: these take a second.
const FACTOR_MAX: u8 = 10;
const SALT: usize = 18;

/// Signs the server's nonce as ed25519 wants it: the password takes the place of the seed.
pub(crate) fn ed25519(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    sign(&ExpandedSecretKey::from_bytes(&Sha512::digest(password).into()), nonce)
}

/// Our nonce, and the signature of both. None where the packet is no parsec's, or asks for too many rounds.
pub(crate) fn parsec(
    password: &[u8],
    theirs: &[u8],
    ours: [u8; NONCE],
    packet: &[u8],
) -> Option<Vec<u8>> {
    let (factor, salt) = match packet {
        [b'P', factor @ ..=FACTOR_MAX, salt @ ..] if salt.len() == SALT => (*factor, salt),
        _ => return None,
    };
    let rounds = NonZeroU32::new(1024 << factor).expect("a bit is set");
    let mut seed = [0; 32];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA512, rounds, salt, password, &mut seed);
    let signature = sign(&ExpandedSecretKey::from(&seed), &[theirs, &ours].concat());
    Some([&ours[..], &signature].concat())
}

fn sign(key: &ExpandedSecretKey, text: &[u8]) -> Vec<u8> {
    raw_sign::<Sha512>(key, text, &VerifyingKey::from(key)).to_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::prelude::{BASE64_STANDARD_NO_PAD, Engine};
    use ed25519_dalek::{Signature, Verifier};

    /// Returns whether the owner of this key, as servers keep it, signed the text.
    fn signed(key: &str, text: &[u8], signature: &[u8]) -> bool {
        let key = BASE64_STANDARD_NO_PAD.decode(key).expect("base64");
        let key = VerifyingKey::from_bytes(&key.try_into().expect("32 bytes")).expect("a point");
        key.verify(text, &Signature::from_slice(signature).expect("64 bytes")).is_ok()
    }

    #[test]
    fn a_signature_holds_under_the_key_that_the_server_keeps_of_the_password() {
        // SELECT ed25519_password('secret'), as MariaDB's documentation has it.
        let key = "ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY";
        for nonce in [[7; NONCE], [0; NONCE]] {
            assert!(signed(key, &nonce, &ed25519(b"secret", &nonce)));
            assert!(!signed(key, &nonce, &ed25519(b"Secret", &nonce)));
        }
    }

    #[test]
    fn an_answer_of_parsec_holds_under_the_key_that_the_server_keeps_of_the_password() {
        // CREATE USER … IDENTIFIED VIA parsec USING PASSWORD('secret'), as MariaDB 11.8 shows it.
        let (salt, key) =
            ("8CuZu14xly6OfvLjKJovZDaR", "tz9hbN3fkmUlrjwRnYgd+s4lp0s7gdNAHbOcsm7aSuE");
        let salt = BASE64_STANDARD_NO_PAD.decode(salt).expect("base64");
        let (theirs, ours) = ([7; NONCE], [9; NONCE]);
        let packet = [b"P\0", &salt[..]].concat();
        let answer = parsec(b"secret", &theirs, ours, &packet).expect("an answer");
        let (nonce, signature) = answer.split_at(NONCE);
        assert_eq!(nonce, ours);
        assert!(signed(key, &[theirs, ours].concat(), signature));
        assert!(!signed(key, &[ours, theirs].concat(), signature));
        let wrong = parsec(b"Secret", &theirs, ours, &packet).expect("an answer");
        assert!(!signed(key, &[theirs, ours].concat(), &wrong[NONCE..]));
    }

    #[test]
    fn a_packet_of_parsec_is_refused_when_it_is_none_or_takes_too_long() {
        let packet = |start: &[u8], salt: usize| [start, &vec![1; salt]].concat();
        let answer = |packet: &[u8]| parsec(b"secret", &[7; NONCE], [9; NONCE], packet);
        assert_eq!(answer(&packet(b"P\x00", SALT)).map(|answer| answer.len()), Some(96));
        for wrong in [
            packet(b"P\x0b", SALT),
            packet(b"P\xff", SALT),
            packet(b"Q\x00", SALT),
            packet(b"P\x00", SALT - 1),
            packet(b"P\x00", SALT + 1),
            b"P".to_vec(),
            Vec::new(),
        ] {
            assert_eq!(answer(&wrong), None, "{wrong:?}");
        }
    }
}
