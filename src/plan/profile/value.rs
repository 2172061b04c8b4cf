//! Values of a profile, as people write them.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use clap::ValueEnum;
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use toml::Spanned;

use crate::plan::{units, value as plan};

/// A count: `1000` or `"16M"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count(pub u64);

/// A duration: `60` (seconds), `0.5` or `"10m"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

/// Client counts: `64`, `[1, 4, 16]` or `"8..256"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clients(pub Vec<u32>);

/// Ops a second, ascending.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates(pub Vec<f64>);

impl Clients {
    /// The largest.
    pub(crate) fn most(&self) -> u32 {
        self.0.iter().copied().max().unwrap_or(1)
    }
}

/// The value of a workload's option: a count, or on (1) and off (0).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount(pub u64);

/// One text or a list of texts, each with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names(pub Vec<Spanned<String>>);

/// What a number, a truth value or a text means to a server: its text, or nothing for an option
/// that stands alone (`true`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting(pub Option<String>);

/// One of the words of a command line's flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word<T>(pub T);

/// Text that is parsed as on the command line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parsed<T>(pub T);

/// A text that may hold a password: `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(transparent)]
pub struct Hidden(String);

impl Hidden {
    /// The text.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// Reads a number or a text.
struct Either<T> {
    expecting: &'static str,
    number: fn(f64) -> Result<T, String>,
    text: fn(&str) -> Result<T, String>,
}

impl<T> Visitor<'_> for Either<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_i64<E: de::Error>(self, n: i64) -> Result<T, E> {
        // Text is exact where a double is not.
        let parsed = match u64::try_from(n) {
            Ok(n) => (self.text)(&n.to_string()),
            Err(_) => Err(format!("{n} is negative")),
        };
        parsed.map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, n: f64) -> Result<T, E> {
        (self.number)(n).map_err(E::custom)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.text)(text).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Either {
            expecting: "a count, such as 1000 or \"16M\"",
            number: |n| Err(format!("{n} is no whole number")),
            text: |text| units::parse_count(text).map(Count),
        })
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Shape;
        impl Visitor<'_> for Shape {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count, true or false")
            }

            fn visit_bool<E: de::Error>(self, on: bool) -> Result<Amount, E> {
                Ok(Amount(u64::from(on)))
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Amount, E> {
                self.visit_str(&n.to_string())
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                units::parse_count(text).map(Amount).map_err(E::custom)
            }
        }
        from.deserialize_any(Shape)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Either {
            expecting: "a duration, such as 60 (seconds) or \"10m\"",
            number: |n| units::parse_duration(&n.to_string()).map(Span),
            text: |text| units::parse_duration(text).map(Span),
        })
    }
}

impl<'de> Deserialize<'de> for Rates {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Either {
            expecting: "ops a second: 1000, \"500,2k\" or \"1k..16k\"",
            number: |n| n.to_string().parse::<plan::Rates>().map(|r| Rates(r.0)),
            text: |text| text.parse::<plan::Rates>().map(|r| Rates(r.0)),
        })
    }
}

impl<'de> Deserialize<'de> for Clients {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Shape;
        impl<'de> Visitor<'de> for Shape {
            type Value = Clients;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("numbers of clients: 64, [1, 4, 16] or \"8..256\"")
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Clients, E> {
                self.visit_str(&n.to_string())
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Clients, E> {
                text.parse::<plan::Clients>().map(|c| Clients(c.0)).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Clients, A::Error> {
                let mut list = Vec::new();
                while let Some(n) = seq.next_element::<u32>()? {
                    list.push(n.to_string());
                }
                self.visit_str(&list.join(","))
            }
        }
        from.deserialize_any(Shape)
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Shape;
        impl<'de> Visitor<'de> for Shape {
            type Value = Vec<Spanned<String>>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name or a list of names")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(vec![Spanned::new(0..0, text.to_owned())])
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = seq.next_element()? {
                    names.push(name);
                }
                Ok(names)
            }
        }
        struct Whole(Vec<Spanned<String>>);
        impl<'de> Deserialize<'de> for Whole {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_any(Shape).map(Whole)
            }
        }
        let whole = Spanned::<Whole>::deserialize(from)?;
        let place = whole.span();
        let names = whole.into_inner().0.into_iter();
        // A single name is the whole value.
        let placed = |name: Spanned<String>| {
            if name.span().is_empty() {
                Spanned::new(place.clone(), name.into_inner())
            } else {
                name
            }
        };
        Ok(Names(names.map(placed).collect()))
    }
}

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Shape;
        impl Visitor<'_> for Shape {
            type Value = Setting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a number, true or false")
            }

            fn visit_bool<E: de::Error>(self, on: bool) -> Result<Setting, E> {
                Ok(Setting((!on).then(|| "OFF".to_owned())))
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Setting, E> {
                Ok(Setting(Some(n.to_string())))
            }

            fn visit_f64<E: de::Error>(self, n: f64) -> Result<Setting, E> {
                Ok(Setting(Some(n.to_string())))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Setting, E> {
                Ok(Setting(Some(text.to_owned())))
            }
        }
        from.deserialize_any(Shape)
    }
}

