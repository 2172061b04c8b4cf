//! Rows as the two ways of filling want them: lines of LOAD DATA, and INSERT statements.

use bytes::Bytes;
use futures_util::StreamExt;

use crate::mysql::Infile;
use crate::workload::{Filler, Schema, quoted};

/// Bytes of a packet of LOAD DATA: more gain nothing, and every connection holds some.
const PACKET_MAX: usize = 128 * 1024;
/// Bytes of an INSERT, as sysbench has it.
const INSERT_MAX: usize = 512 * 1024;

/// Makes the statement that takes the lines of [`lines`]. They are ASCII; latin1 is converted
/// rightly into every character set, and needs no look for multi-byte characters.
pub(super) fn load_data(schema: Schema, table: u32, charset: &str) -> String {
    format!(
        "LOAD DATA LOCAL INFILE 'loadgen' INTO TABLE {} CHARACTER SET {charset} \
         FIELDS TERMINATED BY '\t' ENCLOSED BY '' LINES TERMINATED BY '\n' ({})",
        quoted(&schema.name(table)),
        schema.columns().join(", ")
    )
}

/// Makes the lines of ids `first..=last` as the connection takes them; `sent` hears of every
/// packet's rows and bytes. `packet` is the server's max_allowed_packet.
pub(super) fn lines(
    rows: Filler,
    first: u64,
    last: u64,
    packet: usize,
    sent: impl Fn(u64, usize) + Send + 'static,
) -> Infile {
    let row_max = rows.row_max();
    let room = (packet / 2).clamp(row_max, PACKET_MAX);
    let mut next = first;
    let packets = std::iter::from_fn(move || {
        let from = next;
        let mut out = Vec::with_capacity(room);
        while next <= last && out.len() + row_max <= room {
            rows.line(&mut out, next);
            next += 1;
        }
        sent(next - from, out.len());
        (next > from).then(|| Ok(Bytes::from(out)))
    });
    futures_util::stream::iter(packets).boxed()
}

/// Begins the INSERTs of a table, and decides how long one may grow for this max_allowed_packet.
pub(super) fn insert(rows: &Filler, table: u32, packet: usize) -> (String, usize) {
    let schema = rows.schema();
    let (named, columns) = (quoted(&schema.name(table)), schema.columns().join(", "));
    let head = format!("INSERT INTO {named} ({columns}) VALUES ");
    let room = (packet / 2).clamp(head.len() + rows.row_max(), INSERT_MAX);
    (head, room)
}

/// Appends one INSERT of the rows from `first` on, up to `last`, as long as it stays below
/// `bytes`, but of one row at least; returns the id after it. It ends where mysqldump's would.
pub(super) fn extended(
    out: &mut Vec<u8>,
    head: &str,
    rows: Filler,
    first: u64,
    last: u64,
    bytes: usize,
) -> u64 {
    let from = out.len();
    out.extend_from_slice(head.as_bytes());
    rows.tuple(out, first);
    let mut next = first + 1;
    while next <= last && out.len() - from < bytes {
        let before = out.len();
        out.push(b',');
        rows.tuple(out, next);
        if out.len() - from >= bytes {
            out.truncate(before);
            break;
        }
        next += 1;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::rows::Rows;
    use futures_util::FutureExt;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).expect("ASCII")
    }

    fn all(infile: Infile) -> Vec<Bytes> {
        infile
            .map(|packet| packet.expect("the stream never fails: the server would keep a part"))
            .collect()
            .now_or_never()
            .expect("never waits")
    }

    #[test]
    fn lines_hold_every_row_in_order_in_packets_of_bounded_size() {
        let rows = Rows::new(1, 1, 3000);
        let sent = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&sent);
        let count = move |n, _| {
            counted.fetch_add(n, Ordering::Relaxed);
        };
        let packets = all(lines(Filler::Sbtest(rows), 11, 3000, 1 << 30, count));
        assert!(packets.len() > 1 && packets.iter().all(|p| p.len() <= PACKET_MAX));
        assert_eq!(sent.load(Ordering::Relaxed), 2990);
        let whole = packets.concat();
        for (line, id) in text(&whole).lines().zip(11..) {
            let row = rows.row(id);
            let expected = format!("{id}\t{}\t{}\t{}", row.k, text(&row.c), text(&row.pad));
            assert_eq!(line, expected);
        }
        assert_eq!(text(&whole).lines().count(), 2990);
    }

    #[test]
    fn extended_inserts_hold_every_row_once_below_their_length() {
        let rows = Rows::new(1, 1, 1000);
        for bytes in [0, 1024, 10_000, 1 << 20] {
            let (mut next, mut values, mut statements) = (1, 0, 0);
            while next <= 1000 {
                let mut out = b"before".to_vec();
                let after = extended(
                    &mut out,
                    "INSERT INTO t VALUES ",
                    Filler::Sbtest(rows),
                    next,
                    1000,
                    bytes,
                );
                let sql = text(&out).strip_prefix("before").expect("appended");
                assert!(
                    sql.starts_with(&format!("INSERT INTO t VALUES ({next},"))
                        && sql.ends_with(')')
                );
                assert!(sql.len() < bytes || after == next + 1, "{} bytes", sql.len());
                // The next row would not have fitted: a row has 200 bytes at most.
                assert!(after == 1001 || bytes == 0 || sql.len() + 200 >= bytes);
                values += sql.matches("),(").count() as u64 + 1;
                (next, statements) = (after, statements + 1);
            }
            assert_eq!((values, bytes == 0), (1000, statements == 1000));
        }
    }

    #[test]
    fn small_packets_of_a_server_are_kept() {
        let rows = Rows::new(1, 1, 100);
        let largest = Rows::new(1, 1, 10_000_000_000);
        // The smallest max_allowed_packet that a server takes.
        for packet in [1024, 4096] {
            let packets = all(lines(Filler::Sbtest(rows), 1, 100, packet, |_, _| {}));
            assert!(packets.iter().all(|p| p.len() < packet));
            for (rows, first) in [(rows, 1), (largest, 10_000_000_000)] {
                let (head, room) = insert(&Filler::Sbtest(rows), 2, packet);
                assert_eq!(head, "INSERT INTO `sbtest2` (id, k, c, pad) VALUES ");
                let mut sql = Vec::new();
                let next = extended(&mut sql, &head, Filler::Sbtest(rows), first, first + 99, room);
                assert!(sql.len() < packet && next > first);
            }
        }
    }
}
