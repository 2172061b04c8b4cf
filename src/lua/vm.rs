//! A VM of a thread, and the states of its clients: what they request, and how they go on.

use std::cell::RefCell;
use std::ffi::c_void;
use std::io::Write as _;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Once};
use std::time::Duration;

use mlua::{
    Function, IntoLua, LightUserData, Lua, LuaOptions, LuaString, MultiValue, StdLib, Table,
    Thread, Value,
};
use sha2::{Digest, Sha256};

use super::random;
use crate::error::{Error, Result};
use crate::plan::{Script, ScriptValue};
use crate::progress::say;
use crate::workload::{name_part, seed_of};

const PRELUDE: &str = include_str!("prelude.lua");
/// Modules of our own that scripts require by these names.
const MODULES: [(&str, &str); 1] = [("oltp_common", include_str!("modules/oltp_common.lua"))];
/// The most that a VM may hold, bytes: LuaJIT ends a script that needs more with an error.
const MEMORY_MAX: usize = 2 << 30;

const OUT_OF_MEMORY: &str = "not enough memory";

/// The values that mark a request, and NULL among the values of a statement.
static MARKER: u8 = 0;
static NULL: u8 = 0;

fn address(of: &'static u8) -> LightUserData {
    LightUserData(std::ptr::from_ref(of).cast_mut().cast::<c_void>())
}

/// What a script asks of whoever runs it. Connections and statements have the numbers that replies gave.
#[derive(Debug)]
pub(crate) enum Request {
    Connect,
    Query(usize, LuaString),
    Prepare(usize, LuaString),
    /// With the kinds of the values: `i`, `d` or `s` each.
    Execute(usize, usize, LuaString, Vec<Value>),
    Close(usize, usize),
    Fetch(usize),
    Disconnect(usize),
    Reconnect(usize),
    Sleep(Duration),
    /// The next event, if there is one; true where the script ended its thread of its own will.
    Next(bool),
    /// The event begins again.
    Restart,
    /// One more of a counter of sysbench's.
    Count(u32),
    /// Whether the last answer has further results, and the next of them.
    HasMore(usize),
    Further(usize),
}

/// One row: NULLs, and cells as text.
pub(crate) type RowCells = Vec<Option<Vec<u8>>>;

#[derive(Debug)]
pub(crate) enum Reply {
    Nothing,
    Switch(bool),
    Number(usize),
    Answer {
        columns: u64,
        rows: u64,
    },
    /// With whether the error is one of those that are to be ignored.
    Failed {
        code: u16,
        state: String,
        text: String,
        listed: bool,
    },
    Row(RowCells),
    NoRow(String),
}

/// How far a state has come.
#[derive(Debug)]
pub(crate) enum Turn {
    Request(Request),
    /// False where a command returned false.
    Done(bool),
    /// With sysbench's words, and where in the script.
    Failed(String),
}

/// What a state runs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Entry<'a> {
    /// The file, then `sysbench.opt`.
    Chunk,
    /// The file and the functions of a thread.
    Thread(u32),
    /// A global function.
    Call(&'a str),
    /// A command of the script's own.
    Command(&'a str),
}

/// An option that a script declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declared {
    pub name: String,
    pub default: Option<String>,
    /// `sysbench.cmdline.ARG_*`.
    pub kind: u8,
}

/// Takes the lines of failures that a script's requests have.
pub(crate) type FatalLines = Box<dyn Fn(String)>;

/// The VM of a thread; a clone is the same one.
#[derive(Clone)]
pub(crate) struct Vm {
    lua: Lua,
    script: Arc<Script>,
    entries: Table,
    settings: Table,
    start: Function,
    files: LoadedFiles,
    seed: u64,
}

/// Names and SHA-256 of the files that a VM has compiled.
type LoadedFiles = Rc<RefCell<Vec<(String, String)>>>;

