//! What the server said, with what to do about it.

use crate::error::Error;
use crate::mysql::session::Failure;

/// The error of a statement that failed while doing something.
pub(super) fn explain(failure: &Failure, doing: &str) -> Error {
    explain_with(failure, doing, AGAIN)
}

/// The same, with what the same command does when it is given again.
pub(super) fn explain_with(failure: &Failure, doing: &str, again: &str) -> Error {
    let code = match failure {
        Failure::Lost(_) => {
            return Error::server(format!("{doing}: {failure}")).hint(again);
        }
        Failure::Server { code, .. } => *code,
    };
    let error = Error::failed(format!("{doing}: {failure}"));
    match code {
        // A full tablespace, a full disk; errors of the storage engine are mostly that too.
        1114 | 1021 | 3 | 1026 | 1030 | 1041 | 1135 => error
            .hint("is the server's disk full (data, redo log, tmpdir)? A row takes about 250 bytes")
            .hint(again),
        1290 | 1836 | 1792 => {
            error.hint("the server is read-only: is it a replica? Name a writable one with --host")
        }
        1044 | 1142 | 1227 | 1370 => error.hint(
            "loadgen needs CREATE, DROP, ALTER, INDEX, SELECT, INSERT and DELETE on the database",
        ),
        1050 => error.hint("something else made this table meanwhile"),
        1205 | 1213 => error.hint("something else holds locks in these tables").hint(again),
        1286 => error.hint("the tables need InnoDB"),
        1317 | 1053 | 1927 | 1969 => error.hint(again),
        _ => error,
    }
}

/// Nothing is lost by an interruption.
pub(super) const AGAIN: &str = "the same command again completes the fill";
/// But for data that does not outlive its server.
pub(super) const ANEW: &str =
    "this data goes away with its server: the same command again begins the fill anew";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn server(code: u16) -> Failure {
        Failure::Server { code, sqlstate: "HY000".to_owned(), message: "no".to_owned() }
    }

    #[test]
    fn what_goes_wrong_says_what_to_do() {
        for (code, hint) in [(1114, "disk"), (1290, "read-only"), (1142, "CREATE"), (1213, "again")]
        {
            let error = explain(&server(code), "filling sbtest3");
            assert_eq!(error.kind(), Kind::Failed);
            assert!(error.to_string().starts_with("filling sbtest3: error"), "{error}");
            assert!(error.render().contains(hint), "{}", error.render());
        }
        let lost = explain(&Failure::Lost("broken pipe".to_owned()), "filling sbtest3");
        assert_eq!(lost.kind(), Kind::Server);
        assert!(lost.render().contains(AGAIN));
        let passing = lost.hint("look at the server").instead(AGAIN, ANEW);
        assert_eq!(passing.hints(), [ANEW, "look at the server"]);
    }
}
