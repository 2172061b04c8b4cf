//! Data directories that outlive a sandbox: prepared once, measured in (`keep`) or copied for each
//! start (`copy_of`). A mark beside the data says what is in it, and that it is loadgen's.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The file with the mark; the data is beside it in `data`.
const MARK: &str = "loadgen-data.json";
const FORM: &str = "loadgen.data/1";

/// What a directory holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    form: String,
    /// `--version` of the program that made it; empty until a server ran in it.
    version: String,
    /// Tables that are in it, complete.
    prepared: Vec<String>,
    /// Runs that wrote to them.
    written_by: Vec<String>,
}

/// A directory for data.
#[derive(Debug)]
pub(super) struct KeptData {
    dir: PathBuf,
    mark: Mark,
}

impl KeptData {
    /// Takes a directory: a new or empty one, or one that loadgen has made.
    ///
    /// # Errors
    ///
    /// Usage: it is somebody else's, or cannot be made.
    pub(super) fn open(dir: &Path) -> Result<KeptData> {
        let failed = |e: std::io::Error| Error::usage(format!("{}: {e}", dir.display()));
        fs::create_dir_all(dir).map_err(failed)?;
        // The server is started elsewhere.
        let dir = fs::canonicalize(dir).map_err(failed)?;
        let shown = dir.display();
        let mark = match fs::read(dir.join(MARK)) {
            Ok(text) => match serde_json::from_slice::<Mark>(&text) {
                Ok(mark) if mark.form == FORM => mark,
                _ => {
                    return Err(Error::usage(format!(
                        "{shown}: {MARK} is damaged or of another form"
                    ))
                    .hint("remove the directory, or name another"));
                }
            },
            Err(e) if e.kind() == ErrorKind::NotFound => {
                if fs::read_dir(&dir).map_err(failed)?.next().is_some() {
                    return Err(Error::usage(format!(
                        "{shown} is not empty, and loadgen did not make it"
                    ))
                    .hint("name a new directory for data"));
                }
                Mark { form: FORM.to_owned(), ..Mark::default() }
            }
            Err(e) => return Err(failed(e)),
        };
        let kept = KeptData { dir, mark };
        kept.write()?;
        Ok(kept)
    }

    /// The data directory.
    pub(super) fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The version whose data it is; none before the first start.
    pub(super) fn version(&self) -> Option<&str> {
        (!self.mark.version.is_empty()).then_some(self.mark.version.as_str())
    }

    /// Clears the way for a first start: what an interrupted one left is no data.
    pub(super) fn clear(&self) -> Result<()> {
        match fs::remove_dir_all(self.data()) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                Err(Error::failed(format!("{}: {e}", self.data().display())))
            }
            _ => Ok(()),
        }
    }

    /// Whether these tables are complete in it.
    pub(super) fn holds(&self, tables: &str) -> bool {
        self.mark.prepared.iter().any(|prepared| prepared == tables)
    }

    /// Runs that wrote to its tables since they were made.
    pub(super) fn written_by(&self) -> &[String] {
        &self.mark.written_by
    }

    /// A server of this version runs in it.
    pub(super) fn used_by(&mut self, version: &str) -> Result<()> {
        version.clone_into(&mut self.mark.version);
        self.write()
    }

    /// These tables are in it now, and no others of their kind, which is the first word.
    pub(super) fn add(&mut self, tables: &str) -> Result<()> {
        let kind = |text: &str| text.split(' ').next().map(str::to_owned);
        self.mark.prepared.retain(|known| kind(known) != kind(tables));
        self.mark.prepared.push(tables.to_owned());
        self.write()
    }

    /// This run is about to write.
    pub(super) fn writes(&mut self, title: &str) -> Result<()> {
        if !self.mark.written_by.iter().any(|known| known == title) {
            self.mark.written_by.push(title.to_owned());
        }
        self.write()
    }

    /// All tables were made anew.
    pub(super) fn renewed(&mut self) -> Result<()> {
        self.mark.written_by.clear();
        self.write()
    }

    /// Whole or not at all.
    fn write(&self) -> Result<()> {
        let failed = |e: std::io::Error| Error::failed(format!("{}: {e}", self.dir.display()));
        let mut text = serde_json::to_string_pretty(&self.mark).expect("plain fields have JSON");
        text.push('\n');
        let file = tempfile::NamedTempFile::new_in(&self.dir).map_err(failed)?;
        fs::write(file.path(), text).map_err(failed)?;
        file.persist(self.dir.join(MARK)).map(|_| ()).map_err(|e| failed(e.error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_remembers_what_is_in_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = dir.path().join("a/b");
        let mut kept = KeptData::open(&place).expect("new");
        assert_eq!(kept.version(), None);
        kept.used_by("8.0.33").expect("written");
        kept.add("sbtest 8 x 100").expect("written");
        kept.writes("update-index").expect("written");
        let mut again = KeptData::open(&place).expect("loadgen's");
        assert_eq!(again.version(), Some("8.0.33"));
        assert!(again.holds("sbtest 8 x 100") && !again.holds("sbtest 8 x 200"));
        again.add("sbtest 8 x 200").expect("written");
        again.add("bulk 1 x 0").expect("written");
        assert!(again.holds("sbtest 8 x 200") && !again.holds("sbtest 8 x 100"));
        assert_eq!(again.written_by(), ["update-index"]);
        again.renewed().expect("written");
        assert!(KeptData::open(&place).expect("loadgen's").written_by().is_empty());
    }

    #[test]
    fn somebody_elses_directory_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("ibdata1"), "").expect("written");
        let error = KeptData::open(dir.path()).expect_err("not ours");
        assert!(error.to_string().contains("did not make it"), "{error}");
        fs::write(dir.path().join(MARK), "{}").expect("written");
        assert!(KeptData::open(dir.path()).is_err_and(|e| e.to_string().contains("damaged")));
    }
}
