//! The places of scripts, and the stock ones of sysbench, known by the checksum of their text without the first
//! line, which packagers change.

use std::ffi::OsString;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::settings::Test;

/// The test of 0.4 and 0.5; without a path it is compiled into 0.4.
pub(super) const OLD: &str = "oltp";
/// The module of the OLTP scripts, and that of 0.5's.
const COMMON: &str = "oltp_common";
const OLD_COMMON: &str = "common";
const BULK: &str = "bulk_insert";

/// Stock scripts, each with its test and the first 16 hexadecimal digits of SHA-256 of its texts: those of sysbench
/// 1.0.15 to 1.0.20, and of 0.5 as it was released and as 1.0 kept it.
pub(super) const STOCK: [(&str, Option<Test>, &[&str]); 14] = [
    (BULK, Some(Test::BulkInsert), &["aa303c46d71f2200"]),
    (COMMON, Some(Test::Common), &["2a9c225ce02d8ab5"]),
    ("oltp_delete", Some(Test::Delete), &["0f66a3cc65472696"]),
    ("oltp_insert", Some(Test::Insert), &["41e948b4b5104c38"]),
    ("oltp_point_select", Some(Test::PointSelect), &["a8df447935502a9c"]),
    ("oltp_read_only", Some(Test::ReadOnly), &["2e85a293465743ec"]),
    ("oltp_read_write", Some(Test::ReadWrite), &["7896a91b452a24e7"]),
    ("oltp_update_index", Some(Test::UpdateIndex), &["ee08292a90b002de"]),
    ("oltp_update_non_index", Some(Test::UpdateNonIndex), &["9f802610b8f38d1b"]),
    ("oltp_write_only", Some(Test::WriteOnly), &["e06be71d5aacf5fb"]),
    ("select_random_points", Some(Test::RandomPoints), &["dea05906163359d8"]),
    ("select_random_ranges", Some(Test::RandomRanges), &["6bb9ee3b66f28ef2"]),
    (OLD, Some(Test::Oltp), &["93102840636adca0", "ecdd6fcc34202875"]),
    (OLD_COMMON, None, &["eb5563a051148a58", "3cd8290e0850578e"]),
];

/// Returns whether the file at this path differs from the stock script of the name, or cannot be read.
fn is_another(name: &str, path: &str) -> bool {
    let Ok(text) = std::fs::read(path) else { return true };
    let begin = text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| at + 1);
    let digits = format!("{:x}", Sha256::digest(&text[begin..]));
    let known = STOCK.iter().find(|(stock, ..)| *stock == name);
    !known.is_some_and(|(.., texts)| texts.contains(&&digits[..16]))
}

/// The places of the scripts of sysbench's packages and of its own `make install`.
const STOCK_PATH: &str = "/usr/local/share/sysbench/?.lua;/usr/share/sysbench/?.lua";
/// The usual places of modules, in the order of sysbench: here, below the home directory, and of all users.
const PATH_HERE: &str = "./?.lua;./?/init.lua;./src/lua/?.lua";
const PATHS_AT_HOME: [&str; 4] = ["5.1/?.lua", "5.1/?/init.lua", "?.lua", "?/init.lua"];
const PATH_OF_ALL: &str = "/usr/local/share/lua/5.1/?.lua;/usr/local/share/lua/5.1/?/init.lua;\
                           /usr/share/lua/5.1/?.lua";

/// The places of scripts for one command line.
pub(super) struct Places {
    /// LUA_PATH, in which `;;` stands for the usual places.
    usual: String,
    /// The directories where sysbench is installed.
    pub(super) stock: String,
    always: bool,
}

impl Places {
    /// Reads the environment. A script of an installed sysbench finds its modules beside it, wherever that is.
    pub(super) fn new(word: &str, env: &dyn Fn(&str) -> Option<OsString>) -> Places {
        let read = |name| env(name).and_then(|value| value.into_string().ok());
        let own = read("HOME").map(|home| {
            PATHS_AT_HOME.map(|path| format!("{home}/.luarocks/share/lua/{path};")).concat()
        });
        let usual = format!("{PATH_HERE};{}{PATH_OF_ALL}", own.unwrap_or_default());
        let usual = match read("LUA_PATH") {
            Some(path) => path.replace(";;", &format!(";{usual};")),
            None => usual,
        };
        let installed = Path::new(word).parent().filter(|dir| dir.ends_with("share/sysbench"));
        let stock = match installed {
            Some(dir) => format!("{}/?.lua;{STOCK_PATH}", dir.display()),
            None => STOCK_PATH.to_owned(),
        };
        Places { usual, stock, always: read("LOADGEN_LUA").is_some_and(|word| word == "always") }
    }

    /// Returns the places of modules that come before loadgen's own. Those of the installed sysbench are among them
    /// if they are to be run, or were changed.
    pub(super) fn package_path(&self) -> String {
        let changed =
            || find_module(&self.stock, COMMON).is_some_and(|path| is_another(COMMON, &path));
        if self.always || changed() {
            return format!("{};{}", self.usual, self.stock);
        }
        self.usual.clone()
    }