/// The environment of a client, and its coroutine.
pub(crate) struct State {
    vm: Vm,
    env: Table,
    thread: Option<Thread>,
    stream: usize,
}

fn broken(error: &mlua::Error) -> Error {
    Error::failed(format!("LuaJIT: {error}"))
}

impl Vm {
    pub(crate) fn new(script: &Arc<Script>, seed: u64, fatal: FatalLines) -> Result<Vm> {
        Vm::make(script, seed, fatal).map_err(|error| broken(&error))
    }

    fn make(script: &Arc<Script>, seed: u64, fatal: FatalLines) -> mlua::Result<Vm> {
        #[expect(
            unsafe_code,
            reason = "scripts are trusted as programs are: they have ffi and debug"
        )]
        let lua = unsafe { Lua::unsafe_new_with(StdLib::ALL, LuaOptions::new()) };
        if lua.set_memory_limit(MEMORY_MAX).is_err() {
            // Once, not in each thread.
            static SAID: Once = Once::new();
            SAID.call_once(|| {
                say("warning: this LuaJIT takes no limit: a script may use all memory");
            });
        }
        let settings = lua.create_table()?;
        set_settings(&lua, &settings, script)?;
        let prelude = lua.load(PRELUDE).set_name("=sysbench").into_function()?;
        let files = LoadedFiles::default();
        let host = host(&lua, fatal, Rc::clone(&files))?;
        let entries: Table = prelude.call((host, settings.clone()))?;
        let start = entries.get("start")?;
        Ok(Vm { lua, script: Arc::clone(script), entries, settings, start, files, seed })
    }

    /// Gives `sysbench.opt` to the states whose chunk has not run yet.
    pub(crate) fn set_options(&self, script: &Script) -> Result<()> {
        set_settings(&self.lua, &self.settings, script).map_err(|error| broken(&error))
    }

    /// Makes the state of a thread of sysbench's (from 0).
    pub(crate) fn state(&self, tid: u32) -> Result<State> {
        let seed = seed_of(&[self.seed, name_part("script"), u64::from(tid)]);
        let stream = random::begin(self.script.random, seed);
        let env = self.entry("new_state").and_then(|new_state| new_state.call(tid));
        let env = env.map_err(|error| broken(&error))?;
        Ok(State { vm: self.clone(), env, thread: None, stream })
    }

    fn entry(&self, name: &str) -> mlua::Result<Function> {
        self.entries.get(name)
    }
}

impl State {
    /// Begins to run something; [`State::resume`] goes on.
    pub(crate) fn begin(&mut self, entry: Entry<'_>) -> Result<()> {
        let (name, argument) = match entry {
            Entry::Chunk => ("chunk", Value::Nil),
            Entry::Thread(tid) => ("thread", Value::Number(f64::from(tid))),
            Entry::Call(name) => ("call", self.text(name)?),
            Entry::Command(name) => ("command", self.text(name)?),
        };
        let started = self.vm.start.call((name, &self.env, argument));
        self.thread = Some(started.map_err(|error| broken(&error))?);
        Ok(())
    }

    fn text(&self, text: &str) -> Result<Value> {
        text.into_lua(&self.vm.lua).map_err(|error| broken(&error))
    }

    /// Goes on with a reply until the next request, or the end.
    pub(crate) fn resume(&mut self, reply: Reply) -> Turn {
        random::select(self.stream);
        let Some(thread) = &self.thread else { return Turn::Failed("no script runs".to_owned()) };
        let turn = self.reply(reply).and_then(|values| thread.resume::<MultiValue>(values));
        let values = match turn {
            Ok(values) => values,
            Err(error) => return Turn::Failed(explain(error.to_string())),
        };
        if thread.is_resumable() {
            return read_request(values).map_or_else(
                || Turn::Failed("coroutine.yield outside a coroutine of the script".to_owned()),
                Turn::Request,
            );
        }
        self.thread = None;
        let mut values = values.into_iter();
        match (values.next(), values.next()) {
            (Some(Value::Boolean(true)), value) => {
                Turn::Done(!matches!(value, Some(Value::Boolean(false))))
            }
            (_, Some(Value::String(message))) => Turn::Failed(explain(message.to_string_lossy())),
            _ => Turn::Failed("the script failed".to_owned()),
        }
    }