impl<'de, T: ValueEnum> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        T::from_str(&text, false).map(Word).map_err(|_| {
            let known: Vec<String> = T::value_variants()
                .iter()
                .filter_map(ValueEnum::to_possible_value)
                .map(|value| value.get_name().to_owned())
                .collect();
            de::Error::custom(format!("'{text}' is none of {}", known.join(", ")))
        })
    }
}

impl<'de, T> Deserialize<'de> for Parsed<T>
where
    T: std::str::FromStr,
    T::Err: fmt::Display,
{
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Shape<T>(PhantomData<T>);
        impl<T> Visitor<'_> for Shape<T>
        where
            T: std::str::FromStr,
            T::Err: fmt::Display,
        {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
                text.parse().map_err(E::custom)
            }
        }
        from.deserialize_str(Shape(PhantomData)).map(Parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct One<T> {
        x: T,
    }

    fn read<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, String> {
        toml::from_str::<One<T>>(text).map(|one| one.x).map_err(|e| e.message().to_owned())
    }

    #[test]
    fn numbers_and_texts() {
        assert_eq!(read::<Count>("x = 16_000_000"), Ok(Count(16_000_000)));
        assert_eq!(read::<Count>("x = \"16M\""), Ok(Count(16_000_000)));
        assert!(read::<Count>("x = 1.5").is_err_and(|e| e.contains("1.5")));
        assert!(read::<Count>("x = -1").is_err_and(|e| e.contains("negative")));
        assert!(read::<Count>("x = true").is_err_and(|e| e.contains("16M")));
        let half = Duration::from_millis(500);
        for text in ["x = 0.5", "x = \"0.5\"", "x = \"500ms\""] {
            assert_eq!(read::<Span>(text), Ok(Span(half)));
        }
        assert_eq!(read::<Clients>("x = \"8..32\""), Ok(Clients(vec![8, 16, 32])));
        assert_eq!(read::<Clients>("x = [64, 1, 4]"), Ok(Clients(vec![1, 4, 64])));
        assert_eq!(read::<Clients>("x = 3"), Ok(Clients(vec![3])));
        assert_eq!(read::<Rates>("x = 500"), Ok(Rates(vec![500.0])));
        assert_eq!(read::<Rates>("x = \"1k..4k\""), Ok(Rates(vec![1e3, 2e3, 4e3])));
        assert!(read::<Rates>("x = 0").is_err_and(|e| e.contains("0 ops a second")));
        assert!(read::<Clients>("x = 0").is_err_and(|e| e.contains("0 clients")));
        assert_eq!(read::<Setting>("x = true"), Ok(Setting(None)));
        assert_eq!(read::<Setting>("x = false"), Ok(Setting(Some("OFF".to_owned()))));
        assert_eq!(read::<Setting>("x = 2"), Ok(Setting(Some("2".to_owned()))));
    }

    #[test]
    fn names_know_their_places() {
        let text = "x = [\"a\", \"bc\"]";
        let Names(names) = read(text).expect("a list");
        let places: Vec<&str> = names.iter().filter_map(|n| text.get(n.span())).collect();
        assert_eq!(places, ["\"a\"", "\"bc\""]);
        let Names(names) = read("x = \"a\"").expect("one");
        assert_eq!((names[0].span(), names[0].as_ref().as_str()), (4..7, "a"));
    }

    #[test]
    fn a_word_that_is_none_names_those_that_are() {
        use crate::plan::Order;
        assert_eq!(read::<Word<Order>>("x = \"shuffled\""), Ok(Word(Order::Shuffled)));
        assert!(
            read::<Word<Order>>("x = \"up\"").is_err_and(|e| e.contains("ascending, shuffled"))
        );
    }

    #[test]
    fn a_hidden_text_is_not_shown() {
        let hidden: Hidden = read("x = \"marker\"").expect("a text");
        assert_eq!((format!("{hidden:?}").as_str(), hidden.expose()), ("(hidden)", "marker"));
    }
}
