//! A VM of a thread, and the states of its clients: what they request, and how they go on.

use std::ffi::c_void;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mlua::{
    Function, IntoLua, LightUserData, Lua, LuaOptions, LuaString, MultiValue, StdLib, Table,
    Thread, Value,
};

use super::random;
use crate::error::{Error, Result};
use crate::plan::{Script, ScriptValue};
use crate::workload::{name_part, seed_of};

const PRELUDE: &str = include_str!("prelude.lua");
/// Modules of our own that scripts require by these names.
const MODULES: [(&str, &str); 1] = [("oltp_common", include_str!("modules/oltp_common.lua"))];
/// The most that a VM may hold, bytes: LuaJIT ends a script that needs more with an error.
const MEMORY_MAX: usize = 2 << 30;

/// The values that mark a request, and NULL among the values of a statement.
static MARKER: u8 = 0;
static NULL: u8 = 0;

fn address(mark: &'static u8) -> LightUserData {
    LightUserData(std::ptr::from_ref(mark).cast_mut().cast::<c_void>())
}

/// Requests of a script to whoever runs it. Connections and statements have the numbers that replies gave.
#[derive(Debug)]
pub(crate) enum Request {
    Connect,
    Query(usize, LuaString),
    Prepare(usize, LuaString),
    /// The kinds of the values are `i`, `d` or `s` each.
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
    /// `listed` if the error is one of those that are to be ignored.
    Failed {
        code: u16,
        state: String,
        text: String,
        listed: bool,
    },
    Row(RowCells),
    NoRow(String),
}

/// The point that a state has come to.
#[derive(Debug)]
pub(crate) enum Turn {
    Request(Request),
    /// False where a command returned false.
    Done(bool),
    /// sysbench's words, and the place in the script.
    Failed(String),
}

