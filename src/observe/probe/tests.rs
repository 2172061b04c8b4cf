use std::fs;

use super::*;

/// A recorded `/proc`: process 7 is the server, started 90 s after its host.
fn tree(tick: u64) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a directory");
    let write = |path: &str, text: String| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, text).expect("a file");
    };
    let stat = format!(
        "7 (my)sql d) S 1 7 7 0 -1 4194560 1 0 2 0 {} {} 0 0 20 0 31 0 9000 1 2 3\n",
        1000 + 200 * tick,
        500 + 100 * tick
    );
    write("proc/7/stat", stat);
    write("proc/7/status", "Name:\tx\nVmRSS:\t   2048 kB\nThreads:\t31\n".to_owned());
    write("proc/7/io", format!("rchar: 9\nread_bytes: {}\nwrite_bytes: 5\n", 4096 * tick));
    for thread in [7, 8] {
        let text = format!(
            "Name:\tx\nvoluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t{tick}\n",
            10 * tick
        );
        write(&format!("proc/7/task/{thread}/status"), text);
    }
    if tick > 0 {
        // A thread that was not there before.
        let text = "voluntary_ctxt_switches:\t999\nnonvoluntary_ctxt_switches:\t999\n";
        write("proc/7/task/9/status", text.to_owned());
    }
    let cpu = format!(
        "cpu  {} 1 20 4000 5 6 7 8 0 0\ncpu0 1 1 1 1\nctxt {}\nbtime 1\nprocesses 9\n",
        100 + tick,
        77 * tick
    );
    write("proc/stat", cpu);
    let disk = |name: &str| format!("  8 0 {name} {tick} 0 {} 0 {tick} 0 2 0 0 0 0\n", 8 * tick);
    let names = ["sda", "sda1", "nvme0n1", "nvme0n1p2", "xvda1", "dm-0", "md127", "loop3"];
    write("proc/diskstats", names.map(disk).concat());
    let net = "Inter-| Receive\n face |bytes\n    lo: 9 0 0 0 0 0 0 0 9 0 0 0 0 0 0 0\n  eth0:100 1 0 0 0 0 0 0 50 1 0 0 0 \
               0 0 0\nveth1: 100 1 0 0 0 0 0 0 50 1 0 0 0 0 0 0\n";
    write("proc/net/dev", net.to_owned());
    write("proc/uptime", "1090.50 99.0\n".to_owned());
    write("run/mysqld.pid", "7\n".to_owned());
    root
}

fn server() -> Whereabouts {
    Whereabouts {
        pid_file: Some("/run/mysqld.pid".to_owned()),
        uptime_s: Some(1000),
        ..Whereabouts::default()
    }
}

#[test]
fn two_readings_of_a_recorded_host() {
    let (before, after) = (tree(0), tree(3));
    let probe = Probe::below(before.path(), &server());
    assert_eq!(probe.pid, Some(7));
    let first = probe.read().expect("a reading");
    let later = Probe { root: after.path().to_owned(), ..probe.clone() };
    let last = later.read().expect("a reading");
    let probed = probe.cost(&first, &last, Instant::now());
    assert_eq!(probed.via, "local");
    assert!(probed.first_s <= probed.last_s && probed.last_s <= 0.0);
    let process = probed.process.expect("found");
    let expected = ProcessCost {
        pid: 7,
        user_s: 6.0,
        sys_s: 3.0,
        voluntary_switches: Some(60),
        involuntary_switches: Some(6),
        read_bytes: Some(3 * 4096),
        write_bytes: Some(0),
        rss_bytes: Some(2 << 20),
        threads: Some(31),
    };
    assert_eq!(process, expected);
    let host = probed.host.expect("read");
    assert!((host.user_s - 0.03).abs() < 1e-9 && host.sys_s == 0.0, "{host:?}");
    assert_eq!(host.context_switches, Some(231));
    // sda, nvme0n1, and xvda1 that has no disk.
    assert_eq!((host.disk_reads, host.disk_writes), (Some(9), Some(9)));
    assert_eq!((host.disk_read_bytes, host.disk_write_bytes), (Some(9 * 8 * 512), Some(0)));
    assert_eq!((host.net_rx_bytes, host.net_tx_bytes), (Some(0), Some(0)));
}

