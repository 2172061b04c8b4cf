//! Every command of the README, docs/user and docs/cookbook is run, as it is written there.
//!
//! A command is what stands in a fenced block `sh`. Those of a file run one after the other in one bash, in an
//! empty directory, beside a private server. The texts are not edited: a `loadgen` in PATH makes runs smaller
//! and leads `db1` to the private server (`tests/docs/loadgen`). A comment such as `# exits with 98 or 99`
//! tells other exit statuses than 0 that are well, too.

mod seeds;

use crate::common;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Beginnings of commands that do not run here, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("cargo build", "the tests have built it"),
    ("sudo ", "it changes this machine; scripts/check-package does it elsewhere"),
    ("tar xzf", "scripts/check-package does it"),
    ("sha256sum ", "scripts/check-package does it"),
    ("man ", "scripts/check-package does it"),
    ("docker ", "scripts/check-package does it, where a daemon answers"),
    ("cargo install", "it needs the repository's address"),
    ("scripts/", "it builds a release and runs for minutes"),
];

/// One command, with the line of the file that it begins at.
#[derive(Debug, PartialEq, Eq)]
struct Typed {
    line: usize,
    text: String,
    /// Exit statuses that are well.
    well: Vec<i32>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files whose commands run.
fn files() -> Vec<String> {
    let mut files = vec!["README.md".to_owned()];
    for dir in ["docs/user", "docs/cookbook"] {
        let entries = fs::read_dir(root().join(dir)).expect("a directory");
        files.extend(entries.map(|entry| {
            let name = entry.expect("an entry").file_name();
            format!("{dir}/{}", name.to_str().expect("UTF-8"))
        }));
    }
    files.sort();
    files
}

/// Takes the commands out of a text.
fn typed(text: &str) -> Vec<Typed> {
    let (mut found, mut inside, mut open) = (Vec::new(), false, None::<Typed>);
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with("```") {
            assert!(open.is_none(), "line {number}: a command does not end");
            inside = !inside && line == "```sh";
            continue;
        }
        let blank = line.trim().is_empty() || line.starts_with('#');
        if !inside || (blank && open.is_none()) {
            continue;
        }
        let mut command =
            open.take().unwrap_or(Typed { line: number, text: String::new(), well: vec![0] });
        command.text += line;
        command.text.push('\n');
        if is_whole(&command.text) {
            command.well.extend(told_statuses(&command.text));
            found.push(command);
        } else {
            open = Some(command);
        }
    }
    found
}

/// Tells whether a command ends here: it is not continued, in quotes, in a loop, or in a document.
fn is_whole(text: &str) -> bool {
    if let Some((_, rest)) = text.split_once("<<'") {
        let word = rest.split('\'').next().expect("a word");
        return text.lines().skip(1).any(|line| line == word);
    }
    let even = |quote: char| text.matches(quote).count().is_multiple_of(2);
    let count = |word: &str| text.lines().filter(|line| line.trim().starts_with(word)).count();
    let looping = count("for ") > count("done");
    !text.ends_with("\\\n") && even('\'') && even('"') && !looping
}

/// Reads `# exits with 98 or 99`.
fn told_statuses(text: &str) -> Vec<i32> {
    let told = text.split_once("# exits with ").map_or("", |(_, told)| told);
    let numbers = told.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty());
    let statuses: Vec<i32> = numbers.map(|number| number.parse().expect("a number")).collect();
    assert!(
        statuses.iter().all(|status| [98, 99].contains(status)),
        "{text}: other statuses are errors"
    );
    statuses
}

/// Writes the commands as a script that says which one ended otherwise.
fn script(file: &str, commands: &[Typed]) -> String {
    let mut script = String::from("set -o pipefail\nfailed=0\n");
    for Typed { line, text, well } in commands {
        if NOT_RUN.iter().any(|(start, _)| text.starts_with(start)) {
            continue;
        }
        let list: String = well.iter().map(|status| format!("|{status}")).collect();
        let bad = format!("failed=1; echo \"DOCS FAILED {file}:{line}: exit status $status\"");
        let judged = format!("{}) ;; *) {bad}", &list[1..]);
        let _ = write!(
            script,
            "echo \"== {file}:{line} at $SECONDS s\"\n{text}status=$?\ncase $status in {judged} ;; esac\n"
        );
    }
    script + "exit $failed\n"
}

/// A directory to type in, with a home, programs in PATH, and what the server is reached by.
struct Desk {
    dir: tempfile::TempDir,
    _server: loadgen::sandbox::Sandbox,
    path: String,
}

impl Desk {
    fn new() -> Self {
        let local = common::local();
        let server = common::sandbox(&local, &[("local-infile", "1")]);
        let dir = tempfile::tempdir().expect("a directory");
        let (home, bin) = (dir.path().join("home"), dir.path().join("bin"));
        for made in [&home, &bin, &dir.path().join("work")] {
            fs::create_dir(made).expect("a directory");
        }
        let (socket, port) = (server.socket.display(), server.port);
        let options = format!("[client]\nuser=root\nsocket={socket}\nport={port}\n");
        fs::write(home.join(".my.cnf"), options).expect("written");
        for account in ["'root'@'127.0.0.1'", "'root'@'localhost'"] {
            common::query(&server, &format!("ALTER USER {account} IDENTIFIED BY ''"));
        }
        for name in ["loadgen", "mysql"] {
            let from = root().join("tests/docs").join(name);
            let to = bin.join(name);
            fs::copy(from, &to).expect("copied");
            fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).expect("set");
        }
        for (program, link) in [
            (root().join("profiles"), dir.path().join("work/profiles")),
            (local.program.clone(), dir.path().join("other-mariadbd")),
        ] {
            std::os::unix::fs::symlink(program, link).expect("a link");
        }
        let path = std::env::var("PATH").expect("PATH");
        let path = format!("{}:{path}:/usr/sbin", bin.display());
        Desk { dir, _server: server, path }
    }

    fn run(&self, script: &str) -> (bool, String) {
        let file = self.dir.path().join("script");
        fs::write(&file, script).expect("written");
        let log = fs::File::create(self.dir.path().join("log")).expect("a file");
        let status = Command::new("bash")
            .arg(&file)
            .current_dir(self.dir.path().join("work"))
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.dir.path().join("home"))
            .env("XDG_STATE_HOME", self.dir.path().join("home"))
            .env("LC_ALL", "C.UTF-8")
            .env("USER", "root")
            .env("LOADGEN_BINARY", env!("CARGO_BIN_EXE_loadgen"))
            .env("MARIADBD", common::local().program)
            .env("OTHER_MARIADBD", self.dir.path().join("other-mariadbd"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a copy"))
            .stderr(log)
            .status()
            .expect("bash runs");
        let log = fs::read(self.dir.path().join("log")).expect("the log");
        (status.success(), String::from_utf8_lossy(&log).into_owned())
    }
}