    fn reply(&self, reply: Reply) -> mlua::Result<MultiValue> {
        let lua = &self.vm.lua;
        let mut values = MultiValue::new();
        match reply {
            Reply::Nothing => {}
            Reply::Switch(on) => values.push_back(Value::Boolean(on)),
            Reply::Number(number) => values.push_back(Value::Number(number as f64)),
            Reply::Answer { columns, rows } => {
                values.push_back(Value::Number(columns as f64));
                values.push_back(Value::Number(rows as f64));
            }
            Reply::Failed { code, state, text, listed } => {
                values.push_back(Value::Nil);
                values.push_back(Value::Integer(code.into()));
                values.push_back(state.into_lua(lua)?);
                values.push_back(text.into_lua(lua)?);
                values.push_back(Value::Boolean(listed));
            }
            Reply::Row(cells) => {
                let row = lua.create_table_with_capacity(cells.len(), 0)?;
                for (at, cell) in (1..).zip(cells) {
                    if let Some(cell) = cell {
                        row.raw_seti(at, lua.create_string(cell)?)?;
                    }
                }
                values.push_back(Value::Boolean(true));
                values.push_back(Value::Table(row));
            }
            Reply::NoRow(why) => {
                values.push_back(if why.is_empty() { Value::Boolean(false) } else { Value::Nil });
                values.push_back(why.into_lua(lua)?);
            }
        }
        Ok(values)
    }

    fn ask<T: mlua::FromLuaMulti>(&self, entry: &str, argument: Option<&str>) -> mlua::Result<T> {
        random::select(self.stream);
        self.vm.entry(entry)?.call((&self.env, argument))
    }

    /// Lists the names of the files that the VM has loaded so far, without directories, and their SHA-256.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let mut files = self.vm.files.borrow().clone();
        files.sort();
        files
    }

    /// Returns whether the script has a global function of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.ask("has", Some(name)).unwrap_or(false)
    }

    pub(crate) fn has_hook(&self, name: &str) -> bool {
        self.ask("has_hook", Some(name)).unwrap_or(false)
    }

    /// Returns whether a command of the script's own runs in every thread; None if it has none of the name.
    pub(crate) fn own_command(&self, name: &str) -> Option<bool> {
        let kind: Option<String> = self.ask("kind_of", Some(name)).ok()?;
        kind.map(|kind| kind == "parallel")
    }

    /// Lists the options that the script declares, None where it knows of none; its own words if they are malformed.
    pub(crate) fn declared(&self) -> std::result::Result<Option<Vec<Declared>>, String> {
        let list: Option<Vec<Table>> =
            self.ask("declared", None).map_err(|error| first_line(&error.to_string()))?;
        let Some(list) = list else { return Ok(None) };
        let read = |option: Table| -> mlua::Result<Declared> {
            Ok(Declared { name: option.get(1)?, default: option.get(3)?, kind: option.get(4)? })
        };
        let read = |option| read(option).map_err(|error| error.to_string());
        list.into_iter().map(read).collect::<std::result::Result<_, _>>().map(Some)
    }

    pub(crate) fn validates(&self, name: &str, value: &str) -> bool {
        let validate = self.vm.entry("validate");
        validate.and_then(|validate| validate.call((&self.env, name, value))).unwrap_or(false)
    }

    /// Ends the reports that this state has written.
    pub(crate) fn close(&self) {
        let _: mlua::Result<()> = self.ask("close", None);
    }

    pub(crate) fn print_options(&self) {
        // An option that cannot be printed was refused before.
        let _: mlua::Result<()> = self.ask("print_options", None);
    }

    /// Sets `sysbench.opt` of this state anew.
    pub(crate) fn take_options(&self) {
        let _: mlua::Result<()> = self.ask("set_options", None);
    }

    /// Calls a hook with a table of numbers; a failure has the script's words.
    pub(crate) fn hook(&self, name: &str, stat: &[(&str, f64)]) -> std::result::Result<(), String> {
        let call = || -> mlua::Result<(bool, Option<String>)> {
            random::select(self.stream);
            let table = self.vm.lua.create_table()?;
            for (key, value) in stat {
                table.raw_set(*key, *value)?;
            }
            self.vm.entry("hook")?.call((&self.env, name, table))
        };
        match call() {
            Ok((true, _)) => Ok(()),
            Ok((false, why)) => Err(why.unwrap_or_default()),
            Err(error) => Err(first_line(&error.to_string())),
        }
    }
}

