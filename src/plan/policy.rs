//! What a step does about errors, lost connections and answers that do not come.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::units;
pub use crate::terms::OnError;

/// Decided before the first connection, for all steps of a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Policy {
    pub on_error: OnError,
    /// More errors end the step; None: no number of them does.
    pub errors_max: Option<ErrorsMax>,
    /// An op without an answer for so long is given up, with its connection; None waits.
    pub op_timeout: Option<Duration>,
}

impl Policy {
    /// Tells whether lost connections are opened again.
    pub(crate) fn reconnects(&self) -> bool {
        self.on_error == OnError::Reconnect
    }

    /// Limits how long nobody may get an answer, and a server may be gone between two steps.
    pub(crate) fn patience(&self) -> Duration {
        if self.reconnects() { super::limits::OUTAGE } else { super::limits::SILENCE }
    }
}

/// `--max-errors`
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub enum ErrorsMax {
    /// So many, in all phases of a step.
    Count(u64),
    /// So many of a hundred ops.
    Percent(f64),
}

impl ErrorsMax {
    /// A share is judged from so many ops on, or at the end: of the first two one may fail.
    const JUDGED_FROM: u64 = 1000;

    /// Judges so many errors beside so many good ops; `last` where no more follow.
    pub fn exceeded(self, errors: u64, ops: u64, last: bool) -> bool {
        match self {
            ErrorsMax::Count(max) => errors > max,
            ErrorsMax::Percent(max) => {
                let all = errors.saturating_add(ops);
                let judged = last || all >= Self::JUDGED_FROM;
                judged && errors as f64 * 100.0 > max * all as f64
            }
        }
    }
}

impl fmt::Display for ErrorsMax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorsMax::Count(max) => write!(f, "{}", units::count(*max)),
            ErrorsMax::Percent(max) => write!(f, "{max}%"),
        }
    }
}

impl FromStr for ErrorsMax {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(number) = text.strip_suffix('%') else {
            return units::parse_count(text).map(ErrorsMax::Count);
        };
        match number.trim().parse::<f64>() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(ErrorsMax::Percent(percent)),
            _ => Err(format!("'{text}' is no share: 0% to 100%")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_they_are_written() {
        for (text, limit) in [
            ("0", ErrorsMax::Count(0)),
            ("2k", ErrorsMax::Count(2000)),
            ("0.5%", ErrorsMax::Percent(0.5)),
            ("100%", ErrorsMax::Percent(100.0)),
        ] {
            let read: ErrorsMax = text.parse().expect(text);
            assert_eq!(read, limit);
            assert_eq!(read.to_string().parse(), Ok(limit));
        }
        for text in ["", "%", "-1", "101%", "NaN%", "x"] {
            assert!(text.parse::<ErrorsMax>().is_err(), "{text}");
        }
    }

    #[test]
    fn one_more_than_the_limit_is_too_many() {
        assert!(!ErrorsMax::Count(3).exceeded(3, 0, true));
        assert!(ErrorsMax::Count(3).exceeded(4, 1_000_000, false));
        let one = ErrorsMax::Percent(1.0);
        assert!(!one.exceeded(1, 1, false) && one.exceeded(1, 1, true));
        assert!(!one.exceeded(10, 990, false) && one.exceeded(11, 990, false));
        assert!(!one.exceeded(0, 0, true));
    }
}
