//! The stock scripts of sysbench 1.0.20, by the checksum of their text without the first line, which
//! packagers change.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// The first 16 hexadecimal digits of SHA-256.
const STOCK: &str = "aa303c46d71f2200 2a9c225ce02d8ab5 0f66a3cc65472696 41e948b4b5104c38 \
                     a8df447935502a9c 2e85a293465743ec 7896a91b452a24e7 ee08292a90b002de \
                     9f802610b8f38d1b e06be71d5aacf5fb dea05906163359d8 6bb9ee3b66f28ef2";

/// Returns whether the script at this path differs from all stock scripts.
pub(super) fn is_another(path: &str) -> bool {
    let Ok(text) = std::fs::read(path) else { return false };
    let begin = text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| at + 1);
    let mut digits = String::new();
    for byte in &Sha256::digest(&text[begin..])[..8] {
        write!(digits, "{byte:02x}").expect("a String takes everything");
    }
    !STOCK.contains(&digits)
}