/// Adds to LuaJIT's words for a lack of memory how much there is.
fn explain(words: String) -> String {
    if words.ends_with(OUT_OF_MEMORY) {
        let max = MEMORY_MAX >> 20;
        return format!(
            "{words}: the clients of an engine thread have {max} MiB for their scripts"
        );
    }
    words
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_start_matches("runtime error: ").to_owned()
}

/// Reads a request from what a coroutine yields; None if it is none of the prelude's.
fn read_request(values: MultiValue) -> Option<Request> {
    let mut values = values.into_iter();
    let Some(Value::LightUserData(marker)) = values.next() else { return None };
    if marker.0 != address(&MARKER).0 {
        return None;
    }
    let op = number(values.next())?;
    let mut index = || number(values.next()).map(|n| n as usize);
    Some(match op as u32 {
        1 => Request::Connect,
        2 => Request::Query(index()?, string(values.next())?),
        3 => Request::Prepare(index()?, string(values.next())?),
        4 => Request::Execute(index()?, index()?, string(values.next())?, values.collect()),
        5 => Request::Close(index()?, index()?),
        6 => Request::Fetch(index()?),
        7 => Request::Disconnect(index()?),
        8 => Request::Reconnect(index()?),
        9 => {
            let seconds = number(values.next())?.clamp(0.0, 1e9);
            Request::Sleep(Duration::from_secs_f64(if seconds.is_nan() { 0.0 } else { seconds }))
        }
        10 => Request::Next(matches!(values.next(), Some(Value::Boolean(true)))),
        11 => Request::Restart,
        12 => Request::Count(index()? as u32),
        13 => Request::HasMore(index()?),
        14 => Request::Further(index()?),
        _ => return None,
    })
}

fn number(value: Option<Value>) -> Option<f64> {
    match value? {
        Value::Integer(number) => Some(number as f64),
        Value::Number(number) => Some(number),
        _ => None,
    }
}

fn string(value: Option<Value>) -> Option<LuaString> {
    match value? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Returns whether a value of a statement is NULL.
pub(crate) fn is_null(value: &Value) -> bool {
    matches!(value, Value::LightUserData(null) if null.0 == address(&NULL).0)
}

/// Makes the functions that the prelude gets.
fn host(lua: &Lua, fatal: FatalLines, files: LoadedFiles) -> mlua::Result<Table> {
    let host = lua.create_table()?;
    host.set("marker", address(&MARKER))?;
    host.set("null", address(&NULL))?;
    let functions = lua.create_table()?;
    for (name, function) in random::functions() {
        functions.set(name, LightUserData(function))?;
    }
    host.set("functions", functions)?;
    host.set("modules", lua.create_table_from(MODULES)?)?;
    host.set("write", lua.create_function(|_, text: LuaString| write(&text.as_bytes()))?)?;
    let fatal = move |_: &Lua, text: LuaString| {
        fatal(text.to_string_lossy());
        Ok(())
    };
    host.set("fatal", lua.create_function(fatal)?)?;
    host.set("exists", lua.create_function(|_, path: String| Ok(Path::new(&path).is_file()))?)?;
    let compile = move |lua: &Lua, (path, text)| Ok(compile(lua, &files, path, text));
    host.set("compile", lua.create_function(compile)?)?;
    Ok(host)
}

/// Writes in order with the lines of the log; the script fails where nobody reads it.
fn write(bytes: &[u8]) -> mlua::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(mlua::Error::external)
}

