//! What a terminal would act upon, from every side that loadgen reads: none of it gets through.

use std::fs;
use std::process::Command;

use loadgen::canned::{Action, Answer, At, Canned, Fault, Listen, Script, tables};
use loadgen::summary::{Outcome, to_json};
use loadgen::terms::{Code, Finding, Value};

use super::{Said, program, run};
use crate::common::summaries::{step, worded};

/// A title for the window, an erased screen, a carriage return, C1's CSI, a reversed line, and a
/// line of its own that looks like one of loadgen's.
const HOSTILE: &str = "x\u{1b}]0;owned\u{7}\u{1b}[2J\r\u{9b}31m\u{202e}\u{2066}\nforged: y";

/// Neither acts upon a terminal nor begins a line of its own.
fn harmless(name: &str, said: &Said) {
    for text in [&said.stdout, &said.stderr] {
        let acts = |c: char| {
            (c.is_control() && c != '\n' && c != '\t')
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        assert!(!text.contains(acts), "{name}: {text:?}");
        assert!(!text.lines().any(|line| line.starts_with("forged")), "{name}: {text}");
    }
}

fn check(name: &str, command: &mut Command, code: i32) -> Said {
    let said = run(command, "");
    harmless(name, &said);
    assert_eq!(said.code, code, "{name}: {}", said.both());
    said
}

fn start(script: Script) -> (Canned, String) {
    let server = Canned::start(script, Listen::Port(0)).expect("a free port");
    let port = server.port().to_string();
    (server, port)
}

#[test]
fn a_servers_names_and_versions_are_shown_as_text() {
    let columns = ["Variable_name", "Value"];
    let row: [Option<&str>; 2] = [Some(HOSTILE), Some(HOSTILE)];
    let mut answers = vec![
        Answer::value("VERSION()", "v", &format!("8.0.0{HOSTILE}")),
        Answer::value("version_comment", "v", HOSTILE),
        Answer::rows("SHOW GLOBAL VARIABLES", &columns, &[&row]),
        Answer::rows("SHOW GLOBAL STATUS", &columns, &[&row]),
    ];
    answers.extend(tables::answers(2));
    let version = format!("8.0.0{HOSTILE}");
    let (_server, port) = start(Script { version, answers, ..Script::default() });
    let out = tempfile::tempdir().expect("a directory");
    let out = out.path().to_str().expect("a plain path");
    let tcp = ["--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", "u", "--out", out];
    let step = ["point-select", "--clients", "2", "--ops", "50"];
    check("point-select", &mut program(&[&step[..], &tcp[..]].concat()), 0);
    for format in ["text", "markdown", "csv", "json"] {
        check(format, &mut program(&["report", out, "--format", format]), 0);
    }
    check("settings", &mut program(&["report", out, "--layout", "settings"]), 0);
}

struct Asked {
    name: &'static str,
    at: At,
    words: &'static [&'static str],
}

#[test]
fn a_servers_errors_are_shown_as_text() {
    let error = || Action::error(1064, "\u{1b}[2J\r", HOSTILE);
    for Asked { name, at, words } in [
        Asked { name: "refused", at: At::Connect(1), words: &["cleanup", "--yes"][..] },
        Asked { name: "asked", at: At::Statement(2), words: &["cleanup", "--yes"] },
        Asked { name: "preparing", at: At::EachStatement(1), words: &["prepare", "--rows", "100"] },
        Asked { name: "loading", at: At::EachStatement(1), words: &["load", "--rows", "100"] },
        Asked {
            name: "measuring",
            at: At::EachStatement(60),
            words: &["point-select", "--ops", "500"],
        },
    ] {
        let script = Script {
            answers: tables::answers(1),
            faults: vec![Fault::new(at, error())],
            ..Script::default()
        };
        let (_server, port) = start(script);
        let out = tempfile::tempdir().expect("a directory");
        let tcp = ["--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", "u"];
        let mut command = program(&[words, &tcp[..]].concat());
        if words.len() == 3 && words[0] != "prepare" {
            command.arg("--out").arg(out.path());
        }
        let said = run(&mut command, "");
        harmless(name, &said);
        assert_ne!(said.code, 0, "{name}: {}", said.both());
        assert!(said.stderr.contains("owned"), "{name} says nothing of it: {}", said.stderr);
    }
}

#[test]
fn flags_and_file_names_are_shown_as_text() {
    let no_such = format!("/nowhere/{HOSTILE}");
    for args in [
        vec!["report", &no_such],
        vec!["report", ".", "--metric", HOSTILE],
        vec!["report", ".", "--layout", HOSTILE],
        vec!["report", ".", HOSTILE],
        vec!["compare", &no_such, "--base", HOSTILE, "--new", "b"],
        vec![HOSTILE],
        vec!["run", &no_such],
        vec!["run", ".", "--only", HOSTILE],
        vec!["cleanup", "--defaults-file", &no_such],
        vec!["cleanup", "--ssl-mode", HOSTILE],
        vec!["cleanup", "--no-defaults", "--url", HOSTILE],
        vec!["cleanup", "--no-defaults", "-h", "h", "-S", HOSTILE],
        vec!["prepare", "--rows", HOSTILE],
        vec!["prepare", "--charset", HOSTILE],
        vec!["point-select", "--clients", HOSTILE],
        vec!["point-select", "--distribution", HOSTILE],
        vec!["load", "--from-dump", &no_such, "--list", "--mode", HOSTILE],
    ] {
        let said = run(&mut program(&args), "");
        harmless(&format!("{args:?}"), &said);
        assert!(said.code != 0 && said.code != 101, "{args:?}: {}", said.both());
    }
    let out = tempfile::tempdir().expect("a directory");
    let taken = out.path().join("taken");
    fs::write(&taken, "").expect("writable");
    let taken = taken.to_str().expect("plain");
    // Labels and notes are the user's, and printed by --list.
    let words = ["point-select", "--list", "--note", &format!("k={HOSTILE}"), "--out", taken];
    let said = run(&mut program(&words), "");
    harmless("--list", &said);
}

