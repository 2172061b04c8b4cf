//! A VM of a thread, and the states of its clients: what they request, and how they go on.

use std::cell::RefCell;
use std::ffi::c_void;
use std::io::Write as _;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Once};
use std::time::Duration;

use mlua::{
    BString, Function, IntoLua, IntoLuaMulti, LightUserData, Lua, LuaOptions, LuaString, StdLib,
    Table, Thread, Value,
};
use sha2::{Digest, Sha256};

use super::coroutine::{Argument, Coroutine, Results, Stop};
use super::{random, transaction};
use crate::error::{Error, Result};
use crate::observe::TransactionNames;
use crate::plan::{Script, ScriptLine, ScriptValue};
use crate::progress::say;
use crate::summary::VerifyQuery;
use crate::workload::{check_query, name_part, seed_of};

const PRELUDE: &str = include_str!("prelude.lua");
/// Modules of our own that scripts require by these names.
const MODULES: [(&str, &str); 1] = [("oltp_common", include_str!("modules/oltp_common.lua"))];
/// The most that a VM may hold, bytes: LuaJIT ends a script that needs more with an error.
const MEMORY_MAX: usize = 2 << 30;

const OUT_OF_MEMORY: &str = "not enough memory";
/// The byte order mark with which some editors begin a file.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
/// Advice where a file is missing, whose script has clients on several hosts.
const AWAY: &str = "with several hosts, a script can load only files that it loads at its top \
     level: load this file there";

/// Its address marks a request.
static MARKER: u8 = 0;

fn marker() -> LightUserData {
    LightUserData(std::ptr::from_ref(&MARKER).cast_mut().cast::<c_void>())
}

/// The requests of a script to its client. Connections and statements have the numbers that replies gave.
#[derive(Debug)]
pub(crate) enum Request {
    Connect,
    Query(usize, Vec<u8>),
    Prepare(usize, Vec<u8>),
    /// With the state's arguments.
    Execute(usize, usize),
    Close(usize, usize),
    Fetch(usize),
    /// The rows that are left are not wanted.
    Free(usize),
    Disconnect(usize),
    /// Nobody has the connection any more.
    Forget(usize),
    Reconnect(usize),
    Sleep(Duration),
    /// The next event, if there is one.
    Next {
        /// The script ended its thread of its own will.
        ends: bool,
        /// All between two of these is an event; else it lies between `Start` and `Stop`.
        counts: bool,
    },
    Start,
    Stop,
    /// The event begins again, after an error in these words.
    Restart(String),
    /// One more of a counter of sysbench's.
    Count(u32),
    /// A question for further results of the last answer, and the next of them.
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
    /// `listed`: the error is one of those that are to be ignored.
    Failed {
        code: u16,
        state: String,
        text: String,
        listed: bool,
    },
    Row(RowCells),
    NoRow(String),
}

/// The end of a state's turn.
#[derive(Debug)]
pub(crate) enum Turn {
    Request(Request),
    /// False where a command returned false.
    Done(bool),
    /// Has sysbench's words, and the place in the script.
    Failed(String),
}

/// The parts of a script that a state runs.
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

/// Takes what a script's requests tell.
pub(crate) type Lines = Box<dyn Fn(ScriptLine)>;

/// Says what a script under loadgen's own flags tells.
pub(crate) fn say_line(line: ScriptLine) {
    match line {
        ScriptLine::Fatal(text) | ScriptLine::Alert(text) => say(&text),
        ScriptLine::Driver => {}
    }
}

/// The VM of a thread; a clone is the same one.
#[derive(Clone)]
pub(crate) struct Vm(Rc<Host>);

struct Host {
    lua: Lua,
    script: Arc<Script>,
    entries: Table,
    settings: Table,
    start: Function,
    /// The environments and coroutines of states, by their streams: Rust may hold some thousand values only.
    envs: Table,
    threads: Table,
    files: LoadedFiles,
    seed: u64,
}

/// Paths and texts of the files that a VM has compiled; those of our own modules begin with `=`.
type LoadedFiles = Rc<RefCell<Vec<(String, Vec<u8>)>>>;

/// The environment of a client, and its coroutine.
pub(crate) struct State {
    vm: Vm,
    /// None while nothing runs.
    coroutine: Option<Coroutine>,
    stream: usize,
    /// The number of the name that the script gave its event.
    pub transaction: Option<u32>,
    /// The values of the statement to execute: a list of its own, so that no event makes one.
    pub arguments: Vec<Argument>,
}

/// An error that is none of a script's own.
impl From<mlua::Error> for Error {
    fn from(error: mlua::Error) -> Error {
        Error::failed(format!("LuaJIT: {error}"))
    }
}

impl Vm {
    pub(crate) fn new(script: &Arc<Script>, seed: u64, lines: Lines) -> Result<Vm> {
        Vm::of_step(script, seed, lines, Arc::default())
    }

