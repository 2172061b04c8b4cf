//! Key distributions, and their coverage by arithmetic: how hot the hottest row is, how many rows are
//! touched.

use std::fmt;

use super::random::{Permutation, Stream, name_part, seed_of};

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Distribution {
    #[default]
    Uniform,
    /// Rank r with weight 1/r^S; a keyed permutation scatters the ranks over the ids.
    Zipf(f64),
    /// Zipf with rank = id: hot rows are neighbours, as in sysbench.
    ZipfAdjacent(f64),
    /// sysbench's `pareto`: the share 1 − H of the draws falls on the first H of the ids, and again
    /// within them.
    Pareto(f64),
    /// sysbench's `gaussian`: the mean of N uniform numbers.
    Gaussian(u32),
    /// The default of sysbench 1.0, `special`: three quarters of the draws fall on 0.75 % of the ids
    /// in the middle, the others around it.
    Special(Special),
}

/// The parameters of `special`, and of `gaussian`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Special {
    /// Uniform numbers whose mean lies around the middle (`--rand-spec-iter`).
    iterations: u32,
    /// Width of the middle band, percent of the ids (`--rand-spec-pct`).
    band: u32,
    /// Draws on the band, percent (`--rand-spec-res`).
    within: u32,
}

const USUAL: Special = Special { iterations: 12, band: 1, within: 75 };

const FORMS: &str = "uniform, zipf:S, zipf-adjacent:S (such as zipf:0.99), \
                     pareto:H (sysbench's: pareto:0.2), gaussian, special";
/// Most numbers that `gaussian` and `special` may average.
const ITERATIONS_MAX: u32 = 1000;
const EXPONENT_MAX: f64 = 10.0;

impl std::str::FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once(':').map_or((text, None), |(name, n)| (name, Some(n)));
        // Parses a shape parameter above 0 and up to `max`.
        let shape = |what: &str, like: f64, max: f64| -> Result<f64, String> {
            let value = value.ok_or_else(|| format!("'{name}' needs {what}: {name}:{like}"))?;
            let read = value.parse().ok().filter(|shape| *shape > 0.0 && *shape <= max);
            read.ok_or_else(|| format!("'{value}' of {name} is not {what}, such as {like}"))
        };
        let exponent = || shape("an exponent above 0 and up to 10", 0.99, EXPONENT_MAX);
        let share = || shape("a share between 0 and 1", 0.2, 1.0_f64.next_down());
        Ok(match name {
            "uniform" if value.is_some() => return Err(format!("{name} takes no value")),
            "uniform" => Distribution::Uniform,
            "gaussian" => {
                let iterations = value.map_or(Some(USUAL.iterations), |n| n.parse().ok());
                iterations.and_then(Distribution::gaussian).ok_or_else(|| {
                    format!("gaussian takes a number of 1 to {ITERATIONS_MAX}: gaussian:12")
                })?
            }
            "special" => Distribution::Special(
                value.map_or(Some(USUAL), Special::parse).ok_or_else(|| {
                    "special takes sysbench's rand-spec-iter, -pct and -res: special:12/1/75"
                        .to_owned()
                })?,
            ),
            "pareto" => Distribution::Pareto(share()?),
            "zipf" => Distribution::Zipf(exponent()?),
            "zipf-adjacent" => Distribution::ZipfAdjacent(exponent()?),
            _ => return Err(format!("'{text}' is none of {FORMS}")),
        })
    }
}

/// Distributions from sysbench's options, within the same bounds.
impl Distribution {
    pub(crate) fn gaussian(iterations: u32) -> Option<Distribution> {
        may_add(iterations).then_some(Distribution::Gaussian(iterations))
    }

    pub(crate) fn special(iterations: u32, band: u32, within: u32) -> Option<Distribution> {
        Special::new(iterations, band, within).map(Distribution::Special)
    }

    pub(crate) fn pareto(h: f64) -> Option<Distribution> {
        (h > 0.0 && h < 1.0).then_some(Distribution::Pareto(h))
    }

    pub(crate) fn zipf_adjacent(exponent: f64) -> Option<Distribution> {
        (exponent > 0.0 && exponent <= EXPONENT_MAX).then_some(Distribution::ZipfAdjacent(exponent))
    }
}

