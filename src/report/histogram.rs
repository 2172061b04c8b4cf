//! Percentiles from the histogram of a summary, whatever its file holds.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

use crate::stats::{BEYOND_MIN, nearest_rank, rank};
use crate::summary::Distribution;

/// Largest payload that is inflated, bytes. One hour in nanoseconds at three digits has 36,864
/// buckets of nine bytes at most.
const PAYLOAD_MAX: u64 = 4 << 20;
/// Bytes before the payload of `HdrHistogram` V2.
const HEADER: usize = 40;
/// Bytes of the length, between the cookie and the deflated bytes.
const LENGTH: usize = 4;
/// The cookie of `HdrHistogram` V2, deflated.
const COOKIE: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];
const NS_PER_US: f64 = 1e3;
/// Points of each further nine of a chart.
pub(crate) const EACH_NINE: usize = 5;
/// Nines that a histogram of 64-bit counts could tell.
pub(crate) const NINES_MAX: usize = 9;

/// Returns the share of so many nines: 0.999 of 3.
pub(crate) fn nines(count: f64) -> f64 {
    1.0 - 10_f64.powf(-count)
}

pub(crate) fn shares() -> impl Iterator<Item = f64> {
    (0..=EACH_NINE * NINES_MAX).map(|i| nines(i as f64 / EACH_NINE as f64))
}

pub(crate) struct Curve(Histogram<u64>);