#[test]
fn another_process_of_that_number_is_not_the_server() {
    let root = tree(0);
    let old = Whereabouts { uptime_s: Some(20), ..server() };
    assert_eq!(Probe::below(root.path(), &old).pid, None, "its file is of before");
    let unknown = Whereabouts { uptime_s: None, ..server() };
    assert_eq!(Probe::below(root.path(), &unknown).pid, Some(7));
    assert_eq!(Probe::below(root.path(), &Whereabouts::default()).pid, None);
    // A restart in between: the number is the same, the process is not.
    let probe = Probe::below(root.path(), &server());
    let first = probe.read().expect("a reading");
    let stat = fs::read_to_string(root.path().join("proc/7/stat")).expect("there");
    fs::write(root.path().join("proc/7/stat"), stat.replace(" 9000 ", " 9500 ")).expect("written");
    let last = probe.read().expect("a reading");
    let probed = probe.cost(&first, &last, Instant::now());
    assert!(probed.process.is_none() && probed.host.is_some());
}

#[test]
fn what_cannot_be_read_is_left_out() {
    let root = tree(0);
    for path in ["proc/7/io", "proc/7/status", "proc/diskstats", "proc/net/dev"] {
        fs::remove_file(root.path().join(path)).expect("there");
    }
    fs::remove_dir_all(root.path().join("proc/7/task")).expect("there");
    let probe = Probe::below(root.path(), &server());
    let reading = probe.read().expect("a reading");
    let probed = probe.cost(&reading, &reading, Instant::now());
    let process = probed.process.expect("its stat is there");
    assert_eq!(
        (process.read_bytes, process.voluntary_switches, process.rss_bytes),
        (None, None, None)
    );
    let host = probed.host.expect("its stat is there");
    assert_eq!((host.disk_reads, host.net_rx_bytes), (None, None));
    let nothing = tempfile::tempdir().expect("a directory");
    assert_eq!(Probe::below(nothing.path(), &server()).read(), None);
}

#[test]
fn a_listener_is_found_by_its_socket() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("x.sock");
    let _unix = std::os::unix::net::UnixListener::bind(&path).expect("bound");
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let own = Some(std::process::id());
    let socket = path.to_str().map(str::to_owned);
    let by_path = Whereabouts { socket, ..Whereabouts::default() };
    assert_eq!(Probe::local(&by_path).pid, own);
    let port = tcp.local_addr().ok().map(|address| address.port());
    let by_port = Whereabouts { port, ..Whereabouts::default() };
    assert_eq!(Probe::local(&by_port).pid, own);
    let nobody = Whereabouts { socket: Some("/no/such.sock".to_owned()), ..by_path };
    assert_eq!(Probe::local(&nobody).pid, None);
    // Looked at through a command, it is still a process of this host.
    let through = || Probe::through(&["env".to_owned()], &by_port).expect("this host");
    assert_eq!((through().pid, through().pid_here()), (None, None), "it may be another host");
    assert_eq!(through().beside(&by_port).pid_here(), own);
}

/// A server says where its file is, and it may say anything.
#[test]
fn a_pid_file_that_is_none_is_neither_waited_for_nor_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let mode = nix::sys::stat::Mode::S_IRWXU;
    nix::unistd::mkfifo(&dir.path().join("pipe"), mode).expect("made");
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("endless")).expect("made");
    std::os::unix::fs::symlink("/proc/self/stat", dir.path().join("kernels")).expect("made");
    std::fs::write(dir.path().join("long"), "1".repeat(1 << 16)).expect("written");
    for name in ["pipe", "endless", "kernels", "long"] {
        let (root, pid_file) = (dir.path().to_owned(), Some(format!("/{name}")));
        let (sender, found) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let server = Whereabouts { pid_file, ..Whereabouts::default() };
            let _ = sender.send(Probe::below(&root, &server).pid);
        });
        assert_eq!(found.recv_timeout(Duration::from_secs(20)), Ok(None), "{name}");
    }
    // As ssh does it: a shell reads the words.
    let shell = ["sh", "-c", "eval \"$*\"", "sh"].map(str::to_owned);
    let made = dir.path().join("made");
    for path in ["/x; touch {}", "/x\ntouch {}", "/x|touch {}", "/$(touch {})", "/x`touch {}`"] {
        let pid_file = Some(path.replace("{}", made.to_str().expect("plain")));
        let server = Whereabouts { pid_file, ..Whereabouts::default() };
        let probe = Probe::through(&shell, &server).expect("this host");
        assert!(probe.pid.is_none() && !made.exists(), "{path} was run");
    }
    assert!(command::is_one_word("/var/lib/mysql-8.0/größe@1.pid"));
}

