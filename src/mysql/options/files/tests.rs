use super::*;
use crate::mysql::options::env::fake::{self, Files};
use proptest::prelude::*;

fn option(line: &str) -> (String, Option<String>) {
    match parse(line) {
        Ok(Line::Option { key, value }) => (key, value),
        other => panic!("{line}: {other:?}"),
    }
}

fn value(line: &str) -> String {
    option(line).1.unwrap_or_else(|| panic!("{line} has no value"))
}

/// `group.key=value` of what is read, and the warnings.
fn read_with(choice: &ConnectionArgs, files: Files) -> Result<(Vec<String>, Vec<String>)> {
    let read = read(choice, &fake::env(&[("HOME", "/home/me")], files, &[]))?;
    let shown = read.settings.into_iter().map(|s| {
        let loose = if s.loose { "loose " } else { "" };
        let value = s.value.map(|v| format!("={v}")).unwrap_or_default();
        format!("{loose}{:?}.{}{value}", s.group, s.key).to_lowercase()
    });
    Ok((shown.collect(), read.warnings))
}

fn settings(files: Files) -> Vec<String> {
    read_with(&ConnectionArgs::default(), files).unwrap().0
}

fn error(choice: &ConnectionArgs, files: Files) -> String {
    read_with(choice, files).unwrap_err().to_string()
}

#[test]
fn lines_are_what_mysql_takes_them_for() {
    for line in ["", "  ", "# x", " ;x = y", "\t#", "\u{b}"] {
        assert_eq!(parse(line), Ok(Line::Nothing), "{line:?}");
    }
    assert_eq!(parse("[client]"), Ok(Line::Group("client".into())));
    assert_eq!(parse(" [client ] trailing"), Ok(Line::Group("client".into())));
    assert!(parse("[client").is_err());
    assert_eq!(parse("!include /a b.cnf "), Ok(Line::Include("/a b.cnf".into())));
    assert_eq!(parse("! includedir\t/d"), Ok(Line::IncludeDir("/d".into())));
    assert!(parse("!include").is_err() && parse("!includedir  ").is_err());
    assert_eq!(parse("!includes /d"), Ok(Line::Directive("includes /d".into())));
    assert_eq!(option("ssl"), ("ssl".into(), None));
    assert_eq!(option("password ="), ("password".into(), Some(String::new())));
    assert_eq!(option(" user\t=  me  # note"), ("user".into(), Some("me".into())));
    assert_eq!(option("user=a=b"), ("user".into(), Some("a=b".into())));
}

