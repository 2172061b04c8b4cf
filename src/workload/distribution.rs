//! Which row an op touches.

use std::fmt;

use super::random::{Permutation, Stream, name_part, seed_of};

/// A key distribution as on the command line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    Uniform,
    /// Rank r with weight 1/r^S; ranks lie scattered over the ids by a keyed permutation.
    Zipf(f64),
    /// The same with rank = id: hot rows are neighbours, as in sysbench.
    ZipfAdjacent(f64),
    /// sysbench's `pareto`: the share 1 − H of the draws falls on the first H of the ids, and so
    /// on within them.
    Pareto(f64),
    /// sysbench 1.0's `special`, its default, with its default numbers: three quarters of the
    /// draws fall on 0.75 % of the ids in the middle, the others around the middle.
    Special,
}

/// The values of `--distribution`.
const FORMS: &str = "uniform, zipf:S, zipf-adjacent:S (such as zipf:0.99), \
                     pareto:H (sysbench's: pareto:0.2), special";

impl std::str::FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) =
            text.split_once(':').map_or((text, None), |(name, value)| (name, Some(value)));
        // The shape above 0, as it may be up to `max`.
        let shape = |what: &str, like: f64, max: f64| -> Result<f64, String> {
            let value = value.ok_or_else(|| format!("'{name}' needs {what}: {name}:{like}"))?;
            let read = value.parse().ok().filter(|shape| *shape > 0.0 && *shape <= max);
            read.ok_or_else(|| format!("'{value}' of {name} is not {what}, such as {like}"))
        };
        let exponent = || shape("an exponent above 0 and up to 10", 0.99, 10.0);
        let share = || shape("a share between 0 and 1", 0.2, 1.0_f64.next_down());
        Ok(match name {
            "uniform" | "special" if value.is_some() => {
                return Err(format!("{name} takes no value"));
            }
            "uniform" => Distribution::Uniform,
            "special" => Distribution::Special,
            "pareto" => Distribution::Pareto(share()?),
            "zipf" => Distribution::Zipf(exponent()?),
            "zipf-adjacent" => Distribution::ZipfAdjacent(exponent()?),
            _ => return Err(format!("'{text}' is none of {FORMS}")),
        })
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Uniform => f.write_str("uniform"),
            Distribution::Zipf(s) => write!(f, "zipf:{s}"),
            Distribution::ZipfAdjacent(s) => write!(f, "zipf-adjacent:{s}"),
            Distribution::Pareto(h) => write!(f, "pareto:{h}"),
            Distribution::Special => f.write_str("special"),
        }
    }
}

/// Draws ids of one table. Built once a client and table; a draw allocates nothing.
pub struct Sampler {
    rows: u64,
    pub(crate) base: u64,
    shape: Shape,
}

enum Shape {
    Uniform,
    Zipf(Zipf, Option<Permutation>),
    /// The power of a uniform number.
    Pareto(f64),
    Special,
}

impl Sampler {
    /// Makes a sampler of `1..=rows`. `hot_seed` decides where the hot rows of `zipf` lie: it must
    /// be the same for all clients and phases, or a warm-up would heat other rows.
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
            Distribution::Special => Shape::Special,
        };
        Sampler { rows, base: 0, shape }
    }

    /// Draws an id in `1..=rows`, or as many after the base.
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
            Shape::Special => special(self.rows, stream),
        };
        self.base.wrapping_add(first)
    }
}

/// Draws as `sb_rand_special` of sysbench 1.0.20 (`src/sb_rand.c`) with `--rand-spec-iter=12`,
/// `--rand-spec-pct=1` and `--rand-spec-res=75`. It uses one number for the choice of the part and
/// for the place in the band of 1 %, so that only the upper three quarters of the band are hit.
fn special(rows: u64, stream: &mut Stream) -> u64 {
    const ITERATIONS: u32 = 12;
    const BAND: f64 = 0.01;
    const ELSEWHERE: f64 = 0.25;
    let t = (rows - 1) as f64;
    let chosen = stream.unit();
    let at = if chosen < ELSEWHERE {
        let sum: f64 = (0..ITERATIONS).map(|_| stream.unit()).sum();
        sum * t / f64::from(ITERATIONS)
    } else {
        chosen * (t * BAND + 1.0) + t / 2.0 - t * BAND / 2.0
    };
    (at as u64).min(rows - 1) + 1
}

/// Zipf by rejection-inversion (Hörmann and Derflinger 1996, "Rejection-inversion to generate
/// variates from monotone discrete distributions"): constant time and space for any n. It
/// uses `libm` instead of the machine's mathematics, so that streams agree across machines.
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

    /// Gives H(x), the integral of h.
    fn h_integral(&self, x: f64) -> f64 {
        let log_x = libm::log(x);
        expm1_over((1.0 - self.s) * log_x) * log_x
    }

    /// Gives h(x) = 1 / x^s.
    fn h(&self, x: f64) -> f64 {
        libm::exp(-self.s * libm::log(x))
    }

    fn h_integral_inverse(&self, x: f64) -> f64 {
        // Rounding can carry t just below −1, where the logarithm ends.
        let t = (x * (1.0 - self.s)).max(-1.0);
        libm::exp(log1p_over(t) * x)
    }
}

/// Gives log(1 + x) / x, with its limit near 0.
fn log1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::log1p(x) / x } else { 1.0 - x * (0.5 - x * (1.0 / 3.0 - 0.25 * x)) }
}

/// Gives (exp(x) − 1) / x, with its limit near 0.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        libm::expm1(x) / x
    } else {
        1.0 + x * 0.5 * (1.0 + x * (1.0 / 3.0) * (1.0 + 0.25 * x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        ] {
            let error = text.parse::<Distribution>().expect_err(text);
            assert!(!error.is_empty());
        }
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
}
