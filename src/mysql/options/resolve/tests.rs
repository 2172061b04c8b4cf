use super::*;
use crate::cli::help_without_h;
use crate::mysql::options::env::fake::{self, Files};
use clap::{Args, Command, FromArgMatches};
use std::time::Duration;

const SOCKET: &[&str] = &["/tmp/mysql.sock"];

fn args(line: &str) -> ConnectionArgs {
    let command = help_without_h(ConnectionArgs::augment_args(Command::new("x")));
    let words = ["x"].into_iter().chain(line.split_whitespace());
    ConnectionArgs::from_arg_matches(&command.get_matches_from(words)).unwrap()
}

/// A world: variables `K=V`, files, sockets.
fn world(vars: &[&str], files: Files, sockets: &'static [&'static str]) -> Env {
    let vars: Vec<_> = vars.iter().map(|v| v.split_once('=').unwrap()).collect();
    fake::env(&vars, files, sockets)
}

fn ok(line: &str, env: &Env) -> Resolved {
    resolve(&args(line), env).unwrap_or_else(|e| panic!("{line}: {e}"))
}

fn error(line: &str, env: &Env) -> Error {
    let error = resolve(&args(line), env).expect_err(line);
    assert_eq!(error.kind(), crate::error::Kind::Usage);
    error
}

fn address_of(line: &str, env: &Env) -> String {
    let target = ok(line, env).target;
    format!("{} {}", target.transport(), target.address)
}

#[test]
fn nothing_said_is_the_local_server() {
    let r = ok("", &world(&[], &[], &[]));
    assert_eq!(r.target.to_string(), "me@127.0.0.1:3306, database sbtest");
    assert!(r.target.password.is_empty() && !r.wants_prompt && r.warnings.is_empty());
    assert_eq!(r.target.ssl, Ssl::default());
    assert_eq!(r.target.connect_timeout, Duration::from_secs(10));
    assert_eq!(address_of("", &world(&[], &[], SOCKET)), "socket /tmp/mysql.sock");
    let mut nameless = world(&[], &[], &[]);
    nameless.os_user = None;
    assert!(error("", &nameless).hints()[0].contains("-u"));
}

const FILE: Files = &[(
    "/etc/my.cnf",
    0o600,
    "[client]\nhost=file\nport=4\nuser=file\npassword=file\ndatabase=file\nconnect-timeout=4",
)];
const VARS: &[&str] = &["MYSQL_HOST=env", "MYSQL_TCP_PORT=5", "MYSQL_PWD=env"];
const URL: &str = "LOADGEN_URL=mysql://url:url@url:3/url?connect-timeout=3";

fn all(line: &str, env: &Env) -> String {
    let t = ok(line, env).target;
    let timeout = t.connect_timeout.as_secs();
    format!("{} {} {} {} {timeout}", t.address, t.user, t.password.expose(), t.database)
}

#[test]
fn flag_then_url_then_file_then_environment() {
    let with_url = [VARS, &[URL]].concat();
    let flags = "-h flag -P 2 -u flag --password=flag -D flag --connect-timeout 2";
    assert_eq!(all(flags, &world(&with_url, FILE, &[])), "flag:2 flag flag flag 2");
    assert_eq!(all("", &world(&with_url, FILE, &[])), "url:3 url url url 3");
    assert_eq!(all("", &world(VARS, FILE, &[])), "file:4 file file file 4");
    assert_eq!(all("", &world(VARS, &[], &[])), "env:5 me env sbtest 10");
    assert_eq!(all("--no-defaults", &world(VARS, FILE, &[])), "env:5 me env sbtest 10");
    assert_eq!(
        all("", &world(&["MYSQL_HOST=", "MYSQL_TCP_PORT="], &[], &[])),
        "127.0.0.1:3306 me  sbtest 10"
    );
    // Subject by subject, and --url before LOADGEN_URL.
    assert_eq!(
        all("--url mysql://other/", &world(&with_url, FILE, &[])),
        "other:4 file file file 4"
    );
    assert_eq!(all("-u flag", &world(&with_url, FILE, &[])), "url:3 flag url url 3");
}

#[test]
fn the_group_of_loadgen_counts_like_the_clients() {
    let files: Files = &[(
        "/etc/my.cnf",
        0o600,
        "[client]\nhost=a\nuser=client\n[loadgen]\nuser=loadgen\nport=0\ndatabase=\n[other]\nuser=other",
    )];
    assert_eq!(all("", &world(&[], files, &[])), "a:3306 loadgen  sbtest 10");
}