    /// Makes one that shares the names of its transactions with others.
    pub(crate) fn of_step(
        script: &Arc<Script>,
        seed: u64,
        lines: Lines,
        names: Arc<TransactionNames>,
    ) -> Result<Vm> {
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
        let host = host(&lua, lines, script, Rc::clone(&files))?;
        let number = move |_: &Lua, name: LuaString| Ok(names.number(&name.as_bytes()));
        host.set("transaction", lua.create_function(number)?)?;
        let entries: Table = prelude.call((host, settings.clone()))?;
        let start = entries.get("start")?;
        let (envs, threads) = (lua.create_table()?, lua.create_table()?);
        let script = Arc::clone(script);
        Ok(Vm(Rc::new(Host { lua, script, entries, settings, start, envs, threads, files, seed })))
    }

    /// Gives `sysbench.opt` to the states whose chunk has not run yet.
    pub(crate) fn set_options(&self, script: &Script) -> Result<()> {
        Ok(set_settings(&self.0.lua, &self.0.settings, script)?)
    }

    /// Makes the state of a thread of sysbench's (from 0).
    pub(crate) fn state(&self, tid: u32) -> Result<State> {
        let seed = seed_of(&[self.0.seed, name_part("script"), u64::from(tid)]);
        let stream = random::begin(self.0.script.random, seed);
        let env: Table = self.entry("new_state")?.call(tid)?;
        self.0.envs.raw_set(stream, env)?;
        let (vm, arguments) = (self.clone(), Vec::new());
        Ok(State { vm, coroutine: None, stream, transaction: None, arguments })
    }

    fn entry(&self, name: &str) -> mlua::Result<Function> {
        self.0.entries.get(name)
    }
}

impl State {
    /// Begins to run something; [`State::resume`] goes on.
    pub(crate) fn begin(&mut self, entry: Entry<'_>) -> Result<()> {
        let Host { lua, start, threads, .. } = &*self.vm.0;
        let (name, argument, numbers) = match entry {
            Entry::Chunk => ("chunk", Value::Nil, None),
            Entry::Thread(tid) => ("thread", Value::Number(f64::from(tid)), None),
            Entry::Call(name) => ("call", name.into_lua(lua)?, None),
            Entry::Command(name) => ("command", name.into_lua(lua)?, None),
            Entry::Hook(name, numbers) => {
                let numbers = lua.create_table_from(numbers.iter().copied())?;
                ("hook", name.into_lua(lua)?, Some(numbers))
            }
        };
        let thread: Thread = start.call((name, self.env()?, argument, numbers))?;
        self.coroutine = None;
        threads.raw_set(self.stream, &thread)?;
        #[expect(unsafe_code, reason = "the table keeps it until this state ends or begins again")]
        let coroutine = unsafe { Coroutine::new(lua, &thread) };
        self.coroutine = Some(coroutine);
        Ok(())
    }

    fn env(&self) -> mlua::Result<Table> {
        self.vm.0.envs.raw_get(self.stream)
    }

    /// Goes on with a reply until the next request, or the end.
    pub(crate) fn resume(&mut self, reply: Reply) -> Turn {
        random::select(self.stream);
        transaction::select(self.transaction);
        let Some(coroutine) = &mut self.coroutine else {
            return Turn::Failed("no script runs".to_owned());
        };
        let pushed = push_reply(&self.vm.0.lua, coroutine, reply);
        let (turn, goes_on) = match pushed.and_then(|()| coroutine.resume()) {
            Ok((stop, results)) => {
                (read_turn(stop, &results, &mut self.arguments), stop == Stop::Yielded)
            }
            Err(error) => (Turn::Failed(explain(error.to_string())), false),
        };
        self.transaction = transaction::selected();
        if !goes_on {
            self.coroutine = None;
        }
        turn
    }

    /// Calls a function of the prelude that requests nothing.
    fn call<T: mlua::FromLuaMulti>(
        &self,
        entry: &str,
        arguments: impl mlua::IntoLuaMulti,
    ) -> mlua::Result<T> {
        random::select(self.stream);
        let mut values = arguments.into_lua_multi(&self.vm.0.lua)?;
        values.push_front(Value::Table(self.env()?));
        self.vm.entry(entry)?.call(values)
    }

