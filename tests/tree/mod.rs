//! The tree keeps its shape: rooms in one order, small files, commands of the docs that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms in their order: each imports only those before it. Several names of one line are
/// one room, of which all but the first are on their way out.
const ROOMS: [&[&str]; 23] = [
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
    &["judge"],
    &["lua"],
    &["engine"],
    &["hosts"],
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
    (
        "tokio",
        &["terms", "error", "workload", "stats", "plan", "summary", "judge", "lua", "report"],
    ),
    (
        "mysql_async",
        &[
            "terms", "error", "stop", "progress", "workload", "observe", "stats", "canned", "plan",
            "summary", "judge", "lua", "engine", "hosts", "report", "sandbox", "commands", "run",
            "sysbench", "cli",
        ],
    ),
    (
        "clap",
        &[
            "terms", "error", "stop", "progress", "workload", "observe", "stats", "canned",
            "summary", "judge", "lua", "engine", "hosts", "report", "sandbox", "load", "verify",
            "commands", "sysbench",
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

/// A source's code: no comments, and no unit tests, which are at its end or in a file of their own.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut lines = text.lines().peekable();
    let mut kept = Vec::new();
    while let Some(line) = lines.next() {
        let module = lines.peek().filter(|next| line == "#[cfg(test)]" && next.starts_with("mod "));
        match module {
            Some(module) if module.ends_with('{') => break,
            Some(_) => drop(lines.next()),
            None if line.trim_start().starts_with("//") => {}
            None => kept.push(line),
        }
    }
    kept.join("\n")
}

/// A source file as a module: its path from the crate's root, and the paths that it names.
struct Module {
    file: String,
    /// Its imports, by the name here.
    imports: BTreeMap<String, String>,
    /// The paths that its code uses; a name that is only passed on is none.
    used: BTreeSet<String>,
}

/// The modules of the program by their paths: no tests, and not the crate's root.
fn modules() -> BTreeMap<String, Module> {
    let mut all = BTreeMap::new();
    for source in sources(&src()) {
        let file = source.strip_prefix(src()).expect("below src").to_str().expect("UTF-8");
        if !file.contains("tests") && !["lib.rs", "main.rs", "build.rs"].contains(&file) {
            let path = file.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
            all.insert(path, (file.to_owned(), code(&source)));
        }
    }
    let is_module = |path: &str| all.contains_key(path);
    all.iter()
        .map(|(path, (file, code))| (path.clone(), module(path, file, code, &is_module)))
        .collect()
}

fn module(path: &str, file: &str, code: &str, is_module: &dyn Fn(&str) -> bool) -> Module {
    let mut module =
        Module { file: file.to_owned(), imports: BTreeMap::new(), used: BTreeSet::new() };
    let (mut body, mut passed_on, mut lines) = (String::new(), Vec::new(), code.lines());
    while let Some(line) = lines.next() {
        let Some((before, import)) = line
            .split_once("use ")
            .filter(|(before, _)| ["", "pub", "pub(crate)", "pub(super)"].contains(&before.trim()))
        else {
            body += line;
            body += "\n";
            continue;
        };
        let mut import = import.to_owned();
        while !import.ends_with(';') {
            import += lines.next().expect("the import ends");
        }
        for import in expanded(import.trim_end_matches(';')) {
            let last = import.trim_end_matches("::self").rsplit("::").next().expect("a part");
            let (import, name) = import.split_once(" as ").unwrap_or((&import, last));
            let Some(import) = absolute(import, path, is_module) else { continue };
            if before.trim().is_empty() {
                module.used.insert(import.clone());
            } else {
                passed_on.push((name.to_owned(), import.clone()));
            }
            module.imports.insert(name.to_owned(), import);
        }
    }
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let named: BTreeSet<&str> = body.split(|c| !is_name(c) && c != ':').collect();
    module.used.extend(named.iter().filter_map(|named| absolute(named, path, is_module)));
    // A type, or the call of a function that is no method.
    let is_used = |name: &str| {
        body.match_indices(name).any(|(at, _)| {
            let (before, after) = (&body[..at], &body[at + name.len()..]);
            let is_own = name.starts_with(char::is_uppercase) || after.starts_with('(');
            let whole = !before.ends_with(is_name) && !after.starts_with(is_name);
            whole && is_own && !before.ends_with('.') && !before.ends_with("fn ")
        })
    };
    let own = passed_on.into_iter().filter(|(name, _)| is_used(name));
    module.used.extend(own.map(|(_, import)| import));
    module
}

/// Lists the paths of an import, its braces opened.
fn expanded(import: &str) -> Vec<String> {
    let import = import.trim();
    let Some((before, braces)) = import.split_once('{') else {
        return Vec::from_iter((!import.is_empty()).then(|| import.to_owned()));
    };
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for c in braces[..braces.rfind('}').expect("it is closed")].chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match c {
            ',' if depth == 0 => parts.push(String::new()),
            c => parts.last_mut().expect("one part").push(c),
        }
    }
    parts
        .iter()
        .flat_map(|part| expanded(part))
        .flat_map(|part| expanded(&format!("{before}{part}")))
        .collect()
}

/// Gives a path of this program's from the crate's root on; None for another crate's.
fn absolute(path: &str, module: &str, is_module: &dyn Fn(&str) -> bool) -> Option<String> {
    let (first, rest) = path.split_once("::")?;
    let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
    let joined = |start: &str| format!("{start}::{rest}").trim_start_matches("::").to_owned();
    match first {
        "crate" => Some(rest.to_owned()),
        "self" => Some(joined(module)),
        "super" if rest.starts_with("super::") => absolute(rest, parent, is_module),
        "super" => Some(joined(parent)),
        child => {
            is_module(&format!("{module}::{child}")).then(|| joined(&format!("{module}::{child}")))
        }
    }
}

/// Finds the module that a path is defined in, through those that pass it on.
fn owner<'a>(path: &str, modules: &'a BTreeMap<String, Module>) -> Option<&'a str> {
    let path = path.trim_end_matches("::self");
    let ends = path.match_indices("::").map(|(at, _)| at).chain([path.len()]);
    let end = ends.filter(|at| modules.contains_key(&path[..*at])).last()?;
    let (own, module) = modules.get_key_value(&path[..end]).expect("just found");
    let name = path[end..].trim_start_matches("::").split("::").next().expect("a part");
    match module.imports.get(name) {
        Some(import) if import != path => owner(import, modules),
        _ => Some(own),
    }
}

