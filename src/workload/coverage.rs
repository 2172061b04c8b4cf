//! Where keys fall, by arithmetic: how hot the hottest row is, and how many rows are touched.

use super::distribution::Distribution;
use super::{Param, Workload};

/// Rows that are looked at one by one, at the hot end; behind them zones become wider by a factor.
const SINGLE: u64 = 1024;
const WIDENING: f64 = 1.05;
/// Zones of a half of the normal part of `special`.
const BELL: u32 = 200;

/// How the keys of one table spread over its rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Coverage {
    pub hottest_share: f64,
    /// The smallest part of the rows that half of the keys fall on, 0 to 1.
    pub half_on_share: f64,
    /// Different rows that so many draws are expected to touch.
    pub distinct: f64,
}

/// Neighbours in density: so many rows, and their share of the keys.
type Zone = (f64, f64);

fn density((rows, share): &Zone) -> f64 {
    share / rows
}

/// Tells where `draws` keys of a table of `rows` fall.
pub(crate) fn coverage(distribution: Distribution, rows: u64, draws: f64) -> Coverage {
    let rows = rows.max(1);
    let mut zones = zones(distribution, rows);
    zones.sort_by(|a, b| density(b).total_cmp(&density(a)));
    let (mut sum, mut half) = (0.0_f64, 0.0_f64);
    for (rows, share) in &zones {
        if sum >= 0.5 {
            break;
        }
        half += rows * ((0.5 - sum) / share).min(1.0);
        sum += share;
    }
    // A row that a draw hits with p is missed by all with (1 - p)^n.
    let missed = |zone: &Zone| draws * libm::log1p(-density(zone).min(1.0));
    let touched = |zone: &Zone| zone.0 * -libm::expm1(missed(zone));
    Coverage {
        hottest_share: density(&zones[0]),
        half_on_share: half / rows as f64,
        distinct: if draws > 0.0 { zones.iter().map(touched).sum() } else { 0.0 },
    }
}

fn zones(distribution: Distribution, rows: u64) -> Vec<Zone> {
    let n = rows as f64;
    match distribution {
        Distribution::Uniform => vec![(n, 1.0)],
        Distribution::Zipf(s) | Distribution::ZipfAdjacent(s) => {
            // The integral of x^-s, scaled in the end: near enough to the sum behind the first.
            let integral = |x: f64| match s - 1.0 {
                off if off.abs() < 1e-9 => libm::log(x),
                _ => (libm::pow(x, 1.0 - s) - 1.0) / (1.0 - s),
            };
            scaled(ranks(rows, |from, to| match to - from {
                1 => libm::pow(to as f64, -s),
                _ => integral(to as f64 + 0.5) - integral(from as f64 + 0.5),
            }))
        }
        Distribution::Pareto(h) => {
            let power = libm::log(h) / libm::log1p(-h);
            let below = |x: u64| libm::pow(x as f64 / n, 1.0 / power);
            ranks(rows, |from, to| below(to) - below(from))
        }
        Distribution::Special => special(n),
    }
}

/// Makes zones of the ranks `from + 1 ..= to`.
fn ranks(rows: u64, share: impl Fn(u64, u64) -> f64) -> Vec<Zone> {
    let (mut zones, mut from) = (Vec::new(), 0);
    while from < rows {
        let wide = (from as f64 * WIDENING).ceil() as u64;
        let to = if from < SINGLE { from + 1 } else { wide.min(rows) };
        zones.push(((to - from) as f64, share(from, to)));
        from = to;
    }
    zones
}

fn scaled(mut zones: Vec<Zone>) -> Vec<Zone> {
    let all: f64 = zones.iter().map(|(_, share)| share).sum();
    for (_, share) in &mut zones {
        *share /= all;
    }
    zones
}

/// Makes the zones of `special`: three quarters of the keys on the upper three quarters of the
/// middle 1 %, the others around it: the sum of twelve uniform numbers, which is normal all but.
fn special(n: f64) -> Vec<Zone> {
    let band = (0.0075 * n + 0.75).max(1.0);
    let within = |half_width: f64| libm::erf(half_width * 12.0 / core::f64::consts::SQRT_2);
    // Both sides of the middle together, outside of the band.
    let edge = (band / n / 2.0).min(0.5);
    let mut zones = vec![(band, 0.75 + 0.25 * within(edge))];
    let step = (0.5 - edge) / f64::from(BELL);
    if step > 0.0 {
        zones.extend((0..BELL).map(|i| {
            let (from, to) = (edge + f64::from(i) * step, edge + f64::from(i + 1) * step);
            (2.0 * step * n, 0.25 * (within(to) - within(from)))
        }));
    }
    scaled(zones)
}

