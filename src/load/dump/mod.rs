//! Files that mysqldump wrote, read as they stream: split into statements, and each held
//! against the few kinds that such a file has.

mod kind;
mod split;

pub(super) use kind::refuse_charset;
pub use kind::{Kind, Seen, classify, unquoted};
pub use split::{Splitter, Statement};
