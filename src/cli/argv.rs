//! The words of the command line before clap sees them: the MySQL clients' `-pSECRET`, which
//! never eats the next word, and their `-h`, which is no help. Both letters mean this in every verb.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use clap::{Arg, ArgAction, Command};

use crate::error::{Error, Result};

/// A word of the command line, or two that belong together.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// Stays as it is.
    Plain(OsString),
    /// `-p`, `--password`, `-pSECRET` or `--password=SECRET`.
    Password(Option<OsString>),
    /// `--url URL` or `--url=URL`.
    Url(OsString),
}

#[cfg(test)]
/// Rewrites `-pSECRET` to `--password=SECRET` and a bare `-p` to `--password`, for clap. What is
/// the value of another flag stays (`--label -pfoo`), and so does all after `--`. `command` is
/// the whole program's: it knows which flags take a value.
///
/// # Errors
///
/// Usage: a bare `-h`, which is `--host` without its value and not help; a word that may be a
/// password, one that follows a bare `-p` among them.
pub(crate) fn normalise_args(args: Vec<OsString>, command: &Command) -> Result<Vec<OsString>> {
    Ok(words(args, command)?.into_iter().map(Word::into_arg).collect())
}

/// Gives the command and all below it a `--help` without `-h`, which is `--host`.
#[must_use]
pub fn help_without_h(command: Command) -> Command {
    let help = Arg::new("help").long("help").action(ArgAction::Help).help("Print help");
    command.disable_help_flag(true).arg(help).mut_subcommands(help_without_h)
}

impl Word {
    pub(crate) fn into_arg(self) -> OsString {
        match self {
            Word::Plain(word) => word,
            Word::Password(None) => "--password".into(),
            Word::Password(Some(secret)) => joined("--password=", &secret),
            Word::Url(url) => joined("--url=", &url),
        }
    }
}

pub(crate) fn words(args: Vec<OsString>, command: &Command) -> Result<Vec<Word>> {
    let mut valued = Valued::default();
    valued.add(command);
    let mut args = args.into_iter().peekable();
    let mut words: Vec<Word> = args.next().map(Word::Plain).into_iter().collect();
    while let Some(arg) = args.next() {
        let bytes = arg.as_bytes();
        let takes_next = match bytes.strip_prefix(b"--") {
            Some([]) => {
                words.push(Word::Plain(arg));
                words.extend(args.map(Word::Plain));
                return Ok(words);
            }
            Some(long) if is_glued(long) => return Err(glued()),
            Some(long) => long_flag(long, &arg, &valued, &mut words),
            None if bytes.len() > 1 && bytes[0] == b'-' => {
                if bytes == b"-h"
                    && args.peek().is_none_or(|next| next.as_bytes().starts_with(b"-"))
                {
                    return Err(bare_h());
                }
                short_flags(bytes, &valued, &mut words)
            }
            // Its password must not be quoted by who does not know such a word.
            None if is_url(bytes) => {
                words.push(Word::Url(arg));
                false
            }
            None => {
                words.push(Word::Plain(arg));
                false
            }
        };
        let asks = words.last() == Some(&Word::Password(None));
        if asks && args.peek().is_some_and(|next| !next.as_bytes().starts_with(b"-")) {
            return Err(loose());
        }
        if takes_next && let Some(value) = args.next() {
            match words.last_mut() {
                Some(last @ Word::Plain(_)) if *last == Word::Plain("--url".into()) => {
                    *last = Word::Url(value);
                }
                _ => words.push(Word::Plain(value)),
            }
        }
    }
    Ok(words)
}

/// Takes `--long` or `--long=value`; says whether the next argument is its value.
fn long_flag(long: &[u8], arg: &OsStr, valued: &Valued, words: &mut Vec<Word>) -> bool {
    let equals = long.iter().position(|b| *b == b'=');
    let name = &long[..equals.unwrap_or(long.len())];
    let value = equals.map(|at| OsString::from_vec(long[at + 1..].to_vec()));
    match (name, value) {
        (b"password", value) => words.push(Word::Password(value)),
        (b"url", Some(url)) => words.push(Word::Url(url)),
        (_, value) => {
            words.push(Word::Plain(arg.to_owned()));
            return value.is_none() && valued.longs.contains(name);
        }
    }
    false
}

/// Takes a word of short flags, `-abc`; says whether the next argument is the last one's value.
fn short_flags(bytes: &[u8], valued: &Valued, words: &mut Vec<Word>) -> bool {
    for (i, flag) in bytes.iter().enumerate().skip(1) {
        let rest = &bytes[i + 1..];
        if *flag == b'p' {
            if i > 1 {
                words.push(Word::Plain(OsString::from_vec(bytes[..i].to_vec())));
            }
            let secret = (!rest.is_empty()).then(|| OsString::from_vec(rest.to_vec()));
            words.push(Word::Password(secret));
            return false;
        }
        if valued.shorts.contains(flag) {
            words.push(Word::Plain(OsString::from_vec(bytes.to_vec())));
            return rest.is_empty();
        }
    }
    words.push(Word::Plain(OsString::from_vec(bytes.to_vec())));
    false
}

