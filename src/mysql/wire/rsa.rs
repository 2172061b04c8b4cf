//! Encrypts a password under the server's public key, for a full log-in without TLS. mysql_common
//! panics on broken and small keys and accepts any size: keys are checked here first.

use mysql_common::crypto::rsa::{GetRandom, Pkcs1OaepPadding, PublicKey};
use mysql_common::num_bigint::BigUint;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;

/// Bytes that OAEP with SHA-1 takes of the modulus.
const PADDING: usize = 42;

/// Encrypts by a key in PEM; None where the key is unsound or too short.
pub(crate) fn encrypt(text: &[u8], pem: &[u8]) -> Option<Vec<u8>> {
    let key = key(&SubjectPublicKeyInfoDer::from_pem_slice(pem).ok()?)?;
    let sound = (1024..=8192).contains(&key.modulus().bits()) && key.exponent().bits() <= 33;
    let fits = text.len() + PADDING <= key.num_octets();
    (sound && fits).then(|| key.encrypt_block(text, Pkcs1OaepPadding::new(GetRandom)))
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;

fn key(der: &[u8]) -> Option<PublicKey> {
    let (info, _) = element(SEQUENCE, der)?;
    let (_algorithm, info) = element(SEQUENCE, info)?;
    let (bits, _) = element(BIT_STRING, info)?;
    // The first byte counts the bits that are left over.
    let (numbers, _) = element(SEQUENCE, bits.strip_prefix(&[0])?)?;
    let (modulus, numbers) = element(INTEGER, numbers)?;
    let (exponent, _) = element(INTEGER, numbers)?;
    Some(PublicKey::new(BigUint::from_bytes_be(modulus), BigUint::from_bytes_be(exponent)))
}

/// Splits off an element of this tag. A log-in's packet needs no longer lengths.
fn element(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = match der.strip_prefix(&[tag])? {
        [length @ ..=0x7f, rest @ ..] | [0x81, length, rest @ ..] => (usize::from(*length), rest),
        [0x82, high, low, rest @ ..] => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::prelude::{BASE64_STANDARD, Engine};
    use proptest::prelude::*;

    fn tagged(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let [high, low] = u16::try_from(content.len()).expect("short").to_be_bytes();
        let length: &[u8] = match (high, low) {
            (0, ..=0x7f) => &[low],
            (0, _) => &[0x81, low],
            _ => &[0x82, high, low],
        };
        [&[tag], length, &content].concat()
    }

    fn der(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
        let numbers = [tagged(INTEGER, &[modulus]), tagged(INTEGER, &[exponent])];
        let key = tagged(SEQUENCE, &[&numbers[0], &numbers[1]]);
        tagged(SEQUENCE, &[&tagged(SEQUENCE, &[]), &tagged(BIT_STRING, &[&[0], &key])])
    }

    fn pem(der: &[u8]) -> String {
        let body = BASE64_STANDARD.encode(der);
        format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n")
    }

    /// The length of what comes of so many bytes under such a key.
    fn encrypted(text: usize, modulus: &[u8], exponent: &[u8]) -> Option<usize> {
        let text = vec![7; text];
        Some(encrypt(&text, pem(&der(modulus, exponent)).as_bytes())?.len())
    }

    const F4: &[u8] = &[1, 0, 1];

    #[test]
    fn keys_are_taken_when_neither_small_nor_giant() {
        let odd = |first: u8, bytes: usize| [&[first], &vec![0xff; bytes - 1][..]].concat();
        assert_eq!(encrypted(8, &odd(0xff, 128), F4), Some(128));
        assert_eq!(encrypted(8, &odd(0xff, 1024), F4), Some(1024));
        // A sign's zero in front, as openssl writes it.
        assert_eq!(encrypted(8, &[&[0], &odd(0xff, 256)[..]].concat(), F4), Some(256));
        assert_eq!(encrypted(8, &odd(0x7f, 128), F4), None, "1,023 bits");
        assert_eq!(encrypted(8, &odd(1, 1025), F4), None, "8,193 bits");
        assert_eq!(encrypted(8, &odd(0xff, 7000), F4), None);
        assert_eq!(encrypted(0, &[], F4), None);
        assert_eq!(encrypted(8, &odd(0xff, 128), &[1, 0xff, 0xff, 0xff, 0xff]), Some(128));
        assert_eq!(encrypted(8, &odd(0xff, 128), &[2, 0, 0, 0, 0]), None, "2^33");
    }

    #[test]
    fn texts_are_taken_when_the_padding_fits() {
        let modulus = [0xff; 256];
        assert_eq!(encrypted(256 - 42, &modulus, F4), Some(256));
        assert_eq!(encrypted(256 - 41, &modulus, F4), None);
        assert_eq!(encrypted(300, &modulus, F4), None);
        // mysql_common counts one byte less where a single bit is in the first.
        let modulus = [&[1], &[0xff; 128][..]].concat();
        assert!(encrypted(128 - 42, &modulus, F4).is_some());
        assert_eq!(encrypted(129 - 42, &modulus, F4), None);
    }

    #[test]
    fn a_key_is_refused_when_cut_anywhere() {
        let whole = der(&[0xff; 128], F4);
        assert!(key(&whole).is_some() && encrypt(b"x", pem(&whole).as_bytes()).is_some());
        for end in 0..whole.len() {
            assert!(key(&whole[..end]).is_none(), "{end}");
        }
        let text = pem(&whole);
        for end in 0..text.trim_end().len() {
            assert_eq!(encrypt(b"x", &text.as_bytes()[..end]), None, "{end}");
        }
    }

    proptest! {
        #[test]
        fn no_key_panics(at in 0..200_usize, byte: u8, even in any::<bool>(), any in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut bytes = der(&[if even { 0xfe } else { 0xff }; 128], F4);
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = encrypt(b"text", pem(&bytes).as_bytes());
            let _ = encrypt(b"text", pem(&any).as_bytes());
            let _ = encrypt(b"text", &any);
        }
    }
}
