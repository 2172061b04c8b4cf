//! Waiting that is bounded, says what it waits for, and ends when the user wants it to.

use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Kind, Result};

/// How often the user hears that something still goes on.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// How long between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// The caller's ear and the caller's wish to stop.
pub(super) struct Wait<'a> {
    pub(super) say: &'a mut dyn FnMut(&str),
    pub(super) interrupted: &'a dyn Fn() -> bool,
}

impl Wait<'_> {
    /// Looks until there is something, or `None` after `limit`. An interruption is an error.
    pub(super) fn until<T>(
        &mut self,
        what: &str,
        limit: Duration,
        mut look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let began = Instant::now();
        let mut said = began;
        loop {
            if (self.interrupted)() {
                return Err(Error::new(Kind::Interrupted, format!("interrupted: {what}")));
            }
            if let Some(found) = look()? {
                return Ok(Some(found));
            }
            if began.elapsed() >= limit {
                return Ok(None);
            }
            if said.elapsed() >= SAY_EVERY {
                said = Instant::now();
                (self.say)(&format!("{what}, {} s so far", began.elapsed().as_secs()));
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn it_ends_with_what_it_finds_at_its_limit_or_when_interrupted() {
        let stop = Cell::new(false);
        let interrupted = || stop.get();
        let mut say = |_: &str| {};
        let mut wait = Wait { say: &mut say, interrupted: &interrupted };
        let mut looks = 0;
        let found = wait.until("x", Duration::from_mins(1), || {
            looks += 1;
            Ok((looks == 3).then_some(7))
        });
        assert_eq!(found.unwrap(), Some(7));
        assert_eq!(wait.until("x", Duration::ZERO, || Ok(None::<()>)).unwrap(), None);
        stop.set(true);
        let error = wait.until("x", Duration::from_mins(1), || Ok(None::<()>)).unwrap_err();
        assert_eq!(error.kind(), Kind::Interrupted);
    }
}
