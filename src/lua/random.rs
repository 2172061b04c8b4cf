//! The numbers of `sysbench.rand`: one stream a client, drawn by C functions that a compiled loop calls
//! directly.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::hash::{BuildHasher, RandomState};
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Once};

use crate::plan::{RandType, ScriptRandom};
use crate::workload::mix;

thread_local! {
    static STREAMS: RefCell<Vec<Draws>> = const { RefCell::new(Vec::new()) };
    /// The client that runs.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// The place where `sysbench.rand.unique` begins: another one in each run, also of the same seed, because scripts make
/// keys of its numbers, which rows of the last run have.
static UNIQUE_START: LazyLock<u32> = LazyLock::new(|| RandomState::new().hash_one(0) as u32);
/// Its numbers: the next one of this process, and the distance to the one after it.
static UNIQUE: LazyLock<AtomicU32> = LazyLock::new(|| AtomicU32::new(*UNIQUE_START));
static UNIQUE_STEP: AtomicU32 = AtomicU32::new(1);

struct Draws {
    state: [u64; 2],
    options: ScriptRandom,
}

impl Draws {
    /// xoroshiro128+ with the constants of sysbench.
    fn bits(&mut self) -> u64 {
        let [a, mut b] = self.state;
        let bits = a.wrapping_add(b);
        b ^= a;
        self.state = [a.rotate_left(55) ^ b ^ (b << 14), b.rotate_left(36)];
        bits
    }

    fn unit(&mut self) -> f64 {
        f64::from_bits(0x3ff << 52 | self.bits() >> 12) - 1.0
    }

    fn uniform(&mut self, a: u32, b: u32) -> u32 {
        let width = b.wrapping_sub(a).wrapping_add(1);
        let drawn = f64::from(a) + self.unit() * f64::from(width);
        (drawn as u64) as u32
    }

    fn draw_mean(&mut self) -> f64 {
        let n = self.options.iterations.max(1);
        (0..n).map(|_| self.unit()).sum::<f64>() / f64::from(n)
    }

    fn gaussian(&mut self, a: u32, b: u32) -> u32 {
        let width = f64::from(b.wrapping_sub(a).wrapping_add(1));
        a.wrapping_add((self.draw_mean() * width) as u32)
    }

    fn special(&mut self, a: u32, b: u32) -> u32 {
        let (t, within) = (f64::from(b.wrapping_sub(a)), f64::from(self.options.within));
        let (u, percent) = (self.unit(), f64::from(self.options.percent));
        let all = if within < 100.0 { 100.0 / (100.0 - within) } else { f64::INFINITY };
        if u * t * all < t {
            return a.wrapping_add((t * self.draw_mean()) as u32);
        }
        let width = t * percent / 100.0;
        a.wrapping_add((u * (width + 1.0) + t / 2.0 - width / 2.0) as u32)
    }

    fn pareto(&mut self, a: u32, b: u32) -> u32 {
        let (h, width) = (self.options.pareto_h, f64::from(b.wrapping_sub(a).wrapping_add(1)));
        let power = h.ln() / (1.0 - h).ln();
        a.wrapping_add((width * self.unit().powf(power)) as u32)
    }

    /// Draws by rejection inversion (Hörmann and Derflinger 1996).
    fn zipfian(&mut self, least: u32, most: u32) -> u32 {
        let exponent = self.options.zipfian_exp;
        let count = f64::from(most.wrapping_sub(least)) + 1.0;
        let flat = |x: f64| if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 };
        let steep = |x: f64| if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 };
        let density = |x: f64| (-exponent * x.ln()).exp();
        let integral = |x: f64| flat((1.0 - exponent) * x.ln()) * x.ln();
        let inverse = |x: f64| (steep((x * (1.0 - exponent)).max(-1.0)) * x).exp();
        let (first, last) = (integral(1.5) - 1.0, integral(count + 0.5));
        let near = 2.0 - inverse(integral(2.5) - density(2.0));
        // Two of three draws are taken at least; a bound, for the sake of odd exponents.
        for _ in 0..1000 {
            let drawn = last + self.unit() * (first - last);
            let place = inverse(drawn);
            let rank = (place + 0.5).floor().clamp(1.0, count);
            if rank - place <= near || drawn >= integral(rank + 0.5) - density(rank) {
                return least.wrapping_add((rank - 1.0) as u32);
            }
        }
        least
    }

    fn draw_default(&mut self, a: u32, b: u32) -> u32 {
        match self.options.rand_type {
            RandType::Uniform => self.uniform(a, b),
            RandType::Gaussian => self.gaussian(a, b),
            RandType::Special => self.special(a, b),
            RandType::Pareto => self.pareto(a, b),
            RandType::Zipfian => self.zipfian(a, b),
        }
    }
}

/// Begins the stream of a new client of this thread; returns its place.
pub(super) fn begin(options: ScriptRandom, seed: u64) -> usize {
    STREAMS.with_borrow_mut(|streams| {
        streams.push(Draws { state: [mix(seed), mix(seed ^ 0x5bf0_3635) | 1], options });
        streams.len() - 1
    })
}

/// Makes a client the one that draws.
#[inline]
pub(super) fn select(place: usize) {
    CURRENT.set(place);
}

