//! No password stays in the process title.
//!
//! The command line of a process is for everybody on the machine to read, as long as it runs.
//! A password found there goes into a pipe, and loadgen executes itself again with
//! `--password-fd=N` in its place. Until then, some milliseconds, it could be seen: that is
//! what the warning says.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::cli::argv::{self, Word};
use crate::error::{Error, Result};
use crate::mysql::secret::Secret;
use crate::mysql::url;

/// The longest password, in bytes: no server takes more, and it fits into an empty pipe, so
/// that the hand-over cannot block.
const MAX_SECRET: usize = 2048;

/// Brings the command line into the form that clap reads (`argv::words`). If it holds
/// a password (`-pSECRET`, `--password=SECRET`, in `--url`), calls `warn` and becomes the same
/// program without it, and does not return.
///
/// To be called first thing: nothing may be open or running yet.
///
/// # Errors
///
/// Usage: a bare `-h`; a password that is too long or no UTF-8; no way to execute itself again,
/// since to go on would leave the password there.
pub fn hand_over(
    args: Vec<OsString>,
    command: &clap::Command,
    warn: impl FnOnce(&str),
) -> Result<Vec<OsString>> {
    let cleaned = clean(argv::words(args, command)?)?;
    if !cleaned.found {
        return Ok(cleaned.with_fd(None));
    }
    warn(
        "a password on the command line can be seen by others until loadgen has taken it off; \
         -p without a value asks for it, an option file or MYSQL_PWD holds it",
    );
    let reader = cleaned.secret.as_ref().map(pipe).transpose().map_err(|e| failed(&e))?;
    // The descriptor must outlive the call: it is what the new program reads.
    let args = cleaned.with_fd(reader.as_ref().map(AsRawFd::as_raw_fd));
    Err(failed(&become_self(&args)))
}

/// The command line in the form that clap reads, with a sign in the password's place, so that what is
/// wrong with it can be told in the words that were typed; None where it holds no password.
///
/// # Errors
///
/// As [`hand_over`].
pub(crate) fn masked(
    args: Vec<OsString>,
    command: &clap::Command,
) -> Result<Option<Vec<OsString>>> {
    let words = argv::words(args, command)?;
    let typed = words.iter().any(|word| matches!(word, Word::Password(_)));
    let cleaned = clean(words)?;
    let flag = (typed && cleaned.secret.is_some()).then(|| "--password=...".into());
    Ok(cleaned.found.then(|| cleaned.with(flag)))
}

/// Reads the password of `--password-fd`: the descriptor to its end, without one line end, and
/// closes it, so that no child process inherits it.
///
/// # Errors
///
/// Usage: no such descriptor, nothing readable in it, more than a password or no UTF-8.
pub(crate) fn read_fd(fd: u32) -> Result<Secret> {
    let named = |why: &dyn std::fmt::Display| Error::usage(format!("--password-fd {fd}: {why}"));
    let file = File::open(format!("/proc/self/fd/{fd}")).map_err(|e| named(&e))?;
    let mut bytes = Vec::new();
    file.take(MAX_SECRET as u64 + 3).read_to_end(&mut bytes).map_err(|e| named(&e))?;
    if let Some(fd) = i32::try_from(fd).ok().filter(|fd| *fd > 2) {
        nix::unistd::close(fd).map_err(|e| named(&e))?;
    }
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    if line.len() > MAX_SECRET {
        return Err(named(&format!("holds more than a password ({MAX_SECRET} bytes)")));
    }
    let text = std::str::from_utf8(line).map_err(|_| named(&"holds no UTF-8"))?;
    Ok(Secret::new(text))
}

/// The command line without what must not stay on it.
struct Cleaned {
    words: Vec<Word>,
    /// Whether it held a password.
    found: bool,
    /// The one that counts, and where in `words` its flag goes.
    secret: Option<Secret>,
    at: usize,
}

impl Cleaned {
    fn with_fd(self, fd: Option<i32>) -> Vec<OsString> {
        self.with(fd.map(|fd| format!("--password-fd={fd}").into()))
    }

    /// With this flag in the place of the one that counts.
    fn with(self, flag: Option<OsString>) -> Vec<OsString> {
        let mut args: Vec<OsString> = self.words.into_iter().map(Word::into_arg).collect();
        if let Some(flag) = flag {
            args.insert(self.at.min(args.len()), flag);
        }
        args
    }
}