const BOTH: Files = &[("/etc/my.cnf", 0o600, "[client]\nport=3306\nsocket=/file.sock")];
const PORT: Files = &[("/etc/my.cnf", 0o600, "[client]\nport=3307")];
const TCP: Files = &[("/etc/my.cnf", 0o600, "[client]\nprotocol=TCP\nsocket=/file.sock")];
const REMOTE: Files = &[("/etc/my.cnf", 0o600, "[client]\nhost=db1\nsocket=/file.sock")];

#[test]
fn tcp_or_socket() {
    for (line, vars, files, sockets, wanted) in [
        // No host, or localhost, without a port: the socket where there is one.
        ("-h localhost", &[][..], &[][..], SOCKET, "socket /tmp/mysql.sock"),
        ("-h LOCALHOST", &[], &[], &[][..], "tcp LOCALHOST:3306"),
        ("-h localhost -P 3307", &[], &[], SOCKET, "tcp localhost:3307"),
        ("-P 3307", &[], &[], SOCKET, "tcp 127.0.0.1:3307"),
        ("-h 127.0.0.1", &[], &[], SOCKET, "tcp 127.0.0.1:3306"),
        ("-h [::1]", &[], &[], SOCKET, "tcp [::1]:3306"),
        ("-h fe80::1%eth0", &[], &[], SOCKET, "tcp [fe80::1%eth0]:3306"),
        ("-S /x.sock", &[], &[], SOCKET, "socket /x.sock"),
        ("-S /x.sock -h localhost", &[], &[], SOCKET, "socket /x.sock"),
        ("--protocol tcp", &[], &[], SOCKET, "tcp 127.0.0.1:3306"),
        ("--protocol tcp -h localhost", &[], &[], SOCKET, "tcp localhost:3306"),
        ("--protocol socket", &[], &[], SOCKET, "socket /tmp/mysql.sock"),
        // Option files name a port and a socket side by side.
        ("", &[], BOTH, &[], "socket /file.sock"),
        ("-h localhost", &[], BOTH, SOCKET, "socket /file.sock"),
        ("-h db2", &[], BOTH, SOCKET, "tcp db2:3306"),
        ("-P 3307", &[], BOTH, SOCKET, "tcp 127.0.0.1:3307"),
        ("--protocol tcp", &[], BOTH, SOCKET, "tcp 127.0.0.1:3306"),
        ("--url mysql://db2/", &[], BOTH, SOCKET, "tcp db2:3306"),
        ("--url mysql://localhost/", &[], BOTH, SOCKET, "socket /file.sock"),
        ("", &[], PORT, SOCKET, "tcp 127.0.0.1:3307"),
        ("--protocol socket", &[], PORT, SOCKET, "socket /tmp/mysql.sock"),
        ("-S /x.sock", &[], REMOTE, &[], "socket /x.sock"),
        ("", &[], REMOTE, &[], "tcp db1:3306"),
        ("-h localhost", &[], REMOTE, &[], "socket /file.sock"),
        ("", &[], TCP, SOCKET, "tcp 127.0.0.1:3306"),
        ("-S /x.sock", &[], TCP, SOCKET, "socket /x.sock"),
        // The environment.
        ("", &["MYSQL_UNIX_PORT=/env.sock"], &[], SOCKET, "socket /env.sock"),
        ("", &["MYSQL_UNIX_PORT=/env.sock", "MYSQL_TCP_PORT=5"], &[], SOCKET, "socket /env.sock"),
        ("", &["MYSQL_TCP_PORT=5"], &[], SOCKET, "tcp 127.0.0.1:5"),
        ("", &["MYSQL_UNIX_PORT=/env.sock"], PORT, SOCKET, "socket /env.sock"),
        ("", &["MYSQL_HOST=env"], BOTH, SOCKET, "tcp env:3306"),
        ("", &["MYSQL_TCP_PORT=5"], BOTH, SOCKET, "socket /file.sock"),
        // A URL.
        ("--url mysql://localhost:3306/", &[], &[], SOCKET, "tcp localhost:3306"),
        ("--url mysql://localhost/?socket=/u.sock", &[], PORT, SOCKET, "socket /u.sock"),
        ("--url mysql://db1:1/ -S /x.sock", &[], &[], SOCKET, "socket /x.sock"),
        ("--url mysql:///?socket=/u.sock -P 3307", &[], &[], SOCKET, "tcp 127.0.0.1:3307"),
    ] {
        assert_eq!(
            address_of(line, &world(vars, files, sockets)),
            wanted,
            "{line} {vars:?} {files:?}"
        );
    }
}

