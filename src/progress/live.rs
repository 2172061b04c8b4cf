//! Lines at the end of a terminal that are drawn again and again.
//!
//! Of what a library would do only this much is needed, and one thing more: lines are as long as
//! their text and no longer, so that how many rows they take after the window was made narrower
//! (terminals wrap them then) is known, and nothing of them is left behind.

use console::{Term, measure_text_width, truncate_str};

use super::table::Table;
use crate::error::line;

/// Rows of the terminal that stay free of it.
const SPARE: usize = 2;
/// Narrower terminals are taken for this wide.
const WIDTH_MIN: usize = 20;

/// The lines at the end of a terminal.
pub(super) struct Live {
    term: Term,
    table: Option<Table>,
    line: String,
    /// Widths of the lines that are on the screen.
    drawn: Vec<usize>,
}

impl Live {
    /// Nothing where standard error is no terminal, or one that knows no movement.
    pub(super) fn new() -> Option<Live> {
        let term = Term::stderr();
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        (term.is_term() && !dumb).then(|| Live {
            term,
            table: None,
            line: String::new(),
            drawn: Vec::new(),
        })
    }

    pub(super) fn line(&mut self, text: &str) {
        self.line = line(text);
        self.draw();
    }

    pub(super) fn table(&mut self, table: Option<Table>) {
        self.table = table;
        self.line.clear();
        self.draw();
    }

    /// Something that stays is written in its place, and it below that.
    pub(super) fn above(&mut self, write: impl FnOnce()) {
        self.put(&[]);
        write();
        self.draw();
    }

    fn draw(&mut self) {
        let (height, width) = self.size();
        let mut lines = self.table.as_ref().map_or_else(Vec::new, |table| table.lines(width));
        if !self.line.is_empty() {
            lines.push(truncate_str(&self.line, width, "…").into_owned());
        }
        let over = lines.len().saturating_sub(height.saturating_sub(SPARE).max(1));
        lines.drain(..over);
        self.put(&lines);
    }

    /// Rows, and columns but the last: a full line would make some terminals begin another.
    fn size(&self) -> (usize, usize) {
        let (height, width) = self.term.size();
        (usize::from(height), usize::from(width).max(WIDTH_MIN) - 1)
    }

    /// Takes away what is on the screen and writes these lines there. In one piece: nothing
    /// flickers. A closed terminal must not end a measurement.
    fn put(&mut self, lines: &[String]) {
        if self.drawn.is_empty() && lines.is_empty() {
            return;
        }
        let (_, width) = self.size();
        let mut text = String::from("\r");
        let up = rows(&self.drawn, width + 1).saturating_sub(1);
        if up > 0 {
            text.extend(["\x1b[", &up.to_string(), "A"]);
        }
        text.push_str("\x1b[J");
        text.push_str(&lines.join("\n"));
        self.drawn = lines.iter().map(|line| measure_text_width(line)).collect();
        let _ = self.term.write_str(&text);
        let _ = self.term.flush();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.put(&[]);
    }
}

/// Rows that lines of these widths take on a terminal of so many columns.
fn rows(widths: &[usize], columns: usize) -> usize {
    widths.iter().map(|width| width.div_ceil(columns).max(1)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_take_more_rows() {
        assert_eq!(rows(&[79, 40, 0], 80), 3);
        assert_eq!(rows(&[79, 40, 0], 40), 4);
        assert_eq!(rows(&[], 80), 0);
    }
}
