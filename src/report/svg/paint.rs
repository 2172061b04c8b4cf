//! Colours by name, and the style sheet that uses them: one for pages, whose colours follow the
//! reader's scheme, and one for files, which are printed.

use super::super::chart::COLOURS;

/// Rules of everything that is drawn; colours are `var(--NAME)`.
const RULES: &str = include_str!("chart.css");

/// A colour's name, on white and on black.
const PAINT: [(&str, &str, &str); 6] = [
    ("paper", "#ffffff", "#16181d"),
    ("ink", "#1b1f24", "#e6e8eb"),
    ("faint", "#59636e", "#9aa4af"),
    ("grid", "#dfe3e8", "#31363e"),
    ("shade", "#eef0f3", "#23272e"),
    ("error", "#c62828", "#ff6b6b"),
];

/// The rules of a page, with both schemes.
pub(crate) fn of_page() -> String {
    let scheme = |pick: fn(&'static str, &'static str) -> &'static str| {
        let named =
            PAINT.iter().map(|(name, light, dark)| format!("--{name}:{};", pick(light, dark)));
        let lines = COLOURS
            .iter()
            .enumerate()
            .map(|(at, (light, dark))| format!("--c{at}:{};", pick(light, dark)));
        named.chain(lines).collect::<String>()
    };
    let (light, dark) = (scheme(|light, _| light), scheme(|_, dark| dark));
    let classes = (0..COLOURS.len()).map(|at| format!(".c{at}{{color:var(--c{at})}}"));
    let classes = classes.collect::<Vec<String>>().concat();
    format!(
        ":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}{classes}\n{RULES}"
    )
}

/// The rules of a file: its colours are written out, because not every reader of SVG knows
/// variables.
pub(crate) fn of_file() -> String {
    let plain = |rules: String, (name, light, _): &(&str, &str, &str)| {
        rules.replace(&format!("var(--{name})"), light)
    };
    let rules = PAINT.iter().fold(RULES.to_owned(), plain);
    let classes =
        COLOURS.iter().enumerate().map(|(at, (light, _))| format!(".c{at}{{color:{light}}}"));
    format!("{}\n{rules}", classes.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_has_a_value() {
        assert!(!of_file().contains("var("), "{}", of_file());
        let page = of_page();
        for used in page.split("var(--").skip(1) {
            let name = used.split(')').next().expect("a name");
            assert_eq!(page.matches(&format!("--{name}:")).count(), 2, "{name} in both schemes");
        }
    }
}
