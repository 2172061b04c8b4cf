//! A workload's options, and the numbers of statements that may name one.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

pub(crate) type Options = BTreeMap<String, Setting>;

pub(crate) const OPTION_MAX: u64 = 1_000_000_000;

/// An option: `name = 10`, `name = false`, or `name = { default = 10, about = "…" }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Setting {
    /// A switch is 0 or 1.
    pub value: u64,
    pub default: u64,
    pub switch: bool,
    /// For `--help`; may be empty.
    #[serde(skip)]
    pub about: String,
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields, expecting = "a number, a switch, or { default, about }")]
enum Form {
    Plain(Value),
    Told {
        default: Value,
        #[serde(default)]
        about: String,
    },
}

/// Reads options as files declare them: they have no value but their default.
pub(super) fn declared<'de, D: Deserializer<'de>>(from: D) -> Result<Options, D::Error> {
    let declared = BTreeMap::<String, Form>::deserialize(from)?;
    Ok(declared.into_iter().map(|(name, form)| (name, form.into())).collect())
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Number(u64),
    Switch(bool),
}

impl From<Form> for Setting {
    fn from(form: Form) -> Self {
        let (default, about) = match form {
            Form::Plain(default) => (default, String::new()),
            Form::Told { default, about } => (default, about),
        };
        let (default, switch) = match default {
            Value::Number(number) => (number, false),
            Value::Switch(on) => (on.into(), true),
        };
        Setting { value: default, default, switch, about }
    }
}

impl Setting {
    pub(crate) fn display_value(&self) -> String {
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
pub(crate) enum Amount {
    Number(u64),
    Option(String),
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Number(n) => write!(f, "{n}"),
            Amount::Option(name) => f.write_str(name),
        }
    }
}

impl Amount {
    /// Returns the value; checked workloads have the option.
    pub(crate) fn value(&self, options: &Options) -> u64 {
        match self {
            Amount::Number(n) => *n,
            Amount::Option(name) => options[name].value,
        }
    }

    pub(super) fn check(&self, options: &Options) -> Result<(), String> {
        match self {
            Amount::Number(n) => bounded("a number", *n),
            Amount::Option(name) => check_option(name, options),
        }
    }
}

pub(super) fn ensure(holds: bool, otherwise: impl fmt::Display) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.to_string()) }
}

pub(super) fn check_option(name: &str, options: &Options) -> Result<(), String> {
    let names = options.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let there = if names.is_empty() { "none in [options]" } else { &names };
    ensure(options.contains_key(name), format_args!("'{name}' is no option; there are {there}"))
}

/// Refuses options whose names cannot be flags, and values out of bounds.
pub(super) fn check_options(options: &Options) -> Result<(), String> {
    options.iter().try_for_each(|(name, setting)| {
        let letters = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        let fits = name.starts_with(|c: char| c.is_ascii_lowercase()) && name.bytes().all(letters);
        let rule = "names are of a-z, 0-9 and _, a letter first";
        ensure(fits, format_args!("option '{name}': {rule}"))?;
        bounded(&format!("option {name}"), setting.value)
    })
}

pub(super) fn set_options(
    options: &mut Options,
    values: &BTreeMap<String, u64>,
) -> Result<(), String> {
    for (name, value) in values {
        check_option(name, options)?;
        bounded(&format!("option {name}"), *value)?;
        let setting = options.get_mut(name).expect("it is known");
        let fits = !setting.switch || *value <= 1;
        ensure(fits, format_args!("option {name} is a switch: 0 or 1, not {value}"))?;
        setting.value = *value;
    }
    Ok(())
}

fn bounded(what: &str, value: u64) -> Result<(), String> {
    ensure(value <= OPTION_MAX, format_args!("{what}: {value} is more than {OPTION_MAX}"))
}
