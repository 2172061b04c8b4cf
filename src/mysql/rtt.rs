//! The round trip of an empty query.

use std::time::{Duration, Instant};

use super::ask::Asked;
use super::session::Session;

/// Round trips that count; as many again are made before them.
const ROUNDS: usize = 51;
/// Rounds of a far server: what they took by then must do.
const LIMIT: Duration = Duration::from_secs(2);

/// The median round trip of `DO 1`, microseconds, over a session that is idle otherwise. None
/// where the server does not take it.
pub(crate) async fn median_us(session: &mut Session) -> Asked<Option<f64>> {
    let began = Instant::now();
    let mut rounds = Vec::with_capacity(2 * ROUNDS);
    while rounds.len() < 2 * ROUNDS && (rounds.len() < 3 || began.elapsed() < LIMIT) {
        let start = Instant::now();
        if super::ask::optional(session.run_text("DO 1").await)?.is_none() {
            return Ok(None);
        }
        rounds.push(start.elapsed().as_secs_f64() * 1e6);
    }
    // The first half warms caches and the CPU's clock.
    let counted = rounds.split_off(rounds.len() / 2);
    // Nobody's clock is better than a nanosecond.
    Ok(crate::stats::median(&counted).map(|us| (us * 1e3).round() / 1e3))
}
