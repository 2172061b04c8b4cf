//! The tree keeps its shape: the direction of imports (see the crate's rustdoc), small modules,
//! nothing of the driver where it does not belong.

use std::fs;
use std::path::{Path, PathBuf};

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Lines of code, without comments and without the unit tests at a file's end.
fn code(path: &Path) -> Vec<(usize, String)> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let tests = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
    text[..tests]
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(i, line)| (i + 1, line.to_owned()))
        .collect()
}

fn uses(room: &str, forbidden: &[&str]) -> Vec<String> {
    let single = src().join(format!("{room}.rs"));
    let paths = if single.exists() { vec![single] } else { files(&src().join(room)) };
    assert!(!paths.is_empty(), "no room {room}");
    let mut found = Vec::new();
    for path in paths {
        for (number, line) in code(&path) {
            for name in forbidden {
                if line.contains(&format!("{name}::")) {
                    found.push(format!("{}:{number}: {name}: {}", path.display(), line.trim()));
                }
            }
        }
    }
    found
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn imports_point_one_way() {
    let rules: [(&str, &[&str]); 16] = [
        ("error", &["crate"]),
        (
            "plan",
            &[
                "tokio",
                "mysql_async",
                "crate::engine",
                "crate::mysql",
                "crate::summary",
                "crate::report",
                "crate::run",
                "crate::load",
                "crate::sandbox",
                "crate::observe",
            ],
        ),
        ("stats", &["tokio", "mysql_async", "crate::summary", "crate::report", "crate::engine"]),
        (
            "summary",
            &[
                "tokio",
                "mysql_async",
                "crate::engine",
                "crate::plan",
                "crate::observe",
                "crate::mysql",
                "crate::report",
                "crate::workload",
                "crate::run",
            ],
        ),
        (
            "report",
            &[
                "tokio",
                "mysql_async",
                "crate::engine",
                "crate::mysql",
                "crate::plan",
                "crate::observe",
                "crate::run",
                "crate::workload",
            ],
        ),
        (
            "judge",
            &[
                "tokio",
                "mysql_async",
                "crate::engine",
                "crate::mysql",
                "crate::plan",
                "crate::observe",
                "crate::report",
                "crate::run",
            ],
        ),
        (
            "warnings",
            &[
                "tokio",
                "mysql_async",
                "crate::engine",
                "crate::mysql",
                "crate::plan",
                "crate::observe",
                "crate::report",
                "crate::workload",
                "crate::run",
            ],
        ),
        (
            "workload",
            &[
                "tokio",
                "mysql_async",
                "std::net",
                "std::os",
                "crate::engine",
                "crate::mysql",
                "crate::plan",
                "crate::summary",
                "crate::run",
            ],
        ),
        (
            "observe",
            &["mysql_async", "crate::engine", "crate::mysql", "crate::report", "crate::run"],
        ),
        (
            "mysql",
            &["crate::engine", "crate::report", "crate::run", "crate::load", "crate::sandbox"],
        ),
        ("load", &["crate::engine", "crate::report", "crate::run", "crate::cli", "crate::sandbox"]),
        ("verify", &["crate::engine", "crate::report", "crate::run", "crate::cli", "crate::load"]),
        ("engine", &["crate::report", "crate::run", "crate::cli", "crate::load", "crate::sandbox"]),
        (
            "suite",
            &[
                "tokio",
                "mysql_async",
                "crate::engine",
                "crate::report",
                "crate::run",
                "crate::cli",
                "crate::load",
                "crate::sandbox",
            ],
        ),
        ("sandbox", &["crate::engine", "crate::report", "crate::run", "crate::cli", "crate::load"]),
        (
            "canned",
            &[
                "mysql_async",
                "crate::engine",
                "crate::mysql",
                "crate::report",
                "crate::run",
                "crate::cli",
                "crate::load",
                "crate::sandbox",
            ],
        ),
    ];
    let wrong: Vec<String> = rules.iter().flat_map(|(room, names)| uses(room, names)).collect();
    assert!(wrong.is_empty(), "imports against the arrows:\n{}", wrong.join("\n"));
}

#[test]
fn modules_stay_small() {
    let long: Vec<String> = files(&src())
        .iter()
        .map(|path| (path, code(path).len()))
        .filter(|(_, lines)| *lines > 700)
        .map(|(path, lines)| format!("{}: {lines} lines of code", path.display()))
        .collect();
    assert!(long.is_empty(), "split them:\n{}", long.join("\n"));
}

#[test]
fn every_dependency_has_a_reason() {
    for name in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let text = fs::read_to_string(src().join("..").join(name)).expect(name);
        let (mut inside, mut reason) = (false, false);
        for line in text.lines() {
            if line.starts_with('[') {
                inside = line.ends_with("dependencies]");
                reason = false;
            } else if inside && !line.starts_with('#') && !line.is_empty() {
                assert!(reason, "{name}: why is it there? {line}");
                // One reason may be for several of them, one below the other.
            }
            reason = line.starts_with('#') || (reason && !line.is_empty());
        }
    }
}

