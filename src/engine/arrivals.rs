//! When ops are due: an endless stream of instants, drawn one at a time.

use crate::observe::recorder::Ns;
use crate::plan::Arrival;
use crate::workload::random::Stream;

/// The instants of one queue and phase, ascending.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// The instant before the next one.
    at: Ns,
    /// What is left of it below a nanosecond, so that nothing adds up.
    rest: f64,
    gap: f64,
    gaps: Gaps,
}

#[derive(Debug)]
enum Gaps {
    Exponential(Box<Stream>),
    Constant,
}

impl Arrivals {
    /// Begins at `start`, with `per_s` a second. Evenly spaced ones begin `offset` gaps (0 to 1)
    /// after it, so that several queues interleave.
    pub(crate) fn new(
        arrival: Arrival,
        per_s: f64,
        start: Ns,
        offset: f64,
        stream: Stream,
    ) -> Arrivals {
        let gap = 1e9 / per_s;
        match arrival {
            // The process has no memory: it may begin anywhere, with a gap before the first.
            Arrival::Poisson => {
                let gaps = Gaps::Exponential(Box::new(stream));
                Arrivals { at: start, rest: 0.0, gap, gaps }
            }
            Arrival::Uniform => {
                // One gap before the first one.
                Arrivals { at: start, rest: (offset - 1.0) * gap, gap, gaps: Gaps::Constant }
            }
        }
    }

    pub(crate) fn next(&mut self) -> Ns {
        let gap = match &mut self.gaps {
            // The complement of a number in [0, 1) is never zero.
            Gaps::Exponential(stream) => -libm::log1p(-stream.unit()) * self.gap,
            Gaps::Constant => self.gap,
        };
        let exact = gap + self.rest;
        let whole = exact.floor();
        self.rest = exact - whole;
        self.at = self.at.saturating_add(whole as Ns);
        self.at
    }
}

#[derive(Debug, Clone)]
pub(crate) struct QueueSpec {
    pub arrival: Arrival,
    /// Its share of the rate, by connections.
    pub per_s: f64,
    /// Where evenly spaced arrivals begin, in gaps.
    pub offset: f64,
    pub ops: Option<u64>,
    /// Of the warm-up, of the window.
    pub seeds: [u64; 2],
}

impl QueueSpec {
    pub(crate) fn arrivals(&self, start: Ns, measured: bool) -> Arrivals {
        let stream = Stream::new(self.seeds[usize::from(measured)]);
        Arrivals::new(self.arrival, self.per_s, start, self.offset, stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::random::seed_of;

    fn poisson(per_s: f64, seed: u64) -> Arrivals {
        Arrivals::new(Arrival::Poisson, per_s, 0, 0.0, Stream::new(seed_of(&[seed])))
    }

    /// Kolmogorov's statistic of gaps against the exponential distribution, times √n: above
    /// 1.358 in 5 % of all samples, above 1.949 in 0.1 %.
    fn kolmogorov(mut gaps: Vec<f64>, mean: f64) -> f64 {
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let largest = gaps.iter().enumerate().fold(0.0_f64, |largest, (i, gap)| {
            let expected = 1.0 - (-gap / mean).exp();
            largest.max(expected - i as f64 / n).max((i + 1) as f64 / n - expected)
        });
        largest * n.sqrt()
    }

    #[test]
    fn gaps_of_poisson_arrivals_are_exponential() {
        for per_s in [0.5, 1000.0, 50_000.0] {
            let mut rare = 0;
            for seed in 0..20 {
                let mut arrivals = poisson(per_s, seed);
                let mut last = 0;
                let gaps: Vec<f64> = (0..10_000)
                    .map(|_| {
                        let at = arrivals.next();
                        (at - std::mem::replace(&mut last, at)) as f64
                    })
                    .collect();
                let statistic = kolmogorov(gaps, 1e9 / per_s);
                assert!(statistic < 1.949, "rate {per_s}, seed {seed}: {statistic}");
                rare += u32::from(statistic > 1.358);
            }
            // One of 20 is expected above; five or more are in 0.3 % of all cases.
            assert!(rare < 5, "rate {per_s}: {rare} of 20 samples are in the last 5 %");
        }
        // The test can fail: evenly spaced ones are no such process.
        let even = vec![1000.0; 10_000];
        assert!(kolmogorov(even, 1000.0) > 10.0);
    }

    #[test]
    fn counts_of_poisson_arrivals_vary_as_their_mean_and_independently() {
        // Three queues of 2:1:1, as connections split a rate, counted together.
        let mut queues: Vec<Arrivals> =
            [5_000.0, 2_500.0, 2_500.0].iter().zip(1..).map(|(r, s)| poisson(*r, s)).collect();
        let slots = 20_000;
        let slot: Ns = 1_000_000;
        let mut counts = vec![0.0_f64; slots];
        for queue in &mut queues {
            while let Some(count) = counts.get_mut((queue.next() / slot) as usize) {
                *count += 1.0;
            }
        }
        let n = slots as f64;
        let mean = counts.iter().sum::<f64>() / n;
        assert!((mean / 10.0 - 1.0).abs() < 4.0 / (n * 10.0).sqrt(), "{mean}");
        // The dispersion is chi-square with n - 1 degrees of freedom: normal at this n.
        let squares: f64 = counts.iter().map(|c| (c - mean).powi(2)).sum();
        let z = (squares / mean - (n - 1.0)) / (2.0 * (n - 1.0)).sqrt();
        assert!(z.abs() < 3.3, "variance over mean is off by {z} standard deviations");
        // Neighbours know nothing of each other.
        let covariance: f64 = counts.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum();
        let z = covariance / squares * n.sqrt();
        assert!(z.abs() < 3.3, "neighbours are correlated, {z} standard deviations");
        // Chi-square of the counts themselves, in classes of at least 50 expected.
        let mut expected = n * (-10.0_f64).exp();
        let (mut chi, mut class, mut classes) = (0.0, (0.0, 0.0), 0);
        for k in 0..40 {
            let seen = counts.iter().filter(|c| **c as u32 == k).count() as f64;
            class = (class.0 + expected, class.1 + seen);
            if class.0 > 50.0 {
                chi += (class.1 - class.0).powi(2) / class.0;
                (class, classes) = ((0.0, 0.0), classes + 1);
            }
            expected *= 10.0 / f64::from(k + 1);
        }
        // Wilson and Hilferty's normal approximation.
        let free = f64::from(classes - 1);
        let spread = 2.0 / (9.0 * free);
        let z = ((chi / free).cbrt() - (1.0 - spread)) / spread.sqrt();
        assert!(z.abs() < 3.3, "chi-square {chi} with {free} degrees of freedom");
    }

    #[test]
    fn even_arrivals_of_several_queues_interleave_without_drift() {
        let queue = |i: u32| {
            Arrivals::new(Arrival::Uniform, 300.0, 1000, f64::from(i) / 3.0, Stream::new(0))
        };
        let mut queues: Vec<Arrivals> = (0..3).map(queue).collect();
        for n in 0..100_000_u64 {
            let at = queues[(n % 3) as usize].next();
            let exact = 1000.0 + n as f64 * 1e9 / 900.0;
            assert!((at as f64 - exact).abs() <= 1.0, "arrival {n}: {at} instead of {exact}");
        }
    }
}