#[test]
fn contradictions_name_both_inputs() {
    let env = world(&[], &[], SOCKET);
    for (line, a, b) in [
        ("-S /x -h db1", "--host", "--socket"),
        ("-S /x -P 3306", "--port", "--socket"),
        ("-S /x --protocol tcp", "--protocol", "--socket"),
        ("--protocol socket -h db1", "--host", "--protocol"),
        ("--protocol socket -P 1", "--port", "--protocol"),
        ("--url mysql://db1/?socket=/x", "the host of --url", "the socket of --url"),
        ("--url mysql://localhost:1/?socket=/x", "the port of --url", "the socket of --url"),
        ("--ssl-mode REQUIRED -S /x", "--ssl-mode", "--socket (/x)"),
        ("--ssl-mode REQUIRED", "--ssl-mode", "/tmp/mysql.sock"),
        ("--ssl-mode DISABLED --ssl-ca /c", "--ssl-mode is DISABLED", "--ssl-ca (/c)"),
        ("--ssl-cert /c -h db1", "--ssl-mode", "--ssl-cert"),
        ("-h db1 --ssl-mode VERIFY_CA", "VERIFY_CA", "--ssl-ca"),
        ("-h db1 --ssl-mode REQUIRED --ssl-cert /c", "--ssl-cert (/c)", "--ssl-key"),
        ("-h db1 --ssl-mode REQUIRED --ssl-key /k", "--ssl-key (/k)", "--ssl-cert"),
    ] {
        let error = error(line, &env);
        let text = error.to_string();
        assert!(text.contains(a) && text.contains(b), "{line}: {text}");
    }
    assert!(error("--protocol socket", &world(&[], &[], &[])).hints()[0].contains("-S"));
}

#[test]
fn wrong_values_name_their_source() {
    let file = |text: &'static str| -> Env {
        let files: Files = Box::leak(Box::new([("/etc/my.cnf", 0o600, text)]));
        world(&[], files, &[])
    };
    for (text, a) in [
        ("[client]\nport=x", "/etc/my.cnf:2: port: 'x'"),
        ("[client]\nhost", "/etc/my.cnf:2: host: needs a value"),
        ("[client]\nprotocol=pipe", "/etc/my.cnf:2: protocol: 'pipe'"),
        ("[client]\nssl-mode=on", "/etc/my.cnf:2: ssl-mode: 'on'"),
        ("[client]\nssl=maybe", "/etc/my.cnf:2: ssl: 'maybe'"),
        ("[loadgen]\nsokcet=/x", "/etc/my.cnf:2: sokcet"),
        ("[loadgen]\nconnect-timeout=0", "/etc/my.cnf:2: connect-timeout is 0"),
        ("[client]\nhost=db1:3306", "/etc/my.cnf:2: host is no host: 'db1:3306'"),
    ] {
        let error = error("", &file(text));
        assert!(error.to_string().starts_with(a), "{error}");
    }
    let unknown = error("", &file("[loadgen]\nsokcet=/x"));
    assert!(unknown.hints()[0].contains("socket, protocol"), "{unknown:?}");
    ok("", &file("[client]\nsokcet=/x\nssl-cipher=y\n[loadgen]\nloose-sokcet=/x"));

    let env = world(&["MYSQL_TCP_PORT=http"], &[], &[]);
    assert!(error("", &env).to_string().contains("MYSQL_TCP_PORT: 'http'"));
    let env = world(&[], &[], &[]);
    for (line, a) in [
        ("-h /tmp/x.sock", "--host is a path"),
        ("--connect-timeout 0", "--connect-timeout is 0"),
        ("--host=", "--host is empty"),
        ("--database=", "--database is empty"),
        ("--url mysql://h/?sokcet=/x", "unknown option 'sokcet'"),
        ("--url mysql://h/?user=x", "unknown option 'user'"),
        ("--url mysql://h/?ssl-mode=x", "--url has ssl-mode: 'x'"),
        ("--url pg://u:marker@h/", "--url does not start"),
    ] {
        let error = error(line, &env);
        assert!(error.to_string().contains(a) && !error.render().contains("marker"), "{error}");
    }
    let env = world(&["LOADGEN_URL=mysql://u:marker@h:x/"], &[], &[]);
    let error = error("", &env);
    assert!(error.to_string().starts_with("LOADGEN_URL") && !error.render().contains("marker"));
}

