//! Pure statistics over repeats.
