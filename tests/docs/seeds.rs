//! benches/results/seeds.md has what scripts/seeds-report prints of every archive beside it.
//!
//! ```sh
//! LOADGEN_BLESS=1 cargo test --test commands seeds    # writes the parts of the page, and its charts
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::root;

/// Upper limit on the bytes of all archives.
const ARCHIVES_MAX: u64 = 3_000_000;
/// Begins the line before a part of the page, up to the archive's name.
const MARK: &str = "<!-- ";
/// Ends that line.
const PRINTED: &str = ": scripts/seeds-report -->";

/// Lists the names of a directory's files that end so, without that end.
fn list_names(dir: &Path, end: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    let files = entries.map(|entry| entry.expect("an entry").file_name());
    files.filter_map(|file| Some(file.to_str()?.strip_suffix(end)?.to_owned())).collect()
}

/// Runs the script on one archive of a directory; its chart goes to `charts`.
fn print_part(archives: &Path, name: &str, charts: &Path) -> String {
    let output = Command::new(root().join("scripts/seeds-report"))
        .arg("--charts")
        .args([charts, Path::new(name)])
        .env("SEEDS", archives)
        .env("LOADGEN", env!("CARGO_BIN_EXE_loadgen"))
        .output()
        .expect("the script runs");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Finds the part of a page between the marks of an archive, with both.
fn find_part<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let end = format!("<!-- end of {name} -->\n");
    let from = page.find(&format!("{MARK}{name}{PRINTED}\n"))?;
    let len = page[from..].find(&end)? + end.len();
    Some(&page[from..from + len])
}

/// Lists the names of parts that a page has.
fn list_parts(page: &str) -> BTreeSet<String> {
    let marks = page.lines().filter_map(|line| line.strip_prefix(MARK)?.strip_suffix(PRINTED));
    marks.map(str::to_owned).collect()
}

/// Writes a part over the page's own, or at its end.
fn write_part(page: &str, name: &str, printed: &str) -> String {
    match find_part(page, name) {
        Some(old) => page.replacen(old, printed, 1),
        None => format!("{page}\n## {name}\n\n{printed}"),
    }
}

/// Finds the archives whose tables the page lacks, has otherwise, or has without the archive.
fn find_stale(archives: &Path, page: &str) -> BTreeSet<String> {
    let there = list_names(archives, ".tar.xz");
    let charts = tempfile::tempdir().expect("a directory");
    let differs = |name: &&String| {
        let printed = print_part(archives, name, charts.path());
        find_part(page, name) != Some(printed.as_str())
    };
    let differing = there.iter().filter(differs).cloned();
    differing.chain(list_parts(page).difference(&there).cloned()).collect()
}

#[test]
fn the_page_has_the_tables_of_every_archive() {
    let (archives, file) =
        (root().join("benches/results/seeds"), root().join("benches/results/seeds.md"));
    let mut page = fs::read_to_string(&file).expect("a text");
    if std::env::var_os("LOADGEN_BLESS").is_some() {
        for name in list_names(&archives, ".tar.xz") {
            page = write_part(&page, &name, &print_part(&archives, &name, &archives));
        }
        fs::write(&file, &page).expect("written");
    }
    assert_eq!(find_stale(&archives, &page), BTreeSet::new(), "LOADGEN_BLESS=1 writes their parts");
    let charts = tempfile::tempdir().expect("a directory");
    for name in list_names(&archives, ".svg") {
        print_part(&archives, &name, charts.path());
        let read = |dir: &Path| fs::read_to_string(dir.join(format!("{name}.svg"))).ok();
        assert_eq!(read(&archives), read(charts.path()), "{name}: LOADGEN_BLESS=1 draws its chart");
    }
    let sizes = list_names(&archives, ".tar.xz").into_iter().map(|name| {
        let archive = archives.join(format!("{name}.tar.xz"));
        fs::metadata(archive).expect("a file").len()
    });
    assert!(sizes.sum::<u64>() <= ARCHIVES_MAX, "more than {ARCHIVES_MAX} bytes of archives");
}

#[test]
fn an_archive_without_its_tables_in_the_page_is_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let name = "000-fixture";
    fs::create_dir(dir.path().join(name)).expect("a directory");
    let summary = root().join("tests/fixtures/summary.json");
    fs::copy(summary, dir.path().join(name).join("summary.json")).expect("copied");
    fs::write(dir.path().join("000-fixture.report"), "--notes\n--layout list\n--format svg\n")
        .expect("written");
    let packed = Command::new("tar")
        .args(["cJf", "000-fixture.tar.xz", name])
        .current_dir(dir.path())
        .status();
    assert!(packed.expect("tar runs").success(), "tar and xz pack it");

    let printed = print_part(dir.path(), name, dir.path());
    assert!(dir.path().join("000-fixture.svg").exists(), "the chart is written");
    let page = write_part("# A page\n", name, &printed);
    let found = |page: &str| Vec::from_iter(find_stale(dir.path(), page));
    assert_eq!(found("# A page\n"), [name]);
    assert_eq!(found(&page), Vec::<String>::new());
    assert_eq!(found(&page.replacen("clients", "client", 1)), [name]);
    assert_eq!(write_part(&page.replacen("clients", "client", 1), name, &printed), page);
    let gone = format!("{MARK}001-gone{PRINTED}\n");
    assert_eq!(found(&(page + &gone)), ["001-gone"]);
}