fn may_add(iterations: u32) -> bool {
    (1..=ITERATIONS_MAX).contains(&iterations)
}

impl Special {
    fn new(iterations: u32, band: u32, within: u32) -> Option<Special> {
        let good = may_add(iterations) && band <= 100 && within <= 100;
        good.then_some(Special { iterations, band, within })
    }

    fn parse(text: &str) -> Option<Special> {
        let [iterations, band, within] = text.split('/').collect::<Vec<_>>().try_into().ok()?;
        Special::new(iterations.parse().ok()?, band.parse().ok()?, within.parse().ok()?)
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Uniform => f.write_str("uniform"),
            Distribution::Zipf(s) => write!(f, "zipf:{s}"),
            Distribution::ZipfAdjacent(s) => write!(f, "zipf-adjacent:{s}"),
            Distribution::Pareto(h) => write!(f, "pareto:{h}"),
            Distribution::Gaussian(n) if *n == USUAL.iterations => f.write_str("gaussian"),
            Distribution::Gaussian(n) => write!(f, "gaussian:{n}"),
            Distribution::Special(USUAL) => f.write_str("special"),
            Distribution::Special(Special { iterations, band, within }) => {
                write!(f, "special:{iterations}/{band}/{within}")
            }
        }
    }
}

/// Draws ids of one table; built once a client and table, and a draw allocates nothing.
pub struct Sampler {
    rows: u64,
    pub(crate) base: u64,
    shape: Shape,
}

enum Shape {
    Uniform,
    Zipf(Zipf, Option<Permutation>),
    /// The exponent of a uniform number.
    Pareto(f64),
    Gaussian(u32),
    Special(Special),
}

impl Sampler {
    /// Makes a sampler of `1..=rows`. `hot_seed` places the hot rows of `zipf`: all clients and phases
    /// must share it, or a warm-up would heat other rows.
    pub fn new(distribution: Distribution, rows: u64, hot_seed: u64) -> Self {
        let rows = rows.max(1);
        let shape = match distribution {
            Distribution::Uniform => Shape::Uniform,
            Distribution::ZipfAdjacent(s) => Shape::Zipf(Zipf::new(rows, s), None),
            Distribution::Zipf(s) => {
                let key = seed_of(&[hot_seed, name_part("hot rows")]);
                Shape::Zipf(Zipf::new(rows, s), Some(Permutation::new(rows, key)))
            }
            Distribution::Pareto(h) => Shape::Pareto(libm::log(h) / libm::log1p(-h)),
            Distribution::Gaussian(iterations) => Shape::Gaussian(iterations),
            Distribution::Special(numbers) => Shape::Special(numbers),
        };
        Sampler { rows, base: 0, shape }
    }

    /// Draws an id after the base, in `1..=rows` without one.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        let first = match &self.shape {
            Shape::Uniform => stream.below(self.rows) + 1,
            Shape::Zipf(zipf, None) => zipf.draw(stream),
            Shape::Zipf(zipf, Some(permutation)) => permutation.apply(zipf.draw(stream) - 1) + 1,
            Shape::Pareto(power) => {
                let at = self.rows as f64 * libm::pow(stream.unit(), *power);
                (at as u64).min(self.rows - 1) + 1
            }
            Shape::Gaussian(iterations) => {
                let at = mean(*iterations, self.rows as f64, stream);
                (at as u64).min(self.rows - 1) + 1
            }
            Shape::Special(numbers) => special(*numbers, self.rows, stream),
        };
        self.base.wrapping_add(first)
    }
}

/// Draws from 0 to `t`: to the number of ids for `gaussian`, to one less for `special`, as sysbench 1.0.20 does.
fn mean(iterations: u32, t: f64, stream: &mut Stream) -> f64 {
    let sum: f64 = (0..iterations).map(|_| stream.unit()).sum();
    sum * t / f64::from(iterations)
}

