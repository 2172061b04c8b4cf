//! Files that somebody else may have written: profiles, summaries and their histograms, option
//! files, dumps.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::ValueEnum;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use loadgen::error::{Error, plain};
use loadgen::load::dump::{Judge, unquoted};
use loadgen::mysql::options::resolve::resolve;
use loadgen::mysql::options::{ConnectionArgs, Secret};
use loadgen::mysql::options::{Env, Text};
use loadgen::plan::experiment::{self, Overrides};
use loadgen::plan::profile::Profile;
use loadgen::report::{
    Format, Layout, Notes, Options, Picture, Question, compare, doubtful, explain, gates, page,
    picture, render,
};
use loadgen::summary::{Summary, from_json, to_json};
use loadgen::workload::sql::Splitter;

use super::harmless;

/// A profile, and the whole plan that `--list` prints of it.
pub(crate) fn profile(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let profile = match Profile::parse(text, "p.toml") {
        Ok(profile) => profile,
        Err(error) => return harmless(&error.render()),
    };
    let mut overrides = Overrides { seed: 1, out: "results".into(), ..Overrides::default() };
    for programs in [vec![], vec![("program".to_owned(), PathBuf::from("/nowhere/mysqld"))]] {
        overrides.programs = programs;
        match experiment::build(&profile, &overrides) {
            Ok(experiment) => {
                let list = experiment.list(|_| true, |_| 0);
                assert!(list.ends_with('\n'));
            }
            Err(error) => harmless(&error.render()),
        }
    }
}

/// A summary in every report; and what is read is written and read again.
pub(crate) fn summary(bytes: &[u8]) {
    match from_json(bytes) {
        Ok(summary) => {
            let json = to_json(&summary);
            harmless(&json);
            assert_eq!(from_json(json.as_bytes()).map(|again| to_json(&again)), Ok(json));
            reports(&summary);
        }
        Err(why) => harmless(&why),
    }
}

/// Everything that is made of summaries: of this one, of another repeat and of another label.
fn reports(summary: &Summary) {
    // A name or a label may begin a line; what stands behind a line end of its own must not.
    if to_json(summary).contains("\"hostile:") {
        return;
    }
    let mut repeat = summary.clone();
    repeat.step_id.push('x');
    repeat.plan.repeat_index = repeat.plan.repeat_index.wrapping_add(1);
    let mut other = summary.clone();
    other.step_id.push('y');
    other.label.push('y');
    let steps = [summary, &repeat, &other];
    let label = |of: &Summary, wanted: bool| wanted.then(|| of.label.clone());
    for (at, layout) in Layout::value_variants().iter().enumerate() {
        let compares = matches!(layout, Layout::Delta | Layout::Overhead);
        let metric = ["natural", "p99", "response-p99.9", "cpu"][at % 4];
        for format in Format::value_variants() {
            shown(render(
                &steps,
                &Options {
                    metric: metric.parse().unwrap_or_default(),
                    layout: *layout,
                    format: *format,
                    baseline: label(summary, compares),
                    new: label(&other, compares),
                    partial: true,
                    notes: if at % 2 == 0 { Notes::Brief } else { Notes::All },
                    terminal: (at % 2 == 0).then_some(80),
                    spread: *layout == Layout::Versions,
                    ..Options::default()
                },
            ));
        }
    }
    let (base, new) = (summary.label.clone(), other.label.clone());
    for format in Format::value_variants() {
        let (base, new) = (base.clone(), new.clone());
        let contrast = Question { base, new, force: true, format: *format, ..Question::default() };
        shown(explain(&steps, &contrast));
    }
    let partial = Options { partial: true, ..Options::default() };
    drawn(&steps, &partial);
    drawn(&steps, &Options { baseline: Some(base.clone()), ..partial.clone() });
    let wanted = ["qps<10k", "p99<1ms", "errors<50%"].map(|gate| gate.parse().expect("a gate"));
    shown(gates(&steps, &wanted, &partial).map(|gates| {
        gates.failed.iter().chain(&gates.undecided).for_each(|text| harmless(&plain(text)));
        gates.text
    }));
    shown(doubtful(&steps, &partial, 0.1).map(|doubts| format!("{}", doubts.len())));
    let question = Question {
        base,
        new,
        metric: "qps".parse().unwrap_or_default(),
        floor: 0.02,
        repeats_max: 24,
        force: true,
        ..Question::default()
    };
    shown(compare(&steps, &question).map(|comparison| comparison.text));
}

