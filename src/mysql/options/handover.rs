//! Keeps passwords out of the process title, which everybody on the machine may read.
//!
//! A password on the command line goes into a pipe, and loadgen executes itself again with
//! `--password-fd=N` instead: a warning says that it was visible until then. The flags are the MySQL
//! clients': `-pSECRET` never takes the next word, and `-h` is no help.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use clap::Command;

use super::files::read_fd;
use super::resolve::without_password;
use super::{SECRET_MAX, Secret};
use crate::error::{Error, Result};

/// Brings the command line into clap's form. If it holds a password, calls `warn` and executes the
/// program again without it: nothing may be open or running yet.
pub fn hand_over(
    args: Vec<OsString>,
    command: &Command,
    warn: impl FnOnce(&str),
) -> Result<Vec<OsString>> {
    let line = Line::read(args, command)?.choose_password()?;
    if !line.found {
        return Ok(line.with(""));
    }
    warn(
        "a password on the command line can be seen by others until loadgen has taken it off; \
         -p without a value asks for it, an option file or MYSQL_PWD holds it",
    );
    // The descriptor must outlive the call: the new program reads it.
    let reader = line.secret().map(pipe).transpose().map_err(|e| hand_over_error(&e))?;
    let flag = reader.as_ref().map(|fd| format!("--password-fd={}", fd.as_raw_fd()));
    Err(hand_over_error(&become_self(&line.with(&flag.unwrap_or_default()))))
}

/// Masks the password of a command line for messages; None without one.
pub(crate) fn mask_password(
    args: Vec<OsString>,
    command: &Command,
) -> Result<Option<Vec<OsString>>> {
    let line = Line::read(args, command)?;
    Ok(line.found.then(|| line.with("--password=...")))
}

/// The flag in the password's place on a command line of sysbench's.
const HANDED_OVER: &str = "--loadgen-password-fd=";

/// Removes the passwords from a sysbench command line, if there are some, and executes the program again without them:
/// nothing may be open or running yet. Returns the words, with an empty password in its place, and the password that
/// an earlier call removed.
pub(crate) fn take_off(
    mut args: Vec<OsString>,
    flag: &str,
) -> Result<(Vec<OsString>, Option<Secret>)> {
    let value = |word: &OsString| {
        let word = word.as_bytes();
        let (name, value) = word.split_at_checked(flag.len())?;
        let same = name.iter().map(|b| if *b == b'_' { b'-' } else { *b }).eq(flag.bytes());
        value.strip_prefix(b"=").filter(|_| same).map(<[u8]>::to_vec)
    };
    let is_secret = |word: &OsString| value(word).is_some_and(|value| !value.is_empty());
    if args.iter().any(is_secret) {
        // The last one counts, also if it is empty.
        let at = args.iter().rposition(|word| value(word).is_some()).expect("one is there");
        let secret = String::from_utf8(value(&args[at]).expect("it was found by it"))
            .map(Secret::new)
            .map_err(|_| Error::usage(format!("{flag} is no UTF-8")))?;
        check_length(&secret)?;
        // The descriptor must outlive the call: the new program reads it.
        let reader = (!secret.is_empty()).then(|| pipe(&secret)).transpose();
        let reader = reader.map_err(|e| hand_over_error(&e))?;
        if let Some(reader) = &reader {
            args[at] = format!("{HANDED_OVER}{}", reader.as_raw_fd()).into();
        }
        args.retain(|word| !is_secret(word));
        return Err(hand_over_error(&become_self(&args)));
    }
    let handed = |word: &OsString| word.to_str()?.strip_prefix(HANDED_OVER)?.parse::<u32>().ok();
    let Some((at, fd)) = args.iter().enumerate().find_map(|(at, word)| Some((at, handed(word)?)))
    else {
        return Ok((args, None));
    };
    // An option behind this place wins over it, and it over those before.
    args[at] = format!("{flag}=").into();
    read_fd(fd).map(|secret| (args, Some(secret)))
}

#[derive(Default)]
struct Line {
    args: Vec<OsString>,
    found: bool,
    /// The last password flag's position in `args`, and its value; a flag without one asks for it.
    password: Option<(usize, Option<Secret>)>,
    /// The position after the last URL with a password, and that.
    url: Option<(usize, Option<Secret>)>,
}

