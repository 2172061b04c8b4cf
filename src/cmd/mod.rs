//! One file a verb, each `run(args)`.
