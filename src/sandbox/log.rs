//! What programs wrote, for an error's message.

use std::fs;
use std::path::Path;

/// A file's text; nothing if it cannot be read.
pub(super) fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// The end of a log, every line on a line of its own and indented, and the errors before it:
/// old servers log a dozen lines more after what made them give up.
pub(super) fn end(log: &str) -> String {
    const LAST: usize = 8;
    const ERRORS: usize = 6;
    const LINE_CHARS: usize = 300;
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let (before, last) = lines.split_at(lines.len().saturating_sub(LAST));
    let errors: Vec<&str> = before.iter().filter(|line| line.contains("ERROR")).copied().collect();
    let (_, errors) = errors.split_at(errors.len().saturating_sub(ERRORS));
    let mut shown = String::new();
    for line in errors.iter().chain(last) {
        shown.push_str("\n  ");
        shown.extend(line.chars().take(LINE_CHARS));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_is_shown_with_the_errors_before_it() {
        let line = |i: usize| {
            let kind = if i < 20 { "[ERROR]" } else { "[Note]" };
            format!("{kind} {i} {}", "x".repeat(1000))
        };
        let log: Vec<String> = (0..40).map(line).collect();
        let shown = end(&log.join("\n\n"));
        let numbers: Vec<&str> =
            shown.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(numbers.join(" "), "14 15 16 17 18 19 32 33 34 35 36 37 38 39");
        assert!(shown.len() < 14 * 310);
    }

    #[test]
    fn a_short_log_is_shown_whole_and_a_missing_one_is_empty() {
        assert_eq!(end("\none\n\ntwo"), "\n  one\n  two");
        assert_eq!(end(&read(Path::new("/nonexistent/log"))), "");
    }
}