#[test]
fn no_file_imports_one_that_imports_it() {
    let modules = modules();
    let uses = |(path, module): (&String, &Module)| {
        let used = module.used.iter().filter_map(|used| owner(used, &modules));
        (path.clone(), used.filter(|used| used != path).map(str::to_owned).collect::<BTreeSet<_>>())
    };
    let uses: BTreeMap<String, BTreeSet<String>> = modules.iter().map(uses).collect();
    let reached = |from: &String| {
        let (mut found, mut left) = (BTreeSet::new(), vec![from]);
        while let Some(next) = left.pop() {
            left.extend(uses[next].iter().filter(|next| found.insert((*next).clone())));
        }
        found
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        uses.keys().map(|path| (path, reached(path))).collect();
    let mut circles = String::new();
    for (path, used) in &uses {
        let back = used.iter().filter(|used| reached[used].contains(path));
        let back: Vec<&str> = back.map(|used| &*modules[used].file).collect();
        if !back.is_empty() {
            circles += &format!("    {} imports {}\n", modules[path].file, back.join(", "));
        }
    }
    assert!(circles.is_empty(), "move what they share to a file of its own:\n{circles}");
}

fn place(room: &str) -> Option<usize> {
    ROOMS.iter().position(|names| names.contains(&room))
}

#[test]
fn rooms_import_only_rooms_before_them() {
    let mut against = BTreeSet::new();
    for (path, module) in modules() {
        let room = path.split("::").next().expect("a name");
        let at =
            place(room).unwrap_or_else(|| panic!("src/{}: '{room}' is not in ROOMS", module.file));
        let passed_on = module.imports.into_values();
        for other in module.used.into_iter().chain(passed_on) {
            let other = other.split("::").next().expect("a name");
            if place(other).is_some_and(|other| other > at) {
                against.insert((module.file.clone(), other.to_owned()));
            }
        }
        for (name, rooms) in WITHOUT {
            let code = code(&src().join(&module.file));
            if rooms.contains(&ROOMS[at][0]) && code.contains(&format!("{name}::")) {
                against.insert((module.file.clone(), name.to_owned()));
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

/// Rooms that write summaries, and the sums among the types of these: they begin at zero.
const WRITERS: [&str; 4] = ["engine", "run", "load", "commands"];
const SUMS: [&str; 2] = ["LedgerEntry", "Doubt"];

#[test]
fn a_field_of_a_summary_is_never_defaulted_when_it_is_written() {
    let texts = ["summary/mod.rs", "mysql/facts.rs"].map(|file| code(&src().join(file)));
    let declared = texts.iter().flat_map(|text| text.split("pub struct ").skip(1));
    let types: BTreeSet<&str> =
        declared.map(|rest| rest.split([' ', '<']).next().expect("a name")).collect();
    assert!(types.contains("Summary") && types.contains("Server") && types.len() > 30);
    let mut defaulted = Vec::new();
    for source in WRITERS.iter().flat_map(|room| sources(&src().join(room))) {
        let text = code(&source);
        let is_test = source.ends_with("tests.rs");
        for (at, _) in text.match_indices("::default()").filter(|_| !is_test) {
            let of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
            let path = text[..at].rsplit(|c| !of_path(c)).next().expect("a part");
            let name = path.rsplit("::").next().expect("a name");
            let rest = name == "Default" && text[..at].ends_with("..Default");
            if rest || types.contains(name) && !SUMS.contains(&name) {
                defaulted.push(format!("{}: {path}::default()", source.display()));
            }
        }
    }
    assert!(defaulted.is_empty(), "write all fields:\n{}", defaulted.join("\n"));
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