    /// Lists the names of the files that the VM has loaded so far, without directories, and their SHA-256.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let files = self.vm.0.files.borrow();
        let describe = |(path, text): &(String, Vec<u8>)| {
            let name = path.rsplit('/').next().unwrap_or(path).to_owned();
            (name, format!("{:x}", Sha256::digest(text)))
        };
        let mut files: Vec<(String, String)> = files.iter().map(describe).collect();
        files.sort();
        files
    }

    /// Lists the paths and texts of these files, without our own modules.
    pub(crate) fn texts(&self) -> Vec<(String, Vec<u8>)> {
        let files = self.vm.0.files.borrow();
        files.iter().filter(|(path, _)| !path.starts_with('=')).cloned().collect()
    }

    /// Looks for a global function of this name.
    pub(crate) fn has(&self, name: &str) -> Result<bool> {
        Ok(self.call("has", name)?)
    }

    pub(crate) fn has_hook(&self, name: &str) -> Result<bool> {
        Ok(self.call("has_hook", name)?)
    }

    /// Looks for a command of the script's own: true if it runs in every thread, None if there is none.
    pub(crate) fn own_command(&self, name: &str) -> Result<Option<bool>> {
        Ok(self.call("own_command", name)?)
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

    /// Lists the queries of `loadgen.verify`; the script's own words if they are malformed.
    pub(crate) fn verify_queries(&self) -> std::result::Result<Vec<VerifyQuery>, String> {
        let read = |query: mlua::Result<Table>| -> mlua::Result<VerifyQuery> {
            let query = query?;
            let rows: Vec<Vec<String>> = query.get("rows")?;
            let cell = |text: String| text.strip_prefix('=').map(str::to_owned);
            let rows = rows.into_iter().map(|row| row.into_iter().map(cell).collect()).collect();
            Ok(VerifyQuery { name: query.get("name")?, sql: query.get("sql")?, rows })
        };
        let list = self.call::<Table>("verify", ());
        let list = list.and_then(|list| list.sequence_values::<Table>().map(read).collect());
        let list: Vec<VerifyQuery> = list.map_err(|error| first_line(&error.to_string()))?;
        for VerifyQuery { name, sql, .. } in &list {
            check_query(sql).map_err(|why| format!("loadgen.verify: {name}: {why}"))?;
        }
        Ok(list)
    }

    /// Checks a value by the function of its option; an error has the script's words.
    pub(crate) fn validates(&self, name: &str, value: &str) -> std::result::Result<bool, String> {
        self.call("validate", (name, value)).map_err(|error| first_line(&error.to_string()))
    }

    /// Ends the reports that this state has written.
    pub(crate) fn close(&self) -> Result<()> {
        Ok(self.call("close", ())?)
    }

    pub(crate) fn print_options(&self) -> Result<()> {
        Ok(self.call("print_options", ())?)
    }

    /// Sets `sysbench.opt` of this state anew.
    pub(crate) fn take_options(&self) -> Result<()> {
        Ok(self.call("set_options", ())?)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // Nothing is left behind where it cannot be taken out.
        let _ = self.call::<()>("forget", ());
        let Host { envs, threads, .. } = &*self.vm.0;
        for table in [envs, threads] {
            let _ = table.raw_set(self.stream, Value::Nil);
        }
    }
}

/// Adds the limit to LuaJIT's words for a lack of memory.
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

fn push_reply(lua: &Lua, coroutine: &mut Coroutine, reply: Reply) -> mlua::Result<()> {
    let values = match reply {
        Reply::Nothing => return Ok(()),
        Reply::Switch(on) => return coroutine.push_switch(on),
        Reply::Number(number) => return coroutine.push_number(number as f64),
        Reply::Answer { columns, rows } => {
            coroutine.push_number(columns as f64)?;
            return coroutine.push_number(rows as f64);
        }
        Reply::Failed { code, state, text, listed } => {
            (Value::Nil, code, state, text, listed).into_lua_multi(lua)?
        }
        Reply::Row(cells) => {
            let row = lua.create_table_with_capacity(cells.len(), 0)?;
            for (at, cell) in (1..).zip(cells) {
                if let Some(cell) = cell {
                    row.raw_seti(at, lua.create_string(cell)?)?;
                }
            }
            (true, row).into_lua_multi(lua)?
        }
        Reply::NoRow(why) => (why.is_empty().then_some(false), why).into_lua_multi(lua)?,
    };
    coroutine.push_values(values)
}

fn read_turn(stop: Stop, results: &Results<'_>, arguments: &mut Vec<Argument>) -> Turn {
    match stop {
        Stop::Yielded => {
            let outside = || "coroutine.yield outside a coroutine of the script".to_owned();
            let request = read_request(results, arguments);
            request.map_or_else(|| Turn::Failed(outside()), Turn::Request)
        }
        Stop::Ended if results.switch(1) == Some(true) => {
            Turn::Done(results.switch(2) != Some(false))
        }
        Stop::Ended | Stop::Failed => {
            let words = results.last_text().unwrap_or_else(|| "the script failed".to_owned());
            Turn::Failed(explain(words))
        }
    }
}

