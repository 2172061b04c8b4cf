//! Files that mysqldump wrote, read as they stream: split into statements, and each held
//! against the few kinds that such a file has.

mod kind;
mod split;

pub(super) use kind::{Kind, Seen, classify, refuse_charset, unquoted};
pub(super) use split::Splitter;
