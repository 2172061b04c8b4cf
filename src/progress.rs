//! What a person sees while waiting, on standard error: a live line on a terminal, plain
//! lines in a pipe.

use std::io::Write;
use std::time::{Duration, Instant};

use console::{Alignment, Term, measure_text_width, pad_str, truncate_str};

use crate::error::{indented, line, plain};

/// Rows of the terminal that stay free of it.
const SPARE: usize = 2;
/// Narrower terminals are taken for this wide.
const WIDTH_MIN: usize = 20;
/// Blanks between two columns.
const GAP: usize = 2;

/// Everything that takes longer than a second talks to one of these.
pub struct Progress {
    live: Option<Live>,
    every: Duration,
    last: Instant,
    quiet: bool,
    /// Warnings that one telling is enough of.
    warned: Vec<String>,
}

impl Progress {
    /// `every` is how often a changing line is shown (`--progress`): 1 s on a terminal and
    /// 10 s otherwise, if not given. `quiet` leaves warnings only.
    pub fn new(quiet: bool, every: Option<Duration>) -> Self {
        let live = if quiet { None } else { Live::new() };
        let every = every.unwrap_or(Duration::from_secs(if live.is_some() { 1 } else { 10 }));
        Progress { live, every, last: Instant::now(), quiet, warned: Vec::new() }
    }

    /// Shows the state of things, at most once in `every`.
    pub(crate) fn update(&mut self, text: impl FnOnce() -> String) {
        if self.quiet || self.last.elapsed() < self.every {
            return;
        }
        self.last = Instant::now();
        match &mut self.live {
            Some(live) => live.line(&text()),
            None => say(&line(&text())),
        }
    }

    /// A table above the live line, until the next one or [`Progress::clear`]; in a pipe nothing.
    pub(crate) fn table(&mut self, table: impl FnOnce() -> Table) {
        if let Some(live) = &mut self.live {
            live.table(table());
        }
    }

    pub(crate) fn note(&mut self, text: &str) {
        if !self.quiet {
            self.line(text);
        }
    }

    /// A line that stays, also under `--quiet`.
    pub(crate) fn warn(&mut self, text: &str) {
        self.line(&format!("warning: {text}"));
    }

    /// Warns of what several servers, or legs of a profile, give the same cause for.
    pub(crate) fn warn_once(&mut self, text: &str) {
        if !self.warned.iter().any(|warned| warned == text) {
            self.warned.push(text.to_owned());
            self.warn(text);
        }
    }

    /// Something new begins: it is worth a line only if it takes longer than one interval.
    pub(crate) fn restart(&mut self) {
        self.last = Instant::now();
    }

    /// Takes the live line away, and the table.
    pub(crate) fn clear(&mut self) {
        if let Some(live) = &mut self.live {
            live.table(Table::default());
        }
        self.restart();
    }

    fn line(&mut self, text: &str) {
        let text = indented(text);
        match &mut self.live {
            Some(live) => live.above(|| say(&text)),
            None => say(&text),
        }
    }
}

/// The one way to standard error. A closed or full one must not end a measurement.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", plain(text));
}

/// Lines at the end of a terminal that are drawn again and again.
///
/// Of what a library would do only this much is needed, and one thing more: lines are as long as
/// their text and no longer, so that how many rows they take after the window was made narrower
/// (terminals wrap them then) is known, and nothing of them is left behind.
struct Live {
    term: Term,
    table: Table,
    line: String,
    /// Widths of the lines that are on the screen.
    drawn: Vec<usize>,
}

impl Live {
    /// Nothing where standard error is no terminal, or one that knows no movement.
    fn new() -> Option<Live> {
        let term = Term::stderr();
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let (table, line, drawn) = (Table::default(), String::new(), Vec::new());
        (term.is_term() && !dumb).then(|| Live { term, table, line, drawn })
    }

    fn line(&mut self, text: &str) {
        self.line = line(text);
        self.draw();
    }

    fn table(&mut self, table: Table) {
        self.table = table;
        self.line.clear();
        self.draw();
    }

    /// Something that stays is written in its place, and it below that.
    fn above(&mut self, write: impl FnOnce()) {
        self.put(&[]);
        write();
        self.draw();
    }

