//! The coroutine of a state, over LuaJIT's own interface in C. mlua's `Thread::resume` makes a handle for each value
//! and a list of them: an eighth of an event's CPU time.
#![expect(unsafe_code, reason = "LuaJIT's interface in C; each use names what it relies on")]

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::{ptr, slice};

use mlua::ffi::{self, lua_State};
use mlua::{Lua, MultiValue, Thread};

/// The stack of a coroutine that a table of its VM keeps alive.
pub(super) struct Coroutine {
    /// The VM lives as long as this.
    lua: Lua,
    stack: *mut lua_State,
    /// Values of the next reply that are on the stack.
    pushed: c_int,
}

/// The end of a coroutine's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Yielded,
    Ended,
    /// The last value is the error.
    Failed,
}

/// The values of a coroutine's turn, from place 1 on; they are gone from its stack when this is dropped.
pub(super) struct Results<'a> {
    stack: *mut lua_State,
    coroutine: PhantomData<&'a mut Coroutine>,
}

/// A value for a parameter of a statement, as the parameter was bound.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Argument {
    Null,
    Int(i64),
    Double(f64),
    Text(Vec<u8>),
}

impl Coroutine {
    /// Takes one that has not run yet.
    ///
    /// # Safety
    ///
    /// Something in the VM must keep it alive as long as this is used.
    pub(super) unsafe fn new(lua: &Lua, thread: &Thread) -> Coroutine {
        Coroutine { lua: lua.clone(), stack: thread.state(), pushed: 0 }
    }

    fn make_room(&self) -> mlua::Result<()> {
        // SAFETY: the stack lives, as `new` demands; a lack of memory is a result, no jump. A push grows a stack that it
        // fills: so there is one place more.
        let has_room = unsafe { ffi::lua_checkstack(self.stack, 2) } != 0;
        if has_room { Ok(()) } else { Err(mlua::Error::StackError) }
    }

    pub(super) fn push_switch(&mut self, on: bool) -> mlua::Result<()> {
        self.make_room()?;
        // SAFETY: there is room for it.
        unsafe { ffi::lua_pushboolean(self.stack, c_int::from(on)) };
        self.pushed += 1;
        Ok(())
    }

    pub(super) fn push_number(&mut self, number: f64) -> mlua::Result<()> {
        self.make_room()?;
        // SAFETY: there is room for it.
        unsafe { ffi::lua_pushnumber(self.stack, number) };
        self.pushed += 1;
        Ok(())
    }

    /// Moves values of any kind to the stack.
    pub(super) fn push_values(&mut self, values: MultiValue) -> mlua::Result<()> {
        let count = c_int::try_from(values.len()).expect("a reply has few values");
        let (stack, mut moved) = (self.stack, false);
        // SAFETY: both stacks are of one VM. Room is made behind all that may collect garbage, which shrinks stacks.
        unsafe {
            self.lua.exec_raw::<()>(values, |from| {
                moved = ffi::lua_checkstack(stack, count + 1) != 0;
                if moved {
                    ffi::lua_xmove(from, stack, count);
                } else {
                    ffi::lua_settop(from, 0);
                }
            })?;
        }
        if !moved {
            return Err(mlua::Error::StackError);
        }
        self.pushed += count;
        Ok(())
    }

    /// Goes on with the values that were pushed. An error says that it could not, or that there is no room for results.
    pub(super) fn resume(&mut self) -> mlua::Result<(Stop, Results<'_>)> {
        let (stack, pushed) = (self.stack, std::mem::take(&mut self.pushed));
        // SAFETY: the stack lives.
        let can_run = unsafe {
            match ffi::lua_status(stack) {
                ffi::LUA_YIELD => true,
                // Its function is below the values. A script may have run it to its end.
                ffi::LUA_OK => ffi::lua_gettop(stack) > pushed,
                _ => false,
            }
        };
        if !can_run {
            return Err(mlua::Error::CoroutineUnresumable);
        }
        // SAFETY: the stack has so many values; LuaJIT returns errors of the coroutine as a status.
        let status = unsafe { ffi::lua_resume(stack, ptr::null_mut(), pushed, ptr::null_mut()) };
        let stop = match status {
            ffi::LUA_YIELD => Stop::Yielded,
            ffi::LUA_OK => Stop::Ended,
            _ => Stop::Failed,
        };
        self.make_room()?;
        Ok((stop, Results { stack, coroutine: PhantomData }))
    }
}

