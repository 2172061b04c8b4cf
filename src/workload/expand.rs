//! A statement's SQL and parameters with its list written out.

use super::options::Options;
use super::{List, Param, Statement};

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expanded {
    /// With `{table}` still in it. A list of so many bytes stands there once.
    pub sql: String,
    /// One for each `?`, referring to each other.
    pub params: Vec<Param>,
}

impl List {
    /// How often it stands there; a list of so many bytes once.
    pub(crate) fn rows(&self, options: &Options) -> usize {
        self.times.as_ref().map_or(1, |times| times.value(options)) as usize
    }
}

impl Statement {
    /// Whether it is sent as text, whatever `--statements` says.
    pub(crate) fn is_text(&self) -> bool {
        self.list.as_ref().is_some_and(|list| list.bytes.is_some())
    }

    /// The SQL in words: what a list holds stands there once.
    pub(crate) fn told(&self, options: &Options) -> String {
        let Some(list) = &self.list else { return self.sql.clone() };
        let count = match (&list.times, &list.bytes) {
            (Some(times), _) => format!(" … {} of them", times.value(options)),
            (None, Some(bytes)) => format!(" … as many as fit into {} bytes", bytes.value(options)),
            (None, None) => String::new(),
        };
        self.sql.replace("{list}", &format!("{}{}{count}", list.each, list.join))
    }

    /// The SQL as it is prepared, and its parameters.
    pub(crate) fn expanded(&self, options: &Options) -> Expanded {
        let Some(list) = &self.list else {
            return Expanded { sql: self.sql.clone(), params: self.params.clone() };
        };
        let times = list.rows(options);
        let sql = self.sql.replace("{list}", &vec![list.each.as_str(); times].join(&list.join));
        Expanded { sql, params: self.with_list(list, times) }
    }

    /// Parameters before the list.
    pub(crate) fn before_list(&self) -> usize {
        let head = self.sql.split("{list}").next().unwrap_or_default();
        head.matches('?').count()
    }

    fn with_list(&self, list: &List, times: usize) -> Vec<Param> {
        let before = self.before_list();
        let each = list.params.len();
        let own = |of: usize| if of > before { of + times * each } else { of };
        let mut params: Vec<Param> =
            self.params.iter().take(before).map(|p| p.clone().moved(own)).collect();
        for time in 0..times {
            let place = |of: usize| of + before + time * each;
            params.extend(list.params.iter().map(|p| p.clone().moved(place)));
        }
        params.extend(self.params.iter().skip(before).map(|p| p.clone().moved(own)));
        params
    }
}
