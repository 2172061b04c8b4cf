//! The progress that a person sees on standard error: a live line on a terminal, plain lines in a pipe.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use console::{Alignment, Style, Term, measure_text_width, pad_str, truncate_str};

use crate::error::{indented, line, plain};

/// Rows of the terminal that stay free.
const SPARE: usize = 2;
/// Width that narrower terminals are assumed to have.
const WIDTH_MIN: usize = 20;
/// Columns that stay free: some terminals begin a new line after a full one, and `^C` needs two.
const SPARE_COLUMNS: usize = 4;
const GAP: usize = 2;
static ROWS: AtomicUsize = AtomicUsize::new(0);
type Colour = fn(Style) -> Style;
const COLOURED: [(&str, Colour); 3] = [
    ("error:", |style| style.red().bold()),
    ("warning:", |style| style.yellow()),
    ("hint:", |style| style.cyan()),
];

pub(crate) struct Measuring {
    pub line: String,
    pub short: String,
    pub cells: Vec<String>,
}

/// Output of work that takes longer than a second.
pub struct Progress {
    live: Option<Live>,
    every: Duration,
    last: Instant,
    quiet: bool,
    warned: Vec<String>,
}

impl Progress {
    /// `every` is the interval of a changing line (`--progress`): by default 1 s on a terminal and 10 s
    /// otherwise. `quiet` leaves warnings only.
    pub fn new(quiet: bool, every: Option<Duration>) -> Self {
        let live = if quiet { None } else { Live::new() };
        let every = every.unwrap_or(Duration::from_secs(if live.is_some() { 1 } else { 10 }));
        Progress { live, every, last: Instant::now(), quiet, warned: Vec::new() }
    }

    /// Shows a state, at most once in `every`.
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