#[test]
fn actions_are_pinned_by_commit() {
    let dir = src().join("../.github/workflows");
    for entry in fs::read_dir(dir).expect("workflows") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("readable");
        for line in text.lines().filter(|line| line.contains("uses:")) {
            let commit = line.split_once('@').map_or("", |(_, rest)| rest);
            let (commit, tag) = commit.split_once(" # ").unwrap_or((commit, ""));
            let hex = commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit());
            assert!(hex && tag.starts_with('v'), "{}: {line}", path.display());
        }
    }
}

/// The cells of a table's line: a bar within a text has no blanks around it.
fn cells(line: &str) -> Option<Vec<&str>> {
    Some(line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").map(str::trim).collect())
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether `sweep disk::a_test`, `a_test`, `sweep disk`, `summary::record` or a path is there.
fn is_there(named: &str, sources: &[(String, String)]) -> bool {
    let named = named.rsplit(' ').next().unwrap_or(named);
    if named.contains('/') {
        return src().join("..").join(named).exists();
    }
    let mut path = named.rsplit("::");
    let (name, room) = (path.next().unwrap_or(named), path.next());
    let in_room = |stem: &str| room.is_none_or(|room| room == "tests" || room == stem);
    sources.iter().any(|(stem, text)| {
        stem == name
            || (in_room(stem) && text.contains(&format!("fn {name}(")) && is_test(text, name))
    })
}

/// Whether a function has the attribute among what stands above it.
fn is_test(text: &str, name: &str) -> bool {
    let above = text.split(&format!("fn {name}(")).next().unwrap_or_default();
    let above = above.trim_end().lines().rev().map(str::trim);
    above
        .take_while(|line| line.starts_with("#[") || line.starts_with("//"))
        .any(|l| l == "#[test]")
}

#[test]
fn every_fault_names_a_test_that_is_there() {
    let tests = src().join("../tests");
    let sources: Vec<(String, String)> = [files(&tests), files(&src())]
        .concat()
        .iter()
        .map(|path| {
            let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (stem, fs::read_to_string(path).expect("readable"))
        })
        .collect();
    let text = fs::read_to_string(src().join("../docs/faults.md")).expect("docs/faults.md");
    let (mut column, mut checked, mut wrong) = (None, 0, Vec::new());
    for line in text.lines().filter(|line| !line.starts_with("|---")) {
        let row = cells(line);
        column =
            row.as_ref().and_then(|row| column.or(row.iter().position(|head| *head == "test")));
        let cell = column.map(|at| row.as_ref().and_then(|row| row.get(at).copied()));
        if cell.is_some_and(|cell| cell.is_none_or(str::is_empty)) {
            wrong.push(format!("no test: {line}"));
        }
        let cell = cell.flatten().filter(|cell| *cell != "test");
        let rooms = ["sweep ", "hostile ", "canned "];
        let elsewhere = quoted(line).filter(|text| rooms.iter().any(|room| text.starts_with(room)));
        for named in cell.map(quoted).into_iter().flatten().chain(elsewhere) {
            checked += 1;
            if !is_there(named, &sources) {
                wrong.push(format!("no test '{named}'"));
            }
        }
    }
    assert!(checked > 40, "{checked} names");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for no_test in ["sweep disk::no_such_test", "sweep disk::may_mount", "no_such_room", "a/b.rs"] {
        assert!(!is_there(no_test, &sources), "{no_test}");
    }
}

#[test]
fn main_is_thin() {
    let main = fs::read_to_string(src().join("main.rs")).expect("main.rs");
    assert!(main.lines().count() <= 60);
}

/// The words of a line as a shell splits them, up to a comment or a redirection.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#' | '>' | '|' | '&' | ';') if word.is_none() => break,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The command lines of loadgen in the code of a page.
fn commands(text: &str) -> Vec<String> {
    let (mut found, mut fenced) = (Vec::new(), false);
    let text = text.replace("\\\n", " ");
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        let code = if fenced { Some(line) } else { line.strip_prefix("    ") };
        let code = code.map(|code| code.trim_start().trim_start_matches("$ "));
        // What is left out, or stands for something, is no command.
        let whole = |code: &&str| code.starts_with("loadgen ") && !code.contains(['…', '[', '<']);
        found.extend(code.filter(whole).map(str::to_owned));
    }
    found
}

#[test]
fn a_command_of_the_docs_is_one_that_loadgen_takes() {
    let root = src().join("..");
    let mut pages: Vec<PathBuf> = fs::read_dir(root.join("docs"))
        .expect("docs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect();
    pages.push(root.join("README.md"));
    let mut tried = 0;
    for page in pages {
        for command in commands(&fs::read_to_string(&page).expect("readable")) {
            // Flags and values are looked at before the help is shown.
            let output = std::process::Command::new(env!("CARGO_BIN_EXE_loadgen"))
                .args(&words(&command)[1..])
                .arg("--help")
                .current_dir(&root)
                .output()
                .expect("the program runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {command}\n{said}", page.display());
            tried += 1;
        }
    }
    assert!(tried > 40, "{tried} commands were found");
}
