//! Summaries on disk: what is written is read back, and what is damaged is named.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::common::summaries::{sound, step};
use loadgen::error::{Error, Kind};
use loadgen::summary::{Loaded, Store, Summary, file_name, load, to_json};
use proptest::prelude::*;

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn load_all(path: &Path) -> Result<Loaded, Error> {
    load(&[path.to_owned()], false)
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).expect("a directory");
    entries.map(|e| e.expect("an entry").file_name().into_string().expect("UTF-8")).collect()
}

fn schema() -> jsonschema::Validator {
    let text = include_str!("../../docs/summary.schema.json");
    jsonschema::validator_for(&serde_json::from_str(text).expect("JSON")).expect("a schema")
}

#[test]
fn what_is_written_is_read_back_and_follows_the_schema() {
    let dir = dir();
    let store = Store::open(&dir.path().join("results")).expect("a new directory");
    let mut summary = step(3, "8.0 \u{9b}31m\u{202e}\u{7f}", 16, 1e4 / 3.0);
    summary.plan.rate = Some(1500.5);
    summary.reason = Some("line\nend".to_owned());
    let path = store.write(&summary).expect("written");
    let text = fs::read_to_string(&path).expect("readable");
    assert_eq!(text, to_json(&summary));
    assert!(text.ends_with("}\n") && !text.contains(['\u{9b}', '\u{202e}', '\u{7f}']), "{text}");
    let json = serde_json::from_str(&text).expect("JSON");
    assert!(schema().is_valid(&json), "{:?}", schema().validate(&json).err());
    let loaded = load_all(store.dir()).expect("sound");
    assert_eq!(loaded.summaries, [(path, summary)]);
    assert!(loaded.skipped.is_empty());
}

#[test]
fn nothing_but_the_summary_is_left_and_others_may_read_it() {
    let dir = dir();
    let store = Store::open(dir.path()).expect("there already");
    assert_eq!(names(dir.path()), [""; 0], "the trial file is gone");
    let path = store.write(&sound()).expect("written");
    assert_eq!(names(dir.path()).len(), 1);
    // Like any file that is created: what the umask leaves of rw-rw-rw-.
    let plain = dir.path().join("plain");
    fs::write(&plain, "").expect("writable");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode();
    assert_eq!(mode(&path), mode(&plain));
}

#[test]
fn file_names_say_what_is_inside() {
    let mut summary = step(0, "orig5610+bp8", 256, 1.0);
    summary.started_at = "2026-11-20T10:45:00.123456Z".to_owned();
    summary.plan.repeat_index = 3;
    assert_eq!(
        file_name(&summary, 0xbeef),
        "20261120T104500Z_orig5610+bp8_point-select_c256_n3_0000beef.json"
    );
    summary.plan.rate = Some(1000.0);
    summary.started_at = "2026-11-20T11:45:00+01:00".to_owned();
    assert_eq!(
        file_name(&summary, 1),
        "20261120T104500Z_orig5610+bp8_point-select_c256_r1000_n3_00000001.json"
    );
}

#[test]
fn labels_are_only_labels() {
    let dir = dir();
    let inside = dir.path().join("results");
    let store = Store::open(&inside).expect("a new directory");
    let long = "x".repeat(5000);
    let labels = [
        "../../etc/x",
        "/etc/passwd",
        "'; DROP TABLE sbtest1; --",
        "",
        " ",
        "größe 8 GiB",
        ".hidden",
        "-rf",
        "a\nb\0c",
        "\u{202e}",
        "CON",
        "*?<>|\"$(x)`",
        &long,
    ];
    for (order, label) in labels.iter().enumerate() {
        let mut summary = step(order as u32, label, 8, 1.0);
        summary.workload.name = "../w".to_owned();
        if order % 2 == 0 {
            summary.started_at = "../..".to_owned();
        }
        let path = store.write(&summary).expect(label);
        assert_eq!(path.parent(), Some(inside.as_path()));
        let name = path.file_name().and_then(|name| name.to_str()).expect("UTF-8");
        assert!(name.len() < 255 && !name.starts_with(['.', '-']), "{name}");
        assert!(
            name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.+-=@".contains(&b)),
            "{name}"
        );
    }
    assert_eq!(names(dir.path()), ["results"]);
    let loaded = load_all(&inside).expect("all of them");
    assert_eq!(loaded.summaries.len(), labels.len());
}