impl Results<'_> {
    fn has_kind(&self, at: c_int, kind: c_int) -> bool {
        // SAFETY: LuaJIT answers for places above the last value, too.
        unsafe { ffi::lua_type(self.stack, at) == kind }
    }

    pub(super) fn address(&self, at: c_int) -> Option<*mut c_void> {
        // SAFETY: the value is an address.
        let read = || unsafe { ffi::lua_touserdata(self.stack, at) };
        self.has_kind(at, ffi::LUA_TLIGHTUSERDATA).then(read)
    }

    pub(super) fn switch(&self, at: c_int) -> Option<bool> {
        // SAFETY: the value is true or false.
        let read = || unsafe { ffi::lua_toboolean(self.stack, at) } != 0;
        self.has_kind(at, ffi::LUA_TBOOLEAN).then(read)
    }

    pub(super) fn number(&self, at: c_int) -> Option<f64> {
        // SAFETY: the value is a number.
        let read = || unsafe { ffi::lua_tonumber(self.stack, at) };
        self.has_kind(at, ffi::LUA_TNUMBER).then(read)
    }

    /// Returns a text, as long as it stays on the stack.
    fn bytes(&self, at: c_int) -> Option<&[u8]> {
        if !self.has_kind(at, ffi::LUA_TSTRING) {
            return None;
        }
        let mut length = 0;
        // SAFETY: the value is a text, which stays where it is while the stack has it. An empty one has an address, too.
        Some(unsafe {
            let begin = ffi::lua_tolstring(self.stack, at, &raw mut length);
            slice::from_raw_parts(begin.cast::<u8>(), length)
        })
    }

    pub(super) fn text(&self, at: c_int) -> Option<Vec<u8>> {
        self.bytes(at).map(<[u8]>::to_vec)
    }

    /// Returns the last value, if it is a text.
    pub(super) fn last_text(&self) -> Option<String> {
        // SAFETY: the stack lives.
        let last = unsafe { ffi::lua_gettop(self.stack) };
        let text = (last > 0).then(|| self.bytes(last)).flatten();
        text.map(|text| String::from_utf8_lossy(text).into_owned())
    }

    /// Reads the values of a statement (the list at `list`), of their kinds (a letter each, the text at `kinds`).
    pub(super) fn read_arguments(
        &self,
        (kinds, list): (c_int, c_int),
        arguments: &mut Vec<Argument>,
    ) -> Option<()> {
        let kinds = self.bytes(kinds)?;
        let has_list = self.has_kind(list, ffi::LUA_TTABLE);
        let read = |(at, kind): (c_int, &u8)| {
            if has_list { self.item(list, at, *kind == b'i') } else { Argument::Null }
        };
        arguments.clear();
        arguments.extend((1..).zip(kinds).map(read));
        Some(())
    }

    /// Reads an item of a list; `is_int`: its parameter is a whole number.
    fn item(&self, list: c_int, at: c_int, is_int: bool) -> Argument {
        // SAFETY: there is a list, and room for its item, which `resume` made.
        unsafe { ffi::lua_rawgeti_(self.stack, list, at) };
        let item = match (self.number(-1), self.bytes(-1)) {
            (Some(number), _) if is_int => Argument::Int(number as i64),
            (Some(number), _) => Argument::Double(number),
            // More digits than a number of Lua holds.
            (None, Some(digits)) if is_int => {
                let number = str::from_utf8(digits).ok().and_then(|text| text.parse().ok());
                number.map_or(Argument::Null, Argument::Int)
            }
            (None, Some(text)) => Argument::Text(text.to_vec()),
            (None, None) => Argument::Null,
        };
        // SAFETY: the item is the last value.
        unsafe { ffi::lua_settop(self.stack, -2) };
        item
    }
}

impl Drop for Results<'_> {
    fn drop(&mut self) {
        // SAFETY: no reference into the stack outlives this.
        unsafe { ffi::lua_settop(self.stack, 0) };
    }
}
