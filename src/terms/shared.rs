//! Values that many summaries share, kept once.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Upper limit on remembered values: a directory holds the runs of few servers.
const KNOWN_MAX: usize = 64;

/// A value that equal ones share; a change makes a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shared<T>(Arc<T>);

impl<T: PartialEq + Clone> Shared<T> {
    /// Shares an equal known value, or adds this one to the known ones.
    pub(crate) fn share(&mut self, known: &mut Vec<Shared<T>>) {
        if let Some(same) = known.iter().rev().find(|other| **other == *self) {
            *self = same.clone();
            return;
        }
        if known.len() == KNOWN_MAX {
            known.remove(0);
        }
        known.push(self.clone());
    }
}

impl<T> Shared<T> {
    pub(crate) fn is_same(&self, other: &Shared<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Replaces a map's names by equal known ones, and adds the others to the known ones.
pub(crate) fn share_names<V>(
    map: &mut BTreeMap<Shared<String>, V>,
    known: &mut BTreeSet<Shared<String>>,
) {
    let share = |(name, value): (Shared<String>, V)| {
        known.insert(name.clone());
        (known.get(&name).expect("it is known").clone(), value)
    };
    *map = std::mem::take(map).into_iter().map(share).collect();
}

impl Borrow<str> for Shared<String> {
    fn borrow(&self) -> &str {
        self
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Shared<T> {
        Shared(Arc::new(value))
    }
}

impl<T: Serialize> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Shared<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Shared<T>, D::Error> {
        T::deserialize(from).map(Shared::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_kept_once_until_one_is_changed() {
        let mut known = Vec::new();
        let mut all = ["a", "a", "b"].map(|text| Shared::from(text.to_owned()));
        for value in &mut all {
            value.share(&mut known);
        }
        let [first, second, other] = &mut all;
        assert!(first.is_same(second) && !first.is_same(other));
        second.push('c');
        assert_eq!((first.as_str(), second.as_str()), ("a", "ac"));
    }

    #[test]
    fn no_more_values_are_remembered_than_there_is_room_for() {
        let mut known = Vec::new();
        (0..3 * KNOWN_MAX).for_each(|value| Shared::from(value).share(&mut known));
        assert_eq!(known.len(), KNOWN_MAX);
    }
}