/// Draws from the stream of the client that runs: Lua runs only after one was selected.
fn draw<T>(from: impl FnOnce(&mut Draws) -> T) -> T {
    STREAMS.with_borrow_mut(|streams| from(&mut streams[CURRENT.get()]))
}

extern "C" fn uniform(a: u32, b: u32) -> u32 {
    draw(|stream| stream.uniform(a, b))
}

extern "C" fn draw_default(a: u32, b: u32) -> u32 {
    draw(|stream| stream.draw_default(a, b))
}

extern "C" fn gaussian(a: u32, b: u32) -> u32 {
    draw(|stream| stream.gaussian(a, b))
}

extern "C" fn special(a: u32, b: u32) -> u32 {
    draw(|stream| stream.special(a, b))
}

extern "C" fn pareto(a: u32, b: u32) -> u32 {
    draw(|stream| stream.pareto(a, b))
}

extern "C" fn zipfian(a: u32, b: u32) -> u32 {
    draw(|stream| stream.zipfian(a, b))
}

extern "C" fn uniform_double() -> f64 {
    draw(Draws::unit)
}

extern "C" fn uniform_uint64() -> u64 {
    draw(Draws::bits)
}

/// Draws the bytes of a pattern: `#` becomes a digit, `@` a small letter, others stay.
extern "C" fn draw_pattern(pattern: *const u8, length: u32, drawn: *mut u8) {
    #[expect(unsafe_code, reason = "the prelude gives a text of this length, and room for it")]
    let (pattern, drawn) = unsafe {
        let length = length as usize;
        (slice::from_raw_parts(pattern, length), slice::from_raw_parts_mut(drawn, length))
    };
    draw(|stream| {
        for (byte, drawn) in pattern.iter().zip(drawn) {
            *drawn = match byte {
                b'#' => stream.uniform(b'0'.into(), b'9'.into()) as u8,
                b'@' => stream.uniform(b'a'.into(), b'z'.into()) as u8,
                other => *other,
            };
        }
    });
}

/// Returns the place where the numbers for several processes begin: far from those that this one took alone, as in
/// `prepare`.
pub(crate) fn unique_start() -> u32 {
    UNIQUE_START.wrapping_add(1 << 31)
}

/// Takes the numbers of `unique` in turn with other processes, from now on: `place` of so many.
pub(crate) fn share_unique((place, of): (u32, u32)) {
    static SHARED: Once = Once::new();
    SHARED.call_once(|| {
        UNIQUE_STEP.store(of, Ordering::Relaxed);
        UNIQUE.store(place, Ordering::Relaxed);
    });
}

/// Permutes a counter of the process: quadratic residues of a prime (3 mod 4), as sysbench does.
extern "C" fn unique() -> u32 {
    const PRIME: u64 = 4_294_967_291;
    let permuted = |x: u32| {
        let x64 = u64::from(x);
        if x64 >= PRIME {
            return x;
        }
        let residue = (x64 * x64 % PRIME) as u32;
        if x64 <= PRIME / 2 { residue } else { (PRIME - u64::from(residue)) as u32 }
    };
    let next = UNIQUE.fetch_add(UNIQUE_STEP.load(Ordering::Relaxed), Ordering::Relaxed);
    permuted(permuted(next).wrapping_add(0x682f_0161) ^ 0x5bf0_3635)
}

/// The C functions by the names that the prelude knows.
pub(super) fn functions() -> [(&'static str, *mut c_void); 10] {
    let drawn = |function: extern "C" fn(u32, u32) -> u32| function as *const () as *mut c_void;
    [
        ("uniform", drawn(uniform)),
        ("default", drawn(draw_default)),
        ("gaussian", drawn(gaussian)),
        ("special", drawn(special)),
        ("pareto", drawn(pareto)),
        ("zipfian", drawn(zipfian)),
        ("unique", unique as *const () as *mut c_void),
        ("uniform_double", uniform_double as *const () as *mut c_void),
        ("uniform_uint64", uniform_uint64 as *const () as *mut c_void),
        ("pattern", draw_pattern as *const () as *mut c_void),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    type DrawFrom = fn(&mut Draws, u32, u32) -> u32;

    #[test]
    fn every_distribution_stays_in_its_range_and_has_its_mean() {
        let mut draws = Draws { state: [1, 2], options: ScriptRandom::USUAL };
        let functions: [(DrawFrom, f64, f64); 5] = [
            (Draws::uniform, 540.0, 560.0),
            (Draws::gaussian, 540.0, 560.0),
            (Draws::special, 535.0, 565.0),
            (Draws::pareto, 200.0, 320.0),
            (Draws::zipfian, 200.0, 400.0),
        ];
        for (at, (function, least, most)) in functions.into_iter().enumerate() {
            let mut sum = 0.0;
            for _ in 0..20_000 {
                let drawn = function(&mut draws, 100, 1_000);
                assert!((100..=1_000).contains(&drawn), "{at}: {drawn}");
                sum += f64::from(drawn);
            }
            let mean = sum / 20_000.0;
            assert!((least..most).contains(&mean), "{at}: {mean}");
        }
        assert_eq!(draws.uniform(7, 7), 7);
    }

    #[test]
    fn unique_numbers_do_not_repeat() {
        let drawn: std::collections::HashSet<u32> = (0..100_000).map(|_| unique()).collect();
        assert_eq!(drawn.len(), 100_000);
    }
}