/// Draws as `sb_rand_special` of sysbench 1.0.20. One number chooses both the part and the place in
/// the band, so only the band's upper part is hit.
fn special(numbers: Special, rows: u64, stream: &mut Stream) -> u64 {
    let Special { iterations, band, within } = numbers;
    let (t, band) = ((rows - 1) as f64, f64::from(band) / 100.0);
    let chosen = stream.unit();
    let at = if chosen < 1.0 - f64::from(within) / 100.0 {
        mean(iterations, t, stream)
    } else {
        chosen * (t * band + 1.0) + t / 2.0 - t * band / 2.0
    };
    (at as u64).min(rows - 1) + 1
}

/// Zipf by rejection-inversion (Hörmann and Derflinger 1996): constant time and space. `libm` instead
/// of the machine's mathematics makes streams equal across machines.
struct Zipf {
    n: u64,
    s: f64,
    h_x1: f64,
    h_n: f64,
    accept: f64,
}

impl Zipf {
    fn new(n: u64, s: f64) -> Self {
        let mut zipf = Zipf { n, s, h_x1: 0.0, h_n: 0.0, accept: 0.0 };
        zipf.h_x1 = zipf.h_integral(1.5) - 1.0;
        zipf.h_n = zipf.h_integral(n as f64 + 0.5);
        zipf.accept = 2.0 - zipf.h_integral_inverse(zipf.h_integral(2.5) - zipf.h(2.0));
        zipf
    }

    fn draw(&self, stream: &mut Stream) -> u64 {
        loop {
            let u = self.h_n + stream.unit() * (self.h_x1 - self.h_n);
            let x = self.h_integral_inverse(u);
            let k = ((x + 0.5) as u64).clamp(1, self.n);
            let rank = k as f64;
            if rank - x <= self.accept || u >= self.h_integral(rank + 0.5) - self.h(rank) {
                return k;
            }
        }
    }

    fn h_integral(&self, x: f64) -> f64 {
        let log_x = libm::log(x);
        expm1_over((1.0 - self.s) * log_x) * log_x
    }

    fn h(&self, x: f64) -> f64 {
        libm::exp(-self.s * libm::log(x))
    }

    fn h_integral_inverse(&self, x: f64) -> f64 {
        // Rounding can carry t just below −1, where the logarithm ends.
        let t = (x * (1.0 - self.s)).max(-1.0);
        libm::exp(log1p_over(t) * x)
    }
}

/// Computes log(1 + x) / x, with its limit near 0.
fn log1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::log1p(x) / x } else { 1.0 - x * (0.5 - x * (1.0 / 3.0 - 0.25 * x)) }
}

/// Computes (exp(x) − 1) / x, with its limit near 0.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        libm::expm1(x) / x
    } else {
        1.0 + x * 0.5 * (1.0 + x * (1.0 / 3.0) * (1.0 + 0.25 * x))
    }
}

/// Rows examined one by one at the hot end; behind them zones widen by a factor.
const SINGLE: u64 = 1024;
const WIDENING: f64 = 1.05;
/// Zones of the bell of `special`, and its reach to both sides in deviations.
const BELL: u32 = 400;
const BELL_DEVIATIONS: f64 = 6.0;
/// The mean of more numbers is all but normal: the exact sum would cancel itself out.
const EXACT_MAX: u32 = 12;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Coverage {
    pub hottest_share: f64,
    /// The smallest share of the rows that half of the keys fall on.
    pub half_on_share: f64,
    pub distinct: f64,
}

/// Rows of similar density, and their share of the keys.
type Zone = (f64, f64);

fn density((rows, share): &Zone) -> f64 {
    share / rows
}

/// Computes where `draws` keys of a table of `rows` fall.
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
    // A row hit with p is missed by all n draws with (1 - p)^n.
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
            // The integral of x^-s is near enough to the sum behind the first ranks.
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
            let share = |x: u64| if x == 0 { 0.0 } else { libm::pow(x as f64 / n, 1.0 / power) };
            // Above a half the last ids are the hot ones.
            ranks(rows, |from, to| match h {
                ..=0.5 => share(to) - share(from),
                _ => share(rows - from) - share(rows - to),
            })
        }
        Distribution::Gaussian(iterations) => {
            special_zones(rows, rows as f64, Special { iterations, band: 0, within: 0 })
        }
        Distribution::Special(numbers) => special_zones(rows, (rows - 1) as f64, numbers),
    }
}

