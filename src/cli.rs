//! The command line: clap structs, no logic.
