//! The written form of a histogram within an event: HdrHistogram V2, base64. It is read back as equal.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer as Reader, Serializer as _, V2Serializer};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// Significant digits of a percentile.
pub(super) const DIGITS: u8 = 3;

pub(super) fn serialize<S: Serializer>(
    histogram: &Histogram<u64>,
    to: S,
) -> Result<S::Ok, S::Error> {
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(histogram, &mut bytes).map_err(S::Error::custom)?;
    to.serialize_str(&STANDARD.encode(bytes))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Histogram<u64>, D::Error> {
    let bytes = STANDARD.decode(String::deserialize(from)?).map_err(D::Error::custom)?;
    let read: Histogram<u64> = Reader::new().deserialize(&mut &*bytes).map_err(D::Error::custom)?;
    // A histogram that is read does not grow when another one is added.
    let mut histogram = Histogram::new(DIGITS).expect("digits that it can have");
    histogram.add(&read).map_err(D::Error::custom)?;
    Ok(histogram)
}
