//! Small bars beside the rows of a table on a terminal.

pub(super) const GAP: usize = 2;

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Eighths of a cell, to the right; nothing first.
const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

const BAR: f64 = 24.0;

/// A column each value, from zero to the largest that it is to be seen beside; a blank where there is none.
pub(crate) fn shape(values: impl IntoIterator<Item = Option<f64>>, max: f64) -> String {
    let level = |value: f64| {
        let eighths = (value / max * 8.0).ceil().clamp(1.0, 8.0);
        LEVELS.get((eighths as usize).checked_sub(1)?).copied()
    };
    let column = |value: Option<f64>| value.and_then(level).unwrap_or(' ');
    values.into_iter().map(column).collect::<String>().trim_end().to_owned()
}

pub(crate) fn bar(value: Option<f64>, max: f64) -> String {
    let part = value.filter(|_| max > 0.0).map_or(0.0, |value| value / max);
    let eighths = (part * BAR * 8.0).round().clamp(0.0, BAR * 8.0) as usize;
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

/// Leaves the lines as they are where that is wider than the terminal.
pub(super) fn beside(lines: Vec<String>, drawn: &[String], columns: usize) -> Vec<String> {
    let widest = |of: &[String]| of.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let (width, longest) = (widest(&lines), widest(drawn));
    if longest == 0 || width + GAP + longest > columns {
        return lines;
    }
    let both = lines.iter().zip(drawn).map(|(line, drawn)| format!("{line:width$}  {drawn}"));
    both.map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_grow_with_their_values() {
        let values = [Some(0.0), Some(50.0), None, Some(100.0), Some(f64::NAN)];
        assert_eq!(shape(values, 100.0), "▁▄ █");
        assert_eq!(shape([None, None], 100.0), "");
        assert_eq!(shape([Some(1.0)], 0.0), "█");
    }

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(Some(100.0), 100.0), "█".repeat(24));
        assert_eq!(bar(Some(50.0), 100.0), "█".repeat(12));
        assert_eq!(bar(Some(1.0), 48.0), "▌");
        assert_eq!(bar(Some(0.0), 100.0), "");
        assert_eq!([bar(None, 1.0), bar(Some(0.0), 0.0)], ["", ""]);
        assert_eq!(bar(Some(f64::INFINITY), 1.0).chars().count(), 24);
    }

    #[test]
    fn drawings_are_left_out_when_they_do_not_fit() {
        let lines = || vec!["a".to_owned(), "größe".to_owned()];
        let drawn = ["▁█".to_owned(), "██".to_owned()];
        assert_eq!(beside(lines(), &drawn, 80), ["a      ▁█", "größe  ██"]);
        assert_eq!(beside(lines(), &drawn, 8), lines());
    }
}