impl Line {
    /// `command` knows which short flags take the rest of their word; a word with a dash is never a value.
    fn read(args: Vec<OsString>, command: &Command) -> Result<Line> {
        let valued = valued_shorts(command);
        let mut args = args.into_iter().peekable();
        let mut line = Line { args: args.next().into_iter().collect(), ..Line::default() };
        while let Some(arg) = args.next() {
            let word_follows = args.peek().is_some_and(|next| !next.as_bytes().starts_with(b"-"));
            let word = arg.as_bytes();
            let equals = word.iter().position(|byte| *byte == b'=' && word.starts_with(b"--"));
            let (flag, value) =
                equals.map_or((word, None), |at| (&word[..at], Some(&word[at + 1..])));
            match (flag, value) {
                (b"--", None) => {
                    line.args.push(arg);
                    line.args.extend(args);
                    break;
                }
                (b"-h", _) if !word_follows => {
                    let message = "-h is --host of commands that connect, as in the MySQL clients, and wants a name";
                    return Err(Error::usage(message).hint("--help prints the help"));
                }
                (b"--password", None) if word_follows => return Err(word_follows_error()),
                (b"--password", _) => line.password(value)?,
                (b"--url", Some(url)) => line.url(OsStr::from_bytes(url)),
                (b"--url", None) if word_follows => line.url(&args.next().expect("peeked at")),
                (b"--password-fd", _) => line.args.push(arg),
                _ if flag.starts_with(b"--password") => {
                    let message = "an argument begins with --password and is no flag";
                    return Err(Error::usage(message).hint(
                        "--password asks for the password; others can read it in --password=... \
                         and -p...",
                    ));
                }
                ([b'-', shorts @ ..], _) if !word.starts_with(b"--") => {
                    let is = |flag: &u8| *flag == b'p' || valued.contains(flag);
                    match shorts.iter().position(is).map(|at| shorts.split_at(at)) {
                        Some((_, b"p")) if word_follows => return Err(word_follows_error()),
                        Some((before, [b'p', secret @ ..])) => {
                            if !before.is_empty() {
                                line.args.push(OsString::from_vec([b"-", before].concat()));
                            }
                            line.password((!secret.is_empty()).then_some(secret))?;
                        }
                        _ => line.args.push(arg),
                    }
                }
                // A reader that does not know the word would quote its password.
                _ if is_url(word) => line.url(&arg),
                _ => line.args.push(arg),
            }
        }
        Ok(line)
    }

    /// Takes the URL's password unless a flag gives one.
    fn choose_password(mut self) -> Result<Line> {
        self.password = self.password.or(self.url.take());
        self.secret().map_or(Ok(()), check_length).map(|()| self)
    }

    fn password(&mut self, value: Option<&[u8]>) -> Result<()> {
        let text = value.map(str::from_utf8).transpose();
        let secret = text.map_err(|_| Error::usage("--password is no UTF-8"))?.map(Secret::new);
        self.found |= secret.as_ref().is_some_and(|secret| !secret.is_empty());
        self.password = Some((self.args.len(), secret));
        Ok(())
    }

    fn url(&mut self, url: &OsStr) {
        let parts = url.to_str().and_then(|text| without_password(&Secret::new(text)));
        let parts = parts.filter(|(secret, _)| !secret.is_empty());
        let rest = parts.as_ref().map_or(url, |(_, rest)| OsStr::new(rest));
        self.args.push([OsStr::new("--url="), rest].into_iter().collect());
        if let Some((secret, _)) = parts {
            self.found = true;
            self.url = Some((self.args.len(), Some(secret)));
        }
    }

    fn secret(&self) -> Option<&Secret> {
        self.password.as_ref()?.1.as_ref().filter(|secret| !secret.is_empty())
    }

    fn with(mut self, flag: &str) -> Vec<OsString> {
        if let Some((at, secret)) = self.password {
            let flag = match secret {
                None => "--password",
                Some(secret) if secret.is_empty() => "--password=",
                Some(_) => flag,
            };
            self.args.insert(at, flag.into());
        }
        self.args
    }
}