/// Runs the commands of a file.
fn check(file: &str) {
    let commands = typed(&fs::read_to_string(root().join(file)).expect("a text"));
    let runs = |command: &Typed| !NOT_RUN.iter().any(|(start, _)| command.text.starts_with(start));
    if commands.iter().any(runs) {
        let (well, log) = Desk::new().run(&script(file, &commands));
        assert!(well, "{log}");
    }
}

macro_rules! pages {
    ($($name:ident $file:literal;)*) => {
        $(#[test]
        fn $name() {
            check($file);
        })*

        #[test]
        fn every_page_is_checked() {
            assert_eq!(files(), [$($file),*], "a page without a test, or a test without a page");
        }
    };
}

// In the order of their names.
pages! {
    readme "README.md";
    chart "docs/cookbook/chart.md";
    failover "docs/cookbook/failover.md";
    grafana "docs/cookbook/grafana.md";
    highest_rate "docs/cookbook/highest-rate.md";
    io_bound "docs/cookbook/io-bound.md";
    one_setting "docs/cookbook/one-setting.md";
    two_versions "docs/cookbook/two-versions.md";
    writer_beside_readers "docs/cookbook/writer-beside-readers.md";
    callaghan_sysbench "docs/user/callaghan-sysbench.md";
    ci "docs/user/ci.md";
    connections "docs/user/connections.md";
    experiments "docs/user/experiments.md";
    from_sysbench "docs/user/from-sysbench.md";
    glossary "docs/user/glossary.md";
    insert_benchmark "docs/user/insert-benchmark.md";
    install "docs/user/install.md";
    many_hosts "docs/user/many-hosts.md";
    notes "docs/user/notes.md";
    open_loop "docs/user/open-loop.md";
    outages "docs/user/outages.md";
    own_workload "docs/user/own-workload.md";
    quick_start "docs/user/quick-start.md";
    reading_results "docs/user/reading-results.md";
    scripts "docs/user/scripts.md";
    tpcc "docs/user/tpcc.md";
    troubleshooting "docs/user/troubleshooting.md";
}

#[test]
fn what_does_not_run_still_occurs() {
    let texts =
        files().into_iter().map(|file| fs::read_to_string(root().join(file)).expect("a text"));
    let all: Vec<Typed> = texts.flat_map(|text| typed(&text)).collect();
    for start in NOT_RUN.iter().map(|(start, _)| start) {
        assert!(
            all.iter().any(|command| command.text.starts_with(start)),
            "no page says '{start}'"
        );
    }
}

#[test]
fn lines_are_short() {
    for file in files() {
        let text = fs::read_to_string(root().join(&file)).expect("a text");
        for (number, line) in (1..).zip(text.lines()) {
            assert!(line.chars().count() <= 140, "{file}:{number}: longer than 140 characters");
        }
        assert!(
            file != "README.md" || text.lines().count() <= 120,
            "README.md has more than 120 lines"
        );
    }
}

/// All pages, those of docs/dev and docs/reference among them.
fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = files().into_iter().map(|file| root().join(file)).collect();
    for dir in ["docs/reference", "docs/dev"] {
        let entries = fs::read_dir(root().join(dir)).expect("a directory");
        pages.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    pages
}

#[test]
fn links_lead_somewhere() {
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a text");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let to =
                if file.is_empty() { page.clone() } else { page.with_file_name("").join(file) };
            let there =
                fs::read_to_string(&to).or_else(|_| fs::read_dir(&to).map(|_| String::new()));
            let there = there.unwrap_or_else(|_| panic!("{}: {link}", page.display()));
            let mut titles = there.lines().filter(|line| line.starts_with('#')).map(anchor_of);
            let known = anchor.is_empty() || titles.any(|title| title == anchor);
            assert!(known, "{}: {link}", page.display());
        }
    }
}

/// Gives the anchor that GitHub makes of a title.
fn anchor_of(title: &str) -> String {
    let title = title.trim_start_matches('#').trim().to_lowercase();
    let kept = title.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn commands_are_found_whole() {
    let text = "a\n\n```sh\n# first\nloadgen a \\\n  b\n\ncat > f <<'END'\n'\nEND\nx  # exits with 98 or 99\n```\n```text\nno\n```\n";
    let found = typed(text);
    let texts: Vec<&str> = found.iter().map(|command| command.text.as_str()).collect();
    assert_eq!(
        texts,
        ["loadgen a \\\n  b\n", "cat > f <<'END'\n'\nEND\n", "x  # exits with 98 or 99\n"]
    );
    assert_eq!(found[2].well, [0, 98, 99]);
    assert_eq!(found[0].line, 5);
}
