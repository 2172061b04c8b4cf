//! `PREFIX grep -s -H . FILE…`, bounded in time and size.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::error::clip;
use crate::observe::proc::Files;
use crate::stop::Group;

/// Most that a reading prints: 4,000 threads of 60 lines.
const OUTPUT_MAX: u64 = 64 << 20;
const SAID_MAX: usize = 200;
/// A failed command's own words, and its end, are waited for so long: a process that it left behind may
/// keep their pipe open.
const WORDS: Duration = Duration::from_secs(1);

/// Reads the non-empty lines of some files. `.` and not `''`: ssh would lose an empty argument.
///
/// The error says in words what went wrong, without the command's arguments.
pub(super) fn grep(prefix: &[String], files: &[String], limit: Duration) -> Result<Files, String> {
    let words = ["grep", "-s", "-H", "."].map(str::to_owned);
    let (out, said) = run(prefix, words.iter().chain(files), limit)?;
    let mut read = Files::new();
    // A login may greet: what is no absolute path is none of grep's.
    let lines = out.lines().filter(|line| line.starts_with('/'));
    for (path, line) in lines.filter_map(|line| line.split_once(':')) {
        let text = read.entry(path.to_owned()).or_default();
        text.push_str(line);
        text.push('\n');
    }
    // grep's exit status tells of files that are not there, too: it says nothing.
    if !read.is_empty() {
        return Ok(read);
    }
    let said = said.recv_timeout(WORDS).unwrap_or_default();
    let said = clip(said.trim(), SAID_MAX);
    Err(if said.is_empty() { "it printed nothing".to_owned() } else { said })
}

pub(super) fn list(prefix: &[String], dir: &str, limit: Duration) -> Vec<String> {
    let printed = run(prefix, &["ls".to_owned(), dir.to_owned()], limit);
    let names = printed.map_or_else(|_| String::new(), |(out, _)| out);
    let numbers = names.split_ascii_whitespace().filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
    numbers.map(str::to_owned).collect()
}

/// Says whether a text is one word and no more to a shell, which `ssh` has read it on the other host: the
/// path that a server gives of its own file must not become a command there.
pub(super) fn is_one_word(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+=@:,%".contains(&b) || !b.is_ascii();
    text.starts_with('/') && text.bytes().all(plain)
}

fn run<'a>(
    prefix: &[String],
    words: impl IntoIterator<Item = &'a String>,
    limit: Duration,
) -> Result<(String, mpsc::Receiver<String>), String> {
    let (program, arguments) = prefix.split_first().ok_or("it is empty")?;
    let mut command = Command::new(program);
    command.args(arguments).args(words).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut group = Group::spawn(&mut command).map_err(|e| format!("it cannot be started: {e}"))?;
    let (out, err) = (drain(group.leader.stdout.take()), drain(group.leader.stderr.take()));
    let late = |_| format!("no answer within {} s", limit.as_secs());
    let out = out.recv_timeout(limit).map_err(late)?;
    // It ends with its output; what does not is killed when it is dropped.
    let end = Instant::now() + WORDS;
    while matches!(group.leader.try_wait(), Ok(None)) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok((out, err))
}

/// Reads a pipe in a thread of its own: a child that fills one while the other is read stops.
fn drain(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    let pipe = pipe.expect("it was asked for");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is as good, and nobody may wait any more.
        let _ = pipe.take(OUTPUT_MAX).read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_prefix_stands_before_grep() {
        let files = words("/proc/self/stat /proc/uptime /proc/no_such_file");
        let minute = Duration::from_mins(1);
        let read = grep(&words("env LC_ALL=C"), &files, minute).expect("two files");
        assert_eq!(read.len(), 2);
        let uptime = read.get("/proc/uptime").expect("it is there");
        assert!(uptime.ends_with('\n') && uptime.split_whitespace().count() == 2, "{uptime}");
    }

    #[test]
    fn what_fails_says_why_and_ends_in_time() {
        let files = words("/proc/uptime");
        let minute = Duration::from_mins(1);
        let why = |prefix: &str| grep(&words(prefix), &files, minute).expect_err(prefix);
        assert!(why("/no/such/program").contains("cannot be started"));
        assert!(why("true").contains("printed nothing"));
        assert!(why("ls /no/such/directory").contains("/no/such"), "ls's own words");
        assert!(why("").contains("empty"));
        let began = Instant::now();
        let slow = ["sh", "-c", "exec sleep 300"].map(str::to_owned);
        let second = Duration::from_secs(1);
        assert!(grep(&slow, &files, second).expect_err("too slow").contains("within 1 s"));
        assert!(began.elapsed() < minute);
    }
}