/// Reads a request: a marker, its kind, and its arguments; None if it is none of the prelude's.
fn read_request(results: &Results<'_>, arguments: &mut Vec<Argument>) -> Option<Request> {
    if results.address(1)? != marker().0 {
        return None;
    }
    // The places of the arguments.
    let (a, b, c, d) = (3, 4, 5, 6);
    let index = |at| results.number(at).map(|number| number as usize);
    let is_true = |at| results.switch(at) == Some(true);
    Some(match results.number(2)? as u32 {
        1 => Request::Connect,
        2 => Request::Query(index(a)?, results.text(b)?),
        3 => Request::Prepare(index(a)?, results.text(b)?),
        4 => {
            results.read_arguments((c, d), arguments)?;
            Request::Execute(index(a)?, index(b)?)
        }
        5 => Request::Close(index(a)?, index(b)?),
        6 => Request::Fetch(index(a)?),
        7 => Request::Disconnect(index(a)?),
        8 => Request::Reconnect(index(a)?),
        9 => {
            let seconds = results.number(a)?.clamp(0.0, 1e9);
            Request::Sleep(Duration::from_secs_f64(if seconds.is_nan() { 0.0 } else { seconds }))
        }
        10 => Request::Next { ends: is_true(a), counts: is_true(b) },
        11 => Request::Restart(String::from_utf8_lossy(&results.text(a)?).into_owned()),
        12 => Request::Count(index(a)? as u32),
        13 => Request::Free(index(a)?),
        14 => Request::Forget(index(a)?),
        15 => Request::Start,
        16 => Request::Stop,
        17 => Request::HasMore(index(a)?),
        18 => Request::Further(index(a)?),
        _ => return None,
    })
}

/// Makes the functions that the prelude gets.
fn host(lua: &Lua, lines: Lines, script: &Arc<Script>, files: LoadedFiles) -> mlua::Result<Table> {
    let (host, to_stderr) = (lua.create_table()?, script.is_native);
    host.set("marker", marker())?;
    let functions = lua.create_table()?;
    for (name, function) in random::functions().into_iter().chain([transaction::function()]) {
        functions.set(name, LightUserData(function))?;
    }
    host.set("functions", functions)?;
    host.set("modules", lua.create_table_from(MODULES)?)?;
    host.set(
        "write",
        lua.create_function(move |_, text: LuaString| write(&text.as_bytes(), to_stderr))?,
    )?;
    let lines = Rc::new(lines);
    for (name, line) in
        [("fatal", ScriptLine::Fatal as fn(String) -> ScriptLine), ("alert", ScriptLine::Alert)]
    {
        let lines = Rc::clone(&lines);
        let told = lua.create_function(move |_, text: LuaString| {
            lines(line(text.to_string_lossy()));
            Ok(())
        });
        host.set(name, told?)?;
    }
    let driver = lua.create_function(move |_, ()| {
        lines(ScriptLine::Driver);
        Ok(())
    });
    host.set("driver", driver?)?;
    host.set("advice", if script.is_away { format!("\n\t{AWAY}") } else { String::new() })?;
    let of = Arc::clone(script);
    let exists = move |_: &Lua, path: String| Ok(exists(&of, &path));
    host.set("exists", lua.create_function(exists)?)?;
    let of = Arc::clone(script);
    let read = move |_: &Lua, path: String| Ok(read(&of, &path));
    host.set("read", lua.create_function(read)?)?;
    let compile =
        move |lua: &Lua, (path, text): (String, LuaString)| Ok(compile(lua, &files, path, &text));
    host.set("compile", lua.create_function(compile)?)?;
    Ok(host)
}

/// Writes in order with the lines of the log; the script fails where nobody reads it.
fn write(bytes: &[u8], to_stderr: bool) -> mlua::Result<()> {
    let mut out: Box<dyn std::io::Write> =
        if to_stderr { Box::new(std::io::stderr()) } else { Box::new(std::io::stdout()) };
    out.write_all(bytes).and_then(|()| out.flush()).map_err(mlua::Error::external)
}

/// Finds a text among the files that a script away brings with it.
fn find_away<'a>(script: &'a Script, path: &str) -> Option<&'a [u8]> {
    script.files.iter().find(|(known, _)| known == path).map(|(_, text)| text.as_slice())
}

fn exists(script: &Script, path: &str) -> bool {
    if script.is_away { find_away(script, path).is_some() } else { Path::new(path).is_file() }
}

/// Reads a file; else returns why not, in the words of Lua.
fn read(script: &Script, path: &str) -> std::result::Result<BString, String> {
    let read = if script.is_away {
        find_away(script, path).map(<[u8]>::to_vec).ok_or_else(|| AWAY.to_owned())
    } else {
        std::fs::read(path).map_err(|error| {
            error.to_string().split(" (os error").next().unwrap_or_default().to_owned()
        })
    };
    read.map(BString::from).map_err(|why| format!("cannot open {path}: {why}"))
}

