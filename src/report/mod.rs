//! Summaries become tables.
