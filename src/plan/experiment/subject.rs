//! The labels: what `base` inherits, and a label for each program.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::scale::{self, Scale};
use super::{Existing, Overrides, Private, Source, Subject};
use crate::error::{Error, Result};
use crate::plan::profile::{Data, Expect, Profile, Sandbox, Server};

/// How long a command that starts or stops a server may take.
const WITHIN: Duration = Duration::from_mins(10);

pub(super) fn subjects(profile: &Profile, overrides: &Overrides) -> Result<Vec<Subject>> {
    let mut whole: Vec<Server> = Vec::new();
    for server in &profile.servers {
        let own = server.clone();
        whole.push(match &own.base {
            Some(name) => {
                let base = whole.iter().find(|server| server.name() == name);
                merged(base.expect("the profile was checked").clone(), own)
            }
            None => own,
        });
    }
    let programs = &overrides.programs;
    if !programs.is_empty() && !whole.iter().any(is_open) {
        let message = "--program: every sandbox of this profile names its own";
        return Err(Error::usage(message).hint("take `program` out of [server.sandbox]"));
    }
    let mut subjects = Vec::new();
    // A program is taken through all its variants before the next.
    for server in whole.iter().filter(|server| programs.is_empty() || !is_open(server)) {
        subjects.push(subject(profile, server, None, overrides.scale));
    }
    for program in programs {
        for server in whole.iter().filter(|server| is_open(server)) {
            subjects.push(subject(profile, server, Some(program), overrides.scale));
        }
    }
    for (at, subject) in subjects.iter().enumerate() {
        if subjects.iter().take(at).any(|other| other.label == subject.label) {
            return Err(Error::usage(format!("two servers have the label '{}'", subject.label))
                .hint("give each --program a name of its own"));
        }
    }
    Ok(subjects)
}

/// Whether a sandbox takes the programs of the command line.
fn is_open(server: &Server) -> bool {
    server.sandbox.as_ref().is_some_and(|sandbox| sandbox.program.is_none())
}

/// A server with what another one says in its stead.
fn merged(base: Server, own: Server) -> Server {
    let elsewhere = own.url.is_some() || own.defaults_file.is_some();
    let private = own.sandbox.is_some();
    let sandbox = match (base.sandbox, own.sandbox) {
        _ if elsewhere => None,
        (Some(base), Some(own)) => Some(merged_sandbox(base, own)),
        (base, own) => own.or(base),
    };
    let keep = !elsewhere && !private;
    Server {
        label: own.label,
        base: own.base,
        note: own.note.or(base.note),
        url: if keep { base.url } else { own.url },
        defaults_file: if keep { base.defaults_file } else { own.defaults_file },
        sandbox,
        start: own.start.or(base.start),
        stop: own.stop.or(base.stop),
        reset: own.reset.or(base.reset),
        within: own.within.or(base.within),
        probe: own.probe.or(base.probe),
        expect: Expect {
            variables: base.expect.variables.into_iter().chain(own.expect.variables).collect(),
            database: own.expect.database.or(base.expect.database),
        },
    }
}

fn merged_sandbox(base: Sandbox, own: Sandbox) -> Sandbox {
    let (mut options, mut scaled) = (base.options, base.scaled_options);
    // An option is in one of the two.
    let named = |name: &str| name.replace('-', "_");
    let said = |name: &String| {
        own.options.keys().chain(own.scaled_options.keys()).any(|own| named(own) == named(name))
    };
    options.retain(|name, _| !said(name));
    scaled.retain(|name, _| !said(name));
    options.extend(own.options);
    scaled.extend(own.scaled_options);
    Sandbox {
        program: own.program.or(base.program),
        options,
        scaled_options: scaled,
        data: own.data.or(base.data),
    }
}

fn subject(
    profile: &Profile,
    server: &Server,
    program: Option<&(String, PathBuf)>,
    scale: Scale,
) -> Subject {
    let with_program = |name: &str| match (program, name) {
        (None, "") => profile.name.clone(),
        (None, name) => name.to_owned(),
        (Some((program, _)), "") => program.clone(),
        (Some((program, _)), name) => format!("{program}+{name}"),
    };
    let words = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
    let source = match &server.sandbox {
        Some(sandbox) => Source::Sandbox(private(sandbox, program, scale)),
        None => Source::Existing(Existing {
            url: server.url.clone(),
            defaults_file: server.defaults_file.clone(),
            start: words(&server.start),
            stop: words(&server.stop),
            reset: words(&server.reset),
            within: server.within.map_or(WITHIN, |within| within.0),
        }),
    };
    Subject {
        label: with_program(server.name()),
        name: server.name().to_owned(),
        base: server.base.as_ref().map(|base| with_program(base)),
        note: server.note.clone(),
        source,
        probe: words(&server.probe),
        expect: vec![profile.expect.clone(), server.expect.clone()],
    }
}

fn private(sandbox: &Sandbox, program: Option<&(String, PathBuf)>, scale: Scale) -> Private {
    let mut options: BTreeMap<String, Option<String>> = BTreeMap::new();
    for (name, value) in &sandbox.options {
        options.insert(name.clone(), value.0.clone());
    }
    for (name, value) in &sandbox.scaled_options {
        let size = scale::bytes(value).expect("the profile was checked");
        options.insert(name.clone(), Some(scale.size(name, size).to_string()));
    }
    // Directories of one program are of no use to another, and a trial at a small scale must not
    // drop what took hours to fill.
    let own = |dir: &PathBuf| {
        let mut dir = dir.clone();
        if !scale.is_full() {
            dir.as_mut_os_string().push(format!("-x{}", scale.factor()));
        }
        match program {
            Some((name, _)) if sandbox.program.is_none() => dir.join(name),
            _ => dir.join("server"),
        }
    };
    let data = match sandbox.data.clone().unwrap_or_default() {
        Data::Keep(dir) => Data::Keep(own(&dir)),
        Data::CopyOf(dir) => Data::CopyOf(own(&dir)),
        data => data,
    };
    Private {
        program: sandbox.program.clone().or_else(|| program.map(|(_, path)| path.clone())),
        options: options.into_iter().collect(),
        data,
    }
}
