//! Scripts of sysbench's: LuaJIT with sysbench's API. The caller does the requests of a script.
//!
//! One VM a thread, an environment and a coroutine a client. The prelude (`prelude.lua`) is the API; it yields
//! requests, and is resumed with replies. docs/dev/lua.md has the decisions.

mod coroutine;
mod random;
mod transaction;
mod vm;

pub(crate) use coroutine::Argument;
pub(crate) use random::{share_unique, unique_start};
pub(crate) use vm::{Declared, Entry, Reply, Request, State, Turn, Vm, say_line};