/// Makes zones of ranks; `share(from, to)` is that of the ranks from + 1 to `to`.
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

/// Lists the places where [`special`] draws keys: the upper part of a band, and the bell of width `t`; they overlap.
fn special_zones(rows: u64, t: f64, numbers: Special) -> Vec<Zone> {
    let Special { iterations, band, within } = numbers;
    if t == 0.0 {
        return vec![(1.0, 1.0)];
    }
    let (band, share) = (f64::from(band) / 100.0, f64::from(within) / 100.0);
    let to = t * band + 1.0 + t / 2.0 - t * band / 2.0;
    let from = to - share * (t * band + 1.0);
    let half = BELL_DEVIATIONS * t / libm::sqrt(12.0 * f64::from(iterations));
    let steps = (0..=BELL).map(|i| t / 2.0 - half + f64::from(i) * 2.0 * half / f64::from(BELL));
    // Each row belongs to one zone.
    let rounded = [from, to].into_iter().flat_map(|edge| [edge.floor(), edge.ceil()]);
    let inside = steps.map(f64::floor).chain(rounded).chain([0.0, rows as f64]);
    let mut edges: Vec<u64> = inside.map(|edge| (edge.max(0.0) as u64).min(rows)).collect();
    edges.sort_unstable();
    edges.dedup();
    let below = |row: u64| {
        let row = row as f64;
        let on_band = if share > 0.0 { ((row - from) / (to - from)).clamp(0.0, 1.0) } else { 0.0 };
        share * on_band + (1.0 - share) * mean_below(iterations, row / t)
    };
    let zone = |pair: &[u64]| ((pair[1] - pair[0]) as f64, below(pair[1]) - below(pair[0]));
    let mut zones: Vec<Zone> = edges.windows(2).map(zone).collect();
    // Ids without draws are no zone.
    zones.retain(|(_, share)| *share > 0.0);
    scaled(zones)
}

