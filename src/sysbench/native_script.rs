//! A script under loadgen's own flags: which one it is, its options, and its commands.

use std::ffi::OsString;
use std::sync::{Arc, Mutex};

use super::arguments::{Parsed, parse, script_of, test_of};
use super::options::{self, Becomes};
use super::output::Log;
use super::script::{self, SEED, read_script, script_options};
use super::scripts::Places;
use super::settings::{ScriptCall, Settings};
use crate::error::{Error, Result};
use crate::lua::{Entry, Reply, Turn, Vm, say_line};
use crate::mysql::ConnectOptions;
use crate::plan::profile::shipped;
use crate::plan::script::{ScriptPart, workload_of};
use crate::plan::{AfterError, ReadScript, Script, ScriptIdentity, StatementMode};
use crate::progress::say;
use crate::stop::Stop;
use crate::workload::Workload;

/// Flags of loadgen for options of sysbench's whose table of options names another flag, or none.
const FLAGS: [(&str, &str); 4] = [
    ("report-interval", "interval"),
    ("report-checkpoints", "interval"),
    ("histogram", "out"),
    ("percentile", "out"),
];

/// Returns the name of the flag of loadgen that stands for an option of sysbench's.
fn flag_of(entry: &options::Entry) -> Option<&'static str> {
    let own = FLAGS.iter().find(|(key, _)| *key == entry.key()).map(|(_, flag)| *flag);
    own.or(match entry.becomes {
        Becomes::Flags(words) => words.split(' ').next(),
        _ => None,
    })
}

/// Returns whether scripts make tables, draw numbers or send statements by an option of sysbench's.
fn decides(entry: &options::Entry) -> bool {
    let key = entry.key();
    let starts = ["rand-", "db-", "mysql-ignore-errors"];
    key != "rand-seed" && (entry.is_of_test() || starts.iter().any(|start| key.starts_with(start)))
}

pub(crate) struct NativeScript {
    settings: Settings,
    call: ScriptCall,
}

/// The flags of loadgen that decide on a script.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub threads: u32,
    pub database: Option<&'a str>,
    /// Statements are sent as text.
    pub text: bool,
    /// An operation begins again after any error.
    pub goes_on: bool,
    /// Its options stand in a profile or a group beside, where keys stand for loadgen's flags.
    pub by_keys: bool,
}

/// The stream that a command of a script prints to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Stdout,
    Stderr,
}

impl NativeScript {
    /// Takes the script of a profile, whose modules may be beside it.
    pub(crate) fn of_profile(script: &ScriptPart, asked: Asked<'_>) -> Result<NativeScript> {
        let file = &script.file;
        let mut read = NativeScript::parse(&file.path, file.text, &script.options.words(), asked)?;
        if let Some((dir, _)) = file.path.rsplit_once('/') {
            read.call.package_path.insert_str(0, &format!("{dir}/?.lua;"));
        }
        Ok(read)
    }

