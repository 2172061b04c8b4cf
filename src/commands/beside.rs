//! Commands that start at an instant of the window and end with the step; their output goes to files.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::stop::{Group, within};
use crate::summary::CommandRun;

/// Time in which running commands may end by themselves when the step is over.
const ENDS_WITHIN: Duration = Duration::from_secs(3);
const DIES_WITHIN: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(crate) struct Command {
    /// From the window's start.
    pub(crate) at: Duration,
    pub(crate) words: Vec<String>,
    /// Hash of its instant and arguments.
    pub(crate) asked: String,
    pub(crate) output: String,
}

/// The window's start, once it has begun; emptied when the step is over.
pub(crate) type WindowWatch = watch::Receiver<Option<Instant>>;

pub(crate) type Running = JoinSet<Option<CommandRun>>;

pub(crate) fn start(commands: Vec<Command>, dir: &Path, window: &WindowWatch) -> Running {
    commands.into_iter().map(|command| run(command, dir.to_owned(), window.clone())).collect()
}

/// Waits a little for running commands, then ends them. Returns them by their instants.
pub(crate) async fn end(running: Running) -> Vec<CommandRun> {
    let mut ran: Vec<CommandRun> = running.join_all().await.into_iter().flatten().collect();
    ran.sort_by(|a, b| a.at_s.total_cmp(&b.at_s).then_with(|| a.output.cmp(&b.output)));
    ran
}

/// None if the step was over before the command's instant.
async fn run(command: Command, dir: PathBuf, mut window: WindowWatch) -> Option<CommandRun> {
    // The first change is its start, or the end of a step without one.
    window.changed().await.ok()?;
    let opened = (*window.borrow_and_update())?;
    tokio::select! {
        biased;
        () = over(&mut window) => return None,
        () = tokio::time::sleep_until((opened + command.at).into()) => {}
    }
    let at_s = opened.elapsed().as_secs_f64();
    let path = dir.join(&command.output);
    let exit = match spawn(&command.words, &path) {
        Ok(group) => wait(group, &mut window).await,
        Err(error) => {
            // The file may be the fault; then the summary says enough.
            let _ = std::fs::write(&path, format!("not started: {error}\n"));
            None
        }
    };
    let Command { words, asked, output, .. } = command;
    Some(CommandRun { program: words[0].clone(), asked: Some(asked), at_s, exit, output })
}

async fn over(window: &mut WindowWatch) {
    // Its end is the end of the step, too.
    let _ = window.wait_for(Option::is_none).await;
}

fn spawn(words: &[String], output: &Path) -> std::io::Result<Group> {
    let mut process = std::process::Command::new(&words[0]);
    super::spawn(process.args(&words[1..]), &File::create(output)?)
}

/// Waits for the end of the command and of the step; kills what is left of its group then.
async fn wait(mut group: Group, window: &mut WindowWatch) -> Option<i32> {
    let late = async {
        over(window).await;
        tokio::time::sleep(ENDS_WITHIN).await;
    };
    tokio::select! {
        () = ended(&group) => over(window).await,
        () = late => {
            group.signal(Signal::SIGTERM);
            let _ = within(DIES_WITHIN, ended(&group)).await;
        }
    }
    group.end().ok()?.code()
}

async fn ended(group: &Group) {
    while !group.has_ended() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use nix::unistd::Pid;

    use super::*;

    fn shell(at: u64, script: &str, output: &str) -> Command {
        Command {
            at: Duration::from_millis(at),
            words: ["sh", "-c", script].map(str::to_owned).into(),
            asked: "abcd".to_owned(),
            output: output.to_owned(),
        }
    }

    fn runtime() -> tokio::runtime::Runtime {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime")
    }

    /// The window lasts until this file is written.
    fn run_until(commands: Vec<Command>, file: &str) -> (Vec<CommandRun>, tempfile::TempDir) {
        let dir = tempfile::tempdir().expect("a directory");
        let ran = runtime().block_on(async {
            let (sender, window) = watch::channel(None);
            let running = start(commands, dir.path(), &window);
            sender.send_replace(Some(Instant::now()));
            let began = Instant::now();
            while std::fs::read(dir.path().join(file)).map_or(true, |text| text.is_empty()) {
                assert!(began.elapsed() < Duration::from_mins(1), "no {file}");
                tokio::time::sleep(LOOK_EVERY).await;
            }
            sender.send_replace(None);
            end(running).await
        });
        (ran, dir)
    }

    #[test]
    fn commands_run_at_their_instant_and_leave_their_output() {
        let commands = vec![
            shell(60, "echo later; echo oops >&2; exit 3", "b.txt"),
            shell(10, "echo first", "a.txt"),
            shell(600_000, "echo never", "c.txt"),
            Command { words: vec!["/nonexistent".to_owned()], ..shell(70, "", "d.txt") },
        ];
        let (ran, dir) = run_until(commands, "d.txt");
        let shown: Vec<(&str, Option<i32>)> =
            ran.iter().map(|r| (r.output.as_str(), r.exit)).collect();
        assert_eq!(shown, [("a.txt", Some(0)), ("b.txt", Some(3)), ("d.txt", None)]);
        assert!(ran[1].at_s >= 0.06 && ran[0].at_s < ran[1].at_s);
        let text = |name| std::fs::read_to_string(dir.path().join(name)).expect("written");
        assert_eq!(text("b.txt"), "later\noops\n");
        assert!(text("d.txt").starts_with("not started"));
        assert!(!dir.path().join("c.txt").exists());
    }

    #[test]
    fn commands_of_a_step_without_a_window_do_not_run() {
        let dir = tempfile::tempdir().expect("a directory");
        let ran = runtime().block_on(async {
            let (sender, window) = watch::channel(None);
            let running = start(vec![shell(0, "echo never", "a.txt")], dir.path(), &window);
            sender.send_replace(None);
            let ran = within(Duration::from_mins(1), end(running)).await;
            drop(sender);
            ran
        });
        assert!(ran.expect("it ends").is_empty());
        assert!(!dir.path().join("a.txt").exists());
    }

    #[test]
    fn rest_of_a_group_ends_when_the_step_is_over() {
        let commands = vec![shell(0, "sleep 1000 & echo $!", "a.txt")];
        let (ran, dir) = run_until(commands, "a.txt");
        assert_eq!(ran[0].exit, Some(0));
        let pid = std::fs::read_to_string(dir.path().join("a.txt")).expect("written");
        crate::commands::tests::ends(Pid::from_raw(pid.trim().parse().expect("a pid")));
    }
}