/// Finds the distribution that most keys of an op come from, and how many keys an op draws from it;
/// None for a workload without keys. `usual` is that of `--distribution`.
pub(crate) fn keys_per_op(workload: &Workload, usual: Distribution) -> Option<(Distribution, f64)> {
    let weights: f64 = workload.transactions.iter().map(|t| f64::from(t.weight)).sum();
    let mut drawn: Vec<(Distribution, f64)> = Vec::new();
    for transaction in &workload.transactions {
        let part = f64::from(transaction.weight) / weights;
        for (statement, repeat) in workload.running(transaction) {
            let (_, params) = statement.expanded(&workload.options);
            for param in &params {
                let (Param::Key(source)
                | Param::Slice(source)
                | Param::RangeStart { distribution: source, .. }) = param
                else {
                    continue;
                };
                let (distribution, n) = (source.0.unwrap_or(usual), part * repeat as f64);
                match drawn.iter_mut().find(|(of, _)| *of == distribution) {
                    Some((_, sum)) => *sum += n,
                    None => drawn.push((distribution, n)),
                }
            }
        }
    }
    drawn.into_iter().filter(|(_, n)| *n > 0.0).max_by(|(_, a), (_, b)| a.total_cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::builtin;
    use crate::workload::distribution::Sampler;
    use crate::workload::random::{Stream, seed_of};

    #[test]
    fn arithmetic_agrees_with_draws() {
        let (rows, draws) = (20_000_u64, 200_000_usize);
        for text in ["uniform", "zipf:0.6", "zipf:1", "zipf-adjacent:1.3", "pareto:0.2", "special"]
        {
            let distribution: Distribution = text.parse().expect(text);
            let sampler = Sampler::new(distribution, rows, 1);
            let mut stream = Stream::new(seed_of(&[9]));
            let mut seen = vec![0_u32; rows as usize];
            for _ in 0..draws {
                seen[sampler.draw(&mut stream) as usize - 1] += 1;
            }
            let told = coverage(distribution, rows, draws as f64);
            let distinct = seen.iter().filter(|n| **n > 0).count() as f64;
            assert!((told.distinct / distinct - 1.0).abs() < 0.03, "{text}: {told:?} {distinct}");
            seen.sort_unstable_by(|a, b| b.cmp(a));
            let hottest = f64::from(seen[0]) / draws as f64;
            // The largest of many equal counts is above their mean; only a hot row stands out.
            if told.hottest_share > 0.005 {
                assert!((told.hottest_share / hottest - 1.0).abs() < 0.1, "{text}: {told:?}");
            } else {
                assert!(told.hottest_share < hottest, "{text}: {told:?} {hottest}");
            }
            let mut sum = 0;
            let half = seen.iter().take_while(|n| {
                sum += **n;
                sum < draws as u32 / 2
            });
            let half = half.count() as f64 / rows as f64;
            // Chance makes the hotter half smaller than it is.
            assert!(half < told.half_on_share * 1.02 + 1e-3, "{text}: {told:?} {half}");
            assert!(half > told.half_on_share * 0.7 - 1e-3, "{text}: {told:?} {half}");
        }
    }

    #[test]
    fn odd_tables_are_no_trouble() {
        for text in ["uniform", "zipf:10", "pareto:0.999", "special"] {
            for (rows, draws) in [(1, 5.0), (2, 0.0), (1_000_000_000_000, 1e9)] {
                let told = coverage(text.parse().expect(text), rows, draws);
                let within = |x: f64| (0.0..=1.0 + 1e-9).contains(&x);
                assert!(within(told.hottest_share) && within(told.half_on_share), "{told:?}");
                assert!(told.distinct <= (rows as f64) * (1.0 + 1e-9), "{text} {rows}: {told:?}");
            }
        }
    }

    #[test]
    fn keys_of_an_op_are_counted() {
        let keys = |name: &str| {
            let workload = builtin().into_iter().find(|w| w.name == name).expect(name);
            keys_per_op(&workload, Distribution::Zipf(0.9))
        };
        assert_eq!(keys("point-select"), Some((Distribution::Zipf(0.9), 1.0)));
        let (distribution, n) = keys("random-points").expect("keys");
        assert!(n >= 10.0, "{distribution} {n}");
        assert_eq!(keys("bulk-insert"), None);
    }
}
