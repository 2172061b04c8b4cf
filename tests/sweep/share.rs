//! The client's share of a number, and the verdict on it.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use loadgen::canned::{Action, At, Canned, Fault, Listen, Script, Service, tables};
use loadgen::summary::{Outcome, Summary, Verdict, VerdictKind};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::program::{Ended, Results, canned, command, run_canned, wait};

fn server(service: Service) -> Canned {
    let script = Script { answers: tables::answers(8), service, ..Script::default() };
    Canned::start(script, Listen::Port(0)).expect("a free port")
}

fn verdict(ended: &Ended) -> &Verdict {
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    ended.only().verdict.as_ref().expect("every step has one")
}

fn has(verdict: &Verdict, code: &str) -> bool {
    verdict.reasons.iter().any(|reason| reason.code == code)
}

#[test]
fn a_server_that_costs_nothing_leaves_the_client_as_the_limit() {
    let server = canned(Vec::new());
    let words = "point-select --tables 8 --clients 64 --engine-threads 1 --warmup 200ms --time 1s";
    // Unless other tests keep the cores full, each time.
    let is_quiet = |ended: &Ended| !has(verdict(ended), "other_load");
    let ended = (0..3).map(|_| run_canned(words, &server)).find(is_quiet);
    let ended = ended.unwrap_or_else(|| run_canned(words, &server));
    let verdict = verdict(&ended);
    let others = has(verdict, "other_load");
    assert!(others || verdict.kind >= VerdictKind::ClientBound, "{verdict:?}");
    // Not so on a machine with other work, where it waits for a server that waits for a core:
    // `thread_busy`.
    assert!(others || has(verdict, "turn_delay"), "{verdict:?}");
    let marked = ended.stdout.lines().any(|line| line.ends_with(" *"));
    assert!(marked && ended.stdout.contains("\n* "), "{}", ended.stdout);
    let kind = verdict.kind.name();
    assert!(ended.stderr.contains(&format!(", 0 errors, {kind}")), "{}", ended.stderr);
}

#[test]
fn a_slow_server_is_not_the_client_s_doing() {
    let server = server(Service::Constant(Duration::from_millis(20)));
    let words = "point-select --tables 8 --clients 4 --warmup 200ms --time 2s";
    // On a machine with other work it may be noisy: then the client waited for cores. A hypervisor
    // may hold a core back without telling anybody, which nobody can tell from the client's doing:
    // hardly each time.
    let sound = (0..5).any(|_| {
        let ended = run_canned(words, &server);
        let verdict = verdict(&ended);
        assert!(!has(verdict, "near_ceiling"), "{verdict:?}");
        let share = ended.only().client.share.as_ref().expect("it looked");
        assert!(share.turns.probes > 150, "{share:?}");
        assert!(share.turns.tail_percentile.is_some_and(|p| (93..99).contains(&p)), "{share:?}");
        assert!(share.turns.turn_delay_p50_us <= share.turns.turn_delay_tail_us, "{share:?}");
        // 50 answers a second and client.
        let idle = share.threads.iter().all(|thread| thread.busy < 0.5);
        let held_back = has(verdict, "thread_busy") || has(verdict, "throttled");
        idle && !held_back && verdict.kind < VerdictKind::ClientBound
    });
    assert!(sound, "client-bound each time");
}

