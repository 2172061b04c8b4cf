//! Items in the order in which they came, each once.

use std::collections::HashMap;
use std::hash::Hash;

pub(crate) fn entry<T: PartialEq, V: Default>(all: &mut Vec<(T, V)>, item: T) -> &mut V {
    let at = all.iter().position(|(known, _)| *known == item).unwrap_or(all.len());
    if at == all.len() {
        all.push((item, V::default()));
    }
    &mut all[at].1
}

#[derive(Debug, Clone)]
pub(crate) struct Distinct<T>(HashMap<T, usize>);

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        Distinct(HashMap::new())
    }
}

impl<T: Eq + Hash> Distinct<T> {
    pub(crate) fn push(&mut self, item: T) {
        let place = self.0.len();
        self.0.entry(item).or_insert(place);
    }
}

impl<T> IntoIterator for Distinct<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        let mut items: Vec<(T, usize)> = self.0.into_iter().collect();
        items.sort_by_key(|(_, place)| *place);
        items.into_iter().map(|(item, _)| item).collect::<Vec<T>>().into_iter()
    }
}

pub(crate) fn push_new<T: PartialEq>(all: &mut Vec<T>, item: T) {
    if !all.contains(&item) {
        all.push(item);
    }
}
