//! Options of a workload: numbers and switches by name, which its statements refer to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Options by name.
pub(crate) type Options = BTreeMap<String, Setting>;

/// The largest value of an option.
pub(crate) const OPTION_MAX: u64 = 1_000_000_000;

/// An option: `name = 10`, `name = false`, or `name = { default = 10, about = "…" }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Form")]
pub struct Setting {
    /// Its value; a switch is 0 or 1.
    pub value: u64,
    /// Its value where nobody sets it.
    pub default: u64,
    /// Whether it is a switch.
    pub switch: bool,
    /// For `--help`; may be empty.
    #[serde(skip_serializing)]
    pub about: String,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number, a switch, or { default, about }")]
enum Form {
    Plain(Value),
    Told(Told),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Number(u64),
    Switch(bool),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    default: Value,
    #[serde(default)]
    about: String,
}

impl From<Form> for Setting {
    fn from(form: Form) -> Self {
        let (value, about) = match form {
            Form::Plain(value) => (value, String::new()),
            Form::Told(told) => (told.default, told.about),
        };
        match value {
            Value::Number(value) => Setting { value, default: value, switch: false, about },
            Value::Switch(on) => {
                let value = on.into();
                Setting { value, default: value, switch: true, about }
            }
        }
    }
}

impl Setting {
    /// The value in words.
    pub(crate) fn shown(&self) -> String {
        match (self.switch, self.value) {
            (true, 0) => "off".to_owned(),
            (true, _) => "on".to_owned(),
            (false, n) => n.to_string(),
        }
    }
}

/// A number, or the name of an option that holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a number or the name of an option")]
pub enum Amount {
    /// The number itself.
    Number(u64),
    /// An option's.
    Option(String),
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Amount::Number(n) => write!(f, "{n}"),
            Amount::Option(name) => f.write_str(name),
        }
    }
}

impl Amount {
    /// Its value; 0 for an option that is not there, which the check of a workload refuses.
    pub(crate) fn value(&self, options: &Options) -> u64 {
        match self {
            Amount::Number(n) => *n,
            Amount::Option(name) => options.get(name).map_or(0, |setting| setting.value),
        }
    }

    pub(super) fn check(&self, options: &Options) -> Result<(), String> {
        match self {
            Amount::Number(n) => bounded("a number", *n),
            Amount::Option(name) => known(name, options),
        }
    }
}

/// Whether an option of this name is there.
pub(super) fn known(name: &str, options: &Options) -> Result<(), String> {
    if options.contains_key(name) {
        return Ok(());
    }
    let names: Vec<&str> = options.keys().map(String::as_str).collect();
    Err(match names.as_slice() {
        [] => format!("'{name}' is no option: there is no [options]"),
        _ => format!("'{name}' is no option; there are {}", names.join(", ")),
    })
}

/// Whether options have names that can be flags, and values within bounds.
pub(super) fn check(options: &Options) -> Result<(), String> {
    for (name, setting) in options {
        let letters = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.bytes().all(letters) {
            return Err(format!("option '{name}': names are of a-z, 0-9 and _, a letter first"));
        }
        bounded(&format!("option {name}"), setting.value)?;
    }
    Ok(())
}

/// Sets options by name; a switch takes 0 and 1.
pub(super) fn set(options: &mut Options, values: &BTreeMap<String, u64>) -> Result<(), String> {
    for (name, value) in values {
        known(name, options)?;
        bounded(&format!("option {name}"), *value)?;
        if let Some(setting) = options.get_mut(name) {
            if setting.switch && *value > 1 {
                return Err(format!("option {name} is a switch: 0 or 1, not {value}"));
            }
            setting.value = *value;
        }
    }
    Ok(())
}

fn bounded(what: &str, value: u64) -> Result<(), String> {
    if value <= OPTION_MAX {
        return Ok(());
    }
    Err(format!("{what}: {value} is more than {OPTION_MAX}"))
}