/// Irwin and Hall's distribution, normal for many: the chance that the mean of `count` uniform numbers is below one.
fn mean_below(count: u32, mean: f64) -> f64 {
    let mean = mean.clamp(0.0, 1.0);
    if mean > 0.5 {
        return 1.0 - mean_below(count, 1.0 - mean);
    }
    if count > EXACT_MAX {
        let deviations = (mean - 0.5) * libm::sqrt(12.0 * f64::from(count));
        return 0.5 * libm::erfc(-deviations / core::f64::consts::SQRT_2);
    }
    let sum = mean * f64::from(count);
    // Terms of alternating signs, with the binomial coefficient over the factorial.
    let factorial: f64 = (1..=count).map(f64::from).product();
    let (mut coefficient, mut all) = (1.0 / factorial, 0.0);
    for k in 0..=count {
        let left = sum - f64::from(k);
        if left <= 0.0 {
            break;
        }
        all += coefficient * libm::pow(left, f64::from(count));
        coefficient *= -f64::from(count - k) / f64::from(k + 1);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::workload::builtin;

    fn draws(distribution: &str, rows: u64, n: usize) -> Vec<u64> {
        let sampler = Sampler::new(distribution.parse().expect(distribution), rows, 1);
        let mut stream = Stream::new(seed_of(&[42]));
        (0..n).map(|_| sampler.draw(&mut stream)).collect()
    }

    #[test]
    fn every_distribution_covers_exactly_its_ids() {
        for text in
            ["uniform", "zipf:0.5", "zipf:1", "zipf:2.5", "zipf-adjacent:0.99", "pareto:0.2"]
        {
            let drawn = draws(text, 5, 20_000);
            let mut ids = drawn.clone();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids, [1, 2, 3, 4, 5], "{text}");
            assert_eq!(draws(text, 1, 10), [1; 10], "{text}");
        }
    }

    #[test]
    fn zipf_has_its_frequencies() {
        for s in [0.5, 0.8, 1.0, 1.2, 2.0] {
            let (rows, n) = (50_u64, 200_000);
            let total: f64 = (1..=rows).map(|r| (r as f64).powf(-s)).sum();
            let mut seen = vec![0_u32; rows as usize];
            for id in draws(&format!("zipf-adjacent:{s}"), rows, n) {
                seen[id as usize - 1] += 1;
            }
            let chi: f64 = (1..=rows)
                .map(|r| {
                    let expected = n as f64 * (r as f64).powf(-s) / total;
                    (f64::from(seen[r as usize - 1]) - expected).powi(2) / expected
                })
                .sum();
            // 49 degrees of freedom: 85.4 is the 99.9th percentile.
            assert!(chi < 85.4, "s = {s}: chi-square {chi}");
        }
    }

    /// The share of the draws that fall on `first..=last`.
    fn share(drawn: &[u64], first: u64, last: u64) -> f64 {
        let hits = drawn.iter().filter(|id| (first..=last).contains(id)).count();
        hits as f64 / drawn.len() as f64
    }

    #[test]
    fn pareto_has_its_shares() {
        for h in [0.1, 0.2, 0.5] {
            let drawn = draws(&format!("pareto:{h}"), 100_000, 200_000);
            let power = f64::log10(h) / f64::log10(1.0 - h);
            for part in [0.001, 0.01, 0.2, 0.5, 0.9, h] {
                // P(id ≤ x·n) = x^(1/power).
                let expected = part.powf(1.0 / power);
                let seen = share(&drawn, 1, (part * 1e5_f64).round() as u64);
                // Four standard deviations and the rounding of one id.
                let near = 4.0 * (expected * (1.0 - expected) / 200_000.0).sqrt() + 1e-3;
                assert!((seen - expected).abs() < near, "{h}: {part}: {seen}, not {expected}");
            }
            assert!((share(&drawn, 1, (h * 1e5) as u64) - (1.0 - h)).abs() < 0.006);
        }
    }

    #[test]
    fn special_has_its_shares() {
        let rows = 100_000;
        let drawn = draws("special", rows, 400_000);
        // The sum of twelve uniform numbers is normal all but: mean 6, deviation 1; as ids, the
        // deviation is rows/12. A quarter of the draws are such.
        let normal = |within: f64| {
            let deviations = within * 12.0;
            libm::erf(deviations / f64::sqrt(2.0))
        };
        // The band: from (0.25 · 1001 + 49,500) to (1001 + 49,500).
        let (first, last) = (49_750, 50_501);
        let elsewhere = f64::midpoint(normal(0.005), normal(0.0025));
        let expected = 0.75 + 0.25 * elsewhere;
        let seen = share(&drawn, first, last);
        assert!((seen - expected).abs() < 0.003, "{seen}, not {expected}");
        for within in [0.1, 0.2, 0.3] {
            let expected = 0.75 + 0.25 * normal(within);
            let (low, high) = ((0.5 - within) * 1e5, (0.5 + within) * 1e5);
            let seen = share(&drawn, low as u64, high as u64);
            assert!((seen - expected).abs() < 0.003, "{within}: {seen}, not {expected}");
        }
        let ends = |rows| {
            let drawn = draws("special", rows, 2000);
            (drawn.iter().min().copied(), drawn.iter().max().copied())
        };
        assert_eq!(ends(1), (Some(1), Some(1)));
        assert!(matches!(ends(2), (Some(1), Some(2))));
    }

    #[test]
    fn gaussian_is_the_mean_of_uniform_numbers() {
        for (text, deviations) in [("gaussian", 12.0), ("gaussian:3", 6.0)] {
            let drawn = draws(text, 100_000, 200_000);
            for within in [0.05, 0.1, 0.2] {
                let expected = libm::erf(within * deviations / f64::sqrt(2.0));
                let (low, high) = ((0.5 - within) * 1e5, (0.5 + within) * 1e5);
                let seen = share(&drawn, low as u64, high as u64);
                // The mean of three numbers is near the normal distribution, no more.
                assert!((seen - expected).abs() < 0.025, "{text} {within}: {seen}, not {expected}");
            }
        }
        // As in sysbench, the last id is drawn as often as the first.
        let drawn = draws("gaussian", 2, 10_000);
        assert!((share(&drawn, 2, 2) - 0.5).abs() < 0.02, "{}", share(&drawn, 2, 2));
    }

    #[test]
    fn scrambling_moves_ranks_but_keeps_their_weights() {
        let count = |text| {
            let mut seen = vec![0_u32; 1000];
            for id in draws(text, 1000, 50_000) {
                seen[id as usize - 1] += 1;
            }
            seen
        };
        let (scrambled, adjacent) = (count("zipf:0.99"), count("zipf-adjacent:0.99"));
        assert!(adjacent[..5].iter().all(|n| *n > 1000));
        assert!(scrambled[..5].iter().filter(|n| **n > 1000).count() < 3);
        let sorted = |mut v: Vec<u32>| {
            v.sort_unstable();
            v
        };
        assert_eq!(sorted(scrambled), sorted(adjacent));
    }

    #[test]
    fn streams_stay_the_same() {
        // Pinned: other values mean that a seed no longer repeats a run.
        assert_eq!(draws("uniform", 16_000_000, 4), PINNED_UNIFORM);
        assert_eq!(draws("zipf:0.99", 16_000_000, 4), PINNED_ZIPF);
    }

    const PINNED_UNIFORM: [u64; 4] = [1_623_138, 10_473_369, 6_271_297, 11_981_799];
    const PINNED_ZIPF: [u64; 4] = [62_334, 1_594_126, 15_708_691, 3_338_029];

    #[test]
    fn nonsense_is_refused_by_name() {
        for text in [
            "",
            "zipf",
            "zipf:",
            "zipf:-1",
            "zipf:nan",
            "zipf:0",
            "uniform:2",
            "gauss",
            "pareto",
            "pareto:0",
            "pareto:1",
            "pareto:nan",
            "special:1",
            "special:0/1/75",
            "special:12/101/75",
            "special:12/1/75/1",
            "gaussian:0",
            "gaussian:1001",
        ] {
            let error = text.parse::<Distribution>().expect_err(text);
            assert!(!error.is_empty());
        }
        for text in ["special", "special:3/20/50", "gaussian", "gaussian:3"] {
            assert_eq!(text.parse::<Distribution>().expect(text).to_string(), text);
        }
        assert_eq!("special:12/1/75".parse::<Distribution>(), "special".parse());
        assert_eq!("zipf:0.990".parse::<Distribution>().expect("zipf").to_string(), "zipf:0.99");
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(
            name in prop::sample::select(vec!["zipf", "zipf-adjacent", "pareto"]),
            shape in 0.000_1_f64..20.0,
            text in "[a-z:0-9.-]{0,20}",
        ) {
            for text in [format!("{name}:{shape}"), text] {
                if let Ok(read) = text.parse::<Distribution>() {
                    prop_assert_eq!(read.to_string().parse(), Ok(read), "{}", text);
                }
            }
        }
    }

    /// Returns the share of the places, those with most draws first, that half of the draws fall on. Sorts the places by it.
    fn measure_half_share(seen: &mut [u32]) -> f64 {
        seen.sort_unstable_by(|a, b| b.cmp(a));
        let (all, mut sum): (u32, u32) = (seen.iter().sum(), 0);
        let half = seen.iter().take_while(|n| {
            sum += **n;
            sum < all / 2
        });
        half.count() as f64 / seen.len() as f64
    }

    #[test]
    fn arithmetic_agrees_with_draws() {
        let (rows, draws) = (20_000_u64, 200_000_usize);
        for text in [
            "uniform",
            "zipf:0.6",
            "zipf:1",
            "zipf-adjacent:1.3",
            "pareto:0.2",
            "special",
            "special:6/10/40",
            "gaussian",
            "gaussian:1",
        ] {
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
            let half = measure_half_share(&mut seen);
            let hottest = f64::from(seen[0]) / draws as f64;
            // The largest of many equal counts is above their mean; only a hot row stands out.
            if told.hottest_share > 0.005 {
                assert!((told.hottest_share / hottest - 1.0).abs() < 0.1, "{text}: {told:?}");
            } else {
                assert!(told.hottest_share < hottest, "{text}: {told:?} {hottest}");
            }
            // Chance makes the hotter half smaller than it is.
            assert!(half < told.half_on_share * 1.02 + 1e-3, "{text}: {told:?} {half}");
            assert!(half > told.half_on_share * 0.7 - 1e-3, "{text}: {told:?} {half}");
        }
    }

    #[test]
    fn pareto_has_one_hot_end_whatever_its_share() {
        // P(id ≤ x·n) = x^458.21.
        let told = coverage("pareto:0.99".parse().expect("pareto"), 1_000_000, 1e6);
        assert!((told.hottest_share / 458.21e-6 - 1.0).abs() < 0.01, "{told:?}");
        assert!((told.half_on_share / 1.512e-3 - 1.0).abs() < 0.02, "{told:?}");
        // All draws fall on one id.
        for text in ["pareto:1e-320", "pareto:0.9999999999999999"] {
            let told = coverage(text.parse().expect(text), 1_000_000, 1e6);
            let apart = [told.hottest_share - 1.0, told.half_on_share - 5e-7, told.distinct - 1.0];
            assert!(apart.iter().all(|by| by.abs() < 1e-9), "{text}: {told:?}");
        }
    }

    #[test]
    fn the_half_of_the_keys_lies_where_special_draws_it() {
        struct Case {
            text: &'static str,
            rows: u64,
        }
        const DRAWS: u32 = 200_000;
        let case = |text, rows| Case { text, rows };
        for Case { text, rows } in [
            case("special:12/100/75", 20_000),
            case("special:1/100/75", 20_000),
            case("special:1/1/75", 20_000),
            case("special:2/30/10", 20_000),
            case("special:3/20/50", 20_000),
            case("special:6/10/40", 20_000),
            case("special:12/50/100", 20_000),
            case("special:12/100/0", 20_000),
            case("special:100/40/90", 20_000),
            case("special:12/20/75", 200),
            case("special:2/50/75", 200),
            case("gaussian:1", 20_000),
            case("gaussian:2", 20_000),
            case("gaussian:3", 20_000),
            case("gaussian:13", 20_000),
            case("gaussian", 200),
        ] {
            let distribution: Distribution = text.parse().expect(text);
            let sampler = Sampler::new(distribution, rows, 1);
            let mut stream = Stream::new(seed_of(&[7]));
            // So many neighbours are alike, and have enough draws for their order to be no chance.
            let mut seen = vec![0_u32; 200];
            for _ in 0..DRAWS {
                seen[((sampler.draw(&mut stream) - 1) * 200 / rows) as usize] += 1;
            }
            let half = measure_half_share(&mut seen);
            let told = coverage(distribution, rows, f64::from(DRAWS)).half_on_share;
            assert!((told - half).abs() < 0.04 * told + 0.006, "{text}: {told}, drawn {half}");
        }
        // By arithmetic: 25 % of the mean of twelve around the middle, 75 % on the upper three quarters.
        let told = coverage("special:12/100/75".parse().expect("special"), 1_000_000, 1e6);
        assert!((told.half_on_share - 0.275).abs() < 0.005, "{told:?}");
    }

    #[test]
    fn a_mean_is_below_one_as_often_as_its_distribution_says() {
        for (count, mean, chance) in [
            (1, 0.3, 0.3),
            (2, 0.25, 0.125),
            (2, 0.75, 0.875),
            (3, 0.5, 0.5),
            (3, 1.0 / 3.0, 1.0 / 6.0),
            (12, 0.0, 0.0),
            (12, 1.0, 1.0),
            // One deviation, where the normal distribution has 0.1587.
            (12, 5.0 / 12.0, 0.160),
            (1000, 0.5, 0.5),
        ] {
            let found = mean_below(count, mean);
            assert!((found - chance).abs() < 1e-3, "{count} {mean}: {found}");
        }
    }

    #[test]
    fn odd_tables_are_no_trouble() {
        for text in
            ["uniform", "zipf:10", "pareto:0.999", "special", "special:1/100/100", "gaussian:1000"]
        {
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
            workload.keys_per_op(Distribution::Zipf(0.9))
        };
        assert_eq!(keys("point-select"), Some((Distribution::Zipf(0.9), 1.0)));
        let (distribution, n) = keys("random-points").expect("keys");
        assert!(n >= 10.0, "{distribution} {n}");
        assert_eq!(keys("bulk-insert"), None);
    }
}