#[test]
fn existing_files_are_never_replaced() {
    let dir = dir();
    let store = Store::open(dir.path()).expect("there already");
    let mut summary = sound();
    let first = store.write(&summary).expect("written");
    summary.step_id = "00000000000000aa-2".to_owned();
    let second = store.write(&summary).expect("written");
    assert_ne!(first, second);
    assert_eq!(load_all(dir.path()).expect("both").summaries.len(), 2);
}

#[test]
fn a_store_that_cannot_be_is_refused_before_the_first_step() {
    let dir = dir();
    let file = dir.path().join("file");
    fs::write(&file, "").expect("writable");
    let refused = |path: &Path| {
        let error = Store::open(path).expect_err("refused");
        assert_eq!(error.kind(), Kind::Usage);
        assert!(!error.hints().is_empty());
        error.to_string()
    };
    for path in [&file, &file.join("below")] {
        assert!(refused(path).contains(file.to_str().expect("UTF-8")), "{}", refused(path));
    }
    assert!(refused(&dir.path().join("no/such")).contains("parent"));
    assert!(refused(Path::new("")).contains("empty"));
    symlink(dir.path().join("nowhere"), dir.path().join("dangling")).expect("a link");
    assert!(!refused(&dir.path().join("dangling")).is_empty());
    symlink(dir.path(), dir.path().join("link")).expect("a link");
    Store::open(&dir.path().join("link")).expect("a link to a directory is one");
}

#[test]
fn a_store_that_goes_away_says_what_to_do_with_the_summary() {
    let dir = dir();
    let inside = dir.path().join("results");
    let store = Store::open(&inside).expect("a new directory");
    fs::remove_dir(&inside).expect("empty");
    let error = store.write(&sound()).expect_err("no directory");
    let text = error.render();
    assert!(text.contains(inside.to_str().expect("UTF-8")), "{text}");
    assert!(text.contains("00000000000000aa-1") && !error.hints().is_empty(), "{text}");
}

/// A file with a sound summary and others, in a directory of their own.
fn with_bad(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let dir = dir();
    fs::write(dir.path().join("0-good.json"), to_json(&sound())).expect("writable");
    for (name, bytes) in files {
        fs::write(dir.path().join(name), bytes).expect("writable");
    }
    dir
}

/// The reason for which a file is refused, whether bad files are skipped or not.
fn reason(bytes: &[u8]) -> String {
    let dir = with_bad(&[("bad.json", bytes)]);
    let error = load_all(dir.path()).expect_err("refused");
    assert_eq!(error.kind().exit_code(), 4);
    assert!(error.to_string().contains("bad.json"), "{error}");
    assert!(error.hints().concat().contains("--skip-bad"));
    let loaded = load(&[dir.path().to_owned()], true).expect("the good one is left");
    assert_eq!(loaded.summaries.len(), 1);
    let [(path, reason)] = loaded.skipped.as_slice() else { panic!("{:?}", loaded.skipped) };
    assert_eq!(path, &dir.path().join("bad.json"));
    assert!(error.to_string().contains(reason.as_str()), "{error} / {reason}");
    reason.clone()
}

#[test]
fn damaged_files_are_named_with_line_and_column() {
    let json = to_json(&sound());
    let cut = json.rfind("\"totals\"").expect("a field");
    assert!(reason(&json.as_bytes()[..cut]).starts_with("line "), "cut off");
    assert!(reason(json.replacen(':', ";", 1).as_bytes()).starts_with("line 2, column 11"));
    let wrong = reason(json.replace("\"clients\": 8", "\"clients\": \"8\"").as_bytes());
    assert!(wrong.contains("line ") && wrong.contains("u32"), "{wrong}");
    assert!(reason(json.replace("\"clients\": 8", "\"clients\": -8").as_bytes()).contains("-8"));
    assert!(reason(json.replace("10000.0", "1e999").as_bytes()).contains("out of range"));
    assert!(reason(json.replace("10000.0", "NaN").as_bytes()).starts_with("line "));
    assert!(reason(json.replace("10000.0", "null").as_bytes()).contains("null"));
    assert!(reason(format!("{json}{json}").as_bytes()).contains("trailing"));
    assert!(reason(b"").contains("empty") && reason(b" \n").contains("empty"));
    assert!(reason(b"\xff\xfe{").starts_with("line 1"));
    let missing = reason(json.replace("\"measured_s\": 60.0,", "").as_bytes());
    assert!(missing.contains("measured_s"), "{missing}");
}

