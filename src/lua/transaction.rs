//! The name that the running client's script gives its event: a C function takes its number, which a compiled
//! loop calls directly.

use std::cell::Cell;
use std::ffi::c_void;

thread_local! {
    static NUMBER: Cell<Option<u32>> = const { Cell::new(None) };
}

extern "C" fn set(number: u32) {
    NUMBER.set(Some(number));
}

/// The function by the name that the prelude knows.
pub(super) fn function() -> (&'static str, *mut c_void) {
    ("transaction", set as *const () as *mut c_void)
}

#[inline]
pub(super) fn select(number: Option<u32>) {
    NUMBER.set(number);
}

#[inline]
pub(super) fn selected() -> Option<u32> {
    NUMBER.get()
}