/// Whether it is `--passwordSECRET`, which must not be quoted by who knows no such flag.
fn is_glued(long: &[u8]) -> bool {
    let rest = long.strip_prefix(b"password").unwrap_or_default();
    !rest.is_empty() && rest[0] != b'=' && rest != b"-fd" && !rest.starts_with(b"-fd=")
}

/// Schemes are told without regard to case.
fn is_url(word: &[u8]) -> bool {
    const SCHEME: &[u8] = b"mysql://";
    word.get(..SCHEME.len()).is_some_and(|start| start.eq_ignore_ascii_case(SCHEME))
}

/// It is not taken as the password, and must not be shown in an error as if it were a mistyped
/// argument.
fn loose() -> Error {
    Error::usage("a word follows -p or --password, which never takes the next word")
        .hint("-p alone asks for the password; an option file or MYSQL_PWD holds it")
}

fn glued() -> Error {
    Error::usage("a word begins with --password and is no flag").hint(
        "--password alone asks for it; --password=... and -p... take it, and so do others see it",
    )
}

fn bare_h() -> Error {
    Error::usage("-h is --host, as in the MySQL clients, and wants the host's name")
        .hint("--help prints the help")
}

fn joined(flag: &str, value: &OsStr) -> OsString {
    let mut joined = OsString::from(flag);
    joined.push(value);
    joined
}

/// The flags whose value may be the next argument.
#[derive(Default)]
struct Valued {
    longs: HashSet<Vec<u8>>,
    shorts: HashSet<u8>,
}

