//! A password on the command line is gone from it before anything else happens.
//!
//! Without libtest: what is tested replaces this very process by itself, arguments and all, so
//! the program plays loadgen's part when [`PART`] is set.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Output, Stdio};

use clap::{Args, FromArgMatches};
use loadgen::cli::help_without_h;
use loadgen::error::Error;
use loadgen::mysql::options::handover::hand_over;
use loadgen::mysql::options::resolve;
use loadgen::mysql::options::{ConnectionArgs, Env};
use loadgen::progress::Progress;
use loadgen::stop::Stop;

const PART: &str = "LOADGEN_TEST_HANDOVER";

fn main() -> ExitCode {
    if std::env::var_os(PART).is_some() {
        return match program() {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => {
                write(&mut std::io::stderr(), &e.render());
                ExitCode::from(e.kind().exit_code())
            }
        };
    }
    let tests: [(&str, fn()); 6] = [
        ("a_password_leaves_the_command_line", a_password_leaves_the_command_line),
        ("so_does_that_of_a_url", so_does_that_of_a_url),
        ("without_one_nothing_happens", without_one_nothing_happens),
        ("a_descriptor_is_read", a_descriptor_is_read),
        ("without_a_terminal_nothing_is_asked", without_a_terminal_nothing_is_asked),
        ("too_long_a_password_is_refused", too_long_a_password_is_refused),
    ];
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    let mut passed = 0;
    for (name, test) in tests.iter().filter(|(name, _)| name.contains(&filter)) {
        test();
        passed += 1;
        write(&mut std::io::stdout(), &format!("test {name} ... ok\n"));
    }
    let result = format!("\ntest result: ok. {passed} passed; 0 failed; 0 ignored\n");
    write(&mut std::io::stdout(), &result);
    ExitCode::SUCCESS
}

fn write(to: &mut dyn Write, text: &str) {
    to.write_all(text.as_bytes()).unwrap();
}

/// What `main` does, then what the process shows of itself.
fn program() -> Result<(), Error> {
    let command = help_without_h(ConnectionArgs::augment_args(clap::Command::new("x")))
        .arg(clap::Arg::new("rest").num_args(0..));
    let args = hand_over(std::env::args_os().collect(), &command, |warning| {
        write(&mut std::io::stderr(), &format!("warning: {warning}\n"));
    })?;
    let matches = command.get_matches_from(args);
    let connection = ConnectionArgs::from_arg_matches(&matches).unwrap();
    let mut progress = Progress::new(true, None);
    let target = resolve::find(&connection, Env::real(), &Stop::default(), &mut progress)?;
    let read = |path: &str| String::from_utf8(std::fs::read(path).unwrap()).unwrap();
    let fds = std::fs::read_dir("/proc/self/fd").unwrap().count();
    let opts = target.opts(None)?;
    let shown = format!(
        "cmdline={}\ncomm={}fds={fds}\ntarget={target}\npassword={}\n",
        read("/proc/self/cmdline").trim_end_matches('\0').replace('\0', " "),
        read("/proc/self/comm"),
        opts.pass().unwrap_or("none"),
    );
    write(&mut std::io::stdout(), &shown);
    Ok(())
}

fn play(args: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .arg0("its-name")
        .args(["--no-defaults", "-h", "db1", "-u", "me"])
        .args(args.split_whitespace().map(OsString::from))
        .env(PART, "1")
        .env_remove("LOADGEN_URL")
        .env_remove("MYSQL_PWD")
        .stdin(Stdio::null());
    command
}

/// Standard output, standard error.
fn texts(output: Output) -> (String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

fn line<'a>(out: &'a str, name: &str) -> &'a str {
    let found = out.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name} in {out}"))
}

fn a_password_leaves_the_command_line() {
    let (plain, _) = texts(play("").output().unwrap());
    for args in ["-pmarker rest", "--password=marker rest", "-p -pmarker rest"] {
        let (out, err) = texts(play(args).output().unwrap());
        assert_eq!(line(&out, "password"), "marker", "{err}");
        let cmdline = line(&out, "cmdline");
        assert!(cmdline.starts_with("its-name --no-defaults -h db1 -u me"), "{cmdline}");
        assert!(cmdline.contains(" --password-fd=") && cmdline.ends_with(" rest"), "{cmdline}");
        assert!(!cmdline.contains("marker") && !cmdline.contains("--password="), "{cmdline}");
        assert!(err.starts_with("warning: a password on the command line"), "{err}");
        assert_eq!(err.lines().count(), 1, "one warning: {err}");
        assert!(!err.contains("marker"), "{err}");
        // The kernel's name for it stays, and no descriptor is left for child processes.
        for kept in ["comm", "fds", "target"] {
            assert_eq!(line(&out, kept), line(&plain, kept));
        }
    }
}

fn so_does_that_of_a_url() {
    let (out, err) = texts(play("--url mysql://url:mark%40er@db2:33/db").output().unwrap());
    assert_eq!(line(&out, "password"), "mark@er", "{err}");
    assert_eq!(line(&out, "target"), "me@db1:33, database db");
    let cmdline = line(&out, "cmdline");
    assert!(cmdline.contains("--url=mysql://url@db2:33/db --password-fd="), "{cmdline}");
    assert!(!cmdline.contains("mark"), "{cmdline}");
}

fn without_one_nothing_happens() {
    let (out, err) = texts(play("--database -pmarker").output().unwrap());
    assert!(!out.contains("cmdline"), "clap refuses it: {out}");
    assert!(!err.contains("marker"), "{err}");
    let (out, err) = texts(play("--password= --url mysql://u@h/db").output().unwrap());
    assert_eq!((line(&out, "password"), &*err), ("none", ""));
    assert!(line(&out, "cmdline").ends_with("--password= --url mysql://u@h/db"), "{out}");
    let (out, err) = texts(play("").env("MYSQL_PWD", "marker").output().unwrap());
    assert_eq!((line(&out, "password"), &*err), ("marker", ""));
}

fn a_descriptor_is_read() {
    let mut child =
        play("--password-fd 0").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"marker\n").unwrap();
    let (out, _) = texts(child.wait_with_output().unwrap());
    assert_eq!(line(&out, "password"), "marker");
    let output = play("--password-fd 77").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(texts(output).1.contains("--password-fd 77"));
}

fn without_a_terminal_nothing_is_asked() {
    let played = play("-p");
    let output = Command::new("setsid")
        .arg("--wait")
        .arg(played.get_program())
        .args(played.get_args())
        .env(PART, "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let (out, err) = texts(output);
    assert!(out.is_empty(), "{out}");
    assert!(err.contains("hint: ") && err.contains("--password-fd"), "{err}");
}

fn too_long_a_password_is_refused() {
    let output = play(&format!("-p{}", "marker".repeat(1000))).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let (_, err) = texts(output);
    assert!(err.contains("longer than") && !err.contains("marker"), "{err}");
}