    /// `text` is that of a script which the program carries. Without it a file wins over such a script.
    pub(crate) fn parse(
        file: &str,
        text: Option<&'static str>,
        options: &[String],
        asked: Asked<'_>,
    ) -> Result<NativeScript> {
        for option in options {
            let Some(word) = option.strip_prefix("--") else {
                return Err(Error::usage(format!("{file}: '{option}' is no option of a script"))
                    .hint("options look like --tables=8; --command NAME runs a command"));
            };
            let name = word.split('=').next().unwrap_or_default().replace('_', "-");
            let known = options::find(&name).filter(|entry| !decides(entry));
            if let Some(flag) = known.and_then(flag_of) {
                let (error, hint) = if asked.by_keys {
                    let hint = format!(
                        "{flag} is a key of the run, of a group beside or of the server, or else loadgen's --{flag}"
                    );
                    (format!("{file}: {name} is no option of a script"), hint)
                } else {
                    (
                        format!("-- --{name}: loadgen has a flag for that"),
                        format!("--{flag}, before --"),
                    )
                };
                return Err(Error::usage(error).hint(hint));
            }
            if known.is_some() {
                return Err(Error::usage(format!("-- --{name} does not decide on a script"))
                    .hint("loadgen lua --help lists loadgen's own flags"));
            }
        }
        let mut words = vec![format!("--threads={}", asked.threads)];
        words.extend(asked.database.map(|name| format!("--mysql-db={name}")));
        words.extend(options.iter().cloned());
        words.extend(asked.text.then(|| "--db-ps-mode=disable".to_owned()));
        words.extend(asked.goes_on.then(|| "--mysql-ignore-errors=all".to_owned()));
        let word = if text.is_some() { "-" } else { file };
        words.extend([word.to_owned(), "run".to_owned()]);
        let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        // A stock script is run as the script that it is.
        let env = |name: &str| match name {
            "LOADGEN_LUA" => Some("always".into()),
            "LOADGEN_OUT" => None,
            _ => std::env::var_os(name),
        };
        let none = || {
            Error::usage(format!("there is no script '{file}'"))
                .hint("name a file, or a module of the working directory or LUA_PATH")
        };
        let found = || Places::new(file, &env).find_script(file, test_of(file).map(script_of));
        if text.is_none() && found() == Ok(None) {
            let name = format!("{}.lua", file.strip_suffix(".lua").unwrap_or(file));
            let text = Some(shipped::script(&name).ok_or_else(none)?);
            say(&format!("running the script {name} inside the program"));
            return NativeScript::parse(&name, text, options, asked);
        }
        match parse(&words, &env) {
            Ok(Parsed::Settings(mut settings)) => {
                let mut call = settings.script.take().ok_or_else(none)?;
                call.argv.insert(0, "loadgen".to_owned());
                if text.is_some() {
                    (call.path, call.text) = (file.to_owned(), text);
                }
                Ok(NativeScript { settings: *settings, call })
            }
            Ok(Parsed::HandOver { .. }) => Err(none()),
            Err(opening) => {
                let text = opening.early + &opening.stderr + &opening.stdout;
                let words = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
                Err(Error::usage(format!("{file}: {words}")))
            }
        }
    }

    pub(crate) fn workload(&self) -> Workload {
        workload_of(&self.call.path)
    }

    /// `--rand-type` and how statements are sent are conditions.
    fn with(&self, script: Script) -> ReadScript {
        let text = !self.settings.prepared;
        ReadScript {
            script: Arc::new(script),
            after_error: AfterError::Restart(self.settings.ignored.clone()),
            distribution: self.settings.distribution,
            statements: if text { StatementMode::Text } else { StatementMode::Prepared },
        }
    }

    fn load(&self) -> Result<Script> {
        Ok(Script { is_native: true, ..read_script(&self.settings, &self.call)? })
    }

    /// Returns the script without its own options: nothing of it is run.
    pub(crate) fn unread(&self) -> Result<ReadScript> {
        self.load().map(|script| self.with(script))
    }

    /// Runs the file once, without a server, and reads the options that it declares.
    pub(crate) fn read(&self, is_paced: bool) -> Result<ReadScript> {
        let path = &self.call.path;
        let mut script = self.load()?;
        let vm = Vm::new(&Arc::new(script.clone()), SEED, Box::new(say_line))?;
        let mut state = vm.state(0)?;
        state.begin(Entry::Chunk)?;
        match state.resume(Reply::Nothing) {
            Turn::Done(_) => {}
            Turn::Failed(words) => return Err(Error::usage(words)),
            Turn::Request(_) => {
                return Err(Error::usage(format!(
                    "{path} asks a server outside its functions: its options are read before"
                ))
                .hint(format!("loadgen sysbench {path} runs it")));
            }
        }
        let declared = state.declared().map_err(Error::usage)?;
        let options = script_options(declared.as_deref(), &self.call, &state);
        let hint = format!("loadgen lua {path} --command help lists the options");
        let own = options.map_err(|words| Error::usage(words).hint(hint))?;
        script.identity = ScriptIdentity::new(state.files(), &own);
        script.files = state.texts();
        script.options.extend(own);
        if !state.has("event")? {
            return Err(Error::usage(format!("{path} has no function event()"))
                .hint("it is called for each operation; --command NAME runs a command"));
        }
        if is_paced && state.has("thread_run")? {
            return Err(Error::usage(format!(
                "{path} has a loop of its own, thread_run(): no rate and no --slo can pace it"
            ))
            .hint("leave them out, or remove thread_run() from the script"));
        }
        Ok(self.with(script))
    }

