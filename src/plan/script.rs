//! A script of sysbench's that is run instead of a workload: its path, its options, and its identity.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::limits;

/// Options and words may hold a password of the script's own: they are in no output.
#[derive(Clone, PartialEq)]
pub struct Script {
    /// The path as given, or the name of a module.
    pub path: String,
    /// The script itself, where it came by standard input.
    pub text: Option<String>,
    pub command: Option<String>,
    pub argv: Vec<String>,
    /// `sysbench.opt`, by names with underscores.
    pub options: Vec<(String, ScriptValue)>,
    /// The templates in which `require` looks, and those after the built-in modules.
    pub package_path: String,
    pub stock_path: String,
    /// The server in messages.
    pub server: String,
    /// The words of the driver that cannot connect to any server.
    pub fault: Option<String>,
    pub random: ScriptRandom,
    pub text_statements: bool,
    /// It runs under loadgen's own flags: standard output is for data, so it prints to standard error.
    pub is_native: bool,
    pub identity: ScriptIdentity,
}

/// What a script's requests tell the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptLine {
    Fatal(String),
    Alert(String),
    /// The script asks for its driver: its reports are those of a database from now on.
    Driver,
}

/// Takes lines on every thread that runs a script.
pub type ScriptLog = Arc<dyn Fn(ScriptLine) + Send + Sync>;

impl Script {
    /// Returns the time that the file and `thread_init` may take, as `--thread-init-timeout` of 1.1 has it.
    pub(crate) fn init_limit(&self) -> Duration {
        let given = self.options.iter().find(|(name, _)| name == "thread_init_timeout");
        match given {
            Some((_, ScriptValue::Number(s))) if *s > 0.0 => Duration::from_secs_f64(*s),
            _ => limits::THREAD_INIT,
        }
    }

    /// Returns the words for a script that takes longer.
    pub(crate) fn init_too_long(&self) -> String {
        let limit = self.init_limit().as_secs();
        format!("Worker threads failed to initialize within {limit} seconds!")
    }

    #[cfg(feature = "lua")]
    pub(crate) fn set_option(&mut self, name: &str, value: ScriptValue) {
        self.options.retain(|(known, _)| known != name);
        self.options.push((name.to_owned(), value));
    }
}

/// The facts by which two scripts are two workloads, though they have one name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScriptIdentity {
    /// Names and SHA-256 of the files that were loaded before the first event.
    pub files: Vec<(String, String)>,
    /// Numbers and switches among the options of its own.
    pub options: BTreeMap<String, f64>,
    /// 16 bits of the hash of the others: they tell texts apart, and no password.
    pub texts: String,
}

impl ScriptIdentity {
    pub fn new(files: Vec<(String, String)>, options: &[(String, ScriptValue)]) -> ScriptIdentity {
        let (mut numbers, mut texts) = (BTreeMap::new(), Vec::new());
        for (name, value) in options {
            let number = match value {
                ScriptValue::Switch(on) => Some(f64::from(u8::from(*on))),
                ScriptValue::Number(number) => Some(*number).filter(|number| number.is_finite()),
                ScriptValue::Text(_) | ScriptValue::List(_) => None,
            };
            match number {
                Some(number) => drop(numbers.insert(name.clone(), number)),
                None => texts.push(format!("{name} {value:?}")),
            }
        }
        texts.sort();
        let mut hash = format!("{:x}", Sha256::digest(texts.join("\n")));
        hash.truncate(if texts.is_empty() { 0 } else { 4 });
        ScriptIdentity { files, options: numbers, texts: hash }
    }
}

#[cfg(test)]
impl Script {
    /// Makes one of a text, without options.
    pub(crate) fn of_text(text: &str) -> Script {
        Script {
            path: "-".to_owned(),
            text: Some(text.to_owned()),
            command: None,
            argv: Vec::new(),
            options: Vec::new(),
            package_path: String::new(),
            stock_path: String::new(),
            server: String::new(),
            fault: None,
            random: ScriptRandom::USUAL,
            text_statements: false,
            is_native: false,
            identity: ScriptIdentity::default(),
        }
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("path", &self.path).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum ScriptValue {
    Switch(bool),
    Number(f64),
    Text(String),
    List(Vec<String>),
}

/// The distributions of `sysbench.rand`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScriptRandom {
    /// The one of `sysbench.rand.default`.
    pub rand_type: RandType,
    pub iterations: u32,
    pub percent: u32,
    pub within: u32,
    pub pareto_h: f64,
    pub zipfian_exp: f64,
}

#[cfg(test)]
impl ScriptRandom {
    /// The options of sysbench that nobody has given.
    pub(crate) const USUAL: ScriptRandom = ScriptRandom {
        rand_type: RandType::Special,
        iterations: 12,
        percent: 1,
        within: 75,
        pareto_h: 0.2,
        zipfian_exp: 0.8,
    };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RandType {
    Uniform,
    Gaussian,
    Special,
    Pareto,
    Zipfian,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_tell_scripts_apart_and_hold_no_text() {
        let of = |word: &str, rows: f64| {
            let options = [
                ("word".to_owned(), ScriptValue::Text(word.to_owned())),
                ("rows".to_owned(), ScriptValue::Number(rows)),
                ("on".to_owned(), ScriptValue::Switch(true)),
                ("none".to_owned(), ScriptValue::Number(f64::NAN)),
            ];
            ScriptIdentity::new(Vec::new(), &options)
        };
        let usual = of("hunter2", 7.0);
        assert_eq!(usual.options, [("on".to_owned(), 1.0), ("rows".to_owned(), 7.0)].into());
        assert_eq!(usual.texts.len(), 4);
        assert_eq!(usual, of("hunter2", 7.0));
        assert_ne!(usual, of("hunter2", 8.0));
        assert_ne!(usual, of("other", 7.0));
        assert_eq!(ScriptIdentity::new(Vec::new(), &[]), ScriptIdentity::default());
    }
}
