//! Scripts: where they lie, and which are the stock ones of sysbench 1.0.20, by the checksum of their text
//! without the first line, which packagers change.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use sha2::{Digest, Sha256};

/// The first 16 hexadecimal digits of SHA-256.
const STOCK: &str = "aa303c46d71f2200 2a9c225ce02d8ab5 0f66a3cc65472696 41e948b4b5104c38 \
                     a8df447935502a9c 2e85a293465743ec 7896a91b452a24e7 ee08292a90b002de \
                     9f802610b8f38d1b e06be71d5aacf5fb dea05906163359d8 6bb9ee3b66f28ef2";

/// Returns whether the script at this path differs from all stock scripts.
fn is_another(path: &str) -> bool {
    let Ok(text) = std::fs::read(path) else { return false };
    let begin = text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| at + 1);
    let mut digits = String::new();
    for byte in &Sha256::digest(&text[begin..])[..8] {
        write!(digits, "{byte:02x}").expect("a String takes everything");
    }
    !STOCK.contains(&digits)
}

/// Where sysbench's packages put its scripts.
pub(super) const STOCK_PATH: &str = "/usr/share/sysbench/?.lua";
const USUAL_PATH: &str = "./?.lua;./?/init.lua;./src/lua/?.lua;/usr/local/share/lua/5.1/?.lua;\
                          /usr/local/share/lua/5.1/?/init.lua;/usr/share/lua/5.1/?.lua";

/// Returns where modules are looked for: LUA_PATH, in which `;;` stands for the usual places; the stock ones
/// at the end where these are to be run, too.
pub(super) fn package_path(env: &dyn Fn(&str) -> Option<OsString>, stock: bool) -> String {
    let home = env("HOME").and_then(|home| home.into_string().ok());
    let own = home.map(|home| format!("{home}/.luarocks/share/lua/5.1/?.lua;"));
    let usual = format!("{}{USUAL_PATH}", own.unwrap_or_default());
    let stock = if stock { format!(";{STOCK_PATH}") } else { String::new() };
    let path = match env("LUA_PATH").and_then(|path| path.into_string().ok()) {
        Some(path) => path.replace(";;", &format!(";{usual};")),
        None => usual,
    };
    path + &stock
}

fn find_module(path: &str, name: &str) -> Option<String> {
    let name = name.replace('.', "/");
    let candidates = path.split(';').map(|template| template.replace('?', &name));
    candidates.into_iter().find(|candidate| Path::new(candidate).is_file())
}

/// Returns the script that a word names, if it is to be run from Lua. Stock scripts are not: the built-in
/// workloads stand for them, but where `always` asks for the scripts, or a module that they load differs.
pub(super) fn find(word: &str, is_stock: bool, path: &str, always: bool) -> Option<String> {
    if word == "-" {
        return Some(word.to_owned());
    }
    let own = if Path::new(word).is_file() {
        Some(word.to_owned())
    } else {
        find_module(path, word).filter(|_| !word.contains('/'))
    };
    let modules_differ = || find_module(path, "oltp_common").is_some_and(|own| is_another(&own));
    match own {
        Some(own) if !is_stock || always || is_another(&own) => Some(word.to_owned()),
        Some(_) => modules_differ().then(|| word.to_owned()),
        None if always => find_module(STOCK_PATH, word).map(|_| word.to_owned()),
        None => (is_stock && modules_differ())
            .then(|| find_module(STOCK_PATH, word))
            .flatten()
            .map(|_| word.to_owned()),
    }
}
