//! Small bars for the eye on a terminal; the numbers beside them say the same.

/// Eighths of a cell, upward.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Eighths of a cell, to the right.
const PARTS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
/// Cells of the longest bar.
const BAR: f64 = 24.0;
/// Eighths of a cell.
const EIGHTHS: f64 = 8.0;

/// A column each value, from zero to the largest of all that it is to be seen beside; a blank
/// where there is none.
pub(crate) fn line(values: impl IntoIterator<Item = Option<f64>>, max: f64) -> String {
    let level = |value: f64| {
        let eighths = (value / max * EIGHTHS).ceil().clamp(1.0, EIGHTHS);
        LEVELS.get((eighths as usize).checked_sub(1)?).copied()
    };
    let column = |value: Option<f64>| value.and_then(level).unwrap_or(' ');
    values.into_iter().map(column).collect::<String>().trim_end().to_owned()
}

/// A bar as long as a value's share of the largest.
pub(crate) fn bar(value: f64, max: f64) -> String {
    let eighths = (value / max * BAR * EIGHTHS).round().clamp(0.0, BAR * EIGHTHS) as usize;
    let rest = (eighths % LEVELS.len()).checked_sub(1).and_then(|at| PARTS.get(at));
    "█".repeat(eighths / LEVELS.len()).chars().chain(rest.copied()).collect()
}

/// Lines with something drawn behind each, below each other; as they are where that is wider than
/// the terminal.
pub(crate) fn beside(lines: Vec<String>, drawn: &[String], columns: usize) -> Vec<String> {
    let width = |text: &String| text.chars().count();
    let widest = lines.iter().map(width).max().unwrap_or(0);
    let longest = drawn.iter().map(width).max().unwrap_or(0);
    if longest == 0 || widest + 2 + longest > columns {
        return lines;
    }
    let one =
        |(line, drawn): (String, &String)| format!("{line:widest$}  {drawn}").trim_end().to_owned();
    lines.into_iter().zip(drawn).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_grow_with_their_values() {
        let values = [Some(0.0), Some(50.0), None, Some(100.0), Some(f64::NAN)];
        assert_eq!(line(values, 100.0), "▁▄ █");
        assert_eq!(line([None, None], 100.0), "");
        assert_eq!(line([Some(1.0)], 0.0), "█");
    }

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(100.0, 100.0), "█".repeat(24));
        assert_eq!(bar(50.0, 100.0), "█".repeat(12));
        assert_eq!(bar(1.0, 48.0), "▌");
        assert_eq!(bar(0.0, 100.0), "");
        assert_eq!(bar(f64::INFINITY, 1.0).chars().count(), 24);
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let lines = || vec!["a".to_owned(), "größe".to_owned()];
        let drawn = ["▁█".to_owned(), "██".to_owned()];
        assert_eq!(beside(lines(), &drawn, 80), ["a      ▁█", "größe  ██"]);
        assert_eq!(beside(lines(), &drawn, 8), lines());
    }
}