#[test]
fn a_command_reads_the_same() {
    let probe = Probe::local(&Whereabouts::default());
    let own = Probe { pid: Some(std::process::id()), ..probe };
    let shell = ["sh", "-c", "eval \"$*\"", "sh"].map(str::to_owned);
    let through = Probe { prefix: shell.to_vec(), ..own.clone() };
    let (first, last) = (own.read().expect("here"), through.read().expect("there"));
    let probed = through.cost(&first, &last, Instant::now());
    assert_eq!(probed.via, "command");
    let process = probed.process.expect("this process");
    assert!(process.voluntary_switches.is_some() && process.rss_bytes > Some(1 << 20));
    assert!(probed.host.expect("read").idle_s >= 0.0);
    // Nobody expands `*` behind this one.
    let listing = Probe { prefix: vec!["env".to_owned()], lists: true, ..own };
    let process = listing.read().expect("here").process.expect("this process");
    assert!(!process.switches.is_empty());

    let error = Probe::through(&["false".to_owned()], &server()).expect_err("it prints nothing");
    assert_eq!(error.kind().exit_code(), 3);
    assert!(error.render().contains("hint:"), "{}", error.render());
    let found = Probe::through(&["env".to_owned()], &Whereabouts::default()).expect("this host");
    assert_eq!(found.pid, None);
    let here = host::facts(Path::new("/"));
    let facts = found.facts().expect("of a host");
    assert_eq!((&facts.kernel, &facts.cpu), (&here.kernel, &here.cpu));
    assert_eq!((facts.cores, facts.memory_bytes), (here.cores_online, here.memory_bytes));
}

#[test]
fn the_hosts_own_clock_says_when_it_was_read() {
    let origin = Instant::now();
    let reading = |began: f64, ended: f64, up_s: Option<f64>| HostReading {
        began: origin + Duration::from_secs_f64(began),
        ended: origin + Duration::from_secs_f64(ended),
        up_s,
        process: None,
        host: None,
        disks: None,
        traffic: None,
    };
    let near = |found: [f64; 2], expected: [f64; 2]| {
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < 0.02, "{found} instead of {expected}");
        }
    };
    // A log-in of two seconds, then a quick one: the second one knows, and the first follows.
    let (slow, quick) = (reading(1.0, 3.0, Some(502.8)), reading(12.0, 12.02, Some(512.01)));
    near(cost::instants(&slow, &quick, origin), [2.8, 12.01]);
    // A clock that was set, or none.
    near(cost::instants(&slow, &reading(12.0, 12.02, Some(9.0)), origin), [2.0, 12.01]);
    near(cost::instants(&reading(1.0, 3.0, None), &quick, origin), [2.0, 12.01]);
}

proptest::proptest! {
    #[test]
    fn no_text_of_proc_panics(
        name in "\\PC{0,20}", numbers in proptest::collection::vec(proptest::prelude::any::<u64>(), 22..30),
        text in "\\PC{0,80}",
    ) {
        let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
        let words = words.join(" ");
        let read = proc::stat(&format!("1 ({name}) S {words}")).expect("a process");
        // Field 14 is the eleventh after the state.
        proptest::prop_assert_eq!((read.user_ticks, read.sys_ticks), (numbers[10], numbers[11]));
        let _ = proc::host(&format!("cpu  {words}\nctxt {words}\nbtime 1\nprocesses 1"));
        let _ = proc::disks(&format!("8 0 sda {words}\n8 0 sdb {words}\n8 1 {name} {words}"));
        let _ = proc::traffic(&format!("eth0: {words}\neth1: {words}\n{name}: {words}"));
        let _ = (proc::stat(&text), proc::host(&text), proc::disks(&text), proc::traffic(&text));
        let _ = proc::uptime_s(&text);
    }
}
