//! The sample outputs of docs/reference: what the program prints of `summaries/`. A comment names the command
//! above each: `<!-- sample: report closed -->`, or `<!-- sample, 3 lines: compare closed -->`.

use std::fs;
use std::path::{Path, PathBuf};

use super::{loadgen, words};

const BEGIN: &str = "<!-- sample";
const END: &str = " -->";

/// Returns the pages that have samples.
fn pages() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference");
    let entries = fs::read_dir(dir).expect("a directory");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

/// Runs the command of a comment, and returns its output as an indented block.
fn sample(comment: &str) -> String {
    let (limit, command) = comment.split_once(": ").expect("a command");
    let limit = limit.strip_prefix(", ").and_then(|text| text.strip_suffix(" lines"));
    let limit = limit.map_or(usize::MAX, |number| number.parse().expect("a number of lines"));
    let home = tempfile::tempdir().expect("a directory");
    let output = loadgen(home.path()).args(words(command)).output().expect("the program runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(!text.is_empty(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    let indent = |line: &str| if line.is_empty() { "\n".into() } else { format!("    {line}\n") };
    text.lines().take(limit).map(indent).collect()
}

/// Returns a page with all of its samples made anew, and how many they are.
fn with_samples(page: &str) -> (String, usize) {
    let (mut made, mut count) = (String::new(), 0);
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        made += &format!("{line}\n");
        let comment = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
        let Some(comment) = comment else { continue };
        made += &format!("\n{}\n", sample(comment));
        count += 1;
        // The block ends where text begins again.
        while lines.next_if(|line| line.is_empty() || line.starts_with("    ")).is_some() {}
    }
    (made, count)
}

#[test]
fn samples_in_docs_are_what_the_program_prints() {
    let mut count = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).expect("a text");
        let (made, of_page) = with_samples(&page);
        count += of_page;
        if std::env::var_os("LOADGEN_BLESS").is_some() {
            fs::write(&path, made).expect("written");
        } else {
            assert_eq!(page, made, "{}: LOADGEN_BLESS=1 makes its samples anew", path.display());
        }
    }
    assert!(count >= 7, "{count} samples");
}