    fn draw(&mut self) {
        let (height, width) = self.size();
        let mut lines = self.table.lines(width);
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

/// A table that fills up while a sweep runs: one column a cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table {
    pub heads: Vec<String>,
    pub columns: Vec<Vec<String>>,
    /// The column that is being measured: it is always in sight.
    pub current: usize,
}

impl Table {
    /// Its lines, none wider than this: columns that do not fit are left out at the ends.
    fn lines(&self, width: usize) -> Vec<String> {
        let (head, mut lines) = column(&self.heads, Alignment::Left);
        let cells: Vec<_> =
            self.columns.iter().map(|texts| column(texts, Alignment::Right)).collect();
        let taken = |at: usize| cells.get(at).map(|(wide, _)| GAP + wide);
        // A mark at either end says that there is more.
        let room = width.saturating_sub(head + 2 * GAP);
        let mut first = self.current.min(cells.len().saturating_sub(1));
        let mut used = taken(first).unwrap_or(0);
        let mut end = cells.len().min(first + 1);
        loop {
            let before = first.checked_sub(1).and_then(taken);
            match (before, taken(end)) {
                (Some(wide), _) if used + wide <= room => (first, used) = (first - 1, used + wide),
                (_, Some(wide)) if used + wide <= room => (end, used) = (end + 1, used + wide),
                _ => break,
            }
        }
        let (less, more) = (first > 0, end < cells.len());
        for (row, line) in lines.iter_mut().enumerate() {
            let mark = |there: bool| if there && row == 0 { " …" } else { "" };
            line.push_str(mark(less));
            for (_, texts) in &cells[first..end] {
                line.extend([" ".repeat(GAP).as_str(), texts.get(row).map_or("", String::as_str)]);
            }
            line.push_str(mark(more));
            // The head's column is as wide where nothing was left out.
            if less && row > 0 {
                line.insert_str(head, "  ");
            }
            *line = truncate_str(line.trim_end(), width, "…").into_owned();
        }
        lines
    }
}

/// The width of the widest text, and all of them as wide.
fn column(texts: &[String], side: Alignment) -> (usize, Vec<String>) {
    let texts: Vec<String> = texts.iter().map(|text| line(text)).collect();
    let width = texts.iter().map(|text| measure_text_width(text)).max().unwrap_or(0);
    (width, texts.iter().map(|text| pad_str(text, width, side, None).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(current: usize) -> Table {
        let column = |(at, qps): (usize, &str)| {
            vec![
                if at == current { format!("▸{}", 1 << at) } else { (1 << at).to_string() },
                qps.to_owned(),
            ]
        };
        Table {
            heads: vec!["clients".to_owned(), "QPS".to_owned()],
            columns: ["8123", "15001", "·", "·"].iter().copied().enumerate().map(column).collect(),
            current,
        }
    }

    #[test]
    fn columns_stand_below_each_other() {
        assert_eq!(
            table(2).lines(80),
            ["clients     1      2  ▸4  8", "QPS      8123  15001   ·  ·"]
        );
    }

    #[test]
    fn the_current_column_is_in_sight_on_every_terminal() {
        for width in 20..40 {
            for current in 0..4 {
                let lines = table(current).lines(width);
                assert!(lines[0].contains('▸'), "{width}: {lines:?}");
                let widest = lines.iter().map(|line| measure_text_width(line)).max();
                assert!(widest <= Some(width), "{width}: {lines:?}");
            }
        }
        assert_eq!(table(3).lines(24), ["clients …  4  ▸8", "QPS        ·   ·"]);
        assert_eq!(table(0).lines(24), ["clients    ▸1      2 …", "QPS      8123  15001"]);
    }

    #[test]
    fn nothing_makes_no_lines() {
        assert!(Table::default().lines(80).is_empty());
    }

    #[test]
    fn wrapped_lines_take_more_rows() {
        assert_eq!(rows(&[79, 40, 0], 80), 3);
        assert_eq!(rows(&[79, 40, 0], 40), 4);
        assert_eq!(rows(&[], 80), 0);
    }
}
