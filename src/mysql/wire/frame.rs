//! Writes commands as packets into a buffer that is used again and again.

use bytes::BytesMut;
use mysql_common::constants::Command;
use mysql_common::io::BufMutExt;
use mysql_common::proto::codec::packet_to_chunks;

/// The longest payload of one packet; a longer one goes on in the next.
pub const PACKET_MAX: usize = (1 << 24) - 1;
/// A packet's length (3 bytes) and its number (1).
pub(super) const HEADER: usize = 4;
/// The largest `max_allowed_packet`.
const BYTES_MAX: usize = 1 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    Null,
    Int(i64),
    UInt(u64),
    /// The bits of a float.
    Double(u64),
    Bytes {
        start: u32,
        end: u32,
    },
}

/// The parameters of one operation; a client uses them again and again.
#[derive(Debug, Clone, Default)]
pub struct Params {
    values: Vec<Value>,
    bytes: Vec<u8>,
}

impl Params {
    /// Makes `count` NULL values; keeps the memory.
    pub fn clear(&mut self, count: usize) {
        self.values.clear();
        self.values.resize(count, Value::Null);
        self.bytes.clear();
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub fn set(&mut self, at: usize, value: Value) {
        self.values[at] = value;
    }

    /// Returns whether a packet that a server takes holds this many bytes more.
    pub fn has_room(&self, more: usize) -> bool {
        self.bytes.len().saturating_add(more) <= BYTES_MAX
    }

    pub fn set_bytes(&mut self, at: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let place = |bytes: &Vec<u8>| u32::try_from(bytes.len()).expect("less than 4 GiB");
        let start = place(&self.bytes);
        write(&mut self.bytes);
        self.values[at] = Value::Bytes { start, end: place(&self.bytes) };
    }

    pub fn copy(&mut self, at: usize, from: &Params, of: usize) {
        match from.get(of) {
            Value::Bytes { start, end } => {
                self.set_bytes(at, |out| out.extend_from_slice(from.bytes(start, end)));
            }
            value => self.set(at, value),
        }
    }

    pub fn get(&self, at: usize) -> Value {
        self.values[at]
    }

    pub fn bytes(&self, start: u32, end: u32) -> &[u8] {
        &self.bytes[start as usize..end as usize]
    }
}

pub fn begin(out: &mut Vec<u8>, command: u8) {
    out.clear();
    out.extend_from_slice(&[0, 0, 0, 0, command]);
}

/// Fills in the header of a command, or one for each of its packets. Returns the answer's first number.
pub fn end(out: &mut Vec<u8>, sequence: u8) -> u8 {
    let length = out.len() - HEADER;
    if length >= PACKET_MAX {
        let mut packets = BytesMut::new();
        let next = packet_to_chunks(sequence, &mut &out[HEADER..], &mut packets);
        *out = packets.into();
        return next;
    }
    let [a, b, c, ..] = length.to_le_bytes();
    out[..HEADER].copy_from_slice(&[a, b, c, sequence]);
    sequence.wrapping_add(1)
}

pub fn close_statement(out: &mut Vec<u8>, id: u32) {
    begin(out, Command::COM_STMT_CLOSE as u8);
    out.extend_from_slice(&id.to_le_bytes());
    end(out, 0);
}

/// Returns the answer's first number. Sends the types every time: else old servers read NULL, and one crashes.
pub fn execute(out: &mut Vec<u8>, id: u32, params: &Params) -> u8 {
    begin(out, Command::COM_STMT_EXECUTE as u8);
    out.extend_from_slice(&id.to_le_bytes());
    // No cursor; one iteration.
    out.extend_from_slice(&[0, 1, 0, 0, 0]);
    if !params.is_empty() {
        let nulls = out.len();
        out.resize(nulls + params.len().div_ceil(8), 0);
        out.push(1);
        for (at, value) in params.values.iter().enumerate() {
            out.extend_from_slice(match value {
                Value::Null => &[0x06, 0],
                Value::Int(_) => &[0x08, 0],
                Value::UInt(_) => &[0x08, 0x80],
                Value::Double(_) => &[0x05, 0],
                Value::Bytes { .. } => &[0xfd, 0],
            });
            out[nulls + at / 8] |= u8::from(*value == Value::Null) << (at % 8);
        }
        for value in &params.values {
            match *value {
                Value::Null => {}
                Value::Int(number) => out.extend_from_slice(&number.to_le_bytes()),
                Value::UInt(number) | Value::Double(number) => {
                    out.extend_from_slice(&number.to_le_bytes());
                }
                Value::Bytes { start, end } => out.put_lenenc_str(params.bytes(start, end)),
            }
        }
    }
    end(out, 0)
}

#[cfg(test)]
mod tests {
    use mysql_async::Value as Theirs;
    use mysql_common::packets::ComStmtExecuteRequestBuilder;
    use mysql_common::proto::MySerialize;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Any value, some of the lengths where the encoding changes.
    fn value() -> impl Strategy<Value = Theirs> {
        let length = prop_oneof![0..300_usize, 65_530..65_540_usize];
        prop_oneof![
            Just(Theirs::NULL),
            any::<i64>().prop_map(Theirs::Int),
            any::<u64>().prop_map(Theirs::UInt),
            any::<f64>().prop_map(Theirs::Double),
            (any::<u8>(), length).prop_map(|(byte, length)| Theirs::Bytes(vec![byte; length])),
        ]
    }