    fn find(&self, name: &str) -> Option<String> {
        find_module(&self.usual, name).or_else(|| find_module(&self.stock, name))
    }

    /// Returns the script that a word names, if it is to be run from Lua. Stock scripts are not: the built-in
    /// workloads stand for them, but where LOADGEN_LUA=always asks for the scripts, or a module that they load differs.
    pub(super) fn find_script(
        &self,
        word: &str,
        stock_name: Option<&str>,
    ) -> Result<Option<String>, String> {
        let own = if word == "-" || Path::new(word).is_file() {
            Some((word.to_owned(), word.to_owned()))
        } else {
            self.find(word).map(|found| (word.to_owned(), found))
        };
        let Some(name) = stock_name else { return Ok(own.map(|(given, _)| given)) };
        // The name of a stock script counts with or without a path and `.lua`.
        let installed = || find_module(&self.stock, name).map(|found| (found.clone(), found));
        match own.or_else(installed) {
            Some((given, found)) => {
                let differs = is_another(name, &found) || self.module_differs(name, &found);
                Ok((self.always || differs).then_some(given))
            }
            None if self.always => {
                let places = format!("{};{}", self.usual, self.stock);
                Err(format!("LOADGEN_LUA=always, but {name} is not at {word}, nor at {places}"))
            }
            None => Ok(None),
        }
    }

    /// Returns whether a stock script would load a changed module.
    fn module_differs(&self, name: &str, path: &str) -> bool {
        let module = match name {
            BULK | COMMON => return false,
            OLD => OLD_COMMON,
            _ => COMMON,
        };
        let beside = match path.rsplit_once('/') {
            Some((dir, _)) if name == OLD => Some(format!("{dir}/{module}.lua")),
            _ => None,
        };
        let found = match beside {
            Some(beside) => Some(beside).filter(|beside| Path::new(beside).exists()),
            None => self.find(module),
        };
        found.is_some_and(|found| is_another(module, &found))
    }
}

fn find_module(path: &str, name: &str) -> Option<String> {
    let name = name.replace('.', "/");
    let candidates = path.split(';').map(|template| template.replace('?', &name));
    candidates.into_iter().find(|candidate| Path::new(candidate).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_the_working_directory_come_before_those_of_luarocks() {
        let env = |name: &str| (name == "HOME").then(|| OsString::from("/h"));
        let rocks = "/h/.luarocks/share/lua/5.1/?.lua;/h/.luarocks/share/lua/5.1/?/init.lua;\
                     /h/.luarocks/share/lua/?.lua;/h/.luarocks/share/lua/?/init.lua";
        let usual = Places::new("own", &env).usual;
        assert_eq!(usual, format!("{PATH_HERE};{rocks};{PATH_OF_ALL}"));
        assert_eq!(Places::new("own", &|_: &str| None).usual, format!("{PATH_HERE};{PATH_OF_ALL}"));
    }

    #[test]
    fn module_is_found_below_a_directory_when_its_name_has_a_slash() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("sub")).expect("made");
        std::fs::write(dir.path().join("sub/own.lua"), "").expect("written");
        let usual = format!("{}/?.lua", dir.path().display());
        let places = Places { usual, stock: String::new(), always: false };
        assert_eq!(places.find_script("sub/own", None), Ok(Some("sub/own".to_owned())));
        assert_eq!(places.find_script("sub/other", None), Ok(None));
    }

    #[test]
    fn installed_scripts_are_found_and_run_when_they_are_no_stock_ones() {
        let dir = tempfile::tempdir().expect("a directory");
        let write =
            |name: &str| std::fs::write(dir.path().join(name), "\nchanged").expect("written");
        let stock = format!("{}/?.lua", dir.path().display());
        let places =
            |always| Places { usual: "/nonexistent/?.lua".into(), stock: stock.clone(), always };
        let find = |word: &str, name, always| places(always).find_script(word, name);
        let (word, name) = ("oltp_read_write", Some("oltp_read_write"));
        assert_eq!(find(word, name, false), Ok(None));
        assert!(find(word, name, true).is_err_and(|why| why.contains(&stock)));
        assert_eq!(find("own", None, false), Ok(None));
        assert!(!places(false).package_path().contains(&stock));
        write("own.lua");
        write("oltp_read_write.lua");
        write("oltp_common.lua");
        assert_eq!(find("own", None, false), Ok(Some("own".to_owned())));
        assert_eq!(find(word, name, false), Ok(Some(word.to_owned())));
        let path = format!("{}/oltp_read_write.lua", dir.path().display());
        assert_eq!(find("x/oltp_read_write.lua", name, false), Ok(Some(path)));
        assert!(places(false).package_path().contains(&stock));
        assert!(is_another(word, "/nonexistent/oltp_read_write.lua"));
    }
}
