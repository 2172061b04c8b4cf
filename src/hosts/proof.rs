//! The proof that both sides know one token: the token itself is never sent.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;

use crate::error::{Error, Result};

/// Bytes of the shortest token.
const LENGTH_MIN: usize = 16;

/// The side that proves: an answer of one is none of the other.
#[derive(Debug, Clone, Copy)]
pub(super) enum Side {
    Rank,
    RankZero,
}

/// The secret of all ranks of a run (`LOADGEN_TOKEN`); without one ranks of one host prove nothing.
#[derive(Clone)]
pub(crate) struct Token {
    key: hmac::Key,
    given: bool,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// Takes `LOADGEN_TOKEN`; refuses one that others could guess.
    pub(crate) fn new(token: Option<&[u8]>) -> Result<Token> {
        let token = token.unwrap_or_default();
        if (1..LENGTH_MIN).contains(&token.len()) {
            let text =
                format!("LOADGEN_TOKEN has {} bytes, and needs {LENGTH_MIN} or more", token.len());
            return Err(Error::usage(text).hint("openssl rand -hex 32 makes one"));
        }
        Ok(Token { key: hmac::Key::new(hmac::HMAC_SHA256, token), given: !token.is_empty() })
    }

    pub(super) fn is_given(&self) -> bool {
        self.given
    }

    /// Proves it over a rank's greeting, which has a nonce and the plan's hash, and rank 0's nonce.
    pub(super) fn prove(&self, side: Side, greeting: &[u8], nonce: &str) -> String {
        let message = Token::message(side, greeting, nonce);
        URL_SAFE_NO_PAD.encode(hmac::sign(&self.key, &message))
    }

    pub(super) fn verify(&self, side: Side, greeting: &[u8], nonce: &str, proof: &str) -> bool {
        let message = Token::message(side, greeting, nonce);
        let proof = URL_SAFE_NO_PAD.decode(proof);
        proof.is_ok_and(|proof| hmac::verify(&self.key, &message, &proof).is_ok())
    }

    fn message(side: Side, greeting: &[u8], nonce: &str) -> Vec<u8> {
        let side = match side {
            Side::Rank => "rank",
            Side::RankZero => "rank 0",
        };
        // A greeting is one line, and a nonce has no line end.
        [side.as_bytes(), nonce.as_bytes(), greeting].join(&b'\n')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn proof_holds_for_nothing_but_what_it_was_made_of() {
        let token = |text: &str| Token::new(Some(text.as_bytes())).expect("a long one");
        let (own, greeting) = (token("marker-token-of-30-bytes"), b"{\"rank\":1,\"plan\":\"p\"}");
        let proof = own.prove(Side::Rank, greeting, "n");
        assert!(own.verify(Side::Rank, greeting, "n", &proof));
        let cases: [(&Token, Side, &[u8], &str, &str); 6] = [
            (&token("another-token-of-23-bytes"), Side::Rank, greeting, "n", &proof),
            (&token(""), Side::Rank, greeting, "n", &proof),
            (&own, Side::RankZero, greeting, "n", &proof),
            (&own, Side::Rank, b"{\"rank\":2,\"plan\":\"p\"}", "n", &proof),
            (&own, Side::Rank, greeting, "m", &proof),
            (&own, Side::Rank, greeting, "n", &proof[1..]),
        ];
        for (at, (token, side, greeting, nonce, proof)) in cases.into_iter().enumerate() {
            assert!(!token.verify(side, greeting, nonce, proof), "case {at}");
        }
        assert!(!format!("{own:?}").contains("marker") && !proof.contains("marker"));
        assert!(own.is_given() && !token("").is_given());
        assert_eq!(Token::new(Some(b"guess me")).expect_err("short").kind(), Kind::Usage);
    }
}