    #[test]
    fn parameters_have_room_for_as_much_as_a_server_takes() {
        let mut params = Params::default();
        params.clear(1);
        params.set_bytes(0, |out| out.push(7));
        assert_eq!(
            [BYTES_MAX - 1, BYTES_MAX, usize::MAX].map(|more| params.has_room(more)),
            [true, false, false]
        );
    }

    fn set(params: &mut Params, at: usize, value: &Theirs) {
        match value {
            Theirs::Int(number) => params.set(at, Value::Int(*number)),
            Theirs::UInt(number) => params.set(at, Value::UInt(*number)),
            Theirs::Double(number) => params.set(at, Value::Double(number.to_bits())),
            Theirs::Bytes(bytes) => params.set_bytes(at, |out| out.extend_from_slice(bytes)),
            _ => params.set(at, Value::Null),
        }
    }

    proptest! {
        #[test]
        fn execute_is_that_of_the_driver_when_its_values_are_set_in_any_order(
            id: u32,
            values in vec(value(), 0..20),
            backwards: bool,
        ) {
            let (mut params, mut copied) = (Params::default(), Params::default());
            // Earlier values do not matter.
            params.clear(3);
            params.set_bytes(1, |out| out.push(7));
            params.clear(values.len());
            copied.clear(values.len());
            let order: Vec<usize> = (0..values.len()).collect();
            let order = if backwards { order.into_iter().rev().collect() } else { order };
            for at in order {
                set(&mut params, at, &values[at]);
                copied.copy(at, &params, at);
            }
            let mut expected = vec![0; HEADER];
            ComStmtExecuteRequestBuilder::new(id).build(&values).0.serialize(&mut expected);
            let length = expected.len() - HEADER;
            expected[..HEADER].copy_from_slice(&(length as u32).to_le_bytes());
            for params in [&params, &copied] {
                let mut out = vec![9; 5];
                prop_assert_eq!(execute(&mut out, id, params), 1);
                prop_assert_eq!(&out, &expected);
            }
        }
    }

    #[test]
    fn end_splits_a_payload_when_it_does_not_fit_one_packet() {
        const FULL: usize = PACKET_MAX;
        let cases: [(usize, &[usize]); 5] = [
            (1, &[1]),
            (FULL - 1, &[FULL - 1]),
            (FULL, &[FULL, 0]),
            (FULL + 1, &[FULL, 1]),
            (2 * FULL, &[FULL, FULL, 0]),
        ];
        for (length, lengths) in cases {
            let mut out = Vec::new();
            begin(&mut out, 0);
            out.extend((1..length).map(|at| at as u8));
            let next = end(&mut out, 255);
            assert_eq!(usize::from(next), lengths.len() - 1, "{length}");
            let (mut rest, mut payload) = (&out[..], Vec::new());
            for (at, length) in lengths.iter().enumerate() {
                let (header, packet) = rest.split_first_chunk::<HEADER>().expect("a header");
                let [.., number] = header;
                assert_eq!(*number, 255_u8.wrapping_add(at as u8));
                assert_eq!(u32::from_le_bytes(*header) as usize & FULL, *length);
                payload.extend_from_slice(&packet[..*length]);
                rest = &packet[*length..];
            }
            assert!(rest.is_empty() && payload.len() == length);
            assert!(payload.iter().enumerate().all(|(at, byte)| *byte == at as u8));
        }
    }
}