/// Lets the process run for a tenth of the time, until it ends.
fn hold_back(pid: Pid, child: &mut std::process::Child) {
    let send = |signal| {
        let _ = kill(pid, signal);
    };
    while child.try_wait().expect("it can be waited for").is_none() {
        send(Signal::SIGSTOP);
        std::thread::sleep(Duration::from_millis(90));
        send(Signal::SIGCONT);
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_client_with_a_tenth_of_a_core_is_bound_by_it() {
    let server = server(Service::Constant(Duration::from_millis(20)));
    let (results, port, start) = (Results::new(), server.port().to_string(), Instant::now());
    let words = "point-select --tables 8 --clients 4 --warmup 200ms --time 2s";
    let connection = ["-h", "127.0.0.1", "-P", &port, "-u", "x"];
    let mut child = command(words, &connection, &results).spawn().expect("the program runs");
    hold_back(Pid::from_raw(child.id().cast_signed()), &mut child);
    let ended = wait(child, start, &results);
    let verdict = verdict(&ended);
    let others = has(verdict, "other_load");
    assert!(others || verdict.kind >= VerdictKind::ClientBound, "{verdict:?}");
    assert!(has(verdict, "turn_delay"), "{verdict:?}");
}

#[test]
fn a_quota_that_holds_the_client_back_is_told() {
    let server = server(Service::Constant(Duration::from_millis(5)));
    let root = tempfile::tempdir().expect("a directory");
    let group = root.path().join("sys/fs/cgroup/run");
    std::fs::create_dir_all(&group).expect("a directory");
    std::fs::create_dir_all(root.path().join("proc/self")).expect("a directory");
    std::fs::write(root.path().join("proc/self/cgroup"), "0::/run\n").expect("a file");
    // Whole at any instant, as the kernel's is.
    let held_back = |us: u128| {
        let text = format!("usage_usec 5\nnr_throttled 3\nthrottled_usec {us}\n");
        std::fs::write(group.join("new"), text).expect("a file");
        std::fs::rename(group.join("new"), group.join("cpu.stat")).expect("a file");
    };
    let measured = |grows: u128| {
        let (results, port, start) = (Results::new(), server.port().to_string(), Instant::now());
        let words = "point-select --tables 8 --clients 2 --warmup 200ms --time 1s";
        held_back(0);
        let mut child = command(words, &["-h", "127.0.0.1", "-P", &port, "-u", "x"], &results)
            .env("LOADGEN_HOST_ROOT", root.path())
            .spawn()
            .expect("the program runs");
        while child.try_wait().expect("it can be waited for").is_none() {
            held_back(start.elapsed().as_micros() * grows);
            std::thread::sleep(Duration::from_millis(10));
        }
        wait(child, start, &results)
    };
    let ended = measured(1);
    let told = verdict(&ended);
    assert!(told.kind >= VerdictKind::ClientBound && has(told, "throttled"), "{told:?}");
    let ended = measured(0);
    let share = ended.only().client.share.as_ref().expect("it looked");
    assert!(!has(verdict(&ended), "throttled") && share.throttled_s == Some(0.0), "{share:?}");
}

#[test]
fn a_window_in_which_nobody_was_served_says_so() {
    let stall = Action::StallAll(Duration::from_secs(3));
    let server = canned(vec![Fault::new(At::Statement(1), stall).only("WHERE id=")]);
    let words = "point-select --tables 8 --clients 3 --warmup 0 --time 1s";
    let ended = run_canned(words, &server);
    assert_eq!((ended.code, ended.only().totals.ops), (0, 0), "{}", ended.stderr);
    let warnings = &ended.only().warnings;
    let said = warnings.iter().find(|of| of.code == "nothing_completed").expect("a warning");
    assert_eq!(said.values.as_ref().expect("values")["became"], "3 ended after it");
    for text in [&ended.stderr, &ended.stdout] {
        assert!(text.contains(&said.message), "{text}");
    }
}

/// A program that uses a core until it is dropped, or its parent has ended.
struct Busy(Child);

impl Busy {
    fn start() -> Busy {
        let mut shell = Command::new("sh");
        Busy(shell.args(["-c", "while kill -0 $PPID; do :; done"]).spawn().expect("a shell"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn step_that_others_disturb_is_measured_again() {
    let server = canned(Vec::new());
    let busy = Busy::start();
    let words = "point-select --clients 2 --warmup 100ms --time 500ms --others-max";
    let ended = run_canned(&format!("{words} 0.1%"), &server);
    drop(busy);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let mut tries: Vec<(&str, Outcome)> = ended
        .summaries
        .iter()
        .map(|step| (step.step_id.split_once('-').expect("a dash").1, step.outcome))
        .collect();
    tries.sort_unstable_by_key(|(number, _)| *number);
    let again = Outcome::MeasuredAgain;
    let all = [("1", again), ("1.2", again), ("1.3", again), ("1.4", Outcome::Completed)];
    assert_eq!(tries, all, "{}", ended.stderr);
    for text in ["measured again, try 2 of 4", "in try 4, too: this try is kept"] {
        assert!(ended.stderr.contains(text), "{}", ended.stderr);
    }
    // A cell of several runs has their range.
    assert!(ended.stdout.contains("QPS") && !ended.stdout.contains('['), "{}", ended.stdout);
    let ended = run_canned(&format!("{words} 99.9%"), &server);
    assert_eq!(ended.only().outcome, Outcome::Completed);
    let ended = run_canned(&format!("{words} 100%"), &server);
    assert!(ended.code == 2 && ended.stderr.contains("--others-max"), "{}", ended.stderr);
}

#[test]
fn looking_for_work_between_arrivals_is_not_being_busy() {
    let server = canned(Vec::new());
    let words = "point-select --tables 8 --clients 8 --engine-threads 1 --rate 2k \
                 --warmup 200ms --time 1s";
    let share = |summary: &Summary| summary.client.share.clone().expect("it looked");
    // A tenth of a millisecond before each of 2,000 arrivals it begins to look for them; a host that
    // wakes it late leaves little of that.
    let looked = (0..5).any(|_| {
        let paced = share(run_canned(words, &server).only()).threads.remove(0);
        let cpu = paced.cpu_s.expect("Linux tells");
        assert!(paced.spun_s <= cpu, "{paced:?}");
        paced.spun_s > 0.0
    });
    assert!(looked);
    let closed = run_canned("point-select --clients 1 --warmup 0 --time 1s", &server);
    assert!(share(closed.only()).threads[0].spun_s.abs() < 1e-12);
}

#[test]
fn calibrate_prints_and_keeps_what_this_host_can_generate() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("state/calibration.json");
    let calibrate = |words: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .arg("calibrate")
            .args(words.split_whitespace())
            .arg("--calibration")
            .arg(&file)
            .output()
            .expect("the program runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, table, said) = calibrate("--clients 1,16 --engine-threads 1 --time 300ms");
    assert_eq!(code, Some(0), "{said}");
    let rows: Vec<&str> =
        table.lines().filter(|line| line.trim_start().starts_with(char::is_numeric)).collect();
    assert_eq!(rows.len(), 2, "{table}");
    // An earlier one would stay where this host is busy.
    std::fs::remove_file(&file).expect("kept");
    let (code, csv, said) = calibrate("--clients 16 --engine-threads 1 --time 300ms --format csv");
    assert_eq!((code, csv.lines().count()), (Some(0), 2), "{csv}{said}");

    // A later run uses it, a run of another program does not and says so once; nor does one of
    // what the host was not idle for. This one may be busy, and is not to be in the way.
    let of_a_host = |others: f64| {
        let text = std::fs::read_to_string(&file).expect("kept");
        let mut kept: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let steps = kept["steps"].as_array_mut().expect("steps");
        assert!(steps.iter().all(|step| step["other_load"].is_number()), "{text}");
        for step in steps {
            step["other_load"] = others.into();
            step["steal"] = 0.0.into();
        }
        std::fs::write(&file, kept.to_string()).expect("written");
    };
    of_a_host(0.0);
    let server = canned(Vec::new());
    let flag = format!("--calibration {}", file.display());
    let words = format!("point-select --clients 2,16 --warmup 0 --time 300ms {flag}");
    let ended = run_canned(&words, &server);
    assert_eq!((ended.code, ended.summaries.len()), (0, 2), "{}", ended.stderr);
    for summary in &ended.summaries {
        let share = summary.client.share.as_ref().expect("it looked");
        assert_eq!(share.ceiling.as_ref().map(|c| c.clients), Some(16), "{share:?}");
    }
    // It is looked up for the clients of all groups.
    let beside = format!(
        "point-select --tables 8 --clients 1 --warmup 0 --time 300ms --beside \
         update-index,clients=15,think=10ms {flag}"
    );
    let ended = run_canned(&beside, &server);
    let ceiling = ended.only().client.share.as_ref().and_then(|share| share.ceiling.as_ref());
    assert_eq!(ceiling.map(|ceiling| ceiling.clients), Some(16), "{}", ended.stderr);
    let refused = |why: &str| {
        let ended = run_canned(&words, &server);
        let said = ended.stderr.matches(&format!("is not used: {why}")).count();
        assert_eq!((ended.code, said), (0, 1), "{}", ended.stderr);
        let share = |summary: &Summary| summary.client.share.clone().expect("it looked");
        assert!(ended.summaries.iter().all(|summary| share(summary).ceiling.is_none()));
    };
    of_a_host(0.36);
    refused("the host was not idle in any of its steps (other programs used 36 %");
    let kept = std::fs::read_to_string(&file).expect("kept");
    let other = kept.replace("\"version\":\"", "\"version\":\"9");
    std::fs::write(&file, other).expect("written");
    refused("it is of loadgen");
}
