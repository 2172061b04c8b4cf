//! Findings: facts about a step that its readers must know, as a code and named values. A value keeps its
//! unit, from the table of codes, until a writer makes a sentence.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value as Json;

use super::{Code, Unit, named, units};

/// Texts that a merged sentence names.
const TEXTS_MAX: usize = 3;
/// Reasons of a verdict in full; further ones show their codes only.
const REASONS_MAX: usize = 2;

#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// The values of a code, in the order of its fields.
    Known(Code, Vec<Value>),
    /// A code and the messages of files without values, or of another version.
    Worded(String, BTreeSet<String>),
}

/// A value of a finding; of merged ones the range of numbers, or the different texts.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number, a text or, if unknown, null, as in files.
    One(Json),
    Range(f64, f64),
    Texts(BTreeSet<String>),
    Reasons(Vec<Finding>),
}

/// Makes a finding of a code and its values, in the order of the code's fields.
macro_rules! finding {
    ($code:ident $(, $value:expr)* $(,)?) => {{
        const FIELDS: &[&str] = &[$(stringify!($value)),*];
        const { assert!($crate::terms::Code::$code.fields().len() == FIELDS.len()) }
        $crate::terms::Finding::Known(
            $crate::terms::Code::$code,
            vec![$($crate::terms::Value::One($value.into())),*],
        )
    }};
}
pub(crate) use finding;

impl Finding {
    pub fn code(&self) -> Option<Code> {
        match self {
            Finding::Known(code, _) => Some(*code),
            Finding::Worded(name, _) => Code::named(name),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Finding::Known(code, _) => code.name(),
            Finding::Worded(name, _) => name,
        }
    }

    /// Returns its name and its group: only findings that have both in common are merged.
    pub(crate) fn kind(&self) -> (&str, Option<&str>) {
        let Finding::Known(code, values) = self else { return (self.name(), None) };
        let mut fields = code.fields().iter().zip(values);
        let group = fields.find(|((_, unit), _)| *unit == Unit::Group);
        (code.name(), group.and_then(|(_, value)| value.text()))
    }

    /// Returns the advice; empty if there is none, or if a file's message may have it.
    pub fn advice(&self) -> &'static str {
        match self {
            Finding::Known(code, _) => match (code, self.kind().1) {
                (Code::Errors, Some(_)) => "--metric NAME.errors shows where",
                (Code::Outages, Some(_)) => "the summary's groups[].outages shows when",
                _ => code.advice(),
            },
            Finding::Worded(..) => "",
        }
    }

    fn absorb(&mut self, other: &Finding) {
        match (&mut *self, other) {
            (Finding::Known(_, values), Finding::Known(_, others)) => {
                values.iter_mut().zip(others).for_each(|(value, other)| value.absorb(other));
            }
            (Finding::Worded(_, messages), Finding::Worded(_, others)) => {
                messages.extend(others.iter().cloned());
            }
            (Finding::Worded(_, messages), Finding::Known(..)) => {
                messages.insert(other.to_string());
            }
            (Finding::Known(..), Finding::Worded(name, others)) => {
                let mut messages = others.clone();
                messages.insert(self.to_string());
                *self = Finding::Worded(name.clone(), messages);
            }
        }
    }
}

/// Merges findings of the same name and group, in the order of their first ones.
pub fn merge<'f>(all: impl IntoIterator<Item = &'f Finding>) -> Vec<Finding> {
    let mut merged = Vec::new();
    all.into_iter().for_each(|found| add(&mut merged, found));
    merged
}

fn add(all: &mut Vec<Finding>, found: &Finding) {
    match all.iter_mut().find(|known| known.kind() == found.kind()) {
        Some(known) => known.absorb(found),
        None => all.push(found.clone()),
    }
}

impl Value {
    fn bounds(&self) -> Option<(f64, f64)> {
        match self {
            Value::One(number) => number.as_f64().map(|number| (number, number)),
            Value::Range(least, most) => Some((*least, *most)),
            _ => None,
        }
    }

    fn text(&self) -> Option<&str> {
        if let Value::One(text) = self { text.as_str() } else { None }
    }

    fn texts(&self) -> BTreeSet<String> {
        match self {
            Value::One(_) => self.text().map(str::to_owned).into_iter().collect(),
            Value::Texts(texts) => texts.clone(),
            _ => BTreeSet::new(),
        }
    }

    fn absorb(&mut self, other: &Value) {
        match (&mut *self, other) {
            (_, Value::One(Json::Null)) => {}
            (Value::One(Json::Null), _) => *self = other.clone(),
            (Value::Reasons(ours), Value::Reasons(theirs)) => {
                for found in theirs {
                    add(ours, found);
                }
            }
            (Value::Texts(ours), theirs) => ours.extend(theirs.texts()),
            (ours, theirs) if ours != theirs => {
                *self = match (ours.bounds(), theirs.bounds()) {
                    (Some((a, b)), Some((c, d))) => Value::Range(a.min(c), b.max(d)),
                    _ => Value::Texts(ours.texts().into_iter().chain(theirs.texts()).collect()),
                };
            }
            _ => {}
        }
    }

