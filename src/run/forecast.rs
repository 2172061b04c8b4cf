//! Estimates the time of the steps that are still to come.

use std::time::Duration;

/// The planned times of an invocation's steps, and the real times of finished ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Forecast {
    /// Warm-up and window; None for a step without a planned end.
    planned: Vec<Option<Duration>>,
    /// The times of steps beyond their plan, and the whole times of those without one.
    beside: Mean,
    whole: Mean,
}

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: Duration,
    count: u32,
}

impl Mean {
    fn add(&mut self, value: Duration) {
        (self.sum, self.count) = (self.sum.saturating_add(value), self.count + 1);
    }

    fn get(self) -> Option<Duration> {
        self.sum.checked_div(self.count)
    }
}

impl Forecast {
    pub(crate) fn new(planned: impl IntoIterator<Item = Option<Duration>>) -> Forecast {
        Forecast { planned: planned.into_iter().collect(), ..Forecast::default() }
    }

    /// Adds the time of a step; `place` begins at 1.
    pub(crate) fn learn(&mut self, place: u32, took: Duration) {
        match self.planned.get((place as usize).wrapping_sub(1)) {
            Some(Some(planned)) => self.beside.add(took.saturating_sub(*planned)),
            Some(None) => self.whole.add(took),
            None => {}
        }
    }

    /// Returns None if no step follows, or if nothing is known of their kind.
    pub(crate) fn later(&self, place: u32) -> Option<Duration> {
        let later = self.planned.get(place as usize..).filter(|later| !later.is_empty())?;
        let beside = self.beside.get().unwrap_or_default();
        let one = |planned: &Option<Duration>| match planned {
            Some(planned) => Some(planned.saturating_add(beside)),
            None => self.whole.get(),
        };
        later.iter().map(one).try_fold(Duration::ZERO, |sum, one| Some(sum.saturating_add(one?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn what_steps_took_beside_their_windows_counts_for_those_to_come() {
        let mut forecast = Forecast::new(vec![Some(10 * S); 4]);
        assert_eq!(forecast.later(1), Some(30 * S));
        forecast.learn(1, 12 * S);
        assert_eq!(forecast.later(2), Some(24 * S));
        assert_eq!(forecast.later(4), None, "there are no more");
        assert_eq!(Forecast::default().later(1), None);
    }

    #[test]
    fn nothing_is_guessed_of_a_step_without_an_end_before_one_is_done() {
        let mut forecast = Forecast::new([None, Some(10 * S), None]);
        assert_eq!(forecast.later(1), None);
        forecast.learn(1, 5 * S);
        assert_eq!(forecast.later(1), Some(15 * S));
    }
}