#[test]
fn foreign_files_are_told_from_damaged_ones() {
    assert!(reason(b"{}").contains("without a \"schema\""));
    assert!(reason(b"{\"schema\": null}").contains("without a \"schema\""));
    assert!(reason(b"{\"schema\": 7}").contains("'7'"));
    assert!(reason(b"7").contains("without a"));
    assert!(reason(b"{\"schema\": \"other/1\"}").contains("'other/1'"));
    let json = to_json(&sound()).replace("loadgen.summary/1", "loadgen.summary/2");
    let newer = reason(json.as_bytes());
    assert!(newer.contains("'loadgen.summary/2'") && newer.contains("newer"), "{newer}");
    let newer = reason(b"{\"schema\": \"loadgen.summary/2\", \"other\": 1}");
    assert!(newer.contains("'loadgen.summary/2'"), "{newer}");
}

#[test]
fn hostile_files_end_in_a_short_reason() {
    let deep = "[".repeat(200_000);
    assert!(reason(deep.as_bytes()).contains("recursion"));
    let deep = format!("{{\"schema\":{deep}");
    assert!(!reason(deep.as_bytes()).is_empty());
    let long = to_json(&sound()).replace("\"prepared\"", &format!("\"{}\"", "x".repeat(100_000)));
    assert!(reason(long.as_bytes()).len() < 400);
    let escape = reason(b"{\"schema\": \"\\u001b[2J\"}");
    assert!(!escape.is_empty());
    let dir = with_bad(&[("bad.json", b"{\"schema\": \"\\u001b[2J\"}")]);
    assert!(!load_all(dir.path()).expect_err("foreign").render().contains('\u{1b}'));
    // Sparse: nothing of it is on the disk.
    let huge = dir.path().join("huge.json");
    let file = fs::File::create(&huge).expect("writable");
    file.set_len(513 << 20).expect("sparse");
    let error = load(&[huge], false).expect_err("too large");
    assert!(error.to_string().contains("512 MiB"), "{error}");
}

#[test]
fn unknown_fields_are_tolerated() {
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let json = to_json(&sound())
        .replacen('{', &format!("{{\n  \"later\": {deep},"), 1)
        .replace("\"tables\": 8,", "\"tables\": 8, \"agents\": [{\"host\": \"x\"}],");
    let dir = dir();
    fs::write(dir.path().join("a.json"), json).expect("writable");
    assert_eq!(load_all(dir.path()).expect("tolerated").summaries[0].1, sound());
}

#[test]
fn several_bad_files_are_named_at_once() {
    let bad: Vec<String> = (0..12).map(|i| format!("bad{i:02}.json")).collect();
    let bad: Vec<(&str, &[u8])> = bad.iter().map(|name| (name.as_str(), b"{".as_slice())).collect();
    let dir = with_bad(&bad);
    let text = load_all(dir.path()).expect_err("refused").to_string();
    assert!(text.starts_with("12 files"), "{text}");
    assert!(text.contains("bad00.json") && text.contains("bad09.json"), "{text}");
    assert!(text.contains("2 more") && !text.contains("bad10.json"), "{text}");
}

#[test]
fn one_step_in_two_files_is_refused_naming_both() {
    let dir = with_bad(&[("1-copy.json", to_json(&sound()).as_bytes())]);
    let error = load_all(dir.path()).expect_err("a duplicate");
    let text = error.to_string();
    assert_eq!(error.kind(), Kind::Data);
    assert!(text.contains("0-good.json") && text.contains("1-copy.json"), "{text}");
    assert!(text.contains("00000000000000aa-1"), "{text}");
    let loaded = load(&[dir.path().to_owned()], true).expect("one of them");
    assert_eq!((loaded.summaries.len(), loaded.skipped.len()), (1, 1));
    // Two invocations that continue one run at once give their steps the same names.
    let other = Summary { started_at: "2026-11-20T10:46:01Z".to_owned(), ..sound() };
    let dir = with_bad(&[("1-other.json", to_json(&other).as_bytes())]);
    assert_eq!(load_all(dir.path()).expect("two steps").summaries.len(), 2);
}

