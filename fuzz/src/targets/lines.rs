//! Lines from a rank to rank 0 and back, whose every byte is the fuzzer's.
//!
//! ```text
//! input = "0" lines: of rank 0, as a rank hears them
//!       | clients statements lines: of a rank with so many, a digit each, as rank 0 hears them
//! ```

use loadgen::hosts::lines::{Heard, hear_rank, hear_rank_zero};

use super::harmless;

/// A side that hears lines.
type Hear<'a> = &'a dyn Fn(&[u8]) -> Heard;

/// Messages are the same when they are written and read again.
pub(crate) fn lines(input: &[u8]) {
    let (hear, lines): (Hear<'_>, _) = match input {
        [b'0', lines @ ..] => (&hear_rank_zero, lines),
        [clients @ b'1'..=b'9', statements @ b'0'..=b'9', lines @ ..] => {
            let [clients, statements] =
                [clients, statements].map(|digit| usize::from(digit - b'0'));
            (&move |lines: &[u8]| hear_rank(lines, clients, statements), lines)
        }
        _ => return,
    };
    let heard = hear(lines);
    heard.texts.iter().for_each(|text| harmless(text));
    let written: String = heard.lines.iter().map(|line| format!("{line}\n")).collect();
    assert_eq!(hear(written.as_bytes()).lines, heard.lines);
}
