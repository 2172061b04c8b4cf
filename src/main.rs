//! Parse, dispatch, and turn an error into standard error and an exit status.

fn main() {}
