//! Create, fill, index and drop the tables.