fn check_length(secret: &Secret) -> Result<()> {
    if secret.expose().len() > SECRET_MAX {
        return Err(Error::usage(format!("the password is longer than {SECRET_MAX} bytes")));
    }
    Ok(())
}

/// Returns whether a word is a server's URL; that of another program is refused later, without its password.
fn is_url(word: &[u8]) -> bool {
    let schemes: [&[u8]; 2] = [b"mysql://", b"mariadb://"];
    let begins = |scheme: &[u8]| {
        word.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    };
    schemes.into_iter().any(begins)
}

fn valued_shorts(command: &Command) -> Vec<u8> {
    let takes = |arg: &&clap::Arg| arg.get_action().takes_values() && !arg.is_require_equals_set();
    let short = |arg: &clap::Arg| arg.get_short().and_then(|c| u8::try_from(c).ok());
    let own = command.get_arguments().filter(takes).filter_map(short);
    own.chain(command.get_subcommands().flat_map(valued_shorts)).collect()
}

/// Makes a pipe with the secret and a line end; the new program inherits its reading end.
fn pipe(secret: &Secret) -> std::io::Result<std::os::fd::OwnedFd> {
    let (reader, mut writer) = std::io::pipe()?;
    writer.write_all(secret.expose().as_bytes())?;
    writer.write_all(b"\n")?;
    // The copy has no close-on-exec mark.
    Ok(nix::unistd::dup(reader)?)
}

/// Tries its path first: the kernel names the process after it. `/proc/self/exe` also works for a replaced program.
fn become_self(args: &[OsString]) -> std::io::Error {
    let (name, rest) = args.split_first().expect("a flag was read after the program's name");
    let exec = |path: PathBuf| std::process::Command::new(path).arg0(name).args(rest).exec();
    let _ = std::env::current_exe().map(exec);
    exec("/proc/self/exe".into())
}

fn hand_over_error(why: &std::io::Error) -> Error {
    Error::usage(format!("the password cannot be taken off the command line: {why}"))
        .hint("give it by -p without a value, MYSQL_PWD, an option file or --password-fd")
}