/// The page and the pictures: no text of a summary is markup in them.
fn drawn(steps: &[&Summary], options: &Options) {
    if let Ok(page) = page(steps, options) {
        harmless(&page);
        assert_eq!(page.matches("<script").count(), 1, "a script that is not ours");
        assert!(!page.contains("<hostile"), "a tag that is not ours");
    }
    for chart in Picture::value_variants() {
        if let Ok(svg) = picture(steps, options, *chart) {
            harmless(&svg);
            assert!(
                !svg.contains("<script") && !svg.contains("<hostile"),
                "a tag that is not ours"
            );
        }
    }
}

/// What is printed, or why nothing is. No line of it is a summary's.
fn shown(made: Result<String, Error>) {
    let text = made.unwrap_or_else(|error| error.render());
    harmless(&text);
    assert!(!text.lines().any(|line| line.starts_with("hostile:")), "a summary's line: {text}");
}

/// The bytes as the inflated histogram of a sound summary.
pub(crate) fn histogram(bytes: &[u8]) {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let deflated = encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory");
    // The cookie of HdrHistogram V2, deflated, then a length that nobody looks at.
    let text = [&[0x1c, 0x84, 0x93, 0x14, 0, 0, 0, 0][..], &deflated].concat();
    let mut summary = from_json(include_bytes!("../../../tests/fixtures/summary.json"))
        .expect("the fixture is sound");
    summary.latency.service.histogram = STANDARD.encode(text);
    let options = Options { metric: "p42.5".parse().expect("a percentile"), ..Options::default() };
    match render(&[&summary], &options) {
        Ok(text) => harmless(&text),
        Err(error) => harmless(&error.render()),
    }
}

/// Up to three option files, NUL between them, of which each may include the others.
pub(crate) fn option_file(bytes: &[u8]) {
    for mode in [0o600, 0o644] {
        let files = bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        match resolve(&ConnectionArgs::default(), &world(files, mode)) {
            Ok(resolved) => resolved.warnings.iter().for_each(|text| harmless(&plain(text))),
            Err(error) => harmless(&error.render()),
        }
    }
}

/// An environment with these option files alone.
pub(crate) fn world(files: Vec<Vec<u8>>, mode: u32) -> Env {
    Env {
        vars: [("HOME".into(), "/home/me".into())].into(),
        os_user: Some("me".to_owned()),
        read: Box::new(move |path| {
            let at = match path.to_str() {
                Some("/etc/my.cnf") => 0,
                Some("/etc/mysql/my.cnf") => 1,
                Some("/home/me/.my.cnf") => 2,
                Some(other) => other.len() % 4,
                None => 3,
            };
            let bytes = files.get(at).cloned().ok_or(io::ErrorKind::NotFound)?;
            Ok(Text { bytes, mode, regular: true })
        }),
        list: Box::new(|dir| Ok(vec![dir.join("a.cnf"), dir.join("b")])),
        is_socket: Box::new(|_| false),
        read_fd: Box::new(|_| Ok(Secret::default())),
    }
}

/// Hands out a few bytes at a time.
struct Drip<'a> {
    left: &'a [u8],
    bytes: usize,
}

impl Read for Drip<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.bytes.min(out.len()).min(self.left.len());
        let (now, later) = self.left.split_at(bytes);
        out[..bytes].copy_from_slice(now);
        self.left = later;
        Ok(bytes)
    }
}

/// A dump: how it is read changes nothing, and all that comes out was in it.
pub(crate) fn dump(bytes: &[u8]) {
    let whole = statements(bytes, usize::MAX);
    let first = usize::from(bytes.first().copied().unwrap_or_default());
    let seams = statements(bytes, 1 + bytes.len() / 8 + first % 3);
    assert_eq!(seams, whole);
    let (found, _) = whole;
    assert!(found.iter().map(|(sql, _)| sql.len()).sum::<usize>() <= bytes.len());
    assert!(found.is_sorted_by_key(|(_, line)| *line));
    let mut judge = Judge::new(None);
    for (sql, _) in found {
        match judge.judge(&sql) {
            Ok(seen) => {
                let name = sql.get(seen.name).expect("a place in the statement");
                let _ = unquoted(name);
            }
            Err(why) => harmless(&plain(&why)),
        }
    }
}

type Statements = (Vec<(Vec<u8>, u64)>, Option<String>);

/// The statements, and what ended them early.
fn statements(left: &[u8], bytes: usize) -> Statements {
    let mut splitter = Splitter::new(Drip { left, bytes }, "x.sql", 1 << 16);
    let mut found = Vec::new();
    loop {
        match splitter.next_statement() {
            Ok(Some(statement)) => found.push((statement.sql.to_vec(), statement.line)),
            Ok(None) => return (found, None),
            Err(error) => {
                harmless(&error.render());
                return (found, Some(error.to_string()));
            }
        }
    }
}