/// Compiles a file, or the text given, into a function that makes its chunk; else returns why not. Lines keep
/// their numbers.
fn compile(
    lua: &Lua,
    files: &LoadedFiles,
    path: String,
    text: Option<LuaString>,
) -> (Option<Function>, Option<String>) {
    let bytes = match text {
        Some(text) => text.as_bytes().to_vec(),
        None => match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => return (None, Some(format!("cannot open {path}: {error}"))),
        },
    };
    let name = path.rsplit('/').next().unwrap_or(&path);
    files.borrow_mut().push((name.to_owned(), format!("{:x}", Sha256::digest(&bytes))));
    // The first line may name the program that runs the file.
    let skipped = if bytes.first() == Some(&b'#') {
        bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len())
    } else {
        0
    };
    let code = [b"return function(...) ", &bytes[skipped..], b"\nend"].concat();
    let name = if path.starts_with('=') { path } else { format!("@{path}") };
    match lua.load(code).set_name(name).into_function() {
        Ok(function) => (Some(function), None),
        Err(mlua::Error::SyntaxError { message, .. }) => (None, Some(message)),
        Err(error) => (None, Some(error.to_string())),
    }
}

fn set_settings(lua: &Lua, settings: &Table, script: &Script) -> mlua::Result<()> {
    settings.set("path", &*script.path)?;
    settings.set("text", script.text.as_deref())?;
    settings.set("command", script.command.as_deref())?;
    settings.set("argv", script.argv.clone())?;
    settings.set("package_path", &*script.package_path)?;
    settings.set("stock_path", &*script.stock_path)?;
    settings.set("server", &*script.server)?;
    let options = lua.create_table()?;
    for (name, value) in &script.options {
        match value {
            ScriptValue::Switch(on) => options.set(&**name, *on)?,
            ScriptValue::Number(number) => options.set(&**name, *number)?,
            ScriptValue::Text(text) => options.set(&**name, &**text)?,
            ScriptValue::List(items) => options.set(&**name, items.clone())?,
        }
    }
    settings.set("opt", options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(vm: &Vm) -> Turn {
        let mut state = vm.state(0).expect("a state");
        state.begin(Entry::Chunk).expect("a coroutine");
        state.resume(Reply::Nothing)
    }

    #[test]
    fn script_fails_with_words_when_it_needs_more_memory_than_there_is() {
        for text in [
            "local all = {} while true do all[#all + 1] = ('x'):rep(1000) .. #all end",
            "local text = 'x' while true do text = text .. text end",
            "local function deeper(n) return { n, deeper(n + 1) } end deeper(1)",
            "local all = {} while true do all[#all + 1] = coroutine.create(function() end) end",
            "local all = {} while true do all[#all + 1] = sysbench.rand.string('@@@@') .. #all end",
        ] {
            let vm = Vm::new(&Arc::new(Script::of_text(text)), 1, Box::new(drop)).expect("a VM");
            vm.lua.set_memory_limit(16 << 20).expect("it takes a limit");
            let turn = run(&vm);
            let Turn::Failed(words) = turn else { panic!("{text}: {turn:?}") };
            assert!(words.contains(OUT_OF_MEMORY) || words.contains("stack overflow"), "{words}");
            // The others go on.
            let next = Vm::new(&Arc::new(Script::of_text("")), 1, Box::new(drop)).expect("a VM");
            assert!(matches!(run(&next), Turn::Done(true)));
        }
    }
}
