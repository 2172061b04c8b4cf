//! What the tables of the file may hold, each looked at by itself.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::Spanned;

use super::locate::Fault;
use super::value::{Count, Span};
use super::{Data, Expect, Sandbox, Server, Tables, Values};
use crate::plan::experiment::scale;
use crate::plan::limits::PHASE_MAX;
use crate::plan::timed::SuiteSpec;
use crate::plan::{units, value as names};
use crate::workload::table::{ROWS_MAX, TABLES_MAX};

/// A value, or where it is wrong.
pub(super) type Checked = std::result::Result<(), Fault>;

/// Connections that fill.
const JOBS_MAX: u32 = 1024;

pub(super) fn source(server: &Server, place: &Range<usize>) -> Checked {
    let fault = |what: &str| Err(Fault::new(place.clone(), what));
    let (there, private) =
        (server.url.is_some() || server.defaults_file.is_some(), server.sandbox.is_some());
    if there && private {
        return fault("a server is there (url, defaults_file) or a sandbox, not both");
    }
    if !there && !private && server.base.is_none() {
        return fault("a server needs url, defaults_file, sandbox or base");
    }
    if private && (server.start.is_some() || server.stop.is_some() || server.reset.is_some()) {
        return fault(
            "loadgen starts and stops a sandbox itself: start, stop and reset are for url",
        );
    }
    if server.start.is_some() != server.stop.is_some() && server.base.is_none() {
        return fault("start and stop go together");
    }
    for (words_of, name) in [
        (&server.start, "start"),
        (&server.stop, "stop"),
        (&server.reset, "reset"),
        (&server.probe, "probe"),
    ] {
        words(words_of.as_ref(), name)?;
    }
    if let Some(zero) = server.within.as_ref().filter(|within| within.as_ref().0.is_zero()) {
        return Err(Fault::new(zero.span(), "within 0 no command ends"));
    }
    phase(server.within.as_ref())?;
    server.sandbox.as_ref().map_or(Ok(()), sandbox_of)
}

fn sandbox_of(sandbox: &Sandbox) -> Checked {
    let plain = |name: &str| name.replace('-', "_");
    for (name, value) in &sandbox.scaled_options {
        if scale::bytes(value.as_ref()).is_none() {
            let what = format!("{name} is no size: a number, then nothing or K, M, G, T");
            return Err(Fault::new(value.span(), what));
        }
        if sandbox.options.keys().any(|other| plain(other) == plain(name)) {
            let what = format!("{name} is among options, too: it has one value");
            return Err(Fault::new(value.span(), what));
        }
    }
    match &sandbox.data {
        Some(data) => match data.as_ref() {
            Data::Keep(dir) | Data::CopyOf(dir) if dir.as_os_str().is_empty() => {
                Err(Fault::new(data.span(), "a directory has a name"))
            }
            _ => Ok(()),
        },
        None => Ok(()),
    }
}

pub(super) fn tables(tables: &Tables) -> Checked {
    count(tables.count.as_ref(), u64::from(TABLES_MAX), "tables")?;
    count(tables.rows.as_ref(), ROWS_MAX, "rows")?;
    charset(tables.charset.as_ref())?;
    within(tables.jobs.as_ref(), JOBS_MAX, "jobs")
}

pub(super) fn expect(expect: &Expect) -> Checked {
    let none = |values: &Values| matches!(values, Values::Any(values) if values.is_empty());
    match expect.variables.iter().find(|(_, values)| none(values.as_ref())) {
        Some((name, values)) => {
            Err(Fault::new(values.span(), format!("{name}: one of no values never holds")))
        }
        None => Ok(()),
    }
}

pub(super) fn suite(place: &Spanned<SuiteSpec>) -> Checked {
    let suite = place.as_ref();
    let fault = |what: String| Err(Fault::new(place.span(), what));
    if names::label(&suite.name).is_err() {
        return fault("a suite has a name of one line".to_owned());
    }
    if suite.tests.is_empty() {
        return fault(format!("suite {} has no tests", suite.name));
    }
    let mut known = BTreeSet::new();
    for test in &suite.tests {
        if names::label(&test.name).is_err() {
            return fault("a test has a name of one line".to_owned());
        }
        if test.run.first().is_none_or(String::is_empty) {
            return fault(format!("test {}: run is a program and its arguments", test.name));
        }
        if !known.insert(&test.name) {
            return fault(format!("test {} is there twice", test.name));
        }
    }
    Ok(())
}

pub(super) fn phase(length: Option<&Spanned<Span>>) -> Checked {
    match length {
        Some(length) if length.as_ref().0 > PHASE_MAX => {
            Err(Fault::new(length.span(), "this is longer than a year"))
        }
        _ => Ok(()),
    }
}

pub(super) fn charset(name: Option<&Spanned<String>>) -> Checked {
    let Some(name) = name else { return Ok(()) };
    let checked = names::charset(name.as_ref());
    checked.map(|_| ()).map_err(|what| Fault::new(name.span(), what))
}

pub(super) fn within(given: Option<&Spanned<u32>>, max: u32, what: &str) -> Checked {
    match given {
        Some(n) if !(1..=max).contains(n.as_ref()) => {
            Err(Fault::new(n.span(), format!("{what} is within 1 to {max}")))
        }
        _ => Ok(()),
    }
}

/// Program and arguments: at least a program.
pub(super) fn words(list: Option<&Spanned<Vec<String>>>, name: &str) -> Checked {
    match list {
        Some(list) if list.as_ref().first().is_none_or(String::is_empty) => {
            Err(Fault::new(list.span(), format!("{name} is a program and its arguments")))
        }
        _ => Ok(()),
    }
}

pub(super) fn count(given: Option<&Spanned<Count>>, max: u64, what: &str) -> Checked {
    match given {
        Some(n) if !(1..=max).contains(&n.as_ref().0) => {
            let most = units::count(max);
            Err(Fault::new(n.span(), format!("{} {what}: 1 to {most}", n.as_ref().0)))
        }
        _ => Ok(()),
    }
}
