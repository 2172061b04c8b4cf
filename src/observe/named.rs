//! The ops that a script gave a name, its transactions: their names, counts and times.

use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::times::Times;
use crate::error::is_hostile;
use crate::stop::locked;

/// The most names of a step: each has a histogram a thread and an interval.
pub(crate) const NAMES_MAX: usize = 64;
/// Longest name, characters.
const NAME_MAX: usize = 64;

pub(crate) fn is_name(text: &str) -> bool {
    let long = text.chars().count() > NAME_MAX;
    !text.is_empty() && !long && !text.contains('\u{fffd}') && !text.contains(is_hostile)
}

/// The names of a step's transactions by their numbers. Its threads ask for a name once.
#[derive(Debug, Default)]
pub(crate) struct TransactionNames(Mutex<Vec<String>>);

impl TransactionNames {
    /// Returns the number of a name; an error says why it has none.
    #[cfg_attr(not(feature = "lua"), allow(dead_code, reason = "only scripts name ops"))]
    pub(crate) fn number(&self, name: &[u8]) -> Result<u32, String> {
        let text = String::from_utf8_lossy(name);
        if !is_name(&text) {
            return Err(format!(
                "the name of a transaction has 1 to {NAME_MAX} printable characters"
            ));
        }
        let mut names = locked(&self.0);
        let at = names.iter().position(|known| **known == *text).unwrap_or(names.len());
        if at == NAMES_MAX {
            return Err(format!(
                "'{text}' is one too many: a step has at most {NAMES_MAX} transactions"
            ));
        }
        if at == names.len() {
            names.push(text.into_owned());
        }
        Ok(at as u32)
    }

    /// Lists the names from a number on.
    pub(crate) fn list_from(&self, number: usize) -> Vec<String> {
        locked(&self.0).get(number..).unwrap_or_default().to_vec()
    }

    pub(crate) fn name(&self, number: u32) -> Option<String> {
        locked(&self.0).get(number as usize).cloned()
    }
}

/// The ops of one name in an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedOps {
    pub name: String,
    pub ops: u64,
    /// Ignored errors of these, where they are counted.
    pub retried: u64,
    pub service: Times,
    /// Only in an open loop.
    pub response: Option<Times>,
}

impl NamedOps {
    pub(crate) fn new(name: &str) -> NamedOps {
        let (name, service) = (name.to_owned(), Times::new());
        NamedOps { name, ops: 0, retried: 0, service, response: None }
    }

    #[inline]
    pub(super) fn time(&mut self, service: u64, response: Option<u64>) {
        self.service.record(service);
        if let Some(response) = response {
            self.response.get_or_insert_default().record(response);
        }
    }

    fn merge(&mut self, other: &NamedOps) {
        self.ops += other.ops;
        self.retried += other.retried;
        self.service.merge(&other.service);
        if let Some(response) = &other.response {
            self.response.get_or_insert_default().merge(response);
        }
    }
}

/// Adds the ops of other threads or intervals by their names; hosts may have more names than a step has.
pub(super) fn merge_named(all: &mut Vec<NamedOps>, more: &[NamedOps]) {
    for other in more {
        if let Some(one) = all.iter_mut().find(|one| one.name == other.name) {
            one.merge(other);
        } else if all.len() < NAMES_MAX {
            all.push(other.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_number_each_until_there_are_too_many_or_one_is_none() {
        let names = TransactionNames::default();
        for round in 0..2 {
            for number in 0..NAMES_MAX as u32 {
                let name = format!("new order {number}");
                assert_eq!(names.number(name.as_bytes()), Ok(number), "{round}");
            }
        }
        let full = names.number(b"payment").expect_err("it is full");
        assert!(full.contains("64") && full.contains("payment"), "{full}");
        assert_eq!(names.list_from(62), ["new order 62", "new order 63"]);
        let names = TransactionNames::default();
        let long = "x".repeat(65);
        for wrong in ["", "a\nb", "\u{1b}[2J", "\u{202e}a", &long] {
            assert!(names.number(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
        assert!(names.number(b"\xff").is_err());
        assert_eq!(names.number("é".repeat(64).as_bytes()), Ok(0));
    }
}