#[test]
fn files_and_directories_mix_and_nothing_counts_twice() {
    let dir = dir();
    let inside = dir.path().join("a");
    let store = Store::open(&inside).expect("a new directory");
    let first = store.write(&step(1, "a", 8, 1.0)).expect("written");
    store.write(&step(2, "b", 8, 1.0)).expect("written");
    let outside = dir.path().join("elsewhere.txt");
    fs::write(&outside, to_json(&step(3, "c", 8, 1.0))).expect("writable");
    symlink(&first, dir.path().join("link.json")).expect("a link");
    fs::hard_link(&first, dir.path().join("hard.json")).expect("a link");
    let paths: Vec<PathBuf> = vec![
        outside,
        inside.clone(),
        first,
        inside.join("../a"),
        dir.path().join("link.json"),
        dir.path().join("hard.json"),
        inside,
    ];
    let loaded = load(&paths, false).expect("three steps");
    let labels: Vec<&str> = loaded.steps().iter().map(|step| step.label.as_str()).collect();
    assert_eq!(labels, ["c", "a", "b"], "in the order of the paths, a directory by name");
}

#[test]
fn directories_give_their_summaries_only() {
    let dir = dir();
    let path = dir.path();
    fs::write(path.join("a.json"), to_json(&sound())).expect("writable");
    fs::write(path.join(".hidden.json"), "{").expect("writable");
    fs::write(path.join(".loadgen-x.tmp"), "{").expect("writable");
    fs::write(path.join("notes.txt"), "{").expect("writable");
    fs::create_dir(path.join("below.json")).expect("writable");
    fs::write(path.join("below.json/b.json"), "{").expect("writable");
    nix::unistd::mkfifo(&path.join("pipe.json"), nix::sys::stat::Mode::S_IRUSR).expect("a pipe");
    assert_eq!(load_all(path).expect("one").summaries.len(), 1);
    symlink(path.join("nowhere"), path.join("b.json")).expect("a link");
    assert!(load_all(path).expect_err("dangling").to_string().contains("b.json"));
}

#[test]
fn finding_nothing_is_an_error_with_a_hint() {
    let dir = dir();
    let error = load_all(dir.path()).expect_err("empty");
    assert_eq!(error.kind(), Kind::Usage);
    assert!(!error.hints().is_empty());
    let error = load_all(&dir.path().join("missing")).expect_err("no such path");
    assert_eq!(error.kind(), Kind::Usage);
    assert!(error.to_string().contains("missing"));
    fs::write(dir.path().join("bad.json"), "{").expect("writable");
    let error = load(&[dir.path().to_owned()], true).expect_err("nothing is left");
    assert!(error.to_string().contains("1 skipped") && error.to_string().contains("bad.json"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// To the last digit, whatever its number.
    #[test]
    fn what_is_read_is_written_as_it_was(bits in prop::collection::vec(any::<u64>(), 8)) {
        let mut summary = sound();
        let floats: Vec<f64> =
            bits.into_iter().map(f64::from_bits).filter(|float| float.is_finite()).collect();
        let at = |i: usize| floats.get(i).copied();
        summary.totals.qps = at(0).unwrap_or(0.1);
        summary.totals.tps = at(1).unwrap_or(1.0 / 3.0);
        summary.measured_s = at(2).unwrap_or(5e-324);
        summary.latency.service.p99_us = at(3);
        summary.latency.service.mean_us = at(4);
        let json = to_json(&summary);
        let again = loadgen::summary::from_json(json.as_bytes()).expect("sound");
        prop_assert_eq!(to_json(&again), json);
        prop_assert_eq!(again, summary);
    }

    /// Any damage of one byte is refused or gives a summary; neither panics.
    #[test]
    fn flipped_bytes_never_panic(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = to_json(&sound()).into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let dir = dir();
        fs::write(dir.path().join("a.json"), &bytes).expect("writable");
        if let Ok(loaded) = load_all(dir.path()) {
            let steps: Vec<&Summary> = loaded.steps();
            let _ = loadgen::report::render(&steps, &loadgen::report::Options::default());
        }
    }
}