    /// Shows the state of a step, at most once in `every`. A terminal has its numbers in the table.
    pub(crate) fn measuring(&mut self, state: impl FnOnce() -> Measuring) {
        match &mut self.live {
            Some(live) if !live.table.columns.is_empty() => {
                if self.last.elapsed() >= self.every {
                    self.last = Instant::now();
                    let Measuring { short, cells, .. } = state();
                    live.table.fill(cells);
                    live.line(&short);
                }
            }
            _ => self.update(|| state().line),
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Shows a table above the live line, until the next one or [`Progress::clear`]; not in a pipe.
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

    /// Prints a line that stays if a person sees it at once.
    pub(crate) fn note_to_person(&mut self, text: &str) {
        if self.live.is_some() {
            self.line(text);
        }
    }

    /// Prints a line that stays, also with `--quiet`.
    pub(crate) fn warn(&mut self, text: &str) {
        self.line(&format!("warning: {text}"));
    }

    /// Prints a warning that several servers or legs may share.
    pub(crate) fn warn_once(&mut self, text: &str) {
        if !self.warned.iter().any(|warned| warned == text) {
            self.warned.push(text.to_owned());
            self.warn(text);
        }
    }

    /// Begins something new: it gets a line only if it takes longer than one interval.
    pub(crate) fn restart(&mut self) {
        self.last = Instant::now();
    }

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

/// Prints to standard error. A closed or full one must not end a measurement.
pub fn say(text: &str) {
    let (mut text, term) = (plain(text), Term::stderr());
    if term.is_term() {
        text = folded(&text, usize::from(term.size().1).max(WIDTH_MIN) - 1);
    }
    if has_colours(term.is_term()) {
        text = coloured(&text);
    }
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Returns whether output has colours, by NO_COLOR, CLICOLOR_FORCE, CLICOLOR and TERM.
pub(crate) fn has_colours(is_terminal: bool) -> bool {
    decide_colours(|name| std::env::var(name).unwrap_or_default(), is_terminal)
}

fn decide_colours(variable: impl Fn(&str) -> String, is_terminal: bool) -> bool {
    let is_set = |name: &str| !["", "0"].contains(&variable(name).as_str());
    if !variable("NO_COLOR").is_empty() {
        return false;
    }
    is_set("CLICOLOR_FORCE")
        || is_terminal && variable("CLICOLOR") != "0" && variable("TERM") != "dumb"
}

fn coloured(text: &str) -> String {
    let coloured = |line: &str| {
        let known = COLOURED.iter().find(|(word, _)| line.starts_with(word));
        let Some((word, colour)) = known else { return line.to_owned() };
        let word_in_colour = colour(Style::new().force_styling(true)).apply_to(word);
        format!("{word_in_colour}{}", &line[word.len()..])
    };
    text.split('\n').map(coloured).collect::<Vec<_>>().join("\n")
}

/// Removes the live lines before the process ends at once.
pub(crate) fn wipe() {
    let above = match ROWS.swap(0, Ordering::Relaxed) {
        0 => return,
        1 => String::new(),
        rows => format!("\x1b[{}A", rows - 1),
    };
    let _ = write!(std::io::stderr(), "\r{above}\x1b[J");
}

/// Lines at the end of a terminal that are redrawn.
///
/// Ours, since a library's lines have a fixed width: these are as long as their text, so that
/// their rows in a narrower window, where terminals wrap them, are known and can be removed.
struct Live {
    term: Term,
    table: Table,
    line: String,
    drawn: Vec<usize>,
}

impl Live {
    /// None if standard error is no terminal, or one without cursor movement.
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

    /// Prints lasting text in its place, and moves it below.
    fn above(&mut self, write: impl FnOnce()) {
        self.put(&[]);
        write();
        self.draw();
    }

    fn draw(&mut self) {
        let (height, width) = self.size();
        let mut lines = self.table.lines(width, has_colours(true));
        let line = wrapped(&self.line, width);
        lines.extend(line.iter().map(|line| truncate_str(line, width, "…").into_owned()));
        let over = lines.len().saturating_sub(height.saturating_sub(SPARE).max(1));
        lines.drain(..over);
        self.put(&lines);
    }

    fn size(&self) -> (usize, usize) {
        let (height, width) = self.term.size();
        (usize::from(height), usize::from(width).max(WIDTH_MIN) - SPARE_COLUMNS)
    }

    /// Shows it in one write, without flicker. A closed terminal must not end a measurement.
    fn put(&mut self, lines: &[String]) {
        if self.drawn.is_empty() && lines.is_empty() {
            return;
        }
        let (_, width) = self.size();
        let mut text = String::from("\r");
        let up = rows(&self.drawn, width + SPARE_COLUMNS).saturating_sub(1);
        if up > 0 {
            text.extend(["\x1b[", &up.to_string(), "A"]);
        }
        text.push_str("\x1b[J");
        text.push_str(&lines.join("\n"));
        self.drawn = lines.iter().map(|line| measure_text_width(line)).collect();
        ROWS.store(self.drawn.len(), Ordering::Relaxed);
        let _ = self.term.write_str(&text);
        let _ = self.term.flush();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.put(&[]);
    }
}

/// Breaks a line at blanks to this width; a single word may be longer.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(last) if measure_text_width(last) + 1 + measure_text_width(word) <= width => {
                last.extend([" ", word]);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Breaks the lines of a lasting text: a terminal would break them within a number.
fn folded(text: &str, width: usize) -> String {
    let one = |line: &str| {
        if measure_text_width(line) <= width {
            return line.to_owned();
        }
        let indent = line.len() - line.trim_start_matches(' ').len();
        let lines = wrapped(line, width.saturating_sub(indent + GAP).max(1));
        format!("{}{}", " ".repeat(indent), lines.join(&format!("\n{}", " ".repeat(indent + GAP))))
    };
    text.split('\n').map(one).collect::<Vec<_>>().join("\n")
}

fn rows(widths: &[usize], columns: usize) -> usize {
    widths.iter().map(|width| width.div_ceil(columns).max(1)).sum()
}

/// A table that fills up during a sweep: one column a cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// Stands above it unless it is empty.
    pub title: String,
    pub heads: Vec<String>,
    pub columns: Vec<Vec<String>>,
    /// The column that is being measured: always visible.
    pub current: usize,
}

impl Table {
    fn fill(&mut self, cells: Vec<String>) {
        if let Some(column) = self.columns.get_mut(self.current) {
            column.truncate(1);
            column.extend(cells);
        }
    }

    /// Formats its lines up to a width: drops columns at the ends, and colours the current one.
    fn lines(&self, width: usize, in_colour: bool) -> Vec<String> {
        let current = Style::new().cyan().bold().force_styling(in_colour);
        let (head, mut lines) = column(&self.heads, Alignment::Left);
        let cells: Vec<_> =
            self.columns.iter().map(|texts| column(texts, Alignment::Right)).collect();
        let taken = |at: usize| cells.get(at).map(|(wide, _)| GAP + wide);
        // A mark at either end shows that there is more.
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
            for (at, (_, texts)) in (first..end).zip(&cells[first..end]) {
                let text = texts.get(row).map_or("", String::as_str);
                line.push_str(&" ".repeat(GAP));
                if at == self.current && in_colour {
                    line.push_str(&current.apply_to(text).to_string());
                } else {
                    line.push_str(text);
                }
            }
            line.push_str(mark(more));
            // Without dropped columns the head's column has the same width.
            if less && row > 0 {
                line.insert_str(head, "  ");
            }
            *line = truncate_str(line.trim_end(), width, "…").into_owned();
        }
        if !self.title.is_empty() {
            lines.insert(0, truncate_str(&line(&self.title), width, "…").into_owned());
        }
        lines
    }
}

/// Pads texts to the widest one; returns its width, too.
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
            title: String::new(),
            heads: vec!["clients".to_owned(), "QPS".to_owned()],
            columns: ["8123", "15001", "·", "·"].iter().copied().enumerate().map(column).collect(),
            current,
        }
    }

    #[test]
    fn columns_stand_below_each_other() {
        assert_eq!(
            table(2).lines(80, false),
            ["clients     1      2  ▸4  8", "QPS      8123  15001   ·  ·"]
        );
    }

    #[test]
    fn the_current_column_is_in_sight_on_every_terminal() {
        for width in 20..40 {
            for current in 0..4 {
                let lines = table(current).lines(width, false);
                assert!(lines[0].contains('▸'), "{width}: {lines:?}");
                let widest = lines.iter().map(|line| measure_text_width(line)).max();
                assert!(widest <= Some(width), "{width}: {lines:?}");
            }
        }
        assert_eq!(table(3).lines(24, false), ["clients …  4  ▸8", "QPS        ·   ·"]);
        assert_eq!(table(0).lines(24, false), ["clients    ▸1      2 …", "QPS      8123  15001"]);
    }

    #[test]
    fn nothing_makes_no_lines() {
        assert!(Table::default().lines(80, false).is_empty());
    }

    #[test]
    fn the_current_column_has_live_numbers_and_a_colour_when_there_are_colours() {
        let mut table = table(2);
        table.fill(vec!["21000".to_owned()]);
        assert_eq!(
            table.lines(80, false),
            ["clients     1      2     ▸4  8", "QPS      8123  15001  21000  ·"]
        );
        let lines = table.lines(80, true);
        assert!(lines.iter().all(|line| line.matches("\u{1b}[0m").count() == 1), "{lines:?}");
        assert_eq!(measure_text_width(&lines[1]), 30);
    }

    #[test]
    fn a_line_is_wrapped_when_it_is_wider_than_the_terminal() {
        assert_eq!(
            wrapped("[1/2] a 8 clients: 0:58 left", 20),
            ["[1/2] a 8 clients:", "0:58 left"]
        );
        assert_eq!(wrapped("a-word-of-25-characters-x b", 20), ["a-word-of-25-characters-x", "b"]);
        assert_eq!(wrapped("", 20), [""; 0]);
        assert_eq!(
            folded("warning: one\n  two three four\na b", 12),
            "warning: one\n  two\n    three\n    four\na b"
        );
    }

    #[test]
    fn colours_follow_the_usual_rules() {
        struct Case {
            variables: &'static [(&'static str, &'static str)],
            is_terminal: bool,
            has: bool,
        }
        for Case { variables, is_terminal, has } in [
            Case { variables: &[("TERM", "xterm")], is_terminal: true, has: true },
            Case { variables: &[("TERM", "xterm")], is_terminal: false, has: false },
            Case { variables: &[("TERM", "dumb")], is_terminal: true, has: false },
            Case { variables: &[("NO_COLOR", "1")], is_terminal: true, has: false },
            Case { variables: &[("NO_COLOR", "0")], is_terminal: true, has: false },
            Case { variables: &[("NO_COLOR", "")], is_terminal: true, has: true },
            Case { variables: &[("CLICOLOR", "0")], is_terminal: true, has: false },
            Case { variables: &[("CLICOLOR", "1")], is_terminal: false, has: false },
            Case { variables: &[("CLICOLOR_FORCE", "1")], is_terminal: false, has: true },
            Case { variables: &[("CLICOLOR_FORCE", "0")], is_terminal: false, has: false },
            Case {
                variables: &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")],
                is_terminal: true,
                has: false,
            },
        ] {
            let value = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map_or_else(String::new, |(_, value)| (*value).to_owned())
            };
            assert_eq!(decide_colours(value, is_terminal), has, "{variables:?} {is_terminal}");
        }
    }

    #[test]
    fn only_the_kind_of_a_line_has_a_colour() {
        let text = coloured("error: x\n\nhint: y\n  warning: z");
        assert_eq!(console::strip_ansi_codes(&text), "error: x\n\nhint: y\n  warning: z");
        assert_eq!(text.matches("\u{1b}[0m").count(), 2, "{text:?}");
    }

    #[test]
    fn wrapped_lines_take_more_rows() {
        assert_eq!(rows(&[79, 40, 0], 80), 3);
        assert_eq!(rows(&[79, 40, 0], 40), 4);
        assert_eq!(rows(&[], 80), 0);
    }
}