/// Compiles the text of a file into a function that makes its chunk; else returns why not. Lines keep their numbers.
fn compile(
    lua: &Lua,
    files: &LoadedFiles,
    path: String,
    text: &LuaString,
) -> std::result::Result<Function, String> {
    let bytes = text.as_bytes();
    let name = match &*path {
        // In the words of Lua.
        "-" => "=stdin".to_owned(),
        own if own.starts_with('=') => own.to_owned(),
        file => format!("@{file}"),
    };
    files.borrow_mut().push((path, bytes.to_vec()));
    let unmarked = bytes.strip_prefix(UTF8_MARK).unwrap_or(&bytes);
    // The first line may name the program that runs the file.
    let skipped = if unmarked.first() == Some(&b'#') {
        unmarked.iter().position(|byte| *byte == b'\n').unwrap_or(unmarked.len())
    } else {
        0
    };
    let own = &unmarked[skipped..];
    let code = [b"return function(...) ", own, b"\nend"].concat();
    let load = |code: &[u8]| lua.load(code).set_name(&*name).into_function();
    load(&code).map_err(|error| {
        // The text alone ends where its author sees its end.
        match load(own).err().unwrap_or(error) {
            mlua::Error::SyntaxError { message, .. } => message,
            error => error.to_string(),
        }
    })
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
    settings.set("native", script.is_native)?;
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

    /// Makes a state whose file is about to run.
    fn begun(vm: &Vm) -> State {
        let mut state = vm.state(0).expect("a state");
        state.begin(Entry::Chunk).expect("it begins");
        state
    }

    fn run(vm: &Vm) -> Turn {
        begun(vm).resume(Reply::Nothing)
    }

    fn vm(script: Script) -> Vm {
        Vm::new(&Arc::new(script), 1, Box::new(drop)).expect("a VM")
    }

    fn vm_of(text: &str) -> Vm {
        vm(Script::of_text(text))
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
            let vm = vm_of(text);
            vm.0.lua.set_memory_limit(16 << 20).expect("it takes a limit");
            let turn = run(&vm);
            let Turn::Failed(words) = turn else { panic!("{text}: {turn:?}") };
            assert!(words.contains(OUT_OF_MEMORY) || words.contains("stack overflow"), "{words}");
            // The others go on.
            assert!(matches!(run(&vm_of("")), Turn::Done(true)));
        }
    }

    /// Goes on to the next query, and returns its text; None at the end.
    fn next_query(state: &mut State) -> Option<String> {
        let mut reply = Reply::Answer { columns: 0, rows: 0 };
        loop {
            match state.resume(reply) {
                Turn::Request(Request::Connect) => reply = Reply::Number(0),
                Turn::Request(Request::Query(_, sql)) => {
                    return Some(String::from_utf8(sql).expect("a text"));
                }
                Turn::Done(_) => return None,
                turn => panic!("{turn:?}"),
            }
        }
    }

    #[test]
    fn file_runs_when_a_byte_order_mark_comes_first() {
        for text in ["local n = 1", "#!/usr/bin/env sysbench\nlocal n = 1"] {
            let turn = run(&vm_of(&format!("\u{feff}{text}")));
            assert!(matches!(turn, Turn::Done(true)), "{turn:?}");
        }
    }

    #[test]
    fn error_of_a_global_that_the_script_refuses_has_its_words() {
        let text = "setmetatable(_G, { __newindex = function(_, n) error('no ' .. n) end })";
        let script = Script {
            options: vec![("threads".to_owned(), ScriptValue::Number(1.0))],
            ..Script::of_text(text)
        };
        let turn = run(&vm(script));
        let Turn::Failed(words) = turn else { panic!("{turn:?}") };
        assert_eq!(words, "stdin:1: no threads");
    }

    #[test]
    fn coroutine_that_another_client_has_ended_fails_with_words() {
        let text = "function event() string.client = coroutine.running() end
            function sysbench.hooks.end_it() while coroutine.resume(string.client) do end end";
        let vm = vm_of(text);
        let [mut one, mut other] = [0, 1].map(|tid| vm.state(tid).expect("a state"));
        one.begin(Entry::Thread(0)).expect("it begins");
        for reply in [Reply::Nothing, Reply::Switch(true)] {
            let turn = one.resume(reply);
            assert!(matches!(turn, Turn::Request(Request::Next { .. })), "{turn:?}");
        }
        other.begin(Entry::Chunk).expect("it begins");
        assert!(matches!(other.resume(Reply::Nothing), Turn::Done(true)));
        other.begin(Entry::Hook("end_it", &[])).expect("it begins");
        let mut turn = other.resume(Reply::Nothing);
        for _ in 0..100 {
            let Turn::Request(_) = turn else { break };
            turn = other.resume(Reply::Switch(false));
        }
        assert!(matches!(turn, Turn::Done(_)), "{turn:?}");
        let turn = one.resume(Reply::Switch(true));
        assert!(matches!(turn, Turn::Failed(_)), "{turn:?}");
        let turn = one.resume(Reply::Nothing);
        assert!(matches!(turn, Turn::Failed(_)), "{turn:?}");
    }

    #[test]
    fn arguments_keep_their_kinds_when_a_request_comes_from_a_coroutine_of_the_scripts() {
        let text = "local T = sysbench.sql.type
            local con = sysbench.sql.driver():connect()
            local st = con:prepare('?')
            local p = {}
            for i, kind in ipairs({ T.INT, T.BIGINT, T.DOUBLE, T.CHAR, T.INT, T.TINYINT }) do
                p[i] = st:bind_create(kind, 9)
            end
            st:bind_param(unpack(p))
            p[1]:set(-1.5) p[2]:set(9007199254740993LL) p[3]:set(0.5) p[4]:set('a\\0b') p[5]:set(nil) p[6]:set(true)
            coroutine.wrap(function() table.sort({ 1 }) st:execute() end)()";
        let mut state = begun(&vm_of(text));
        let mut turn = state.resume(Reply::Nothing);
        while let Turn::Request(Request::Connect | Request::Prepare(..)) = turn {
            turn = state.resume(Reply::Number(0));
        }
        let Turn::Request(Request::Execute(0, 0)) = turn else { panic!("{turn:?}") };
        let wanted = [
            Argument::Int(-1),
            Argument::Int(9_007_199_254_740_993),
            Argument::Double(0.5),
            Argument::Text(b"a\0b".to_vec()),
            Argument::Null,
            Argument::Int(1),
        ];
        assert_eq!(state.arguments, wanted);
        let turn = state.resume(Reply::Answer { columns: 0, rows: 0 });
        assert!(matches!(turn, Turn::Done(true)), "{turn:?}");
    }

    #[test]
    fn parameter_has_the_value_of_sysbenchs_when_none_was_set() {
        let text = "local T = sysbench.sql.type
            local st = sysbench.sql.driver():connect():prepare('?')
            assert(st:bind_param(st:bind_create(T.INT), st:bind_create(T.DOUBLE), st:bind_create(T.CHAR, 9)) == 0)
            st:execute()";
        let mut state = begun(&vm_of(text));
        let mut turn = state.resume(Reply::Nothing);
        while let Turn::Request(Request::Connect | Request::Prepare(..)) = turn {
            turn = state.resume(Reply::Number(0));
        }
        let Turn::Request(Request::Execute(0, 0)) = turn else { panic!("{turn:?}") };
        let wanted = [Argument::Int(0), Argument::Double(0.0), Argument::Text(Vec::new())];
        assert_eq!(state.arguments, wanted);
    }

    #[test]
    fn value_has_a_bucket_when_a_histogram_has_one_or_no_width() {
        let text = "for _, h in ipairs({
                sysbench.histogram.new(1, 1, 10), sysbench.histogram.new(10, 5, 5), sysbench.histogram.new(10, 0, 10),
            }) do
                for _, value in ipairs({ 0, 5, 7, -1, 1 / 0 }) do h:update(value) end
                assert(next(h.counts) == 0 and next(h.counts, 0) == nil and h.counts[0] == 5)
                h:print()
            end
            assert(not pcall(sysbench.histogram.new, 0, 1, 10))";
        let turn = run(&vm(Script { is_native: true, ..Script::of_text(text) }));
        assert!(matches!(turn, Turn::Done(true)), "{turn:?}");
    }

    /// Runs a text with one answer of this many rows to each query; returns the words of the lines that it tells.
    fn collect_words(text: &str, rows: u64) -> Vec<String> {
        let told = Rc::new(RefCell::new(Vec::new()));
        let lines = Rc::clone(&told);
        let take = move |line| {
            if let ScriptLine::Fatal(words) | ScriptLine::Alert(words) = line {
                lines.borrow_mut().push(words);
            }
        };
        let script = Arc::new(Script::of_text(text));
        let mut state = begun(&Vm::new(&script, 1, Box::new(take)).expect("a VM"));
        let mut turn = state.resume(Reply::Nothing);
        while let Turn::Request(request) = turn {
            turn = state.resume(match request {
                Request::Connect => Reply::Number(0),
                Request::Query(..) => Reply::Answer { columns: 1, rows },
                Request::Fetch(_) => Reply::Row(vec![None]),
                _ => Reply::Nothing,
            });
        }
        assert!(matches!(turn, Turn::Done(true)), "{turn:?}");
        told.take()
    }

    #[test]
    fn missing_row_has_the_line_of_sysbenchs_when_it_is_fetched() {
        let fetch = "local con = sysbench.sql.driver():connect()
            local rs = con:query('SELECT 1') rs:fetch_row()";
        assert_eq!(collect_words(fetch, 0), ["attempt to fetch row from an empty result set"]);
        assert_eq!(collect_words(fetch, 1), Vec::<String>::new());
        let freed = format!("{fetch} rs:free() assert(select('#', rs:fetch_row()) == 1)");
        assert_eq!(collect_words(&freed, 1), ["attempt to fetch row from an invalid result set"]);
        let row = "assert(sysbench.sql.driver():connect():query_row('SELECT 1') == nil)";
        assert_eq!(collect_words(row, 0), Vec::<String>::new());
    }

    #[test]
    fn function_of_the_api_that_a_script_wraps_is_wrapped_once_for_each_client() {
        let vm = vm_of(
            "local draw, n = sysbench.rand.uniform, 0
            function sysbench.rand.uniform(a, b) return draw(a, b) + 1 end
            assert(sysbench.rand.uniform(5, 5) == 6)
            for _, list in ipairs({ sysbench.db, sysbench.sql, sysbench.cmdline, sysbench.histogram, sysbench }) do
                for name, f in pairs(list) do
                    if type(f) == 'function' then
                        assert(f ~= print, name)
                        n, list[name] = n + 1, print
                    end
                end
            end
            assert(n > 10)",
        );
        for _ in 0..2 {
            let turn = run(&vm);
            assert!(matches!(turn, Turn::Done(true)), "{turn:?}");
        }
    }

    #[test]
    fn connection_of_the_old_functions_is_a_clients_own() {
        let vm = vm_of("function event() db_query('SELECT ' .. thread_id) end");
        let mut states = [0, 1].map(|tid| vm.state(tid).expect("a state"));
        for (tid, state) in (0..).zip(&mut states) {
            state.begin(Entry::Thread(tid)).expect("it begins");
            let turn = state.resume(Reply::Nothing);
            assert!(matches!(turn, Turn::Request(Request::Next { .. })), "{turn:?}");
            let turn = state.resume(Reply::Switch(true));
            assert!(matches!(turn, Turn::Request(Request::Connect)), "{turn:?}");
        }
        for (tid, state) in states.iter_mut().enumerate() {
            let turn = state.resume(Reply::Number(tid + 5));
            let Turn::Request(Request::Query(at, sql)) = turn else { panic!("{turn:?}") };
            assert_eq!((at, sql), (tid + 5, format!("SELECT {tid}").into_bytes()));
        }
    }

    #[test]
    fn bulk_insert_has_the_length_of_sysbenchs_when_its_rows_fill_it() {
        let text = "local con = sysbench.sql.driver():connect()
            con:bulk_insert_init('INSERT')
            for _ = 1, 2 do con:bulk_insert_next(('x'):rep(262140)) end
            con:bulk_insert_next('y')";
        let mut state = begun(&vm_of(text));
        assert_eq!(next_query(&mut state).as_deref().map(str::len), Some(512 * 1024 - 1));
    }

    #[test]
    fn error_keeps_its_words_when_the_hook_asks_the_server() {
        let text = "local con = sysbench.sql.driver():connect()
            function sysbench.hooks.sql_error_ignorable() con:query('ROLLBACK') end
            con:query('SELEC 1')";
        let mut state = begun(&vm_of(text));
        assert_eq!(next_query(&mut state).as_deref(), Some("SELEC 1"));
        let (code, text) = (1064, "no syntax".to_owned());
        let failed = Reply::Failed { code, state: "42000".to_owned(), text, listed: false };
        let turn = state.resume(failed);
        assert!(matches!(turn, Turn::Request(Request::Query(..))), "{turn:?}");
        let turn = state.resume(Reply::Answer { columns: 0, rows: 0 });
        let Turn::Failed(words) = turn else { panic!("{turn:?}") };
        assert_eq!(words, "stdin:3: SQL error, errno = 1064, state = '42000': no syntax");
    }

    #[test]
    fn os_exit_is_an_error_when_results_come_after_the_script() {
        let script = Script { is_native: true, ..Script::of_text("\nos.exit(3)") };
        let turn = run(&vm(script));
        let Turn::Failed(words) = turn else { panic!("{turn:?}") };
        assert!(words.starts_with("stdin:2: os.exit(3): "), "{words}");
    }

    #[test]
    fn error_of_a_wrapped_coroutine_begins_with_the_place_of_its_call() {
        let turn = run(&vm_of("local f = coroutine.wrap(function() error('no') end)\nf()"));
        let Turn::Failed(words) = turn else { panic!("{turn:?}") };
        assert_eq!(words, "stdin:2: stdin:1: no");
    }

    #[test]
    fn options_are_printed_when_a_name_is_long() {
        let text = format!("sysbench.cmdline.options = {{ {} = {{ 'long' }} }}", "n".repeat(100));
        let script = Script { is_native: true, ..Script::of_text(&text) };
        let mut state = begun(&vm(script));
        assert!(matches!(state.resume(Reply::Nothing), Turn::Done(true)));
        state.print_options().expect("it is printed");
    }

    #[test]
    fn row_for_verify_is_refused_when_a_column_has_no_whole_number() {
        let row = "{ [1.5] = 'lost' }";
        let query = format!("{{ name = 'n', sql = 'SELECT 1', rows = {{ {row} }} }}");
        let mut state = begun(&vm_of(&format!("loadgen.verify = {{ {query} }}")));
        assert!(matches!(state.resume(Reply::Nothing), Turn::Done(true)));
        let words = state.verify_queries().expect_err("it is no list");
        assert_eq!(words, "loadgen.verify[1].rows[1] is no list");
    }

    #[test]
    fn zero_for_verify_has_no_sign_when_it_is_a_product() {
        let query = "{ name = 'n', sql = 'SELECT 0', rows = { { 0 * -1 } } }";
        let mut state = begun(&vm_of(&format!("loadgen.verify = {{ {query} }}")));
        assert!(matches!(state.resume(Reply::Nothing), Turn::Done(true)));
        let queries = state.verify_queries().expect("a query");
        assert_eq!(queries[0].rows, [[Some("0".to_owned())]]);
    }

    #[test]
    fn environment_is_the_clients_when_verify_or_a_validator_asks_for_it() {
        let text = "sysbench.cmdline.options = {
                a = { 'text', 'x', sysbench.cmdline.ARG_STRING,
                    function() return sysbench.cmdline.command_defined('mine') end },
            }
            sysbench.cmdline.commands = { mine = { function() end } }
            function loadgen.verify()
                assert(getfenv(0) == _G and require('sysbench') == sysbench)
                return { { name = 'n', sql = 'SELECT 1' } }
            end";
        let mut state = begun(&vm_of(text));
        assert!(matches!(state.resume(Reply::Nothing), Turn::Done(true)));
        assert_eq!(state.validates("a", "x"), Ok(true));
        assert_eq!(state.verify_queries().map(|queries| queries.len()), Ok(1));
    }

    #[test]
    fn sleeps_of_c_stop_the_client_alone() {
        let text = "local ffi = require('ffi')
            ffi.cdef [[
                int poll(struct pollfd *fds, unsigned long nfds, int timeout);
                struct time_of_a_test { long tv_sec; long tv_nsec; };
            ]]
            ffi.C.usleep(1500000)
            ffi.C.poll(nil, 0, 1500.9)
            ffi.C.nanosleep(ffi.new('struct time_of_a_test', 1, 500000000), nil)
            ffi.C.nanosleep(ffi.new('struct time_of_a_test[1]', { { 1, 500000000 } }), nil)
            assert(ffi.C.poll(nil, 0, 0) == 0)";
        let mut state = begun(&vm_of(text));
        let expected = Duration::from_millis(1500);
        for _ in 0..4 {
            let turn = state.resume(Reply::Nothing);
            let is_sleep = matches!(turn, Turn::Request(Request::Sleep(time)) if time == expected);
            assert!(is_sleep, "{turn:?}");
        }
        assert!(matches!(state.resume(Reply::Nothing), Turn::Done(true)));
    }

    #[test]
    fn globals_are_the_clients_own_when_it_lists_them_or_refuses_new_ones() {
        let text = "sysbench.cmdline.options = {}
            local names = {}
            for name in pairs(_G) do names[name] = true end
            assert(names.print and names.string and names.db_query and names.sysbench)
            assert(rawget(_G, 'print') == print and getmetatable(_G) == nil)
            function own() end
            setmetatable(_G, { __newindex = function(_, name) error('no ' .. name, 0) end })
            assert(select(2, pcall(function() other = 1 end)) == 'no other')
            assert(tostring(1) == '1')";
        let vm = vm_of(text);
        for tid in 0..2 {
            // A client keeps its globals to itself.
            let mut state = vm.state(tid).expect("a state");
            assert!(!state.has("own").expect("it looks"));
            state.begin(Entry::Chunk).expect("it begins");
            let turn = state.resume(Reply::Nothing);
            assert!(matches!(turn, Turn::Done(true)), "{turn:?}");
            assert!(state.has("own").expect("it looks"));
        }
    }

    #[test]
    fn prewarm_of_the_own_module_raises_the_limits_of_tables_in_memory_first() {
        let number = |name: &str, number| (name.to_owned(), ScriptValue::Number(number));
        let script = Script {
            command: Some("prewarm".to_owned()),
            options: vec![number("threads", 1.0), number("tables", 0.0)],
            ..Script::of_text("require('oltp_common')")
        };
        let mut state = begun(&vm(script));
        assert_eq!(next_query(&mut state), None);
        state.begin(Entry::Command("prewarm")).expect("it begins");
        for name in ["tmp_table_size", "max_heap_table_size"] {
            let sql = next_query(&mut state).expect("a statement");
            assert_eq!(sql, format!("SET {name}=2*1024*1024*1024"));
        }
    }

    #[test]
    fn vm_has_room_for_more_clients_than_values_of_rust() {
        const CLIENTS: u32 = 9_000;
        let vm = vm_of("n = 0 function event(tid) n = n + tid end");
        let mut states: Vec<State> =
            (0..CLIENTS).map(|tid| vm.state(tid).expect("a state")).collect();
        for (tid, state) in (0..).zip(&mut states) {
            state.begin(Entry::Thread(tid)).expect("it begins");
        }
        for reply in [false, true, true] {
            for state in &mut states {
                let turn = state.resume(Reply::Switch(reply));
                assert!(matches!(turn, Turn::Request(Request::Next { .. })), "{turn:?}");
            }
        }
        let last = states.pop().expect("the last one");
        let n: u32 = last.env().and_then(|env| env.get("n")).expect("its own global");
        assert_eq!(n, 2 * (CLIENTS - 1));
        drop(last);
        states.clear();
        assert!(vm.0.envs.is_empty() && vm.0.threads.is_empty());
    }
}
