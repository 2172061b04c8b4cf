//! A table that fills up while a sweep runs: one column a cell.

use console::{Alignment, measure_text_width, pad_str, truncate_str};

use crate::error::line;

/// Blanks between two columns.
const GAP: usize = 2;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table {
    pub heads: Vec<String>,
    pub columns: Vec<Vec<String>>,
    /// The column that is being measured: it is always in sight.
    pub current: usize,
}

impl Table {
    /// Its lines, none wider than this: columns that do not fit are left out at the ends.
    pub(super) fn lines(&self, width: usize) -> Vec<String> {
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
}
