//! What an examination finds: problems, all of which are named in one error, and warnings.

use std::fmt::Write;

use super::session::Failure;
use crate::error::{Error, Result};
use crate::summary::Warning;

/// Collects what is wrong instead of stopping at the first thing.
#[derive(Debug, Default)]
pub(super) struct Findings {
    problems: Vec<(String, String)>,
    warnings: Vec<Warning>,
}

impl Findings {
    /// Something that keeps the plan from running, and what to do about it.
    pub(super) fn problem(&mut self, message: impl Into<String>, hint: impl Into<String>) {
        self.problems.push((message.into(), hint.into()));
    }

    /// Something that a reader of the numbers must know.
    pub(super) fn warn(&mut self, code: &str, message: impl Into<String>) {
        self.warnings.push(Warning { code: code.to_owned(), message: message.into() });
    }

    /// Takes note of a question that the server refused, and passes a lost connection on.
    pub(super) fn refused(
        &mut self,
        failure: Failure,
        what: &str,
        hint: impl FnOnce(u16) -> String,
    ) -> std::result::Result<(), Failure> {
        let Failure::Server { code, .. } = failure else { return Err(failure) };
        self.problem(format!("{what}: {failure}"), hint(code));
        Ok(())
    }

    /// The warnings, or one error with all the problems and their hints.
    pub(super) fn conclude(self) -> Result<Vec<Warning>> {
        let message = match self.problems.as_slice() {
            [] => return Ok(self.warnings),
            [(only, _)] => only.clone(),
            several => {
                let mut text = format!("{} things keep this from running:", several.len());
                for (i, (message, _)) in several.iter().enumerate() {
                    // Writing to a String cannot fail.
                    let _ = write!(text, "\n  {}. {message}", i + 1);
                }
                text
            }
        };
        let mut error = Error::server(message);
        let mut given: Vec<String> = Vec::new();
        for (_, hint) in self.problems {
            if !given.contains(&hint) {
                error = error.hint(hint.as_str());
                given.push(hint);
            }
        }
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn one_problem_is_the_message() {
        let mut findings = Findings::default();
        findings.warn("w", "lost with the error");
        findings.problem("too few", "more");
        let error = findings.conclude().expect_err("a problem");
        assert_eq!(error.kind(), Kind::Server);
        assert_eq!(error.render(), "error: too few\n\nhint: more\n");
    }

    #[test]
    fn several_are_counted_and_hints_given_once() {
        let mut findings = Findings::default();
        findings.problem("a is missing", "prepare");
        findings.problem("b is missing", "prepare");
        findings.problem("c is small", "raise c");
        let error = findings.conclude().expect_err("problems");
        assert_eq!(
            error.render(),
            "error: 3 things keep this from running:\n  1. a is missing\n  2. b is missing\n  \
             3. c is small\n\nhint: prepare\nhint: raise c\n"
        );
    }

    #[test]
    fn only_a_lost_connection_ends_the_examination() {
        let mut findings = Findings::default();
        let said = Failure::Server { code: 1142, sqlstate: "42000".into(), message: "no".into() };
        assert!(findings.refused(said, "sbtest1", |code| format!("hint {code}")).is_ok());
        let lost = Failure::Lost("gone".to_owned());
        assert_eq!(findings.refused(lost.clone(), "x", |_| String::new()), Err(lost));
        let error = findings.conclude().expect_err("a problem");
        assert_eq!(error.to_string(), "sbtest1: error 1142 (42000): no");
        assert_eq!(error.hints(), ["hint 1142"]);
    }
}