#[test]
fn the_password_and_its_prompt() {
    const ASKS: Files = &[("/etc/my.cnf", 0o600, "[client]\npassword")];
    let env = || world(&["MYSQL_PWD=env"], FILE, &[]);
    let password = |line: &str, env: &Env| {
        let r = ok(line, env);
        (r.target.password.expose().to_owned(), r.wants_prompt)
    };
    assert_eq!(password("--password", &env()), (String::new(), true));
    assert_eq!(password("-p", &env()), (String::new(), true));
    assert_eq!(password("--password=", &env()), (String::new(), false));
    assert_eq!(password("--password-fd 7", &env()), ("from-7".into(), false));
    assert_eq!(password("--url mysql://u:a%40b@h/ -p", &env()), (String::new(), true));
    assert_eq!(password("--url mysql://u:a%40b@h/", &env()), ("a@b".into(), false));
    assert_eq!(password("", &world(&[], ASKS, &[])), (String::new(), true));
    assert_eq!(password("", &world(&[URL], ASKS, &[])), ("url".into(), false));
}

fn mode(line: &str, text: &'static str) -> (SslMode, usize) {
    let files: Files = Box::leak(Box::new([("/etc/my.cnf", 0o600, text)]));
    let r = ok(&format!("-h db1 {line}"), &world(&[], files, &[]));
    (r.target.ssl.mode, r.warnings.len())
}

#[test]
fn encryption_is_off_until_somebody_switches_it_on() {
    use SslMode::{Disabled, Preferred, Required, VerifyCa, VerifyIdentity};
    for (line, text, wanted, warnings) in [
        ("", "", Disabled, 0),
        ("--ssl-mode preferred", "", Preferred, 0),
        ("--ssl-mode VERIFY_CA --ssl-ca /c", "", VerifyCa, 0),
        ("--url mysql://h/?ssl_mode=REQUIRED", "", Required, 0),
        // An option file that changes it is reported.
        ("", "[client]\nssl-mode=REQUIRED", Required, 1),
        ("", "[client]\nssl", Required, 1),
        ("", "[client]\nssl=0", Disabled, 0),
        ("", "[client]\nssl\nskip-ssl", Disabled, 0),
        ("", "[client]\nssl-mode=VERIFY_IDENTITY\nssl\nssl-ca=/c", VerifyIdentity, 1),
        ("", "[client]\nssl_ca=/c\nssl-verify-server-cert", VerifyIdentity, 1),
        (
            "",
            "[client]\nssl-ca=/c\nssl\nssl-verify-server-cert=on\ndisable-ssl-verify-server-cert",
            Required,
            2,
        ),
        ("", "[client]\nssl-verify-server-cert=OFF", Disabled, 0),
        ("", "[client]\nenable-ssl=TRUE", Required, 1),
        ("--ssl-mode DISABLED", "[client]\nssl-mode=REQUIRED", Disabled, 0),
        ("--ssl-mode REQUIRED", "[client]\nssl-mode=DISABLED", Required, 0),
        // Files that are of no use.
        ("", "[client]\nssl-ca=/c\nssl-cert=/d\nssl-key=/e", Disabled, 3),
        ("--ssl-mode REQUIRED --ssl-ca /c", "", Required, 1),
    ] {
        assert_eq!(mode(line, text), (wanted, warnings), "{line} {text}");
    }
    let r = ok("--ssl-mode PREFERRED -S /x", &world(&[], &[], &[]));
    assert_eq!(r.target.ssl, Ssl::default());
    assert!(r.warnings[0].contains("PREFERRED") && r.warnings[0].contains("/x"));
    let files: Files = &[("/etc/my.cnf", 0o600, "[client]\nssl-verify-server-cert")];
    let error = error("-h db1", &world(&[], files, &[]));
    assert!(error.to_string().contains("/etc/my.cnf:2") && error.to_string().contains("--ssl-ca"));
}

#[test]
fn nothing_that_can_be_printed_shows_a_password() {
    let env = world(&["MYSQL_PWD=marker", "LOADGEN_URL=mysql://u:marker@h/"], &[], &[]);
    let a = ConnectionArgs { password: Some(Some(Secret::new("marker"))), ..args("") };
    let r = resolve(&a, &env).unwrap();
    let opts_are_for_the_driver_alone = r.target.opts().unwrap();
    assert_eq!(opts_are_for_the_driver_alone.pass(), Some("marker"));
    let shown = format!("{a:?}{r:?}{:#?}{env:?}{}{:?}", r.target, r.target, r.target.password);
    assert!(!shown.contains("marker"), "{shown}");
}