impl Curve {
    /// Decodes `HdrHistogram` V2, deflated, base64: nothing of an empty histogram; the error says what is
    /// wrong with the text.
    ///
    /// The library believes the lengths that it reads and adds what it finds: a damaged file could
    /// make it take gigabytes, or overflow. So the bytes are inflated and looked at here first.
    pub(crate) fn read(text: &str) -> Result<Option<Curve>, String> {
        let bytes = STANDARD.decode(text.trim()).map_err(|error| format!("base64: {error}"))?;
        let deflated = bytes.strip_prefix(&COOKIE).and_then(|rest| rest.get(LENGTH..));
        let mut plain = Vec::new();
        ZlibDecoder::new(deflated.ok_or("it is no HdrHistogram V2, deflated")?)
            .take(PAYLOAD_MAX + 1)
            .read_to_end(&mut plain)
            .map_err(|error| format!("deflate: {error}"))?;
        check(&plain)?;
        let histogram = Deserializer::new().deserialize(&mut plain.as_slice());
        let histogram: Histogram<u64> = histogram.map_err(|error| error.to_string())?;
        // The library's total saturates, its search for a quantile does not.
        if histogram.len() == u64::MAX {
            return Err("its counts overflow".to_owned());
        }
        Ok((!histogram.is_empty()).then_some(Curve(histogram)))
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the least and the largest value that it holds, in the nanoseconds of its buckets.
    pub(crate) fn range(&self) -> (u64, u64) {
        (self.0.min().max(1), self.0.max().max(1))
    }

    /// Counts the values between two, both included, which are of different buckets.
    pub(crate) fn count_between(&self, from: u64, to: u64) -> u64 {
        let within = |value: u64| (from..=to).contains(&value);
        let all = self.0.iter_recorded().filter(|bucket| within(bucket.value_iterated_to()));
        all.map(|bucket| bucket.count_at_value()).fold(0, u64::saturating_add)
    }

    pub(crate) fn percentile_us(&self, percentile: f64) -> f64 {
        self.0.value_at_quantile(nearest_rank(percentile, self.0.len())) as f64 / NS_PER_US
    }
}

/// Up to the last one beyond which there are enough values: those known, else from the histogram, unless empty.
pub(crate) fn curve_us(times: &Distribution) -> Result<Option<Box<[f64]>>, String> {
    if times.curve_us.is_some() {
        return Ok(times.curve_us.clone());
    }
    Ok(Curve::read(&times.histogram)?.map(|curve| {
        let beyond = |share: f64| curve.count() - rank(share * 100.0, curve.count());
        let is_known = |share: &f64| beyond(*share) >= BEYOND_MIN;
        let known = shares().take_while(is_known);
        known.map(|share| curve.percentile_us(share * 100.0)).collect()
    }))
}

/// Refuses inflated bytes whose header promises more than there is.
fn check(plain: &[u8]) -> Result<(), &'static str> {
    let field = |from: usize, to: usize| -> Option<u64> {
        Some(plain.get(from..to)?.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    let (Some(length), Some(low), Some(high)) = (field(4, 8), field(16, 24), field(24, 32)) else {
        return Err("it ends too early");
    };
    let faults = [
        (plain.len() as u64 > PAYLOAD_MAX, "it inflates to more than 4 MiB"),
        (HEADER as u64 + length != plain.len() as u64, "its length is not the one that it names"),
        (low > high || high > 1 << 62, "its range makes no sense"),
        // The longest run of zeros that can be written: negating it overflows. No count looks so.
        (
            plain.windows(9).skip(HEADER).any(|bytes| bytes == [0xff; 9]),
            "a run of zeros is longer than any histogram",
        ),
    ];
    let fault = faults.into_iter().find(|(is_so, _)| *is_so);
    fault.map_or(Ok(()), |(_, fault)| Err(fault))
}

/// Makes the text that a summary has of some times.
#[cfg(test)]
pub(super) fn encode(values_ns: &[u64]) -> String {
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

    let mut histogram =
        Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).expect("the recorder's range");
    for value in values_ns {
        histogram.record(*value).expect("within the range");
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(&histogram, &mut bytes).expect("memory");
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;

    use super::*;

    fn percentile_us(text: &str, percentile: f64) -> Result<Option<f64>, String> {
        Ok(Curve::read(text)?.map(|curve| curve.percentile_us(percentile)))
    }

    /// Returns an envelope around bytes of one's own.
    fn wrapped(plain: &[u8]) -> String {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(plain).expect("memory");
        let deflated = encoder.finish().expect("memory");
        let mut bytes = COOKIE.to_vec();
        bytes.extend((deflated.len() as u32).to_be_bytes());
        bytes.extend(deflated);
        STANDARD.encode(bytes)
    }

    /// Returns an inflated histogram of chosen header fields and payload.
    fn plain(length: u32, digits: u32, low: u64, high: u64, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x1c, 0x84, 0x93, 0x13];
        bytes.extend(length.to_be_bytes());
        bytes.extend(0_u32.to_be_bytes());
        bytes.extend(digits.to_be_bytes());
        bytes.extend(low.to_be_bytes());
        bytes.extend(high.to_be_bytes());
        bytes.extend(1.0_f64.to_be_bytes());
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn percentiles_come_out_in_microseconds() {
        let text = encode(&(1..=1000).map(|us| us * 1000).collect::<Vec<_>>());
        let p42 = percentile_us(&text, 42.0).expect("sound").expect("not empty");
        assert!((p42 - 420.0).abs() < 0.5, "{p42}");
        assert_eq!(percentile_us(&encode(&[]), 42.0), Ok(None));
    }

    #[test]
    fn curve_has_each_percentile_that_enough_values_lie_beyond() {
        for (count, nines) in [(999, 1), (1_000, 2), (100_000, 4)] {
            let histogram = encode(&vec![1_000; count]);
            let times = Distribution { histogram, ..Distribution::default() };
            let curve = curve_us(&times).expect("sound").expect("not empty");
            assert_eq!((curve.len() - 1) / EACH_NINE, nines, "{count} values");
        }
    }

    #[test]
    fn damage_is_an_error_with_a_reason() {
        let refused = |text: &str| percentile_us(text, 50.0).expect_err(text);
        assert!(refused("not base64!").contains("base64"));
        assert!(refused("").contains("no HdrHistogram"));
        assert!(refused(&STANDARD.encode(b"other bytes")).contains("no HdrHistogram"));
        let sound = STANDARD.decode(encode(&[1, 2, 3])).expect("base64");
        assert!(!refused(&STANDARD.encode(&sound[..sound.len() / 2])).is_empty());
        assert!(refused(&wrapped(b"short")).contains("too early"));
    }

    #[test]
    fn lengths_ranges_and_counts_are_not_believed() {
        let refused = |plain: Vec<u8>| percentile_us(&wrapped(&plain), 50.0).expect_err("hostile");
        assert!(refused(plain(u32::MAX, 3, 1, 1 << 42, &[2])).contains("length"));
        assert!(refused(plain(1, 3, 1, u64::MAX, &[2])).contains("range"));
        assert!(refused(plain(1, 3, 9, 1, &[2])).contains("range"));
        assert!(refused(plain(9, 3, 1, 1 << 42, &[0xff; 9])).contains("zeros"));
        assert!(refused(vec![0; 5 << 20]).contains("inflates"));
        // Three counts of 2^63 - 1.
        let huge = [[0xfe].as_slice(), &[0xff; 8]].concat().repeat(3);
        assert!(refused(plain(27, 3, 1, 1 << 42, &huge)).contains("overflow"));
        assert!(!refused(plain(1, 99, 1, 1 << 42, &[2])).is_empty());
        assert!(!refused(plain(1, 3, 0, 0, &[2])).is_empty());
    }

    proptest! {
        #[test]
        fn no_payload_panics(
            payload in prop::collection::vec(any::<u8>(), 0..200),
            digits in 0_u32..7,
            low in any::<u64>(),
            high in any::<u64>(),
        ) {
            let plain = plain(payload.len() as u32, digits, low, high, &payload);
            let _ = percentile_us(&wrapped(&plain), 37.0);
            let plain = self::plain(payload.len() as u32, 3, 1, 3_600_000_000_000, &payload);
            let _ = percentile_us(&wrapped(&plain), 37.0);
        }
    }
}
