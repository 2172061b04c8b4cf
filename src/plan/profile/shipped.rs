use super::Profile;
use crate::error::Error;

pub(crate) struct Shipped {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),+) => {
        &[$(Shipped {
            name: $name,
            text: include_str!(concat!("../../../profiles/", $name, ".toml")),
        }),+]
    };
}

pub(crate) const SHIPPED: &[Shipped] = shipped![
    "smoke",
    "sysbench-oltp",
    "io-bound-point-select",
    "read-iops",
    "update-one-client",
    "innodb-read-suite",
    "version-cost",
    "callaghan-sysbench",
    "insert-benchmark",
    "tpcc"
];

/// Scripts that profiles name, with their texts.
const SCRIPTS: &[(&str, &str)] = &[
    ("insert-benchmark.lua", include_str!("../../../profiles/insert-benchmark.lua")),
    ("tpcc.lua", include_str!("../../../profiles/tpcc.lua")),
];

/// Returns the text of a script that the program carries.
pub(crate) fn script(name: &str) -> Option<&'static str> {
    SCRIPTS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

impl Shipped {
    /// Finds a profile by name, with or without the ending of its file.
    pub(crate) fn find(name: &str) -> Option<&'static Shipped> {
        let name = name.strip_suffix(".toml").unwrap_or(name);
        SHIPPED.iter().find(|shipped| shipped.name == name)
    }

    pub(crate) fn names() -> String {
        let names: Vec<&str> = SHIPPED.iter().map(|shipped| shipped.name).collect();
        names.join(", ")
    }

    pub(crate) fn profile(&self) -> Result<Profile, Error> {
        Profile::parse(self.text, self.name)
    }

    /// Returns the comment at its beginning: what it repeats, what it needs, and how to run it.
    pub(crate) fn head(&self) -> String {
        let comment = self.text.lines().map_while(|line| line.strip_prefix('#'));
        comment.map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned() + "\n").collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_has_every_profile_of_the_directory_by_its_name() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles");
        let entries = std::fs::read_dir(dir).expect("profiles/");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let names = names.filter_map(|name| Some(name.to_str()?.strip_suffix(".toml")?.to_owned()));
        let mut names: Vec<String> = names.collect();
        names.sort();
        let mut known: Vec<&str> = SHIPPED.iter().map(|shipped| shipped.name).collect();
        known.sort_unstable();
        assert_eq!(names, known);
        for shipped in SHIPPED {
            let profile = shipped.profile().unwrap_or_else(|error| panic!("{}", error.render()));
            assert_eq!(profile.name, shipped.name);
            assert!(!profile.about.is_empty() && !shipped.head().is_empty(), "{}", shipped.name);
        }
    }
}