    fn write(&self, unit: Unit, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((least, most)) = self.bounds() {
            return unit.write(least, most, f);
        }
        match self {
            Value::One(Json::Null) if unit == Unit::Group => Ok(()),
            Value::One(Json::String(name)) if unit == Unit::Group => write!(f, " of group {name}"),
            Value::One(Json::String(text)) => f.write_str(text),
            Value::Texts(texts) => {
                f.write_str(&named(texts.iter().cloned().collect(), TEXTS_MAX, " and "))
            }
            Value::Reasons(reasons) if !reasons.is_empty() => {
                if f.alternate() {
                    return write!(f, "{}", reasons[0]);
                }
                let (reasons, others) = reasons.split_at(reasons.len().min(REASONS_MAX));
                let mut reasons: Vec<String> = reasons.iter().map(Finding::to_string).collect();
                let codes: Vec<&str> = others.iter().map(Finding::name).collect();
                reasons.extend((!codes.is_empty()).then(|| format!("also {}", codes.join(", "))));
                f.write_str(&reasons.join("; "))
            }
            _ => f.write_str("unknown"),
        }
    }
}

impl Unit {
    /// Reads a file's value of this unit.
    pub fn take(self, value: &Json) -> Option<Value> {
        let fits = match value {
            Json::Null => true,
            Json::String(_) => matches!(self, Unit::Text | Unit::Group),
            Json::Number(_) => !matches!(self, Unit::Text | Unit::Group | Unit::Reasons),
            _ => false,
        };
        fits.then(|| Value::One(value.clone()))
    }

    /// Writes a number, or a range that has its unit once.
    fn write(self, least: f64, most: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit): (f64, &str) = match self {
            Unit::Share => (100.0, " %"),
            Unit::Micros => (1e-3, " ms"),
            Unit::Seconds => (1.0, " s"),
            Unit::Bytes if least < f64::from(10 << 20) => (1.0 / 1024.0, " KiB"),
            Unit::Bytes => (1.0 / f64::from(1 << 20), " MiB"),
            _ => (1.0, ""),
        };
        let [first, last] = [least, most].map(|number| self.digits(number * scale));
        f.write_str(&first)?;
        if first != last {
            write!(f, "..{last}")?;
        }
        match self {
            Unit::Count("") => Ok(()),
            Unit::Count(noun) if last == "1" => write!(f, " {noun}"),
            Unit::Count(noun) => write!(f, " {noun}s"),
            _ => f.write_str(unit),
        }
    }

    fn digits(self, number: f64) -> String {
        let size = number.abs();
        let decimals = match self {
            Unit::Share if size < 1.0 => 2,
            Unit::Share if size < 10.0 => 1,
            Unit::Micros if size < 10.0 => 3,
            Unit::Micros if size < 100.0 => 2,
            Unit::Seconds if size > 0.0 && size < 0.1 => 3,
            Unit::Seconds | Unit::Count(_) if size < 100.0 && number.fract() != 0.0 => 1,
            Unit::Number => return units::rate(number),
            _ => 0,
        };
        format!("{number:.decimals$}")
    }
}

/// Formats microseconds as milliseconds with three significant digits: `0.500 ms`.
pub(crate) fn millis(us: f64) -> String {
    Unit::Micros.digits(us / 1e3) + " ms"
}

