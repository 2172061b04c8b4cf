//! A canned-answer server with faults: for tests, benches and calibration.
