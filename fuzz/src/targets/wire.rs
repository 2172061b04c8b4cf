//! Answers to the measured connections, whose every byte is the fuzzer's.
//!
//! ```text
//! input = flags kind part bytes
//! flags = 1: the old dialect · 2: the first cell is wanted · 4: the bytes are payloads, each with
//!         its length before it in one byte, rather than packets · 8: all rows are wanted, as a script
//!         wants them
//! kind  = (mod 3) 0: a text · 1: an EXECUTE · 2: a PREPARE
//! part  = the bytes come in parts of so many
//! ```

use loadgen::mysql::session::Asked;
use loadgen::mysql::wire::decode::{Answer, AnswerForm, Decoder, HEAD_MAX, Want};
use loadgen::mysql::wire::frame;

use super::harmless;

/// An answer: what it came to, whether out of turn, its statement, its first cell as bytes and as number, its rows.
type Seen = (Asked<Answer>, bool, u32, Option<Vec<u8>>, Option<u64>, Vec<Row>);
/// The result of a row and its cells, or why it is not there.
type Row = (usize, Result<Vec<Option<Vec<u8>>>, &'static str>);

/// The same answers however the bytes are cut.
pub(crate) fn wire(input: &[u8]) {
    let [flags, kind, part, rest @ ..] = input else { return };
    let packets = if flags & 4 == 0 { rest.to_vec() } else { framed(rest) };
    let kind = [AnswerForm::Text, AnswerForm::Binary, AnswerForm::Prepare][usize::from(*kind % 3)];
    let want = match (flags & 2, flags & 8) {
        (0, 0) => Want::Count,
        (_, 0) => Want::First,
        _ => Want::Rows,
    };
    let answers = |part| answers(Decoder::new(flags & 1 == 0), kind, want, &packets, part);
    assert_eq!(answers(usize::from(*part).max(1)), answers(packets.len().max(1)));
}

/// Payloads as packets in turn.
fn framed(mut rest: &[u8]) -> Vec<u8> {
    let (mut packets, mut number, mut packet) = (Vec::new(), 1, Vec::new());
    while let Some((length, more)) = rest.split_first() {
        let (payload, more) = more.split_at(usize::from(*length).min(more.len()));
        rest = more;
        // The first byte of a payload takes a command's place.
        frame::begin(&mut packet, 0);
        packet.splice(4.., payload.iter().copied());
        number = frame::end(&mut packet, number);
        packets.append(&mut packet);
    }
    packets
}

/// The answers that bytes are, which come in parts, and how they end. The next one begins with whatever
/// number it has.
fn answers(
    mut decoder: Decoder,
    kind: AnswerForm,
    want: Want,
    bytes: &[u8],
    part: usize,
) -> (Vec<Seen>, Asked<usize>) {
    let (mut seen, mut used) = (Vec::new(), 0);
    decoder.expect(kind, want, 1);
    for end in (0..bytes.len()).step_by(part).map(|start| bytes.len().min(start + part)) {
        loop {
            let offered = &bytes[used..end];
            let now = match decoder.take(offered) {
                Ok(now) => now,
                Err(lost) => return (seen, Err(lost)),
            };
            assert!(now <= offered.len(), "{now} of {}", offered.len());
            used += now;
            let Some(outcome) = decoder.outcome() else {
                assert!(end - used <= HEAD_MAX + 4, "{} bytes were too few", end - used);
                break;
            };
            if let Err(failure) = &outcome {
                harmless(&failure.to_string());
            }
            let (first, number) = (decoder.first().map(<[u8]>::to_vec), decoder.number());
            let (turn, statement) = (decoder.out_of_turn, decoder.statement);
            seen.push((outcome, turn, statement, first, number, rows(&decoder)));
            decoder.expect(kind, want, bytes.get(used + 3).copied().unwrap_or(1));
        }
    }
    (seen, Ok(used))
}

/// The rows that an answer has kept. They end, whatever the answer was.
fn rows(decoder: &Decoder) -> Vec<Row> {
    let mut rows = Vec::new();
    for number in 0.. {
        let Some(result) = decoder.result(number) else { break };
        let mut at = result.begin;
        loop {
            match decoder.row(number, at) {
                Ok(Some((cells, next))) => {
                    assert!(next > at, "the next row is this one");
                    at = next;
                    rows.push((number, Ok(cells)));
                }
                Ok(None) => break,
                Err(why) => {
                    rows.push((number, Err(why)));
                    break;
                }
            }
        }
    }
    rows
}