/// A part of a script that a state runs.
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
    /// A hook that gets a table of numbers.
    Hook(&'a str, &'a [(&'static str, f64)]),
}

/// An option that a script declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declared {
    pub name: String,
    pub default: Option<String>,
    /// `sysbench.cmdline.ARG_*`.
    pub kind: u8,
}

/// The VM of a thread; a clone is the same one.
#[derive(Clone)]
pub(crate) struct Vm {
    lua: Lua,
    script: Arc<Script>,
    entries: Table,
    settings: Table,
    start: Function,
    seed: u64,
}

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
    pub(crate) fn new(script: &Arc<Script>, seed: u64) -> Result<Vm> {
        Vm::make(script, seed).map_err(|error| broken(&error))
    }

    fn make(script: &Arc<Script>, seed: u64) -> mlua::Result<Vm> {
        #[expect(
            unsafe_code,
            reason = "scripts are trusted as programs are: they have ffi and debug"
        )]
        let lua = unsafe { Lua::unsafe_new_with(StdLib::ALL, LuaOptions::new()) };
        // LuaJIT may have been built without an allocator of ours; then its own limit holds.
        let _ = lua.set_memory_limit(MEMORY_MAX);
        let settings = lua.create_table()?;
        set_settings(&lua, &settings, script)?;
        let prelude = lua.load(PRELUDE).set_name("=sysbench").into_function()?;
        let entries: Table = prelude.call((host(&lua)?, settings.clone()))?;
        let start = entries.get("start")?;
        Ok(Vm { lua, script: Arc::clone(script), entries, settings, start, seed })
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
            Entry::Hook(name, _) => ("hook", self.text(name)?),
        };
        let numbers = match entry {
            Entry::Hook(_, numbers) => {
                let table = self.vm.lua.create_table_from(numbers.iter().copied());
                Some(table.map_err(|error| broken(&error))?)
            }
            _ => None,
        };
        let started = self.vm.start.call((name, &self.env, argument, numbers));
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
            Err(error) => return Turn::Failed(error.to_string()),
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
            (_, Some(Value::String(message))) => Turn::Failed(message.to_string_lossy()),
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

    /// Calls a function of the prelude that requests nothing.
    fn call<T: mlua::FromLuaMulti>(
        &self,
        entry: &str,
        arguments: impl mlua::IntoLuaMulti,
    ) -> mlua::Result<T> {
        random::select(self.stream);
        let mut values = arguments.into_lua_multi(&self.vm.lua)?;
        values.push_front(Value::Table(self.env.clone()));
        self.vm.entry(entry)?.call(values)
    }

    /// Looks for a global function of this name.
    pub(crate) fn has(&self, name: &str) -> Result<bool> {
        self.call("has", name).map_err(|error| broken(&error))
    }

    pub(crate) fn has_hook(&self, name: &str) -> Result<bool> {
        self.call("has_hook", name).map_err(|error| broken(&error))
    }

    /// Looks for a command of the script's own: true if it runs in every thread, None if there is none.
    pub(crate) fn own_command(&self, name: &str) -> Result<Option<bool>> {
        self.call("own_command", name).map_err(|error| broken(&error))
    }

    /// Lists the options that the script declares, None where it knows of none; its own words if they are malformed.
    pub(crate) fn declared(&self) -> std::result::Result<Option<Vec<Declared>>, String> {
        let list: Option<Vec<Table>> =
            self.call("declared", ()).map_err(|error| first_line(&error.to_string()))?;
        let Some(list) = list else { return Ok(None) };
        let read = |option: Table| -> mlua::Result<Declared> {
            Ok(Declared { name: option.get(1)?, default: option.get(3)?, kind: option.get(4)? })
        };
        let read = |option| read(option).map_err(|error| error.to_string());
        list.into_iter().map(read).collect::<std::result::Result<_, _>>().map(Some)
    }

    /// Checks a value by the function of its option; an error has the script's words.
    pub(crate) fn validates(&self, name: &str, value: &str) -> std::result::Result<bool, String> {
        self.call("validate", (name, value)).map_err(|error| first_line(&error.to_string()))
    }

    /// Ends the reports that this state has written.
    pub(crate) fn close(&self) -> Result<()> {
        self.call("close", ()).map_err(|error| broken(&error))
    }

    pub(crate) fn print_options(&self) -> Result<()> {
        self.call("print_options", ()).map_err(|error| broken(&error))
    }

    /// Sets `sysbench.opt` of this state anew.
    pub(crate) fn take_options(&self) -> Result<()> {
        self.call("set_options", ()).map_err(|error| broken(&error))
    }
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
fn host(lua: &Lua) -> mlua::Result<Table> {
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
    let fatal = |_: &Lua, text: LuaString| write(&[b"FATAL: ", &*text.as_bytes(), b"\n"].concat());
    host.set("fatal", lua.create_function(fatal)?)?;
    host.set("exists", lua.create_function(|_, path: String| Ok(Path::new(&path).is_file()))?)?;
    host.set("read", lua.create_function(|lua, path: String| read(lua, &path))?)?;
    let compile = |lua: &Lua, (path, text): (String, LuaString)| Ok(compile(lua, path, &text));
    host.set("compile", lua.create_function(compile)?)?;
    Ok(host)
}

/// Writes in order with the lines of the log; the script fails where nobody reads it.
fn write(bytes: &[u8]) -> mlua::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(mlua::Error::external)
}

/// Reads a file; else returns why not, in the words of Lua.
fn read(lua: &Lua, path: &str) -> mlua::Result<(Option<LuaString>, Option<String>)> {
    match std::fs::read(path) {
        Ok(bytes) => Ok((Some(lua.create_string(bytes)?), None)),
        Err(error) => {
            let why = error.to_string();
            let why = why.split(" (os error").next().unwrap_or(&why);
            Ok((None, Some(format!("cannot open {path}: {why}"))))
        }
    }
}

/// Compiles the text of a file into a function that makes its chunk; else returns why not. Lines keep their numbers.
fn compile(lua: &Lua, path: String, text: &LuaString) -> (Option<Function>, Option<String>) {
    let bytes = text.as_bytes();
    // The first line may name the program that runs the file.
    let skipped = if bytes.first() == Some(&b'#') {
        bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len())
    } else {
        0
    };
    let code = [b"return function(...) ", &bytes[skipped..], b"\nend"].concat();
    let name = if path.starts_with('=') { path } else { format!("@{path}") };
    let load = |code: &[u8]| lua.load(code).set_name(&*name).into_function();
    match load(&code) {
        Ok(function) => (Some(function), None),
        Err(error) => {
            // The text alone ends where its author sees its end.
            let error = load(&bytes[skipped..]).err().unwrap_or(error);
            let mlua::Error::SyntaxError { message, .. } = error else {
                return (None, Some(error.to_string()));
            };
            (None, Some(message))
        }
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
    settings.set("fault", script.fault.as_deref())?;
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
