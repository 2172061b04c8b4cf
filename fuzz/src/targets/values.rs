//! What stands on a command line: lists of clients and rates, sizes, durations, distributions,
//! metrics, conditions, limits of errors, parts of a plan, URLs.

use std::time::Duration;

use loadgen::mysql::options::Env;
use loadgen::mysql::options::resolve::resolve;
use loadgen::mysql::options::{ConnectionArgs, Secret, SslMode};
use loadgen::mysql::server::Product;
use loadgen::plan::experiment::Only;
use loadgen::plan::units;
use loadgen::plan::value::ErrorsMax;
use loadgen::plan::value::Scale;
use loadgen::plan::value::{CLIENTS_MAX, Clients, Rates};
use loadgen::report::Metric;
use loadgen::terms::Gate;
use loadgen::workload::distribution::Distribution;
use loadgen::workload::table::Mark;

use super::files::world;
use super::harmless;

/// Steps of a list at most, and those of its last range.
const STEPS_MAX: usize = 20_001;

/// One text for all parsers of one value.
pub(crate) fn values(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    lists(text);
    if let Ok(count) = units::parse_count(text) {
        assert_eq!(units::parse_count(&units::count(count)), Ok(count));
    }
    if let Ok(duration) = units::parse_duration(text) {
        assert_eq!(units::parse_duration(&units::duration(duration)), Ok(duration));
    }
    if let Ok(distribution) = text.parse::<Distribution>() {
        let shown = distribution.to_string();
        let again = shown.parse::<Distribution>().ok().map(|again| again.to_string());
        assert_eq!(again, Some(shown));
    }
    if let Ok(metric) = text.parse::<Metric>() {
        let shown = metric.to_string();
        let again = shown.parse::<Metric>().ok().map(|again| again.to_string());
        assert_eq!(again, Some(shown));
    }
    if let Ok(mode) = SslMode::parse(text) {
        assert_eq!(SslMode::parse(&mode.to_string()), Ok(mode));
    }
    if let Some(mark) = Mark::parse(text) {
        assert_eq!(Mark::parse(&mark.to_string()), Some(mark));
    }
    if let Ok(max) = text.parse::<ErrorsMax>() {
        assert_eq!(max.to_string().parse(), Ok(max));
        let _ = max.exceeded(u64::MAX, 1, false) || max.exceeded(0, 0, true);
    }
    if let Ok(gate) = text.parse::<Gate>() {
        assert_eq!(gate.to_string().parse(), Ok(gate));
    }
    if let Ok(scale) = text.parse::<Scale>() {
        let _ = (scale.rows(u64::MAX), scale.time(Duration::MAX), scale.size(text, u64::MAX));
    }
    let _ = text.parse::<Only>();
    let (version, comment) = text.split_once('\n').unwrap_or((text, ""));
    let _ = Product::from_version(version, comment);
    url(text);
}

fn lists(text: &str) {
    if let Ok(Clients(steps)) = text.parse() {
        assert!(!steps.is_empty() && steps.len() <= STEPS_MAX);
        assert!(steps.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(steps.iter().all(|n| (1..=CLIENTS_MAX).contains(n)));
        let printed: Vec<String> = steps.iter().map(u32::to_string).collect();
        if steps.len() < 1000 {
            assert_eq!(printed.join(",").parse(), Ok(Clients(steps)));
        }
    }
    if let Ok(Rates(steps)) = text.parse() {
        assert!(!steps.is_empty() && steps.len() <= STEPS_MAX);
        assert!(steps.iter().all(|rate| rate.is_finite() && *rate > 0.0));
    }
}

/// A URL, and no message about it shows its password.
fn url(text: &str) {
    let marked = format!("mysql://u:marker-pw@{text}");
    for url in [text, &marked] {
        let args = ConnectionArgs { url: Some(Secret::new(url)), ..ConnectionArgs::default() };
        let env: Env = world(Vec::new(), 0o600);
        match resolve(&args, &env) {
            Ok(resolved) => {
                let shown = format!("{resolved:?}");
                // What follows the password's @ may say the same again.
                assert!(!shown.contains("marker-pw") || text.contains("marker-pw"), "{shown}");
            }
            Err(error) => {
                harmless(&error.render());
                let shown = error.render();
                assert!(!shown.contains("marker-pw") || text.contains("marker-pw"), "{shown}");
            }
        }
    }
}