impl Valued {
    fn add(&mut self, command: &Command) {
        for arg in command.get_arguments() {
            if arg.get_action().takes_values() && !arg.is_require_equals_set() {
                let longs = arg.get_all_aliases().unwrap_or_default().into_iter();
                self.longs.extend(longs.chain(arg.get_long()).map(|name| name.as_bytes().to_vec()));
                self.shorts.extend(arg.get_short().and_then(|c| u8::try_from(c).ok()));
            }
        }
        command.get_subcommands().for_each(|sub| self.add(sub));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::connection::{ConnectionArgs, Protocol};
    use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

    #[derive(Parser)]
    struct Cli {
        #[command(subcommand)]
        verb: Verb,
    }

    #[derive(Subcommand)]
    enum Verb {
        /// Goes about it.
        Go(Box<Go>),
        Report {
            paths: Vec<String>,
        },
    }

    #[derive(Args)]
    struct Go {
        #[command(flatten)]
        connection: ConnectionArgs,
        #[arg(long, allow_hyphen_values = true)]
        label: Option<String>,
        #[arg(short)]
        quiet: bool,
        #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "")]
        sandbox: Option<String>,
        rest: Vec<String>,
    }

    fn normalised(line: &str) -> Vec<String> {
        let args = line.split(' ').map(OsString::from).collect();
        let args = normalise_args(args, &Cli::command()).unwrap();
        args.into_iter().map(|arg| arg.into_string().unwrap()).collect()
    }

    fn parse(line: &str) -> std::result::Result<Go, String> {
        let command = help_without_h(Cli::command());
        let args = normalised(line);
        let matches = command.try_get_matches_from(args).map_err(|e| e.to_string())?;
        match Cli::from_arg_matches(&matches).map_err(|e| e.to_string())?.verb {
            Verb::Go(go) => Ok(*go),
            Verb::Report { .. } => Err("report".into()),
        }
    }

    fn password(line: &str) -> String {
        match parse(line).unwrap().connection.password {
            None => "none".into(),
            Some(None) => "asks".into(),
            Some(Some(secret)) => format!("'{}'", secret.expose()),
        }
    }

    #[test]
    fn the_password_flag_is_mysqls() {
        for (line, text) in [
            ("x go -psecret", "x go --password=secret"),
            ("x go -qpsecret", "x go -q --password=secret"),
            ("x go -p=secret", "x go --password==secret"),
            ("x go -p -u me", "x go --password -u me"),
            ("x go --url mysql://h/ -pp", "x go --url=mysql://h/ --password=p"),
            ("x go -- -psecret", "x go -- -psecret"),
            ("x go --label -pfoo -pbar", "x go --label -pfoo --password=bar"),
            ("x go --label=a -pbar", "x go --label=a --password=bar"),
            ("x go -u -pfoo", "x go -u -pfoo"),
            ("x go -uroot -pfoo", "x go -uroot --password=foo"),
            ("x go -Dpp", "x go -Dpp"),
            ("x go -quroot -pa", "x go -quroot --password=a"),
            ("x go --sandbox -pfoo", "x go --sandbox --password=foo"),
            ("x go --unknown -pfoo", "x go --unknown --password=foo"),
            ("-pname go - -- ", "-pname go - -- "),
        ] {
            assert_eq!(normalised(line).join(" "), text, "{line}");
        }
        assert_eq!(password("x go -psecret"), "'secret'");
        assert_eq!(password("x go --password="), "''");
        assert_eq!(password("x go -u me"), "none");
    }

    #[test]
    fn without_a_value_it_asks_and_takes_no_word_for_it() {
        for line in ["x go -p", "x go --password", "x go -p -q", "x go -p -- next"] {
            assert_eq!(password(line), "asks", "{line}");
        }
        for line in ["x go -p marker", "x -p marker -px", "x go -qp marker --url mysql://u:x@h"] {
            let args = line.split(' ').map(OsString::from).collect();
            let error = normalise_args(args, &Cli::command()).unwrap_err().render();
            assert!(!error.contains("marker") && error.contains("next word"), "{line}: {error}");
        }
    }

    #[test]
    fn bytes_that_are_no_utf8_pass_through() {
        let args = vec!["x".into(), OsString::from_vec(b"-p\xff".to_vec())];
        let args = normalise_args(args, &Cli::command()).unwrap();
        assert_eq!(args[1].as_bytes(), b"--password=\xff");
        let command = help_without_h(Cli::command());
        let error = command.try_get_matches_from(["x".into(), "go".into(), args[1].clone()]);
        assert!(error.unwrap_err().to_string().contains("UTF-8"));
    }

    #[test]
    fn h_is_host_and_help_is_help() {
        let go = parse("x go -h db1 -P 3307 -D db -S/x.sock --protocol TCP").unwrap();
        assert_eq!(go.connection.host.as_deref(), Some("db1"));
        assert_eq!((go.connection.port, go.connection.protocol), (Some(3307), Some(Protocol::Tcp)));
        assert!(go.sandbox.is_none() && go.label.is_none() && !go.quiet);
        for line in ["x -h", "x go -h", "x go -h --time", "x report -h"] {
            let args = line.split(' ').map(OsString::from).collect();
            let error = normalise_args(args, &Cli::command()).unwrap_err();
            assert!(error.to_string().contains("--host") && error.hints()[0].contains("--help"));
        }
        let help = parse("x go --help").err().unwrap();
        assert!(help.contains("-h, --host <HOST>") && help.contains("Connection:"), "{help}");
        assert!(help.starts_with("Goes about it"), "{help}");
        assert!(help.contains("-p, --password[=<PASSWORD>]"), "{help}");
        assert!(parse("x --help").err().unwrap().contains("--help"));
        assert!(parse("x report --help").err().unwrap().contains("Print help"));
    }

    #[test]
    fn a_password_glued_to_its_long_flag_is_refused_unseen() {
        let normalised = |line: &str| {
            let args = line.split(' ').map(OsString::from).collect();
            normalise_args(args, &Cli::command())
        };
        for line in ["x go --passwordmarker", "x --password-marker go", "x --password-fdmarker"] {
            let error = normalised(line).unwrap_err();
            assert!(!error.render().contains("marker"), "{line}: {}", error.render());
            assert!(error.hints()[0].contains("--password alone asks"), "{line}");
        }
        for line in ["x go --password-fd 3", "x go --password-fd=3", "x go --host --passwordx"] {
            assert!(normalised(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn contradictions_name_both_flags() {
        for (line, a, b) in [
            ("x go -p --password-fd 3", "--password", "--password-fd"),
            ("x go --no-defaults --defaults-file f", "--no-defaults", "--defaults-file"),
            (
                "x go --no-defaults --defaults-extra-file f",
                "--no-defaults",
                "--defaults-extra-file",
            ),
            (
                "x go --defaults-file f --defaults-extra-file g",
                "--defaults-file",
                "--defaults-extra-file",
            ),
        ] {
            let error = parse(line).err().unwrap();
            assert!(error.contains(a) && error.contains(b), "{error}");
        }
        assert!(parse("x go -P 0").is_err() && parse("x go -P 65536").is_err());
        assert!(parse("x go --ssl-mode on").err().unwrap().contains("VERIFY_CA"));
        assert!(parse("x go --connect-timeout 5d").err().unwrap().contains("5d"));
    }

    #[test]
    fn nothing_shows_a_password() {
        let go = parse("x go -pmarker --url mysql://u:marker@h/db").unwrap();
        assert!(!format!("{:?} {:#?}", go.connection, go.connection).contains("marker"));
        assert_eq!(normalised("x MySQL://u:marker@h")[1], "--url=MySQL://u:marker@h");
        for line in [
            "x go -u -pmarker",
            "x go -pmarker --nonsense",
            "x go --url=mysql://u:marker@h/ --nonsense",
            "x go --host --url=mysql://u:marker@h/",
            "x -pmarker go",
            "x -pmarker",
            "x report -pmarker",
            "x report --url mysql://u:marker@h/",
        ] {
            let error = parse(line).err().unwrap();
            assert!(!error.contains("marker"), "{line}: {error}");
        }
    }
}