impl fmt::Display for Finding {
    /// Writes its sentence; the alternate form has a verdict's first reason only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, values) = match self {
            Finding::Known(code, values) => (code, values),
            Finding::Worded(_, messages) => {
                f.write_str(messages.first().expect("a message"))?;
                return match messages.len() - 1 {
                    0 => Ok(()),
                    more => write!(f, " (and {more} more like it)"),
                };
            }
        };
        let (mut texts, fields) = (code.sentence().split('{'), code.fields());
        f.write_str(texts.next().expect("a sentence"))?;
        for text in texts {
            let (name, text) = text.split_once('}').expect("a whole gap");
            let at = fields.iter().position(|(known, _)| *known == name).expect("a field");
            values[at].write(fields[at].1, f)?;
            f.write_str(text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_shows_its_values_in_their_units() {
        struct Case {
            unit: Unit,
            least: f64,
            most: f64,
            text: &'static str,
        }
        let found = finding!(Drift, "the rate", "rose", 0.111);
        assert_eq!(
            found.to_string(),
            "the rate rose by 11 % from the window's first part to its last"
        );
        let shown = |unit: Unit, least: f64, most: f64| {
            struct Shown(Unit, Value);
            impl fmt::Display for Shown {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.1.write(self.0, f)
                }
            }
            let mut value = Value::One(least.into());
            value.absorb(&Value::One(most.into()));
            Shown(unit, value).to_string()
        };
        for Case { unit, least, most, text } in [
            Case { unit: Unit::Micros, least: 5_000.0, most: 5_000.0, text: "5.000 ms" },
            Case { unit: Unit::Micros, least: 5_000.0, most: 120_000.0, text: "5.000..120 ms" },
            Case { unit: Unit::Share, least: 0.09, most: 0.21, text: "9.0..21 %" },
            Case { unit: Unit::Seconds, least: 0.5, most: 99.5, text: "0.5..99.5 s" },
            Case { unit: Unit::Seconds, least: 1234.6, most: 1234.6, text: "1235 s" },
            Case { unit: Unit::Seconds, least: 0.04, most: 0.04, text: "0.040 s" },
            Case { unit: Unit::Count("step"), least: 1.0, most: 1.0, text: "1 step" },
            Case { unit: Unit::Count("step"), least: 1.0, most: 3.0, text: "1..3 steps" },
            Case { unit: Unit::Count(""), least: 9.0, most: 9.0, text: "9" },
            Case { unit: Unit::Bytes, least: 337_920.0, most: 337_920.0, text: "330 KiB" },
            Case { unit: Unit::Bytes, least: 10_485_760.0, most: 4.3e9, text: "10..4101 MiB" },
            Case { unit: Unit::Number, least: 2.345, most: 26_747.4, text: "2.35..26747" },
            Case { unit: Unit::Number, least: f64::NAN, most: f64::NAN, text: "unknown" },
        ] {
            assert_eq!(shown(unit, least, most), text);
        }
    }

    #[test]
    fn sentences_fit_one_thing() {
        for (found, sentence) in [
            (
                finding!(Scarce, "mean", 0_u64, 1.0),
                "mean is not shown: it takes 1 operation, and there were 0",
            ),
            (
                finding!(Unmatched, 1_u64, 0.02),
                "1 statement (2.0 % of all) found no row to change, which costs less",
            ),
        ] {
            assert_eq!(found.to_string(), sentence);
        }
    }

    #[test]
    fn every_gap_of_a_sentence_is_a_field_and_every_field_has_a_gap() {
        for code in Code::ALL {
            let gaps = code.sentence().split('{').skip(1).map(|text| text.split_once('}'));
            let gaps: BTreeSet<&str> = gaps.map(|gap| gap.expect("a whole gap").0).collect();
            let fields: BTreeSet<&str> = code.fields().iter().map(|(name, _)| *name).collect();
            assert_eq!(gaps, fields, "{}", code.name());
        }
        let names: BTreeSet<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), Code::ALL.len(), "one code has one set of fields");
    }

    #[test]
    fn findings_merge_to_ranges_and_lists() {
        let drift = |direction: &str, by: f64| finding!(Drift, "the rate", direction, by);
        let all = [drift("rose", 0.11), drift("fell", 0.3), finding!(NoStatus), drift("rose", 0.2)];
        let merged = merge(&all);
        let texts = Value::Texts(["fell", "rose"].map(str::to_owned).into());
        let values = vec![Value::One("the rate".into()), texts, Value::Range(0.11, 0.3)];
        assert_eq!(merged, [Finding::Known(Code::Drift, values), finding!(NoStatus)]);
        // Merged findings merge again, to the same.
        assert_eq!(merge(merged.iter().chain(&all)), merged);
        let noisy = |part| {
            let reason = Finding::Known(Code::Descheduled, vec![part]);
            Finding::Known(Code::Noisy, vec![Value::Reasons(vec![reason])])
        };
        let all = [0.5, 0.7].map(|part| noisy(Value::One(part.into())));
        assert_eq!(merge(&all), [noisy(Value::Range(0.5, 0.7))]);
        let unknown = |hits: Option<u64>| finding!(QueryCache, 1_u64, hits);
        assert_eq!(merge(&[unknown(None), unknown(Some(7))]), [unknown(Some(7))]);
        let errors = |n: u64, group: Option<&str>| finding!(Errors, n, "error 1", group);
        let (own, writer) = (errors(3, None), errors(5, Some("writer")));
        let all =
            [own.clone(), writer.clone(), errors(1, Some("reader")), errors(7, Some("writer"))];
        let merged = merge(&all);
        let groups: Vec<Option<&str>> = merged.iter().map(|found| found.kind().1).collect();
        assert_eq!((&merged[0], groups), (&own, vec![None, Some("writer"), Some("reader")]));
        assert_ne!(own.advice(), writer.advice());
    }

    #[test]
    fn messages_of_other_versions_merge_with_equal_ones_only() {
        let worded = |text: &str| Finding::Worded("drift".to_owned(), [text.to_owned()].into());
        let of = |all: &[Finding]| {
            let merged = merge(all);
            assert_eq!(merged.len(), 1);
            let Finding::Worded(_, messages) = &merged[0] else { panic!("{merged:?}") };
            messages.len()
        };
        assert_eq!(of(&[worded("by 3 %"), worded("by 3 %")]), 1);
        assert_eq!(of(&[worded("by 3 %"), worded("by 4 %")]), 2);
        assert_eq!(of(&[worded("by 3 %"), finding!(Drift, "the rate", "rose", 0.1)]), 2);
    }
}