/// Of several password flags the last one counts, and any of them before the URL's.
fn clean(words: Vec<Word>) -> Result<Cleaned> {
    let last = words.iter().rposition(|word| matches!(word, Word::Password(_)));
    let mut out = Cleaned { words: Vec::new(), found: false, secret: None, at: 0 };
    for (i, word) in words.into_iter().enumerate() {
        match word {
            Word::Password(Some(text)) if !text.is_empty() => {
                out.found = true;
                if last == Some(i) {
                    out.secret = Some(checked(text)?);
                    out.at = out.words.len();
                }
            }
            Word::Password(_) if last != Some(i) => {}
            Word::Url(text) => match password_of(&text) {
                Some((secret, rest)) => {
                    out.found = true;
                    out.words.push(Word::Url(rest.into()));
                    if last.is_none() {
                        out.secret = Some(bounded(secret)?);
                        out.at = out.words.len();
                    }
                }
                None => out.words.push(Word::Url(text)),
            },
            other => out.words.push(other),
        }
    }
    Ok(out)
}

fn password_of(text: &OsString) -> Option<(Secret, String)> {
    let (secret, rest) = url::without_password(&Secret::new(text.to_str()?))?;
    (!secret.is_empty()).then_some((secret, rest))
}

fn checked(text: OsString) -> Result<Secret> {
    let text = text.into_string().map_err(|_| Error::usage("--password is no UTF-8"))?;
    bounded(Secret::new(text))
}

fn bounded(secret: Secret) -> Result<Secret> {
    if secret.expose().len() > MAX_SECRET {
        return Err(Error::usage(format!("the password is longer than {MAX_SECRET} bytes")));
    }
    Ok(secret)
}

/// A pipe that holds the secret and a line end, its reading end to be inherited.
fn pipe(secret: &Secret) -> std::io::Result<std::os::fd::OwnedFd> {
    let (reader, mut writer) = std::io::pipe()?;
    writer.write_all(secret.expose().as_bytes())?;
    writer.write_all(b"\n")?;
    // The copy has no close-on-exec mark.
    Ok(nix::unistd::dup(reader)?)
}

/// Returns only if it fails. By its path first: the kernel names the process after the path, and
/// `/proc/self/exe`, which works for a program that was replaced meanwhile too, would name it
/// "exe".
fn become_self(args: &[OsString]) -> std::io::Error {
    let Some((name, rest)) = args.split_first() else {
        return std::io::ErrorKind::InvalidInput.into();
    };
    let exec = |path: &std::path::Path| Command::new(path).arg0(name).args(rest).exec();
    if let Ok(path) = std::env::current_exe() {
        let _ = exec(&path);
    }
    exec(std::path::Path::new("/proc/self/exe"))
}

