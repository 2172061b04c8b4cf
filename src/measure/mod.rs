//! Recorder, timeline, client cost.
