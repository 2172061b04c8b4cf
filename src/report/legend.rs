//! The legend of a page's chart, in the drawing itself.

use maud::{Markup, html};

use super::chart::{CHAR, LINE, MARGIN, Size, class, px, sample};
use super::escape::clip;
use super::names::label;

/// Side by side below a drawing, in lines as wide as it. Returns the position of each, and the height of all.
pub(crate) fn legend<'l>(labels: &[(usize, &'l str)], size: Size) -> (Vec<Markup>, f64) {
    let (mut x, mut y) = (0.0, 0.0);
    let entry = |(at, text): &(usize, &'l str)| {
        let text = clip(&label(text), ((size.0 - 36.0) / (CHAR + 1.0)) as usize);
        let width = 36.0 + text.chars().count() as f64 * CHAR + MARGIN;
        if x > 0.0 && x + width > size.0 {
            (x, y) = (0.0, y + LINE);
        }
        let moved = format!("translate({},{})", px(x), px(size.1 + y + 4.0));
        x += width;
        html! { g class={ "key s" (at) " " (class(*at)) } transform=(moved) {
            (sample(*at)) text x="34" y="10" { (text) }
        } }
    };
    let entries: Vec<Markup> = labels.iter().map(entry).collect();
    let height = if entries.is_empty() { 0.0 } else { y + LINE };
    (entries, height)
}
