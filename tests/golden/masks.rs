//! The masks: all that these tests do not hold.
//!
//! | where | masked | because |
//! |---|---|---|
//! | all | `{dir}`, `{port}`, the program's revision | they are the run's own |
//! | all | the warning of a debug build | tests may be optimised |
//! | completions | all but bash's lists of words | clap makes them of what `help` holds |
//! | JSON | indentation | it says nothing, and is half of the bytes |
//! | JSON | texts of `PROSE` | people read them; their codes are held |
//! | pages | what stands in `<style>` and `<script>`; hashes of the policy | other tests run it |
//! | JSON of a run | values of `MEASURED`, whole | times, rates, ids, the host |
//! | text of a run | `numbers` with a unit or a fraction, footnotes, their marks, verdicts | the same |

/// Names whose text is prose.
const PROSE: [&str; 6] = ["message", "reason", "reasons", "text", "title", "about"];

/// Names of what a run measures, whatever is below them.
const MEASURED: [&str; 36] = [
    "busy",
    "client",
    "client_host",
    "cpu",
    "conditions",
    "host_facts",
    "ended_at",
    "first_s",
    "histogram",
    "host",
    "id",
    "kernel",
    "last_s",
    "mean_us",
    "measured_s",
    "min_us",
    "max_us",
    "stddev_us",
    "per_client",
    "p50_us",
    "p75_us",
    "p90_us",
    "p95_us",
    "p99_us",
    "p99_9_us",
    "p99_99_us",
    "port",
    "probed",
    "qps",
    "revision",
    "run_id",
    "started_at",
    "step_id",
    "timeline",
    "tps",
    "verdict",
];

/// The masks of one case.
pub(crate) struct Masks<'a> {
    pub(crate) dir: &'a str,
    pub(crate) port: &'a str,
    /// The case measures, rather than reads what was measured.
    pub(crate) measured: bool,
}

impl Masks<'_> {
    fn own(&self, text: &str) -> String {
        let debug = "warning: this is a debug build; its numbers are not for comparing\n";
        let text = text.replace(self.dir, "{dir}").replace(debug, "");
        if self.port == "1" {
            return text;
        }
        text.replace(&format!("127.0.0.1:{}", self.port), "127.0.0.1:{port}")
            .replace(&format!("port {}", self.port), "port {port}")
    }

    /// Masks what people read.
    pub(crate) fn text(&self, text: &str) -> String {
        let text = self.own(text);
        if !self.measured {
            return text;
        }
        let mut masked = String::new();
        for line in text.lines() {
            if line.starts_with(['†', '‡', '§', '¶']) {
                continue;
            }
            let line = line.replace([' ', '\u{a0}'], " ");
            let words: Vec<String> = line.split(' ').map(number).filter(|w| !is_mark(w)).collect();
            let mut line = words.join(" ");
            for verdict in ["client-bound", "shared-host", "noisy"] {
                line = line.replace(&format!(", {verdict}"), "");
            }
            while line.contains("  ") {
                line = line.replace("  ", " ");
            }
            masked += line.trim_end();
            masked.push('\n');
        }
        masked
    }

    /// Masks prose in JSON, and in that of a run what it measured.
    pub(crate) fn json(&self, text: &str) -> String {
        let text = self.own(text);
        let mut masked = String::new();
        let mut rest = text.as_str();
        while let Some((name, value)) = next_field(rest) {
            masked += &rest[..value];
            rest = &rest[value..];
            let length = value_length(rest);
            let held = &rest[..length];
            let null = held == "null" || held == "[]";
            if PROSE.contains(&name.as_str()) && !null && !held.starts_with(['{', '[']) {
                masked += "\"(prose)\"";
            } else if name == "reasons" && !null && !held.contains('{') {
                masked += "[\"(prose)\"]";
            } else if self.measured && MEASURED.contains(&name.as_str()) && !null {
                masked += "\"(measured)\"";
            } else {
                continue;
            }
            rest = &rest[length..];
        }
        masked += rest;
        masked.lines().fold(String::new(), |lines, line| lines + line.trim_start() + "\n")
    }

    /// Masks completions but for the words of bash's.
    pub(crate) fn completions(text: &str) -> String {
        let words = text.lines().filter(|line| line.trim_start().starts_with("opts="));
        words.fold(String::new(), |lines, line| lines + line.trim_start() + "\n")
    }

    /// Masks a page: style and script, which other tests look at.
    pub(crate) fn page(&self, text: &str) -> String {
        let mut page = self.own(text);
        for tag in ["style", "script"] {
            let (open, close) = (format!("<{tag}"), format!("</{tag}>"));
            let mut masked = String::new();
            let mut rest = page.as_str();
            while let Some(at) = rest.find(&open) {
                let end = rest[at..].find('>').expect("a tag's end") + at + 1;
                let after = rest[end..].find(&close).expect("a closed element") + end;
                masked += &rest[..end];
                rest = &rest[after..];
            }
            page = masked + rest;
        }
        page.replace("><", ">\n<")
    }

    /// Masks the instant and the id in a summary's name.
    pub(crate) fn file_name(&self, name: &str) -> String {
        let (dir, file) = name.rsplit_once('/').map_or(("", name), |(dir, file)| (dir, file));
        let parts: Vec<&str> = file.split('_').collect();
        let date = |part: &str| part.len() == 16 && part.ends_with('Z');
        let kept: Vec<&str> =
            parts.iter().map(|part| if date(part) { "{instant}" } else { part }).collect();
        let name = kept.join("_");
        let name = name.rsplit_once('_').map_or(name.clone(), |(before, id)| {
            let (id, ending) = id.split_once('.').unwrap_or((id, ""));
            let hex = id.len() >= 8 && id.bytes().all(|b| b.is_ascii_hexdigit());
            if hex { format!("{before}_{{id}}.{ending}") } else { name.clone() }
        });
        if dir.is_empty() { name } else { format!("{dir}/{name}") }
    }
}

fn is_mark(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| "†‡§¶".contains(c))
}

/// A number is what a run measured if it has a fraction or three digits.
fn number(word: &str) -> String {
    let bare = word.trim_matches(|c: char| ",:()".contains(c));
    let digits = bare.bytes().filter(u8::is_ascii_digit).count();
    let plain =
        !bare.is_empty() && bare.chars().all(|c| c.is_ascii_digit() || ".,±%kM".contains(c));
    if plain && digits > 0 && (bare.contains('.') || digits > 2 || bare.contains('±')) {
        return word.replace(bare, "#");
    }
    word.to_owned()
}

/// The next field's name, and where its value begins.
fn next_field(text: &str) -> Option<(String, usize)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'"' {
            at += 1;
            continue;
        }
        let end = at + value_length(&text[at..]);
        let after = text[end..].trim_start();
        if let Some(value) = after.strip_prefix(':') {
            let value = text.len() - value.trim_start().len();
            return Some((text[at + 1..end - 1].to_owned(), value));
        }
        at = end;
    }
    None
}

/// How long a JSON value at the start of a text is.
fn value_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut quoted, mut escaped) = (0_u32, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => {
                quoted = !quoted;
                if !quoted && depth == 0 {
                    return at + 1;
                }
            }
            _ if quoted => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' | b'\n' if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}