fn failed(why: &std::io::Error) -> Error {
    Error::usage(format!("the password cannot be taken off the command line: {why}"))
        .hint("give it by -p without a value, MYSQL_PWD, an option file or --password-fd")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> clap::Command {
        use clap::Args;
        crate::cli::connection::ConnectionArgs::augment_args(clap::Command::new("x"))
    }

    fn cleaned(line: &str) -> Cleaned {
        let args = line.split(' ').map(OsString::from).collect();
        clean(argv::words(args, &command()).unwrap()).unwrap()
    }

    fn handed(line: &str) -> (String, Option<String>) {
        let cleaned = cleaned(line);
        let secret = cleaned.secret.as_ref().map(|s| s.expose().to_owned());
        let args = cleaned.with_fd(secret.as_ref().map(|_| 7));
        (args.join(std::ffi::OsStr::new(" ")).into_string().unwrap(), secret)
    }

    #[test]
    fn the_password_leaves_and_its_descriptor_takes_its_place() {
        for (line, args, secret) in [
            ("x go -pse -u me", "x go --password-fd=7 -u me", Some("se")),
            ("x go --password=se -- -pno", "x go --password-fd=7 -- -pno", Some("se")),
            (
                "x --url mysql://u:a%40b@h/d go",
                "x --url=mysql://u@h/d --password-fd=7 go",
                Some("a@b"),
            ),
            ("x --url=mysql://u:ab@h/d -pse", "x --url=mysql://u@h/d --password-fd=7", Some("se")),
            ("x --url=mysql://u:ab@h/d -p", "x --url=mysql://u@h/d --password", None),
            ("x --url=mysql://u:ab@h/d --password=", "x --url=mysql://u@h/d --password=", None),
            ("x -pa -pb", "x --password-fd=7", Some("b")),
            ("x -pa -p", "x --password", None),
        ] {
            assert!(cleaned(line).found, "{line}");
            assert_eq!(handed(line), (args.to_owned(), secret.map(str::to_owned)), "{line}");
        }
    }

    #[test]
    fn without_a_password_it_returns_the_words() {
        for (line, args) in [
            ("x go", "x go"),
            ("x go -p", "x go --password"),
            ("x go --password=", "x go --password="),
            ("x --url mysql://u@h/d", "x --url=mysql://u@h/d"),
            ("x --url nonsense", "x --url=nonsense"),
            ("x --database -psecret", "x --database -psecret"),
        ] {
            let words = line.split(' ').map(OsString::from).collect();
            let returned = hand_over(words, &command(), |_| panic!("{line}")).unwrap();
            assert_eq!(returned.join(std::ffi::OsStr::new(" ")), args);
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
            let words = line.split(' ').map(OsString::from).collect();
            let shown = masked(words, &command()).unwrap();
            let shown = shown.map(|args| args.join(std::ffi::OsStr::new(" ")));
            assert_eq!(shown, args.map(OsString::from), "{line}");
        }
    }

    #[test]
    fn lengths_are_bounded() {
        let long = format!("x -p{}", "s".repeat(MAX_SECRET + 1));
        let args = long.split(' ').map(OsString::from).collect();
        let error = hand_over(args, &command(), |_| {}).unwrap_err();
        assert!(
            error.to_string().contains("2048") && !error.to_string().contains("sss"),
            "{error}"
        );
    }

    fn through_pipe(bytes: &[u8]) -> Result<Secret> {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(bytes).unwrap();
        drop(writer);
        let fd = std::os::fd::IntoRawFd::into_raw_fd(std::os::fd::OwnedFd::from(reader));
        read_fd(u32::try_from(fd).unwrap())
    }

    #[test]
    fn a_descriptor_is_read_to_its_end_without_one_line_end() {
        for (bytes, secret) in
            [("pw", "pw"), ("pw\n", "pw"), ("pw\n\n", "pw\n"), ("", ""), ("\n", "")]
        {
            assert_eq!(through_pipe(bytes.as_bytes()).unwrap().expose(), secret);
        }
        let longest = "s".repeat(MAX_SECRET);
        assert_eq!(through_pipe(format!("{longest}\n").as_bytes()).unwrap().expose(), longest);
        assert!(through_pipe(format!("{longest}s").as_bytes()).is_err());
        assert!(through_pipe(b"\xff").unwrap_err().to_string().contains("UTF-8"));
        assert!(
            read_fd(4_000_000_000).unwrap_err().to_string().contains("--password-fd 4000000000")
        );
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
        fn no_password_stays(words in proptest::collection::vec(proptest::sample::select(vec![
            "go", "-q", "-pmarker", "--password=marker", "--password", "-p", "-qpmarker", "--unknown",
            "--url=mysql://u:marker@h/d", "mysql://u:marker@h", "MySQL://marker:marker@h", "--", "-hh", "",
            "--passwordmarker", "--password-fd=3", "mysql://h", "--no-defaults", "-Pmarker",
        ]), 0..8)) {
            let before_end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
            let others = |word: &&str| word.starts_with("-P") || word.starts_with("MySQL://marker");
            let typed = words[before_end..].iter().chain(words.iter().filter(|w| others(w)));
            let known = typed.filter(|word| word.contains("marker")).count();
            let args = std::iter::once("x").chain(words.iter().copied()).map(OsString::from);
            match argv::words(args.collect(), &command()).and_then(clean) {
                Ok(cleaned) => {
                    let args = cleaned.with_fd(Some(3));
                    let left = args.iter().filter(|arg| arg.to_string_lossy().contains("marker"));
                    proptest::prop_assert!(left.count() <= known, "{:?}", args);
                }
                Err(error) => proptest::prop_assert!(!error.render().contains("marker")),
            }
        }

        #[test]
        fn no_word_panics(words in proptest::collection::vec("[-a-z=:/@%p\\PC]{0,12}", 0..6)) {
            let args = words.iter().map(OsString::from).collect();
            let _ = argv::words(args, &command()).and_then(clean).map(|cleaned| cleaned.with_fd(None));
        }
    }
}