#[test]
fn files_are_shown_as_text() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).expect("writable");
        path.to_str().expect("plain").to_owned()
    };
    let quoted = format!("{HOSTILE:?}").replace("\\u{", "\\U{");
    let quoted = ["1b", "7", "9b", "202e", "2066"]
        .iter()
        .fold(quoted, |text, hex| text.replace(&format!("\\U{{{hex}}}"), &format!("\\u{hex:0>4}")));
    let run_of = "[[run]]\nworkload = [\"point-select\"]\nclients = 1\nops = 1\n";
    let label =
        format!("name = \"x\"\n[[server]]\nlabel = {quoted}\nurl = \"mysql://h\"\n{run_of}");
    let raw = format!("name = \"x\"\n# {HOSTILE}\nlabel = {HOSTILE}\n");
    let key = format!("name = \"x\"\n[[server]]\n{quoted} = 1\n{run_of}");
    for (name, text) in [("label.toml", &label), ("raw.toml", &raw), ("key.toml", &key)] {
        let said = run(&mut program(&["run", &write(name, text), "--list"]), "");
        harmless(name, &said);
    }
    for (name, text) in [
        ("group.cnf", format!("[{HOSTILE}\n")),
        ("key.cnf", format!("[loadgen]\nx{HOSTILE}=1\n")),
        ("value.cnf", format!("[client]\nssl-mode={HOSTILE}\n")),
        ("include.cnf", format!("!include /nowhere/{HOSTILE}\n[client]\nport=x\n")),
        ("directive.cnf", format!("!{HOSTILE}\n[client]\nport=x\n")),
    ] {
        let path = write(name, &text);
        let said = run(&mut program(&["cleanup", "--defaults-file", &path, "-S", "/nowhere"]), "");
        harmless(name, &said);
        assert_ne!(said.code, 0, "{name}: {}", said.both());
    }
    let (_server, port) = start(Script { answers: tables::answers(1), ..Script::default() });
    for (name, text) in [
        ("verb.sql", format!("{HOSTILE} TABLE t;\n")),
        ("table.sql", format!("INSERT INTO `{HOSTILE}` VALUES (1);\n")),
        ("names.sql", format!("SET NAMES {HOSTILE};\nDROP DATABASE x;\n")),
    ] {
        let path = write(name, &text);
        let out = dir.path().join("results");
        let out = out.to_str().expect("plain");
        let tcp = ["--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", "u", "--out", out];
        let said = run(&mut program(&[&["load", "--from-dump", &path], &tcp[..]].concat()), "");
        harmless(name, &said);
        assert_ne!(said.code, 0, "{name}: {}", said.both());
    }
}

#[test]
fn summaries_are_shown_as_text() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut bad = step(0, HOSTILE, 8, 1.0);
    bad.step_id = HOSTILE.to_owned();
    bad.workload.name = HOSTILE.to_owned();
    bad.workload.distribution = HOSTILE.to_owned();
    bad.server.version = HOSTILE.to_owned();
    bad.server.transport = HOSTILE.to_owned();
    bad.server.variables.insert(HOSTILE.to_owned(), HOSTILE.to_owned());
    bad.notes.insert(HOSTILE.to_owned(), HOSTILE.to_owned());
    bad.warnings.push(worded(HOSTILE, HOSTILE));
    bad.warnings.push(Finding::Known(Code::Debt, vec![Value::One(HOSTILE.into())]).into());
    let mut other = bad.clone();
    (other.label, other.step_id) = (format!("b{HOSTILE}"), format!("b{HOSTILE}"));
    other.server.variables.insert(HOSTILE.to_owned(), "else".to_owned());
    let mut broken = bad.clone();
    (broken.outcome, broken.reason) = (Outcome::Aborted, Some(HOSTILE.to_owned()));
    broken.step_id = "c".to_owned();
    for (name, summary) in [("a", &bad), ("b", &other), ("c", &broken)] {
        // As somebody else would write it: unescaped but for what JSON demands.
        let json = serde_json::to_string(summary).expect("sound");
        assert_ne!(json, to_json(summary));
        fs::write(dir.path().join(format!("{name}.json")), json).expect("writable");
    }
    let path = dir.path().to_str().expect("plain");
    let b = format!("b{HOSTILE}");
    let layouts = ["versions", "list", "relative", "per-op", "peak", "settings"];
    for layout in layouts {
        for format in ["text", "markdown", "csv", "json"] {
            let args = ["report", path, "--partial", "--layout", layout, "--format", format];
            harmless(layout, &run(&mut program(&args), ""));
        }
    }
    for layout in ["delta", "overhead"] {
        let args = ["report", path, "--partial", "--layout", layout, "--from", HOSTILE, "--to", &b];
        harmless(layout, &run(&mut program(&args), ""));
    }
    let args = ["compare", path, "--base", HOSTILE, "--new", &b, "--force"];
    harmless("compare", &run(&mut program(&args), ""));
    fs::write(dir.path().join("d.json"), "{\"schema\": \"\\u001b[2J\\r\\u202e\"}")
        .expect("writable");
    fs::write(dir.path().join(format!("{}.json", HOSTILE.replace('/', "_"))), "{")
        .expect("writable");
    for flags in [&["report", path][..], &["report", path, "--partial", "--skip-bad"]] {
        harmless("damaged", &run(&mut program(flags), ""));
    }
}