#[test]
fn comments_quotes_and_escapes() {
    for (line, wanted) in [
        ("k = a;b", "a;b"),
        ("k = a#b", "a"),
        ("k = 'a#b' # c", "a#b"),
        ("k = \"a'#b\"", "a'#b"),
        (r##"k = "a\"#b""##, "a\"#b"),
        ("k = it's # not a comment", "it's # not a comment"),
        (r"k = a\#b", r"a\"),
        ("k = 'a'b'", "a'b"),
        ("k = 'a\"", "'a\""),
        ("k = '", "'"),
        ("k = ''", ""),
        ("k = ' a '", " a "),
        (r"k = a\sb\tc\nd\re\bf\\g", "a b\tc\nd\re\u{8}f\\g"),
        (r"k = C:\dir\x", r"C:\dir\x"),
        (r"k = a\", r"a\"),
        (r"k = \'a\'", "'a'"),
        ("k = ü€", "ü€"),
    ] {
        assert_eq!(value(line), wanted, "{line}");
    }
}

#[test]
fn groups_keys_and_prefixes() {
    let read = settings(&[(
        "/etc/my.cnf",
        0o600,
        "[Mysqld]\nport=1\n[CLIENT]\nport=2\nssl_ca=/x\r\nssl\n[client-server]\nport=3\n\
         [loadgen]\nloose_user=me\nloose-odd\n[client]\nport=4",
    )]);
    let wanted = [
        "client.port=2",
        "client.ssl-ca=/x",
        "client.ssl",
        "loose loadgen.user=me",
        "loose loadgen.odd",
        "client.port=4",
    ];
    assert_eq!(read, wanted);
}

const USUAL: Files = &[
    ("/etc/my.cnf", 0o644, "[client]\nport=1"),
    ("/etc/mysql/my.cnf", 0o644, "[client]\nport=2"),
    ("/home/me/.my.cnf", 0o600, "[client]\nport=4"),
    ("/x.cnf", 0o600, "[loadgen]\nport=3"),
];

#[test]
fn files_come_in_mysqls_order() {
    assert_eq!(settings(USUAL), ["client.port=1", "client.port=2", "client.port=4"]);
    let x = || Some(PathBuf::from("/x.cnf"));
    let extra = ConnectionArgs { defaults_extra_file: x(), ..ConnectionArgs::default() };
    let (read, _) = read_with(&extra, USUAL).unwrap();
    assert_eq!(read, ["client.port=1", "client.port=2", "loadgen.port=3", "client.port=4"]);
    let only = ConnectionArgs { defaults_file: x(), ..ConnectionArgs::default() };
    assert_eq!(read_with(&only, USUAL).unwrap().0, ["loadgen.port=3"]);
    let none = ConnectionArgs { no_defaults: true, ..ConnectionArgs::default() };
    assert!(read_with(&none, USUAL).unwrap().0.is_empty());
    assert!(settings(&[]).is_empty());
}

#[test]
fn files_that_were_asked_for_must_be_there() {
    let x = || Some(PathBuf::from("/none.cnf"));
    let error_of = |choice| error(&choice, USUAL);
    assert!(
        error_of(ConnectionArgs { defaults_file: x(), ..ConnectionArgs::default() })
            .contains("--defaults-file /none.cnf")
    );
    let extra = error_of(ConnectionArgs { defaults_extra_file: x(), ..ConnectionArgs::default() });
    assert!(extra.contains("--defaults-extra-file /none.cnf"), "{extra}");
}

#[test]
fn errors_name_file_and_line() {
    let choice = ConnectionArgs::default();
    let of = |files| error(&choice, files);
    assert_eq!(
        of(&[("/etc/my.cnf", 0o644, "\nport=1")]),
        "/etc/my.cnf:2: an option before any [group]"
    );
    assert!(of(&[("/etc/my.cnf", 0o644, "[client]\n[x")]).starts_with("/etc/my.cnf:2:"));
    let missing = of(&[("/etc/my.cnf", 0o644, "!includedir /none")]);
    assert!(missing.starts_with("/etc/my.cnf:1: !includedir /none"), "{missing}");
    let bytes: Files = &[("/etc/my.cnf", 0o644, "[mysqld]\na=\u{fffd}\n[client]\na=\u{fffd}")];
    assert_eq!(of(bytes), "/etc/my.cnf:4: is no UTF-8");
}

#[test]
fn includes_are_read_in_place() {
    let files: Files = &[
        (
            "/etc/my.cnf",
            0o644,
            "[client]\nport=1\n!includedir /d/\n!include /one.cnf\nport=9\n!include /none.cnf",
        ),
        ("/d/", 0o755, "b.cnf a.cnf c.cnf.bak"),
        ("/d/a.cnf", 0o644, "[client]\nport=2"),
        ("/d/b.cnf", 0o644, "[loadgen]\nport=3"),
        ("/d/c.cnf.bak", 0o644, "[client]\nport=4"),
        ("/one.cnf", 0o644, "[loadgen]\nport=5"),
    ];
    let (settings, warnings) = read_with(&ConnectionArgs::default(), files).unwrap();
    // The group of the including file goes on after the include.
    let wanted =
        ["client.port=1", "client.port=2", "loadgen.port=3", "loadgen.port=5", "client.port=9"];
    assert_eq!(settings, wanted);
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].starts_with("/etc/my.cnf:6: !include /none.cnf is ignored"));
}

#[test]
fn circles_and_depths_end() {
    let circle: Files = &[
        ("/etc/my.cnf", 0o644, "!include /a.cnf\n[client]\nport=1"),
        ("/a.cnf", 0o644, "!include /etc/my.cnf\n[client]\nport=2"),
    ];
    let (settings, warnings) = read_with(&ConnectionArgs::default(), circle).unwrap();
    assert_eq!(settings, ["client.port=2", "client.port=1"]);
    assert!(warnings[0].starts_with("/a.cnf:1:"), "{warnings:?}");

    // The same file under ever new names.
    let env = |text: &'static str| {
        let mut env = fake::env(&[], &[], &[]);
        env.read = Box::new(move |path| {
            let text = text.replace("SELF", &path.to_string_lossy());
            Ok(Text { bytes: text.into_bytes(), mode: 0o600, regular: true })
        });
        env
    };
    let warnings = read(&ConnectionArgs::default(), &env("!include SELFx")).unwrap().warnings;
    assert!(warnings.iter().all(|w| w.contains("10 files deep")), "{warnings:?}");
    let many = "!include SELFa\n!include SELFb\n!include SELFc";
    let error = read(&ConnectionArgs::default(), &env(many)).err().unwrap();
    assert!(error.to_string().contains("1 MiB of option files"), "{error}");

    // A large one, several times.
    let mut env = fake::env(&[], &[], &[]);
    env.read = Box::new(|path| {
        let large = "[client]\n".to_owned() + &"a\n".repeat(400_000);
        let text = if path.ends_with("my.cnf") { "!include /x\n!include /y".into() } else { large };
        Ok(Text { bytes: text.into_bytes(), mode: 0o600, regular: true })
    });
    let error = read(&ConnectionArgs::default(), &env).err().unwrap();
    assert!(error.to_string().contains("/y: more than 1 MiB"), "{error}");
}