    /// Runs a command of the script on a server.
    pub(crate) async fn run_command(
        self,
        name: &str,
        connect: ConnectOptions,
        output: Output,
        stop: &Stop,
    ) -> Result<()> {
        let to_stderr = output == Output::Stderr;
        let call = ScriptCall { command: Some(name.to_owned()), to_stderr, ..self.call };
        let server = connect.address.to_string();
        let settings = Settings { connect, server, ..self.settings };
        let out: Box<dyn std::io::Write + Send> =
            if to_stderr { Box::new(std::io::stderr()) } else { Box::new(std::io::stdout()) };
        let log = Log::new(out, settings.verbosity);
        let log = Arc::new(Mutex::new(log));
        let status = script::run(&settings, &call, &log, stop).await?;
        if status == 0 {
            return Ok(());
        }
        Err(Error::failed(format!("{}: the command '{name}' failed", call.path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ScriptValue;
    use crate::plan::script::{ScriptFile, ScriptOptions};

    #[test]
    fn script_is_read_from_its_text_when_the_program_carries_it() {
        let text = "sysbench.cmdline.options = { n = { 'A number', 1 } } function event() end";
        let (path, sha256) = ("carried.lua".to_owned(), String::new());
        let part = ScriptPart {
            file: ScriptFile { path, text: Some(text), sha256 },
            options: ScriptOptions(vec![("n".to_owned(), ScriptValue::Number(3.0))]),
            identity: ScriptIdentity::default(),
            data: None,
        };
        let asked =
            Asked { threads: 1, database: None, text: false, goes_on: false, by_keys: true };
        let script = NativeScript::of_profile(&part, asked).expect("it is found");
        assert_eq!(script.workload().name, "carried.lua");
        let identity = &script.read(false).expect("it is sound").script.identity;
        assert_eq!(identity.options, [("n".to_owned(), 3.0)].into());
        assert_eq!(identity.files[0].0, "carried.lua");
        // Also by its name alone, where no file and no module has it.
        for name in ["tpcc", "tpcc.lua"] {
            let script = NativeScript::parse(name, None, &[], asked).expect("it is carried");
            assert_eq!(script.workload().name, "tpcc.lua");
        }
        assert!(NativeScript::parse("x/tpcc.lua", None, &[], asked).is_err());
    }

    #[test]
    fn flag_of_loadgen_is_named_when_it_stands_for_an_option() {
        let asked =
            Asked { threads: 1, database: None, text: false, goes_on: false, by_keys: false };
        for (option, hint) in [
            ("--mysql_host=a", "--host, before --"),
            ("--rand-seed=1", "--seed, before --"),
            ("--report-interval=1", "--interval, before --"),
            ("--percentile=99", "--out, before --"),
            ("--max-time=5", "--time, before --"),
            ("--mysql-ssl-key=k", "--ssl-key, before --"),
            ("--verbosity=5", "loadgen lua --help lists"),
        ] {
            let read = NativeScript::parse("tpcc", None, &[option.to_owned()], asked);
            let refused = read.err().expect("it is refused").render();
            assert!(refused.contains(hint), "{option}: {refused}");
        }
        let taken = ["--rand-type=uniform", "--db-ps-mode=disable", "--mysql-ignore-errors=all"];
        assert!(NativeScript::parse("tpcc", None, &taken.map(str::to_owned), asked).is_ok());
    }
}
