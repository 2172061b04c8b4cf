//! What the program prints, byte for byte, held against files that are kept.
//!
//! `kept/contract/` holds what others' programs rely on: exit statuses, CSV, JSON, summaries. It
//! changes only where a change says so. `kept/text/` holds what people read, and may be reworded:
//!
//! ```text
//! LOADGEN_BLESS=1 cargo test --test pure golden
//! ```
//!
//! writes both anew, and the review sees which changed. `summaries/` were measured once, with
//! loadgen 0.1.0, and shrunk: their numbers mean nothing. `LOADGEN_GOLDEN_PROGRAM` names another
//! binary than the one of this build. What is not held is listed in `masks.rs`.

mod cases;
mod changed;
mod masks;
mod samples;

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use masks::Masks;

/// Command lines of loadgen, `; ` between them. `{dir}` is an empty directory, `{port}` the canned
/// server's, `{profile}` a file.
struct Case {
    args: String,
    /// Flags of `loadgen canned`, for a case that needs a server.
    server: Option<&'static str>,
    /// What is in `{profile}`.
    profile: &'static str,
    /// It measures, rather than reads what was measured.
    measured: bool,
}

fn case(args: impl Into<String>) -> Case {
    Case { args: args.into(), server: None, profile: "", measured: false }
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn program() -> PathBuf {
    let other = std::env::var_os("LOADGEN_GOLDEN_PROGRAM");
    other.map_or_else(|| env!("CARGO_BIN_EXE_loadgen").into(), PathBuf::from)
}

/// A command with nothing of the caller's environment that could be seen.
fn loadgen(home: &Path) -> Command {
    let mut command = Command::new(program());
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").expect("PATH"))
        .env("HOME", home)
        .env("XDG_STATE_HOME", home)
        .env("COLUMNS", "100")
        .env("TZ", "UTC")
        .env("LC_ALL", "C.UTF-8")
        .current_dir(golden().join("summaries"));
    command
}

/// A canned server that ends with its standard input.
struct Canned {
    child: Child,
    port: String,
}

impl Canned {
    fn start(flags: &str, home: &Path) -> Self {
        let mut child = loadgen(home)
            .args(["canned", "--until-eof"])
            .args(flags.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let said = child.stdout.take().expect("piped");
        BufReader::new(said).read_line(&mut line).expect("a line");
        let port: String = line.trim_end().chars().rev().take_while(char::is_ascii_digit).collect();
        let port: String = port.chars().rev().collect();
        assert!(!port.is_empty(), "no port in '{line}'");
        Self { child, port }
    }
}

impl Drop for Canned {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Words as a shell splits them, single quotes understood.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Contract and text of a case.
struct Seen {
    contract: String,
    text: String,
}

fn run(case: &Case) -> Seen {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("dir");
    fs::create_dir(&dir).expect("a directory");
    let dir_name = dir.to_str().expect("UTF-8").to_owned();
    let profile = home.path().join("profile.toml");
    let server = case.server.map(|flags| Canned::start(flags, home.path()));
    let port = server.as_ref().map_or("1", |server| &server.port);
    let filled = |text: &str| {
        let text = text.replace("{dir}", &dir_name).replace("{port}", port);
        text.replace("{profile}", profile.to_str().expect("UTF-8"))
    };
    fs::write(&profile, filled(case.profile)).expect("written");
    let masks = Masks { home: home.path().to_str().expect("UTF-8"), port, measured: case.measured };
    let (mut contract, mut text) = (String::new(), String::new());
    if let Some(flags) = case.server.filter(|flags| !flags.is_empty()) {
        let _ = writeln!(contract, "beside canned {flags}");
        let _ = writeln!(text, "beside canned {flags}");
    }
    for line in case.args.split("; ") {
        let args: Vec<String> = words(line).iter().map(|word| filled(word)).collect();
        let Output { status, stdout, stderr } = loadgen(home.path())
            .args(&args)
            .stdin(Stdio::null())
            .output()
            .expect("the program runs");
        let utf8 = |bytes| String::from_utf8(bytes).expect("UTF-8");
        let (stdout, stderr) = (utf8(stdout), utf8(stderr));
        let ended = status.code().map_or("a signal".to_owned(), |code| code.to_string());
        let _ = writeln!(contract, "$ loadgen {line}\nexit {ended}");
        let _ = writeln!(text, "$ loadgen {line}");
        let format = args.iter().position(|arg| arg == "--format");
        match format.map(|at| args[at + 1].as_str()) {
            _ if args.first().is_some_and(|verb| verb == "completions") => {
                assert_eq!(stdout.is_empty(), !status.success(), "{stderr}");
                contract += &Masks::completions(&stdout);
            }
            Some("csv") => contract += &masks.csv(&stdout),
            Some("json") => contract += &masks.json(&stdout),
            Some("html") => text += &masks.page(&stdout),
            _ => text += &masks.text(&stdout),
        }
        let stderr = masks.text(&stderr);
        if !stderr.is_empty() {
            let _ = write!(text, "--- standard error\n{stderr}");
        }
    }
    let mut written: Vec<(String, PathBuf)> = files(&dir)
        .into_iter()
        .map(|path| {
            let below = path.strip_prefix(&dir).expect("below").to_str().expect("UTF-8");
            (Masks::file_name(below), path)
        })
        .collect();
    // Instants and ids, which would order them, are masked.
    written.sort();
    for (name, path) in written {
        let held = fs::read_to_string(&path).expect("text");
        if path.extension().is_some_and(|e| e == "json") {
            let _ = writeln!(contract, "file {name}\n{}", masks.json(&held).trim_end());
        } else {
            let _ = writeln!(text, "file {name}\n{}", masks.text(&held).trim_end());
        }
    }
    Seen { contract, text }
}

/// The files below a directory, by name.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Runs the cases of a group, and compares or keeps what they print.
fn check(group: &str, cases: &[Case]) {
    let mut all = Seen { contract: String::new(), text: String::new() };
    for case in cases {
        let seen = run(case);
        let _ = writeln!(all.contract, "{}", seen.contract);
        let _ = writeln!(all.text, "{}", seen.text);
    }
    hold(group, &all);
}

/// Compares what a group printed with what is kept, or keeps it.
fn hold(group: &str, seen: &Seen) {
    assert!(cases::GROUPS.contains(&group), "'{group}' is not in GROUPS");
    let wrong: Vec<String> = [("contract", &seen.contract), ("text", &seen.text)]
        .iter()
        .filter_map(|(kind, seen)| differs(kind, group, seen))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What tells an output from the kept one, if anything does.
fn differs(kind: &str, group: &str, seen: &str) -> Option<String> {
    let kept = golden().join("kept").join(kind).join(group).with_extension("txt");
    if std::env::var_os("LOADGEN_BLESS").is_some() {
        fs::create_dir_all(kept.parent().expect("a directory")).expect("a directory");
        fs::write(&kept, seen).expect("written");
        return None;
    }
    let expected = fs::read_to_string(&kept).unwrap_or_default();
    if expected == seen {
        return None;
    }
    let now = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{kind}-{group}.txt"));
    fs::write(&now, seen).expect("written");
    let mut command = "";
    let (mut old, mut new) = (expected.lines(), seen.lines());
    let (old, new) = loop {
        let (old, new) = (old.next(), new.next());
        if old != new {
            break (old.unwrap_or("(the end)"), new.unwrap_or("(the end)"));
        }
        if let Some(line) = new.filter(|line| line.starts_with("$ ")) {
            command = line;
        }
    };
    let at = old.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count();
    let around = |line: &str| -> String {
        let from = line.floor_char_boundary(at.saturating_sub(100));
        line[from..line.ceil_char_boundary(at.saturating_add(200).min(line.len()))].to_owned()
    };
    Some(format!(
        "{kind} of {group} differs\n{command}\n- {}\n+ {}\n\n  diff {} {}\n",
        around(old),
        around(new),
        kept.display(),
        now.display()
    ))
}

#[test]
fn every_kept_file_has_its_group() {
    for kind in ["contract", "text"] {
        let mut kept: Vec<String> = files(&golden().join("kept").join(kind))
            .iter()
            .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
            .collect();
        kept.sort();
        let mut groups: Vec<&str> = cases::GROUPS.to_vec();
        groups.sort_unstable();
        assert_eq!(kept, groups, "{kind}");
    }
}
