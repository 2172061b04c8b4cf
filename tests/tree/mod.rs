//! The tree keeps its shape: rooms in one order, small files, commands of the docs that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms in their order: each imports only those before it. Several names of one line are
/// one room, of which all but the first are on their way out.
const ROOMS: [&[&str]; 21] = [
    &["terms"],
    &["error"],
    &["stop"],
    &["progress"],
    &["workload"],
    &["observe"],
    &["stats"],
    &["canned"],
    &["mysql"],
    &["plan"],
    &["summary"],
    &["judge", "warnings"],
    &["engine"],
    &["report"],
    &["sandbox"],
    &["load"],
    &["verify"],
    &["commands"],
    &["run"],
    &["sysbench"],
    &["cli"],
];

/// Crates, and the rooms that know nothing of them.
const WITHOUT: [(&str, &[&str]); 3] = [
    ("tokio", &["terms", "error", "workload", "stats", "plan", "summary", "judge", "report"]),
    (
        "mysql_async",
        &[
            "terms", "error", "stop", "progress", "workload", "observe", "stats", "canned", "plan",
            "summary", "judge", "engine", "report", "sandbox", "commands", "run", "sysbench",
            "cli",
        ],
    ),
    (
        "clap",
        &[
            "terms", "error", "stop", "progress", "workload", "observe", "stats", "canned",
            "summary", "judge", "engine", "report", "sandbox", "load", "verify", "commands",
            "sysbench",
        ],
    ),
];

/// What imports against the order still: a file, and the room or crate. It only shrinks.
const STILL: &[(&str, &str)] = &[];

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The sources below a directory, by their path in it.
fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A source's code: no comments, and no unit tests at its end.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
    let lines = text[..end].lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The words that follow a path's beginning, such as `crate::`, braces opened.
fn after(code: &str, beginning: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices(beginning) {
        let before = code[..at].chars().next_back();
        let rest = &code[at + beginning.len()..];
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        // Of `{a::b, c}` the words at the depth of the first brace.
        let (mut depth, mut word, mut taken) = (0, String::new(), false);
        for c in rest.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ if c.is_alphanumeric() || c == '_' => {
                    if depth <= 1 && !taken {
                        word.push(c);
                    }
                    continue;
                }
                _ => {}
            }
            if !word.is_empty() {
                found.insert(std::mem::take(&mut word));
                taken = true;
            }
            taken &= !(c == ',' && depth == 1);
            if depth <= 0 {
                break;
            }
        }
    }
    found
}

fn place(room: &str) -> Option<usize> {
    ROOMS.iter().position(|names| names.contains(&room))
}

#[test]
fn rooms_import_only_rooms_before_them() {
    let mut against = BTreeSet::new();
    for path in sources(&src()) {
        let file = path.strip_prefix(src()).expect("below src").to_str().expect("UTF-8").to_owned();
        let room = file.split('/').next().expect("a name").trim_end_matches(".rs");
        if ["lib", "main", "build"].contains(&room) || file.contains("tests") {
            continue;
        }
        let at = place(room).unwrap_or_else(|| panic!("src/{file}: '{room}' is not in ROOMS"));
        let code = code(&path);
        for other in after(&code, "crate::") {
            if place(&other).is_some_and(|other| other > at) {
                against.insert((file.clone(), other));
            }
        }
        for (name, rooms) in WITHOUT {
            if rooms.contains(&ROOMS[at][0]) && code.contains(&format!("{name}::")) {
                against.insert((file.clone(), name.to_owned()));
            }
        }
    }
    let still: BTreeSet<(String, String)> =
        STILL.iter().map(|(file, room)| ((*file).to_owned(), (*room).to_owned())).collect();
    let lines = |of: Vec<&(String, String)>| -> String {
        of.iter().fold(String::new(), |all, (file, room)| {
            all + &format!("    (\"{file}\", \"{room}\"),\n")
        })
    };
    let (new, gone) = (against.difference(&still), still.difference(&against));
    let (new, gone) = (lines(new.collect()), lines(gone.collect()));
    assert!(
        new.is_empty() && gone.is_empty(),
        "against the order of rooms (move what is shared down; a renamed file keeps its entry):\n\
         {new}\nno longer so, to be removed from STILL:\n{gone}"
    );
}

#[test]
fn files_stay_below_700_lines_of_code() {
    let long: Vec<String> = sources(&src())
        .iter()
        .map(|path| (path, code(path).lines().count()))
        .filter(|(_, lines)| *lines > 700)
        .map(|(path, lines)| format!("{}: {lines} lines of code", path.display()))
        .collect();
    assert!(long.is_empty(), "split them:\n{}", long.join("\n"));
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
    // tests/docs runs those of the other pages.
    let pages = ["docs/reference", "docs/dev"].map(|dir| fs::read_dir(root.join(dir)));
    let pages = pages.into_iter().flat_map(|dir| dir.expect("docs"));
    let pages = pages.map(|entry| entry.expect("an entry").path());
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
    assert!(tried > 10, "{tried} commands were found");
}
