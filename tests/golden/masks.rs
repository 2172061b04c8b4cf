//! The masks: all that these tests do not hold.
//!
//! | where | masked | because |
//! |---|---|---|
//! | all | the temporary directory, `{port}` | they are the case's own |
//! | all | the warning of a host that was not idle | it comes and goes |
//! | all | the warning of a debug build | tests may be optimised |
//! | completions | all but bash's lists of words, and their order | clap makes them of what `help` holds |
//! | JSON | indentation | it says nothing, and is half of the bytes |
//! | JSON | texts of `PROSE` | people read them; their codes are held |
//! | pages | what stands in `<style>` and `<script>` | other tests run it |
//! | JSON of a run | warnings: their texts, and those of `HOSTS` | their codes are held |
//! | JSON of a run | values of `MEASURED` and `FOUND`, whole | times, rates, ids, the host |
//! | CSV of a run | the columns `COLUMNS` | the same |
//! | text of a run | numbers with a fraction or three digits, footnotes, verdicts, outages, noise | the same |

/// Names whose text is prose.
const PROSE: [&str; 7] = ["message", "reason", "reasons", "text", "title", "about", "notes"];

/// Names of what a run measures, whatever is below them.
const MEASURED: [&str; 38] = [
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
    "output",
    "per_client",
    "p50_us",
    "p75_us",
    "p90_us",
    "p95_us",
    "p99_us",
    "p99_9_us",
    "p99_99_us",
    "port",
    "profile",
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

/// Names of what a run or a calibration finds, or does not.
const FOUND: [&str; 11] = [
    "outages",
    "wall_s",
    "user_s",
    "sys_s",
    "ceiling_qps",
    "noisy",
    "other_load",
    "steal",
    "turn_delay_percentile",
    "turn_delay_us",
    "us_per_op",
];

/// Columns of what a run measures.
const COLUMNS: [&str; 14] = [
    "value",
    "min",
    "max",
    "relative",
    "started_at",
    "notes",
    "base_value",
    "new_value",
    "ratio",
    "ratio_low",
    "ratio_high",
    "p",
    "p_corrected",
    "change_percent",
];

/// Warnings that come and go with the host.
const HOSTS: [&str; 13] = [
    "debug_build",
    "outages",
    "late_reading",
    "target_not_sustained",
    "same_host",
    "cpu_governor",
    "cpu_throttled",
    "cpu_frequency",
    "swapping",
    "numa_unbound",
    "network_full",
    "drift",
    "too_short",
];

/// The masks of one case.
pub(crate) struct Masks<'a> {
    pub(crate) home: &'a str,
    pub(crate) port: &'a str,
    /// The case measures, rather than reads what was measured.
    pub(crate) measured: bool,
}

impl Masks<'_> {
    fn own(&self, text: &str) -> String {
        let debug = "warning: this is a debug build; its numbers are not for comparing\n";
        let idle = |line: &&str| !line.starts_with("warning: this host was not idle");
        let text: String = text.split_inclusive('\n').filter(idle).collect();
        let text = text.replace(self.home, "{home}").replace(debug, "");
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
            let varies = ["the range of the runs", "runs were disturbed", "rate not reached"];
            let footnote =
                line.starts_with("* ") || line.contains(" note") && line.ends_with("--notes");
            if footnote || varies.iter().any(|text| line.contains(text)) {
                continue;
            }
            let line = line.replace([' ', '\u{a0}'], " ");
            let mut words: Vec<String> =
                line.split(' ').map(number).filter(|w| !is_mark(w)).collect();
            // A busy host may leave fewer than three digits.
            for at in 1..words.len() {
                if words[at] == "QPS," && words[at - 1].bytes().all(|b| b.is_ascii_digit()) {
                    "#".clone_into(&mut words[at - 1]);
                }
                // The value of a gate.
                if words[at - 1] == "is" && words[at].ends_with("/s") {
                    "#/s".clone_into(&mut words[at]);
                }
            }
            let mut line = words.join(" ");
            for verdict in ["client-bound", "shared-host", "noisy"] {
                line = line.replace(&format!(", {verdict}"), "");
            }
            // A slow host makes more of the same lost connections.
            for outages in ["; 1 outage", "; 2 outages", "; 3 outages", "; 4 outages"] {
                line = line.replace(outages, "");
            }
            while line.contains("  ") {
                line = line.replace("  ", " ");
            }
            masked += line.trim();
            masked.push('\n');
        }
        masked
    }

    /// Masks columns of a run's rows.
    pub(crate) fn csv(&self, text: &str) -> String {
        let text = self.own(text);
        if !self.measured {
            return text;
        }
        let mut header: Vec<&str> = Vec::new();
        let mut masked = String::new();
        for line in text.lines() {
            let cells: Vec<&str> = line.split(',').collect();
            if header.is_empty() {
                header.clone_from(&cells);
            }
            assert_eq!(cells.len(), header.len(), "a comma in a cell: {line}");
            let cells = cells.iter().zip(&header).map(|(cell, name)| {
                let measured = cell != name && !cell.is_empty() && COLUMNS.contains(name);
                if measured { "(measured)" } else { cell }
            });
            masked += &(cells.collect::<Vec<_>>().join(",") + "\n");
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
            let prose = PROSE.contains(&name.as_str()) && !null && !held.contains('{');
            if prose {
                masked += if held.starts_with('[') { "[\"(prose)\"]" } else { "\"(prose)\"" };
            } else if self.measured && name == "warnings" {
                masked += &codes(held);
            } else if self.measured && is_measured(&name, held) {
                masked += "\"(measured)\"";
            } else {
                continue;
            }
            rest = &rest[length..];
        }
        masked += rest;
        masked.lines().fold(String::new(), |lines, line| lines + line.trim_start() + "\n")
    }

    /// Masks completions but for the words of bash's, sorted: their order is the help's.
    pub(crate) fn completions(text: &str) -> String {
        let words = text.lines().filter_map(|line| line.trim_start().strip_prefix("opts="));
        words.fold(String::new(), |lines, line| {
            let mut words: Vec<&str> = line.trim_matches('"').split(' ').collect();
            words.sort_unstable();
            lines + &words.join(" ") + "\n"
        })
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
    pub(crate) fn file_name(name: &str) -> String {
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

/// A run's own value; a resume key is long, a parameter's is a word.
fn is_measured(name: &str, held: &str) -> bool {
    let none = held == "null" || held == "[]";
    FOUND.contains(&name)
        || (MEASURED.contains(&name) && !none)
        || (name == "key" && held.len() > 16)
}

/// The codes of warnings, without those that tell of the host or of how long it took.
fn codes(warnings: &str) -> String {
    let warnings: Vec<serde_json::Value> = serde_json::from_str(warnings).expect("warnings");
    let codes = warnings.iter().map(|warning| warning["code"].as_str().expect("a code"));
    format!("{:?}", codes.filter(|code| !HOSTS.contains(code)).collect::<Vec<_>>())
}

fn is_mark(word: &str) -> bool {
    word == "*"
}

/// A number is what a run measured if it has a fraction or three digits.
fn number(word: &str) -> String {
    let bare = word.trim_matches(|c: char| ",:()[]".contains(c));
    let digits = bare.bytes().filter(u8::is_ascii_digit).count();
    let plain =
        !bare.is_empty() && bare.chars().all(|c| c.is_ascii_digit() || ".,±–%kM".contains(c));
    if plain && digits > 0 && (bare.contains('.') || digits > 2 || bare.contains(['±', '–'])) {
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
            b'}' | b']' | b',' | b'\n' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}
