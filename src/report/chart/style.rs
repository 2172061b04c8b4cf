//! What tells lines apart: colour, marker, dashes. Never colour alone.

/// Okabe and Ito's palette for all kinds of colour vision (<https://jfly.uni-koeln.de/color/>):
/// on white, and lighter of the same hue on black.
pub(crate) const COLOURS: [(&str, &str); 8] = [
    ("#0072b2", "#4ba3e3"),
    ("#e69f00", "#f0b429"),
    ("#009e73", "#1fc99a"),
    ("#d55e00", "#ff8a3d"),
    ("#cc79a7", "#e59bc4"),
    ("#56b4e9", "#9bd7ff"),
    ("#000000", "#f2f2f2"),
    ("#8a7d00", "#f0e442"),
];
/// Dashes and gaps of a line.
const DASHES: [&str; 5] = ["", "6 3", "2 3", "9 3 2 3", "9 3 2 3 2 3"];

/// How the lines of one label look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    /// A position in [`COLOURS`].
    pub(crate) colour: usize,
    pub(crate) marker: Marker,
    /// As `stroke-dasharray` takes it; empty for a whole line.
    pub(crate) dashes: &'static str,
}

/// The shape at a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Reversed,
    Cross,
    Plus,
    Hourglass,
}

/// In the order of the labels.
const MARKERS: [Marker; 8] = [
    Marker::Circle,
    Marker::Square,
    Marker::Triangle,
    Marker::Diamond,
    Marker::Reversed,
    Marker::Cross,
    Marker::Plus,
    Marker::Hourglass,
];

impl Style {
    /// Of the label at this position. Eight differ in everything, and 320 in something.
    pub(crate) fn of(label: usize) -> Style {
        let colours = COLOURS.len();
        let round = label / colours;
        Style {
            colour: label % colours,
            marker: MARKERS[(label + round / DASHES.len()) % MARKERS.len()],
            dashes: DASHES[round % DASHES.len()],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn many_labels_look_different() {
        let looks: BTreeSet<String> = (0..320).map(|i| format!("{:?}", Style::of(i))).collect();
        assert_eq!(looks.len(), 320);
        let first: BTreeSet<String> =
            (0..8).map(|i| format!("{:?}", Style::of(i).marker)).collect();
        assert_eq!(first.len(), 8);
    }
}