fn word_follows_error() -> Error {
    Error::usage("a word follows -p or --password, which never takes the next word")
        .hint("-p alone asks for the password; an option file or MYSQL_PWD holds it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::help_without_h;
    use crate::mysql::options::{ConnectionArgs, Protocol};
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

    fn command() -> Command {
        help_without_h(Cli::command())
    }

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn text(args: &[OsString]) -> String {
        args.join(OsStr::new(" ")).into_string().unwrap()
    }

    /// The command line as the new program gets it, and the password that it reads.
    fn handed(line: &str) -> (String, Option<String>) {
        let line = Line::read(words(line), &command()).and_then(Line::choose_password).unwrap();
        let secret = line.secret().map(|secret| secret.expose().to_owned());
        (text(&line.with("--password-fd=7")), secret)
    }

    fn refusal(line: &str) -> Error {
        Line::read(words(line), &command()).map(|_| ()).expect_err(line)
    }

    fn parse(line: &str) -> std::result::Result<Go, String> {
        let args = handed(line).0;
        let matches = command().try_get_matches_from(words(&args)).map_err(|e| e.to_string())?;
        match Cli::from_arg_matches(&matches).map_err(|e| e.to_string())?.verb {
            Verb::Go(go) => Ok(*go),
            Verb::Report { .. } => Err("report".into()),
        }
    }

    #[test]
    fn a_password_leaves_and_its_descriptor_takes_its_place() {
        for (line, args, secret) in [
            ("x go -pse -u me", "x go --password-fd=7 -u me", Some("se")),
            ("x go --password=se -- -pno", "x go --password-fd=7 -- -pno", Some("se")),
            (
                "x --url mysql://u:a%40b@h/d go",
                "x --url=mysql://u@h/d --password-fd=7 go",
                Some("a@b"),
            ),
            ("x --url=mysql://u:ab@h/d -pse", "x --url=mysql://u@h/d --password-fd=7", Some("se")),
            ("x MySQL://u:ab@h go", "x --url=mysql://u@h --password-fd=7 go", Some("ab")),
            ("x MariaDB://u:ab@h go", "x --url=mariadb://u@h --password-fd=7 go", Some("ab")),
            ("x go --url=mariadb://u:ab@h", "x go --url=mariadb://u@h --password-fd=7", Some("ab")),
            ("x --url=mysql://u:ab@h/d -p", "x --url=mysql://u@h/d --password", None),
            ("x --url=mysql://u:ab@h/d --password=", "x --url=mysql://u@h/d --password=", None),
            ("x -pa -pb", "x --password-fd=7", Some("b")),
            ("x -pa -p", "x --password", None),
            ("x go -qpse", "x go -q --password-fd=7", Some("se")),
            ("x go -p=se", "x go --password-fd=7", Some("=se")),
            ("x go --url mysql://h/ -pp", "x go --url=mysql://h/ --password-fd=7", Some("p")),
            ("x go --label -pno -pbar", "x go --label --password-fd=7", Some("bar")),
            ("x go --label=a -pbar", "x go --label=a --password-fd=7", Some("bar")),
            ("x go -uroot -pfoo", "x go -uroot --password-fd=7", Some("foo")),
            ("x go -quroot -pa", "x go -quroot --password-fd=7", Some("a")),
            ("x go --sandbox -pfoo", "x go --sandbox --password-fd=7", Some("foo")),
            ("x go --unknown -pfoo", "x go --unknown --password-fd=7", Some("foo")),
        ] {
            assert!(Line::read(words(line), &command()).unwrap().found, "{line}");
            assert_eq!(handed(line), (args.to_owned(), secret.map(str::to_owned)), "{line}");
        }
    }

    #[test]
    fn a_line_without_a_password_keeps_its_words() {
        for (line, args) in [
            ("x go", "x go"),
            ("x go -p", "x go --password"),
            ("x go -p -u me", "x go --password -u me"),
            ("x go -p -- next", "x go --password -- next"),
            ("x go --password=", "x go --password="),
            ("x --url mysql://u@h/d", "x --url=mysql://u@h/d"),
            ("x --url nonsense", "x --url=nonsense"),
            ("x go --url", "x go --url"),
            ("x go -- -psecret", "x go -- -psecret"),
            ("x go -Dpp", "x go -Dpp"),
            ("x go --password-fd 3", "x go --password-fd 3"),
            ("x go --password-fd=3", "x go --password-fd=3"),
            ("-pname go - -- ", "-pname go - -- "),
        ] {
            let returned = hand_over(words(line), &command(), |_| panic!("{line}")).unwrap();
            assert_eq!(text(&returned), args);
        }
    }

    #[test]
    fn what_is_wrong_is_told_in_the_words_that_were_typed() {
        for (line, args) in [
            ("x go -pse -u me", Some("x go --password=... -u me")),
            ("x --password=se go", Some("x --password=... go")),
            ("x -pa -p", Some("x --password")),
            ("x --url=mysql://u:ab@h/d go", Some("x --url=mysql://u@h/d go")),
            ("x go -p --password=", None),
        ] {
            let shown = mask_password(words(line), &command()).unwrap().map(|args| text(&args));
            assert_eq!(shown.as_deref(), args, "{line}");
        }
    }

    #[test]
    fn a_word_that_may_be_a_password_is_refused_unseen() {
        for line in ["x go -p marker", "x -p marker -px", "x go -qp marker --url mysql://u:x@h"] {
            let error = refusal(line).render();
            assert!(!error.contains("marker") && error.contains("next word"), "{line}: {error}");
        }
        for line in ["x go --passwordmarker", "x --password-marker go", "x --password-fdmarker"] {
            let error = refusal(line);
            assert!(!error.render().contains("marker"), "{line}: {}", error.render());
            assert!(error.hints()[0].contains("--password "), "{line}");
        }
    }

    #[test]
    fn a_password_outside_utf8_or_too_long_is_refused_unseen() {
        let (long, odd) = ("s".repeat(SECRET_MAX + 1), OsString::from_vec(b"-p\xff".to_vec()));
        for (arg, said) in [(format!("-p{long}").into(), "2048"), (odd, "UTF-8")] {
            let error = hand_over(vec!["x".into(), arg], &command(), |_| {}).unwrap_err();
            assert!(error.to_string().contains(said) && !error.to_string().contains("sss"));
        }
    }

    #[test]
    fn h_is_host_and_help_is_help() {
        let go = parse("x go -h db1 -P 3307 -D db -S/x.sock --protocol TCP").unwrap();
        assert_eq!(go.connection.host.as_deref(), Some("db1"));
        assert_eq!((go.connection.port, go.connection.protocol), (Some(3307), Some(Protocol::Tcp)));
        assert!(go.sandbox.is_none() && go.label.is_none() && !go.quiet && go.rest.is_empty());
        for line in ["x -h", "x go -h", "x go -h --time", "x report -h"] {
            let error = refusal(line);
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
    fn errors_show_no_password() {
        for line in [
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
        let args = words("x go --password=marker --url=mysql://u:marker@h/db");
        let matches = command().get_matches_from(args);
        let Verb::Go(go) = Cli::from_arg_matches(&matches).unwrap().verb else { panic!() };
        assert!(!format!("{:?} {:#?}", go.connection, go.connection).contains("marker"));
    }

    #[test]
    fn empty_password_keeps_its_place_on_a_command_line_of_sysbenchs() {
        let typed = words("x --mysql_password= run");
        let (args, secret) = take_off(typed.clone(), "--mysql-password").expect("nothing is read");
        assert!(args == typed && secret.is_none());
        let reader = pipe(&Secret::new("pw")).expect("a pipe");
        let fd = std::os::fd::IntoRawFd::into_raw_fd(reader);
        let typed = words(&format!("x --config-file=f {HANDED_OVER}{fd} run"));
        let (args, secret) = take_off(typed, "--mysql-password").expect("it is there");
        assert_eq!(text(&args), "x --config-file=f --mysql-password= run");
        assert_eq!(secret.expect("a password").expose(), "pw");
    }

    #[test]
    fn the_pipe_holds_what_was_put_in() {
        let reader = pipe(&Secret::new("pw\n")).unwrap();
        let fd = std::os::fd::IntoRawFd::into_raw_fd(reader);
        assert_eq!(read_fd(u32::try_from(fd).unwrap()).unwrap().expose(), "pw\n");
    }

    proptest::proptest! {
        /// None of these words is another one's value.
        #[test]
        fn no_password_stays(line in proptest::collection::vec(proptest::sample::select(vec![
            "go", "-q", "-pmarker", "--password=marker", "--password", "-p", "-qpmarker", "--unknown",
            "--url=mysql://u:marker@h/d", "mysql://u:marker@h", "MySQL://marker:marker@h", "--", "-hh", "",
            "--passwordmarker", "--password-fd=3", "mysql://h", "--no-defaults", "-Pmarker",
        ]), 0..8)) {
            let before_end = line.iter().position(|word| *word == "--").unwrap_or(line.len());
            let others = |word: &&str| word.starts_with("-P") || word.starts_with("MySQL://marker");
            let typed = line[before_end..].iter().chain(line.iter().filter(|w| others(w)));
            let known = typed.filter(|word| word.contains("marker")).count();
            let args = std::iter::once("x").chain(line.iter().copied()).map(OsString::from);
            match Line::read(args.collect(), &command()).and_then(Line::choose_password) {
                Ok(line) => {
                    let args = line.with("--password-fd=3");
                    let left = args.iter().filter(|arg| arg.to_string_lossy().contains("marker"));
                    proptest::prop_assert!(left.count() <= known, "{:?}", args);
                }
                Err(error) => proptest::prop_assert!(!error.render().contains("marker")),
            }
        }

        #[test]
        fn no_word_panics(line in proptest::collection::vec("[-a-z=:/@%p\\PC]{0,12}", 0..6)) {
            let args = line.iter().map(OsString::from).collect();
            let _ = Line::read(args, &command()).and_then(Line::choose_password).map(|line| line.with("x"));
        }
    }
}