#[test]
fn permissions_count() {
    let files: Files = &[
        ("/etc/my.cnf", 0o646, "[client]\nport=1"),
        ("/etc/mysql/my.cnf", 0o644, "[client]\npassword=marker\n[mysqld]\npassword=y"),
        ("/home/me/.my.cnf", 0, ""),
    ];
    let (settings, warnings) = read_with(&ConnectionArgs::default(), files).unwrap();
    assert_eq!(settings, ["client.password=marker"]);
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings[0].contains("/etc/my.cnf is ignored: anybody may write it"));
    assert!(warnings[1].starts_with("/etc/mysql/my.cnf:2: anybody may read the password"));
    assert!(warnings[2].contains("/home/me/.my.cnf is ignored"));
    assert!(!warnings.concat().contains("marker"));
    let closed: Files = &[("/etc/my.cnf", 0o640, "[client]\npassword=x\npassword=")];
    assert!(read_with(&ConnectionArgs::default(), closed).unwrap().1.is_empty());
}

fn quoted(value: &str) -> String {
    let mut out = String::from("\"");
    for c in value.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '"' | '\\' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out + "\""
}

proptest! {
    #[test]
    fn what_is_quoted_reads_back(text in "[ -~\n\t\r\u{8}ü'\"#;\\\\=]{0,40}", comment in "( *#.*)?") {
        prop_assert_eq!(value(&format!("key = {}{comment}", quoted(&text))), text);
    }

    #[test]
    fn plain_values_read_back(text in "[A-Za-z0-9_./:@%+=-]{1,40}") {
        prop_assert_eq!(value(&format!("key={text}")), text);
    }

    #[test]
    fn no_line_panics(line in "\\PC{0,60}", dense in "[\\[\\]!#;'\"\\\\= a\u{b}]{0,30}") {
        let _ = (parse(&line), parse(&dense));
    }

    #[test]
    fn no_file_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut env = fake::env(&[], &[], &[]);
        env.read = Box::new(move |_| Ok(Text { bytes: bytes.clone(), mode: 0o600, regular: true }));
        let _ = read(&ConnectionArgs::default(), &env);
    }
}
