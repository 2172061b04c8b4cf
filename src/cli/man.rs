//! `loadgen man DIR`: writes manual pages from the same commands as the help.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Command;
use clap_mangen::Man;

use super::help::examples;
use crate::error::{Error, Result};

#[derive(clap::Args, Debug, Clone)]
pub(super) struct ManArgs {
    /// The directory, which is made where it is not there
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl ManArgs {
    pub(super) fn write(self, mut whole: Command) -> Result<()> {
        whole.build();
        let dir = self.dir;
        let failed = |e: io::Error| Error::failed(format!("{}: {e}", dir.display()));
        fs::create_dir_all(&dir).map_err(failed)?;
        let commands = whole.get_subcommands().filter(|command| !command.is_hide_set());
        for command in commands.chain([&whole]) {
            let title = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
            let text = page(command, &title).map_err(failed)?;
            let file = dir.join(format!("{title}.1"));
            fs::write(&file, text)
                .map_err(|e| Error::failed(format!("{}: {e}", file.display())))?;
        }
        Ok(())
    }
}

fn page(command: &Command, title: &str) -> io::Result<Vec<u8>> {
    let source = concat!("loadgen ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).title(title.to_uppercase()).source(source);
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    if let Some(examples) = examples(command.get_name()) {
        let lines = examples.map(|line| format!("{}\n", line.trim().replace('\\', "\\e")));
        write!(text, ".SH EXAMPLES\n.nf\n{}.fi\n", lines.concat())?;
    }
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if !after.is_empty() {
        // Lines that begin with a dot or an apostrophe would be requests to troff.
        let set = |line: &str| {
            let order = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
            let (begin, end) = if line.starts_with(' ') { (".nf\n", ".fi\n") } else { ("", "") };
            format!("{begin}{order}{line}\n{end}")
        };
        // Prose is filled; indented lines stay as they are.
        let lines: String = after.replace('\\', "\\e").lines().map(set).collect();
        write!(text, ".SH NOTES\n{lines}")?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_examples_and_all_of_its_flags() {
        let dir = tempfile::tempdir().expect("a directory");
        let args = ManArgs { dir: dir.path().join("man1") };
        args.write(crate::cli::command_for(None, true).0).expect("written");
        let read = |name: &str| fs::read_to_string(dir.path().join("man1").join(name)).expect(name);
        let whole = crate::cli::command_for(None, true).0;
        assert!(read("loadgen.1").contains("loadgen\\-point\\-select(1)"));
        for verb in whole.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let text = read(&format!("loadgen-{}.1", verb.get_name()));
            assert!(text.contains(".SH EXAMPLES\n.nf\nloadgen "), "{text}");
            for flag in verb.get_arguments().filter_map(|arg| arg.get_long()) {
                let flag = format!("\\-\\-{}", flag.replace('-', "\\-"));
                assert!(text.contains(&flag), "{flag}: {text}");
            }
        }
    }
}
