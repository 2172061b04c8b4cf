//! The workloads that are compiled in.

use serde::Deserialize;

use super::{Workload, bad_toml};
use crate::error::Result;

/// A file of workloads: one, or several as `[[workload]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Several {
    workload: Vec<Workload>,
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../profiles/workloads/", $name)))),*]
    };
}

/// In the order of `loadgen workloads`.
const FILES: [(&str, &str); 11] = files![
    "point-select.toml",
    "update-index.toml",
    "update-non-index.toml",
    "read-only.toml",
    "write-only.toml",
    "read-write.toml",
    "insert.toml",
    "delete.toml",
    "random-points.toml",
    "random-ranges.toml",
    "bulk-insert.toml",
];

/// Of the suite of 2007.
const SUITE: (&str, &str) = ("phptest.toml", include_str!("../../profiles/workloads/phptest.toml"));

/// The built-in workloads, in the order of `loadgen workloads`.
pub fn builtin() -> Vec<Workload> {
    // A test reads them all, so nothing is lost here.
    let (name, text) = SUITE;
    let single = FILES.iter().filter_map(|(name, text)| Workload::parse(text, name).ok());
    let all = single.chain(several(text, name).unwrap_or_default());
    all.map(|workload| Workload { built_in: true, ..workload }).collect()
}

fn several(text: &str, origin: &str) -> Result<Vec<Workload>> {
    let several: Several = toml::from_str(text).map_err(|e| bad_toml(&e, origin))?;
    several.workload.into_iter().map(|workload| workload.checked(origin)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_read() {
        for (name, text) in FILES {
            Workload::parse(text, name).unwrap_or_else(|error| panic!("{}", error.render()));
        }
        let (name, text) = SUITE;
        let suite = several(text, name).unwrap_or_else(|error| panic!("{}", error.render()));
        assert_eq!(builtin().len(), FILES.len() + suite.len());
        assert!(builtin().iter().all(|workload| workload.built_in));
        assert!(suite.iter().all(|workload| !workload.built_in), "a file of somebody's own");
    }
}
