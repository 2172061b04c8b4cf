//! Estimates the time of the steps that are still to come.

use std::time::Duration;

/// The planned times of an invocation's steps, and the real times of finished ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Forecast {
    planned: Vec<PlannedStep>,
    /// The times of steps beyond their plan, and the whole times of those without one.
    beside: Mean,
    whole: Mean,
    /// What preparations took, and what they were estimated to take.
    prepared: Duration,
    prepared_planned: Duration,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PlannedStep {
    /// Estimated time of what comes before it: a server's start, a fill, a copy.
    pub preparing: Duration,
    /// Warm-up and window; None without a planned end.
    pub step: Option<Duration>,
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
    pub(crate) fn new(planned: impl IntoIterator<Item = PlannedStep>) -> Forecast {
        Forecast { planned: planned.into_iter().collect(), ..Forecast::default() }
    }

    /// Adds the time of a step; `place` begins at 1.
    pub(crate) fn learn(&mut self, place: u32, took: Duration) {
        match self.planned(place).map(|planned| planned.step) {
            Some(Some(planned)) => self.beside.add(took.saturating_sub(planned)),
            Some(None) => self.whole.add(took),
            None => {}
        }
    }

    /// Adds the time of what came before a step. Guesses assume a slow host: the next ones are corrected by it.
    pub(crate) fn learn_preparing(&mut self, place: u32, took: Duration) {
        let Some(planned) = self.planned(place).map(|planned| planned.preparing) else { return };
        if !planned.is_zero() {
            self.prepared = self.prepared.saturating_add(took);
            self.prepared_planned = self.prepared_planned.saturating_add(planned);
        }
    }

    fn planned(&self, place: u32) -> Option<PlannedStep> {
        self.planned.get((place as usize).wrapping_sub(1)).copied()
    }

    /// Returns None if no step follows, or if nothing is known of their kind.
    pub(crate) fn later(&self, place: u32) -> Option<Duration> {
        let later = self.planned.get(place as usize..).filter(|later| !later.is_empty())?;
        let beside = self.beside.get().unwrap_or_default();
        let one = |planned: &PlannedStep| {
            let step = match planned.step {
                Some(planned) => planned.saturating_add(beside),
                None => self.whole.get()?,
            };
            Some(step.saturating_add(self.corrected(planned.preparing)))
        };
        later.iter().map(one).try_fold(Duration::ZERO, |sum, one| Some(sum.saturating_add(one?)))
    }

    fn corrected(&self, preparing: Duration) -> Duration {
        if self.prepared_planned.is_zero() {
            return preparing;
        }
        let ratio = self.prepared.as_secs_f64() / self.prepared_planned.as_secs_f64();
        Duration::try_from_secs_f64(preparing.as_secs_f64() * ratio).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);
    const NOTHING: Duration = Duration::ZERO;

    fn planned<const N: usize>(steps: [Option<u32>; N]) -> Forecast {
        Forecast::new(steps.map(|s| PlannedStep { step: s.map(|s| s * S), preparing: NOTHING }))
    }

    #[test]
    fn what_steps_took_beside_their_windows_counts_for_those_to_come() {
        let mut forecast = planned([Some(10); 4]);
        assert_eq!(forecast.later(1), Some(30 * S));
        forecast.learn(1, 12 * S);
        assert_eq!(forecast.later(2), Some(24 * S));
        assert_eq!(forecast.later(4), None, "there are no more");
        assert_eq!(Forecast::default().later(1), None);
    }

    #[test]
    fn nothing_is_guessed_of_a_step_without_an_end_before_one_is_done() {
        let mut forecast = planned([None, Some(10), None]);
        assert_eq!(forecast.later(1), None);
        forecast.learn(1, 5 * S);
        assert_eq!(forecast.later(1), Some(15 * S));
    }

    #[test]
    fn fills_to_come_are_in_it_and_are_as_fast_as_the_last() {
        let step = Some(10 * S);
        let of = |preparing: u32| PlannedStep { preparing: preparing * S, step };
        let mut forecast = Forecast::new([of(600), of(0), of(600), of(0)]);
        assert_eq!(forecast.later(1), Some(630 * S));
        // A step that nothing comes before says nothing of fills.
        forecast.learn_preparing(2, S);
        assert_eq!(forecast.later(1), Some(630 * S));
        forecast.learn_preparing(1, 300 * S);
        assert_eq!(forecast.later(1), Some(330 * S));
        assert_eq!(forecast.later(3), Some(10 * S));
    }
}
